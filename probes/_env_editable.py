"""Packages that editable installations of setuptools bring by a finder: the module is read, and never run.

Such an installation puts two files into a site folder: ``__editable__.NAME-VERSION.pth``, which imports the finder, and
``__editable___NAME_VERSION_finder.py``, whose constant ``MAPPING`` says where each package lies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ._env_head import read_start
from ._kit import Request, list_names

_LIMIT = 256 << 10
_FINDERS = 200
_IMPORT = re.compile(rb"^import (__editable___\w{1,200}_finder)\b", re.MULTILINE)
_MAPPING = re.compile(r"^MAPPING(?:\s*:[^=\n]{1,100})?\s*=\s*(\{.*\})\s*$", re.MULTILINE)


def mapped(request: Request, folders: Iterable[str]) -> dict[str, str]:
    """Name of the import → path of its package (or of its module, without ``.py``), for every finder in ``folders``."""
    found: dict[str, str] = {}
    for folder in folders:
        names = [name for name in list_names(request, folder) or () if name.startswith("__editable__")]
        for name in [name for name in names if name.endswith(".pth")][:_FINDERS]:
            for match in _IMPORT.finditer(read_start(request, f"{folder}/{name}", 4096) or b""):
                said = _said(request, f"{folder}/{match[1].decode()}.py")
                found.update((key, path) for key, path in said.items() if key not in found)
    return found


def _said(request: Request, path: str) -> dict[str, str]:
    text = (read_start(request, path, _LIMIT) or b"").decode("utf-8", "replace")
    match = _MAPPING.search(text)
    if not match:
        return {}
    import ast  # few environments have one

    try:
        mapping = ast.literal_eval(match[1])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return {}
    pairs = mapping.items() if isinstance(mapping, dict) else ()
    return {
        key: value
        for key, value in pairs
        if isinstance(key, str) and isinstance(value, str) and value.startswith("/") and "\0" not in value
    }
