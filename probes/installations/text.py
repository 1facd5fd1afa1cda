"""Literals that small Python files assign to names, read as text; nothing is run.

Such files are written by a framework's build: ``__version__ = '2.10.0'``, ``cuda: str = "13.2"``, ``build_info =
collections.OrderedDict([...])``.
"""

from __future__ import annotations

import ast
import re
import warnings
from typing import Any

LITERAL_LIMIT = 1 << 14
"""Most characters of one value; lists of built parts have some hundred."""
_ASSIGNED = r"^(?:\w+[ \t]*=[ \t]*)*{name}[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+[ \t]*=[ \t]*)*(?P<value>[^=\n#][^\n]*)$"
_DRESSED = re.compile(r"(?:collections\.)?OrderedDict\((?P<pairs>.*)\)", re.DOTALL)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+!_-]{0,80}")
_CUDA = re.compile(r"(\d{1,2})(?:\.(\d{1,2}|x))?(?:\.\d{1,3})?")
_TARGET = re.compile(r"(?:sm|compute)_\d{2,3}[af]?")
_LABEL_CUDA = re.compile(r"cu(?:da)?(\d{2,3})(?!\d)")
_LABEL_TORCH = re.compile(r"torch(\d{1,2}\.\d{1,2})(?!\d)")


def assigned(text: str, name: str) -> Any:
    """The literal that the text assigns to ``name``, once, on one top-level line; else None."""
    found = [match["value"] for match in re.finditer(_ASSIGNED.format(name=re.escape(name)), text, re.MULTILINE)]
    if len(found) != 1 or len(found[0]) > LITERAL_LIMIT:
        return None
    dressed = _DRESSED.fullmatch(found[0].strip())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about invalid escapes in foreign text do not matter
            value = ast.literal_eval(dressed["pairs"] if dressed else found[0].strip())
            return dict(value) if dressed else value
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def mapping(text: str, name: str) -> dict[Any, Any]:
    """The dictionary that the text assigns to ``name``; else an empty one."""
    value = assigned(text, name)
    return value if isinstance(value, dict) else {}


def version(value: object) -> str | None:
    """The value if it is a version."""
    return value if isinstance(value, str) and _VERSION.fullmatch(value) else None


def cuda_version(value: object) -> str | None:
    """``12.5`` of ``12.5.1``, ``12`` of ``12.x``; None if it is not a CUDA version, such as ``0.0`` or ``False``."""
    match = _CUDA.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) == 0:
        return None
    return match[1] if match[2] in {None, "x"} else f"{match[1]}.{match[2]}"


def cuda_of_number(value: object) -> str | None:
    """``12.8`` of 1208 (or 12080): as builds encode a CUDA version in one number."""
    if not isinstance(value, int) or isinstance(value, bool) or not 700 <= value < 100_000:
        return None
    major, minor = divmod(value // 10 if value >= 10_000 else value, 100)
    return f"{major}.{minor}"


def digits_as_version(digits: str) -> str:
    """``12.8`` of ``128``, ``9.2`` of ``92``; two digits that are no CUDA of one digit are a major version: ``12``."""
    if len(digits) == 2 and digits.startswith("1"):
        return digits
    return f"{digits[:-1]}.{digits[-1]}"


def label(version_text: str | None) -> dict[str, str]:
    """The versions in a local tag: ``{"cuda": "12", "torch": "2.5"}`` of ``2.7.4+cu12torch2.5cxx11abiFALSE``."""
    _, plus, local = (version_text or "").partition("+")
    cuda, torch = _LABEL_CUDA.search(local), _LABEL_TORCH.search(local)
    found = {"cuda": digits_as_version(cuda[1]) if cuda else None, "torch": torch[1] if torch else None}
    return {key: value for key, value in found.items() if value is not None and plus}


def targets(value: object) -> list[str] | None:
    """The values, if all are targets of GPU code; None for an empty list."""
    items = list(value) if isinstance(value, (list, tuple)) else []
    good = [item for item in items if isinstance(item, str) and _TARGET.fullmatch(item)]
    return good if good and len(good) == len(items) <= 100 else None
