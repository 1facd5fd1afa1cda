"""From what was named (a program, a link, a folder) to an interpreter and its prefix, by reading alone.

An interpreter finds its environment as PEP 405 says: by a ``pyvenv.cfg`` beside the program or one folder up, before
any link is followed; else by its standard library, upward from the program that the links lead to.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from . import _env_pyenv as pyenv
from ._env_paths import (
    is_file,
    is_folder,
    is_program,
    is_there,
    link_target,
    name_of,
    parent,
    printable,
    read_head,
    real,
)
from ._kit import Request, list_names

LIBRARY = re.compile(r"(python|pypy)(\d+\.\d+)t?$")
"""The folder below ``lib`` that belongs to one Python: ``python3.12``, ``python3.13t``, ``pypy3.10``."""
_PROGRAM = re.compile(r"(python|pypy|graalpy)")
_USUAL = ("python3", "python", "pypy3", "pypy", "python2")
_ELF = b"\x7fELF"


class Place(NamedTuple):
    """Where an environment is; ``problem`` says why it cannot be examined, or cannot run ("it": what was named)."""

    executable: str | None = None
    prefix: str | None = None
    problem: str | None = None
    system: bool = False
    """A pyenv shim that leaves the choice to the rest of PATH."""
    lost: str | None = None
    """The ``pyvenv.cfg`` that is not there any more, of what else looks like a virtual environment."""


def locate(request: Request, path: str) -> Place:
    """The environment that the absolute ``path`` stands for."""
    if is_folder(request, path):
        return _from_folder(request, path)
    if not is_there(request, path):
        return Place(problem="it does not exist")
    return _from_file(request, path, "it")


def libraries(request: Request, prefix: str, landmark: str) -> list[str]:
    """Folders such as ``lib/python3.12`` in ``prefix`` that hold ``landmark``, ``lib`` before ``lib64``."""
    found: dict[str, str] = {}
    for lib in ("lib", "lib64"):
        for name in list_names(request, f"{prefix}/{lib}") or []:
            path = f"{prefix}/{lib}/{name}"
            if LIBRARY.match(name) and is_there(request, f"{path}/{landmark}"):
                found.setdefault(real(request, path), path)
    return list(found.values())


def base_prefix(request: Request, program: str) -> str | None:
    """The prefix of an interpreter that is no virtual environment's: where its standard library is."""
    folder = parent(real(request, program))
    while parent(folder) not in {"/", folder}:
        folder = parent(folder)
        if libraries(request, folder, "os.py") or is_folder(request, f"{folder}/conda-meta"):
            return folder
    return None


def _from_folder(request: Request, folder: str) -> Place:
    known = is_file(request, f"{folder}/pyvenv.cfg") or is_folder(request, f"{folder}/conda-meta")
    program = _program_in(request, folder)
    if program is not None:
        place = _from_file(request, program, printable(program))
        prefix = folder if known else place.prefix
        return Place(executable=place.executable or program, prefix=prefix, problem=place.problem)
    return Place(prefix=folder if known else None, problem=_no_program(request, folder))


def _program_in(request: Request, folder: str) -> str | None:
    numbered = [name for name in list_names(request, f"{folder}/bin") or [] if LIBRARY.match(name)]
    for name in (*_USUAL, *numbered):
        if not is_folder(request, f"{folder}/bin/{name}") and is_there(request, f"{folder}/bin/{name}"):
            return f"{folder}/bin/{name}"
    return None


def _no_program(request: Request, folder: str) -> str:
    if is_folder(request, f"{folder}/Scripts"):
        return "it is laid out for Windows (Scripts/python.exe) and cannot be examined from Linux"
    if is_file(request, f"{folder}/pyvenv.cfg"):
        return "it has lost its interpreter (there is no bin/python)"
    if is_folder(request, f"{folder}/conda-meta"):
        return "it is a conda environment without Python"
    inner = next((name for name in (".venv", "venv") if is_file(request, f"{folder}/{name}/pyvenv.cfg")), None)
    hint = f"; {printable(folder)}/{inner} is one" if inner else ""
    return f"it is a folder without a Python environment (there is no bin/python){hint}"


def _from_file(request: Request, path: str, shown: str) -> Place:
    root = pyenv.root_of_shim(request, path)
    return _from_program(request, path, shown) if root is None else _from_shim(request, path, root)


def _from_shim(request: Request, path: str, root: str) -> Place:
    target, problem = pyenv.interpreter(request, root, name_of(path))
    if target is None:
        return Place(executable=path, problem=problem)
    if target == pyenv.SYSTEM:
        return Place(executable=path, problem=f"the pyenv shim {printable(path)} selects no version", system=True)
    return _from_program(request, target, printable(target))


def _from_program(request: Request, path: str, shown: str) -> Place:
    """``shown``: how a sentence calls the program, unless its virtual environment is what was named."""
    prefix = _virtual_prefix(request, path)
    shown = printable(path) if prefix else shown
    problem = _why_not(request, path, shown)
    if prefix is None and problem is None:
        prefix = base_prefix(request, path)
        problem = None if prefix else f"{shown} has lost its standard library"
        return Place(executable=path, prefix=prefix, problem=problem, lost=_lost(request, path))
    return Place(executable=path, prefix=prefix, problem=problem)


def _lost(request: Request, program: str) -> str | None:
    """The ``pyvenv.cfg`` that a link to an interpreter lacks, beside packages without a standard library."""
    folder = parent(parent(program))
    if link_target(request, program) is None or not libraries(request, folder, "site-packages"):
        return None
    return None if libraries(request, folder, "os.py") else f"{folder}/pyvenv.cfg"


def _virtual_prefix(request: Request, program: str) -> str | None:
    folder = parent(program)
    return next((place for place in (parent(folder), folder) if is_file(request, f"{place}/pyvenv.cfg")), None)


def _why_not(request: Request, path: str, shown: str) -> str | None:
    """Why the file cannot be a working interpreter, or None."""
    target = real(request, path)
    if not is_there(request, target):
        return f"its base interpreter {printable(target)} is gone"
    if link_target(request, target) is not None:
        return f"{shown} is a link that leads in a circle"
    if not is_program(request, target):
        return f"{shown} is not {'executable' if is_file(request, target) else 'a file'}"
    return _why_no_python(request, shown, target)


def _why_no_python(request: Request, shown: str, target: str) -> str | None:
    head = read_head(request, target, 4)  # None where it may be run but not read
    if head is not None and head[:2] == b"#!":
        return f"{shown} is a script, which is never run here; name the interpreter itself"
    if head is not None and head != _ELF:
        return f"{shown} is not a program for Linux"
    if not _PROGRAM.match(name_of(target)):
        return f"{shown} leads to {printable(target)}, which is no Python by its name"
    return None
