"""Resolve a program, link, folder or pyenv shim to an interpreter and its prefix, only by reading files."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ...common.paths import joined, name_of, parent, printable, without_prefix
from ...common.tree import MOST_LINKS, Tree

# Which interpreter a pyenv shim would start: found by reading what pyenv reads, never by asking it.
#
# Order as pyenv documents it: PYENV_VERSION, the nearest ``.python-version`` upward from the current folder, the file
# ``version`` in pyenv's root, and else the system's interpreter further down PATH.

_ROOT_LINE = r"export[ \t]+PYENV_ROOT=[\"']?([^\"']+)[\"']?"
_EXEC_LINE = r"exec[ \t]+[\"']?[^\"']*pyenv[\"']?[ \t]+exec[ \t]"
SYSTEM = "system"


def root_of_shim(tree: Tree, path: str) -> str | None:
    """The root of pyenv if the program is one of its shims, else None."""
    if tree.read_bytes(path, 2) != b"#!":
        return None
    lines = [line.strip() for line in (tree.read_text(path, 65536) or "").splitlines()]
    if not any(re.match(_EXEC_LINE, line) for line in lines):
        return None
    named = next(filter(None, (re.fullmatch(_ROOT_LINE, line) for line in lines)), None)
    return named.group(1) if named else parent(parent(path))


def interpreter(tree: Tree, root: str, program: str) -> tuple[str | None, str | None]:
    """The interpreter behind the shim for ``program``, or why there is none; ``SYSTEM`` if PATH decides."""
    wanted, said_by = _selected(tree, root)
    missing = []
    for version in wanted:
        if version == SYSTEM:
            return SYSTEM, None
        folder = _installed(tree, root, version)
        if folder is None:
            missing.append(version)
        elif tree.lexists(f"{folder}/bin/{program}"):
            return f"{folder}/bin/{program}", None
    if missing:
        return None, f"pyenv selects {printable(', '.join(missing), 80)} ({said_by}), which is not installed"
    return None, f"pyenv selects {printable(', '.join(wanted), 80)} ({said_by}), which holds no {program}"


def _selected(tree: Tree, root: str) -> tuple[list[str], str]:
    """The selected versions in order, and where they were selected."""
    named = [part for part in str(tree.variables.get("PYENV_VERSION", "")).split(":") if part]
    if named:
        return named, "PYENV_VERSION"
    folders = [tree.cwd]
    while parent(folders[-1]) != folders[-1]:
        folders.append(parent(folders[-1]))
    for path in [*[f"{folder.rstrip('/')}/.python-version" for folder in folders], f"{root}/version"]:
        text = tree.read_text(path, 4096)
        lines = (line.split("#")[0] for line in (text or "").splitlines())
        named = [word for line in lines for word in line.split() if "/" not in word and ".." not in word]
        if named:
            return named, path
    return [SYSTEM], "its default"


def _installed(tree: Tree, root: str, version: str) -> str | None:
    """The folder of a version; ``3.11`` stands for the newest ``3.11.*``."""
    if "/" in version or ".." in version:
        return None
    versions = f"{root}/versions"
    for name in (version, without_prefix(version, "python-")):
        if tree.is_folder(f"{versions}/{name}"):
            return f"{versions}/{name}"
    prefix = without_prefix(version, "python-") + "."
    newer = [name for name in tree.list_names(versions) or [] if name.startswith(prefix) and _numbers(name)]
    return f"{versions}/{max(newer, key=_numbers)}" if newer else None


def _numbers(name: str) -> tuple[int, ...]:
    """``3.11.7`` as numbers; empty for a name with anything else in it."""
    parts = name_of(name).split(".")
    return tuple(int(part) for part in parts) if all(part.isascii() and part.isdigit() for part in parts) else ()


# From what was named (a program, a link, a folder) to an interpreter and its prefix, by reading alone.
#
# An interpreter finds its environment as PEP 405 says: by a ``pyvenv.cfg`` beside the program or one folder up, before
# any link is followed; else by its standard library, upward from the program that the links lead to.


LIBRARY = lazy_pattern(r"(python|pypy)(\d+\.\d+)t?$")
"""The folder below ``lib`` that belongs to one Python: ``python3.12``, ``python3.13t``, ``pypy3.10``."""
_PROGRAM = lazy_pattern(r"(python|pypy|graalpy)")
_USUAL = ("python3", "python", "pypy3", "pypy", "python2")
_LAUNCHED = lazy_pattern(rb"#![ \t]{0,8}(/[^\s]*/(?:python|pypy)[\d.]*t?)[ \t\r\n]")
"""The first line of a program that pip or uv wrote: which interpreter runs it."""


class PythonPlace(NamedTuple):
    """The location of an environment; ``problem`` says why it cannot be examined or run ("it": the named thing)."""

    executable: str | None = None
    prefix: str | None = None
    problem: str | None = None
    system: bool = False  # Whether a pyenv shim leaves the choice to the rest of PATH
    lost: tuple[str, str] | None = None
    """Why Python, started there, would take another environment than the one at ``prefix``: a path and its problem."""
    unmarked: bool = False  # Whether a virtual environment has lost its ``pyvenv.cfg``


def locate(tree: Tree, path: str) -> PythonPlace:
    """The environment that the absolute ``path`` stands for."""
    if not tree.is_folder(path):
        return _from_file(tree, path, "it") if tree.lexists(path) else PythonPlace(problem="it does not exist")
    known = tree.is_file(f"{path}/pyvenv.cfg") or tree.is_folder(f"{path}/conda-meta")
    numbered = [name for name in tree.list_names(f"{path}/bin") or [] if LIBRARY.match(name)]
    programs = (f"{path}/bin/{name}" for name in (*_USUAL, *numbered))
    program = next((each for each in programs if not tree.is_folder(each) and tree.lexists(each)), None)
    if program is None:
        return PythonPlace(prefix=path if known else None, problem=_no_program(tree, path))
    place = _from_file(tree, program, printable(program))
    if known:
        return PythonPlace(executable=place.executable or program, prefix=path, problem=place.problem)
    if place.prefix and tree.real_path(place.prefix) != tree.real_path(path) != "/":
        return place._replace(executable=program, prefix=path) if place.lost else _unmarked(tree, program, path)
    return place


def libraries(tree: Tree, prefix: str, landmark: str) -> list[str]:
    """Folders such as ``lib/python3.12`` in ``prefix`` that contain ``landmark``, ``lib`` before ``lib64``."""
    found: dict[str, str] = {}
    for lib in ("lib", "lib64"):
        for name in tree.list_names(f"{prefix}/{lib}") or []:
            path = f"{prefix}/{lib}/{name}"
            if LIBRARY.match(name) and tree.lexists(f"{path}/{landmark}"):
                found.setdefault(tree.real_path(path), path)
    return list(found.values())


def base_prefix(tree: Tree, program: str) -> str | None:
    """The prefix of an interpreter outside virtual environments: the place of its standard library."""
    folder = parent(tree.real_path(program))
    while parent(folder) not in {"/", folder}:
        folder = parent(folder)
        if libraries(tree, folder, "os.py") or tree.is_folder(f"{folder}/conda-meta"):
            return folder
    return None


def _no_program(tree: Tree, folder: str) -> str:
    if tree.is_folder(f"{folder}/Scripts"):
        return "it is laid out for Windows (Scripts/python.exe) and cannot be examined from Linux"
    if tree.is_file(f"{folder}/pyvenv.cfg"):
        return "it has lost its interpreter (there is no bin/python)"
    if tree.is_folder(f"{folder}/conda-meta"):
        return "it is a conda environment without Python"
    inner = next((name for name in (".venv", "venv") if tree.is_file(f"{folder}/{name}/pyvenv.cfg")), None)
    hint = f"; {printable(folder)}/{inner} is one" if inner else ""
    return f"it is a folder without a Python environment (there is no bin/python){hint}"


def _from_file(tree: Tree, path: str, shown: str) -> PythonPlace:
    root = root_of_shim(tree, path)
    if root is not None:
        target, problem = interpreter(tree, root, name_of(path))
        if target == SYSTEM:
            problem = f"the pyenv shim {printable(path)} selects no version"
        if problem or target is None:
            return PythonPlace(executable=path, problem=problem, system=target == SYSTEM)
        return _from_program(tree, target, printable(target))
    started = _LAUNCHED.match(tree.read_bytes(path, 4096) or b"")
    return _from_program(tree, started[1].decode("utf-8", "replace") if started else path, shown)


def _from_program(tree: Tree, path: str, shown: str) -> PythonPlace:
    """``shown`` is the program's name in messages, unless its virtual environment was named."""
    prefix = _virtual_prefix(tree, path)
    shown = printable(path) if prefix else shown
    problem = _why_not(tree, path, shown)
    if problem and not _PROGRAM.match(name_of(path)):  # any other file of an environment says nothing of it
        prefix = None
    elif prefix is None and problem is None:
        prefix = base_prefix(tree, path)
        problem = None if prefix else f"{shown} has lost its standard library"
        return _lost(tree, path, prefix) or PythonPlace(executable=path, prefix=prefix, problem=problem)
    return PythonPlace(executable=path, prefix=prefix, problem=problem)


