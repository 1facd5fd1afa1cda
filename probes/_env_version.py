"""Which Python version an environment has, as far as its files tell; nothing is guessed."""

from __future__ import annotations

import re

from ._elf_constants import constants
from ._env_paths import real
from ._kit import Request, list_names, read_text

_SETTING = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
_PROGRAM = re.compile(r"(python|pypy)(\d+\.\d+)")
_PATCHLEVEL = re.compile(r'^#define\s+PY_VERSION\s+"(\d+\.\d+\.\d+[0-9A-Za-z.+]{0,10})"', re.MULTILINE)


def of_settings(settings: dict[str, str]) -> str | None:
    """The version that ``pyvenv.cfg`` names: ``3.12.1`` of ``3.12.1.final.0``."""
    for key in ("version", "version_info"):
        match = _SETTING.match(settings.get(key, ""))
        if match:
            return match.group(0)
    return None


def minor_of(version: str | None) -> str | None:
    """``3.12`` of ``3.12.1``."""
    match = _SETTING.match(version or "")
    return f"{match.group(1)}.{match.group(2)}" if match else None


def minor_of_program(name: str) -> str | None:
    """``3.12`` of ``python3.12``."""
    match = _PROGRAM.match(name)
    return match.group(2) if match else None


def implementation_of_program(name: str) -> str | None:
    """``cpython`` of ``python3.12``, ``pypy`` of ``pypy3.10``; None for a name without a version."""
    match = _PROGRAM.match(name)
    return {"python": "cpython", "pypy": "pypy"}[match.group(1)] if match else None


def full(request: Request, base: str | None, minor: str | None, program: str | None) -> str | None:
    """The version with its patch level, by what an installation of ``minor`` at ``base`` holds."""
    if base is None or minor is None:
        return None
    return (
        _by_conda(request, base, minor)
        or _by_header(request, base, minor)
        or _by_constants(request, base, minor, program)
    )


def _by_conda(request: Request, base: str, minor: str) -> str | None:
    for name in list_names(request, f"{base}/conda-meta") or []:
        match = re.match(r"python-(\d+\.\d+\.\d+[0-9a-z]*)-[^-]*\.json$", name)
        if match and minor_of(match.group(1)) == minor:
            return match.group(1)
    return None


def _by_header(request: Request, base: str, minor: str) -> str | None:
    for name in list_names(request, f"{base}/include") or []:
        if minor_of_program(name) == minor:
            text = read_text(request, f"{base}/include/{name}/patchlevel.h", 65536)
            match = _PATCHLEVEL.search(text or "")
            if match and minor_of(match.group(1)) == minor:
                return match.group(1)
    return None


def _by_constants(request: Request, base: str, minor: str, program: str | None) -> str | None:
    """The version text inside the interpreter, where exactly one fits."""
    wanted = re.compile(rb"\0(" + re.escape(minor).encode() + rb"\.\d{1,3}(?:(?:a|b|rc)\d{1,2})?\+?)(?=\0)")
    library = f"{base}/lib/libpython{minor}.so.1.0"
    for path in (library, program):
        data = constants(request, real(request, path)) if path else None
        found = {match.group(1).decode() for match in wanted.finditer(data or b"")}
        if len(found) == 1:
            return found.pop()
    return None
