"""Which interpreter a pyenv shim would start: found by reading what pyenv reads, never by asking it.

Order as pyenv documents it: PYENV_VERSION, the nearest ``.python-version`` upward from the current folder, the file
``version`` in pyenv's root, and else the system's interpreter further down PATH.
"""

from __future__ import annotations

import re

from ._env_paths import is_folder, is_there, name_of, parent, printable, read_head
from ._kit import Request, list_names, read_text

_ROOT_LINE = re.compile(r"^\s*export\s+PYENV_ROOT=[\"']?([^\"'\n]+)[\"']?\s*$", re.MULTILINE)
_EXEC_LINE = re.compile(r"^\s*exec\s+[\"']?[^\"'\n]*pyenv[\"']?\s+exec\s", re.MULTILINE)
_SHIM_LIMIT = 65536
SYSTEM = "system"


def root_of_shim(request: Request, path: str) -> str | None:
    """The root of pyenv when the program is one of its shims, else None."""
    if read_head(request, path, 2) != b"#!":
        return None
    text = read_text(request, path, _SHIM_LIMIT) or ""
    if not _EXEC_LINE.search(text):
        return None
    named = _ROOT_LINE.search(text)
    return named.group(1) if named else parent(parent(path))


def interpreter(request: Request, root: str, program: str) -> tuple[str | None, str | None]:
    """The path that the shim for ``program`` leads to, or why there is none; ``SYSTEM`` when PATH decides."""
    wanted, said_by = _selected(request, root)
    missing = []
    for version in wanted:
        if version == SYSTEM:
            return SYSTEM, None
        folder = _installed(request, root, version)
        if folder is None:
            missing.append(version)
        elif is_there(request, f"{folder}/bin/{program}"):
            return f"{folder}/bin/{program}", None
    if missing:
        return None, f"pyenv selects {printable(', '.join(missing), 80)} ({said_by}), which is not installed"
    return None, f"pyenv selects {printable(', '.join(wanted), 80)} ({said_by}), which holds no {program}"


def _selected(request: Request, root: str) -> tuple[list[str], str]:
    """The names of versions in order, and where they were said."""
    named = [part for part in str(request["variables"].get("PYENV_VERSION", "")).split(":") if part]
    if named:
        return named, "PYENV_VERSION"
    for path in [*_version_files(request["cwd"]), f"{root}/version"]:
        named = _names_in(read_text(request, path, 4096))
        if named:
            return named, path
    return [SYSTEM], "its default"


def _version_files(cwd: str) -> list[str]:
    folders = [cwd]
    while parent(folders[-1]) != folders[-1]:
        folders.append(parent(folders[-1]))
    return [f"{folder.rstrip('/')}/.python-version" for folder in folders]


def _names_in(text: str | None) -> list[str]:
    lines = (line.split("#")[0] for line in (text or "").splitlines())
    return [word for line in lines for word in line.split() if "/" not in word and ".." not in word]


def _installed(request: Request, root: str, version: str) -> str | None:
    """The folder of a version by its name; ``3.11`` stands for the newest ``3.11.*``."""
    if "/" in version or ".." in version:
        return None
    versions = f"{root}/versions"
    for name in (version, version.removeprefix("python-")):
        if is_folder(request, f"{versions}/{name}"):
            return f"{versions}/{name}"
    prefix = version.removeprefix("python-") + "."
    newer = [name for name in list_names(request, versions) or [] if name.startswith(prefix) and _numbers(name)]
    return f"{versions}/{max(newer, key=_numbers)}" if newer else None


def _numbers(name: str) -> tuple[int, ...]:
    """``3.11.7`` as numbers; empty for a name with anything else in it."""
    parts = name_of(name).split(".")
    return tuple(int(part) for part in parts) if all(part.isascii() and part.isdigit() for part in parts) else ()