def _lost(tree: Tree, program: str, base: str | None) -> PythonPlace | None:
    """The environment of this link, or of one that it leads to, where Python takes the base instead."""
    link, target = program, tree.link_target(program)
    for _ in range(MOST_LINKS):
        if target is None or base is None:
            break
        folder = parent(parent(link))
        # A folder without a standard library that looks like a virtual environment.
        marked = any(tree.lexists(f"{folder}/{name}") for name in ("pyvenv.cfg", "bin/activate"))
        marked = (marked or bool(libraries(tree, folder, "site-packages"))) and not libraries(tree, folder, "os.py")
        if marked and folder not in (base, f"{base}/local"):
            return _unmarked(tree, program, folder)
        link = joined(parent(link), target)
        environment, target = _virtual_prefix(tree, link), tree.link_target(link)
        if environment:
            why = f"Python uses its base there; name {printable(link)}"
            return PythonPlace(executable=program, prefix=environment, lost=(program, why))
    own = parent(parent(tree.real_path(program)))
    if base in (None, own) or name_of(parent(tree.real_path(program))) != "bin":
        return None
    return PythonPlace(
        executable=program, prefix=own, lost=(f"{own}/lib", f"Python would use that of {printable(base)}")
    )


def _unmarked(tree: Tree, program: str, folder: str) -> PythonPlace:
    """A virtual environment that Python does not recognize without its ``pyvenv.cfg``; what is there instead."""
    path = f"{folder}/pyvenv.cfg"
    if tree.lexists(f"{folder}/bin/activate") and not tree.lexists(path):
        gone = "its pyvenv.cfg is gone, without which Python uses its base"
        return PythonPlace(executable=program, prefix=folder, problem=gone, unmarked=True)
    why = f"{problem_at(tree, path, 'file')}: Python would use its base"
    return PythonPlace(executable=program, prefix=folder, lost=(path, why))


