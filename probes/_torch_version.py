"""``torch/version.py``, which PyTorch's build writes: literals, taken from its syntax tree and never run."""

from __future__ import annotations

import ast
import re
import warnings
from typing import NamedTuple, TypeGuard

from ._env_paths import is_file, is_there
from ._kit import Request, read_text

_SIZE_LIMIT = 65536
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+_-]{0,80}")
_BACKENDS = ("hip", "rocm", "xpu")
"""What a build without CUDA may have been made for instead."""


class VersionFile(NamedTuple):
    """What the file says; ``cpu_only`` is None unless it speaks of CUDA, ``problem`` is why it tells too little."""

    path: str = ""
    there: bool = False
    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    cpu_only: bool | None = None
    problem: str | None = None


def read_version_file(request: Request, package: str) -> VersionFile:
    """The version file of the package whose folder is ``package``."""
    path = f"{package}/version.py"
    if not is_there(request, path):
        return VersionFile()
    text = read_text(request, path, _SIZE_LIMIT) if is_file(request, path) else None
    if text is None:
        return VersionFile(path=path, there=True, problem="it is no file that may be read")
    said = _literals(text)
    if said is None:
        return VersionFile(path=path, there=True, problem="it is not Python")
    return _understood(path, said)


def _understood(path: str, said: dict[str, str | None]) -> VersionFile:
    version = said.get("__version__")
    if version is None:
        return VersionFile(path=path, there=True, problem="it assigns no plain __version__")
    others = [said.get(name) for name in _BACKENDS]
    return VersionFile(
        path=path,
        there=True,
        version=version,
        cuda=said.get("cuda"),
        hip=said.get("hip"),
        cpu_only=None if "cuda" not in said else said["cuda"] is None and not any(others),
        problem=None if "cuda" in said else "it does not say for which CUDA it was built",
    )


def _literals(text: str) -> dict[str, str | None] | None:
    """Names that the file's top level assigns once, to a version text or to None; None when it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the parser thinks of a stranger's escapes is no concern here
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    said: dict[str, str | None] = {}
    assigned: list[str] = []
    for statement in tree.body:
        for name, value in _assignments(statement):
            assigned.append(name)
            if isinstance(value, ast.Constant) and (value.value is None or _is_version(value.value)):
                said[name] = value.value
    return {name: value for name, value in said.items() if assigned.count(name) == 1}


def _assignments(statement: ast.stmt) -> list[tuple[str, ast.expr | None]]:
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [(statement.target.id, statement.value)]
    if isinstance(statement, ast.Assign):
        return [(target.id, statement.value) for target in statement.targets if isinstance(target, ast.Name)]
    return []


def _is_version(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and _VERSION.fullmatch(value) is not None
