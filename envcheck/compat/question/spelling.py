"""The many ways in which people, and tools, write one version: as the grammar of versions has it."""

from __future__ import annotations

import re
from collections.abc import Callable

from envcheck.components import Bound, Component
from envcheck.versions import CudaVersion

_WILDCARD = re.compile(r"(?:\.[x*])+$", re.IGNORECASE)
_CUDA_TAG = re.compile(r"cu[0-9]{2,3}")
_CUDA_UPDATE = re.compile(r"(?<=[0-9])[ -]?(?:u|update)[ -]?[0-9]+$")
_PACKAGED = re.compile(r"-[0-9]+(?:ubuntu|\.|~|$).*")
_PYTHON_TAG = re.compile(r"(?:cp|py)([23])([0-9]{0,2})")
_COUNT = re.compile(r"[0-9]{1,3} ?[x\N{MULTIPLICATION SIGN}] ?(?=[A-Za-z])")


def spelled(name: str, component: Component) -> Component:
    """A component, by its canonical name, with its exact value as the readers of values have it."""
    text = component.exact
    if text is None:
        return component
    write = _SPELLINGS.get(name, _version)
    return component._replace(bounds=(Bound("==", write(text.strip())),))


def _version(text: str) -> str:
    """``12.x`` and ``12.*`` are families, as ``12`` is."""
    return _WILDCARD.sub("", text) if text[:1].isdigit() else text


def _cuda(text: str) -> str:
    """``cu124``, ``V12.4.131`` and ``12.4 Update 1`` are 12.4."""
    plain = _CUDA_UPDATE.sub("", text.lower().removeprefix("v"))
    return str(CudaVersion.from_tag(plain)) if _CUDA_TAG.fullmatch(plain) else _version(plain)


def _driver(text: str) -> str:
    """``R550`` and ``v550.54.14``; ``550.54.14-0ubuntu1`` as packages are called."""
    return _version(_PACKAGED.sub("", text.lower()).removeprefix("r").removeprefix("v"))


def _l4t(text: str) -> str:
    """``R36.4.3``."""
    return _version(text.lower().removeprefix("r"))


def _python(text: str) -> str:
    """``cp312``."""
    tag = _PYTHON_TAG.fullmatch(text.lower())
    return _version(".".join(filter(None, tag.groups())) if tag else text)


def _gpu(text: str) -> str:
    """``8x H100``."""
    return _COUNT.sub("", text) if _COUNT.match(text) else text


_SPELLINGS: dict[str, Callable[[str], str]] = {
    "cuda": _cuda,
    "nvcc": _cuda,
    "cuda-compat": _cuda,
    "driver": _driver,
    "l4t": _l4t,
    "python": _python,
    "gpu": _gpu,
}