def problem_at(tree: Tree, path: str, kind: str) -> str:
    """What is at ``path`` instead of a file or folder (``kind``)."""
    if tree.link_target(path) is not None:
        return "it is a dangling link"
    return f"it is not a {kind}" if tree.lexists(path) else "it is gone"


def _virtual_prefix(tree: Tree, program: str) -> str | None:
    folder = parent(program)
    return next((place for place in (parent(folder), folder) if tree.is_file(f"{place}/pyvenv.cfg")), None)


def _why_not(tree: Tree, path: str, shown: str) -> str | None:
    """Why the file cannot be a working interpreter, or None."""
    target = tree.real_path(path)
    if not tree.lexists(target):
        return f"its base interpreter {printable(target)} is gone"
    if tree.link_target(target) is not None:
        return f"{shown} is a circular link"
    if not tree.is_program(target):
        return f"{shown} is not {'executable' if tree.is_file(target) else 'a file'}"
    head = tree.read_bytes(target, 4)  # None if it may be executed but not read
    if head is not None and head[:2] == b"#!":
        return f"{shown} is a script, which is never run here; name the interpreter itself"
    if head is not None and head != b"\x7fELF":
        return f"{shown} is not a program for Linux"
    if not _PROGRAM.match(name_of(target)):
        return f"{shown} leads to {printable(target)}, which is not Python by its name"
    return None
