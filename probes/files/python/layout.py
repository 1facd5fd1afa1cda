"""The layout of an environment (base, version and manager), and its unreadable parts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ...common.lazy import lazy_pattern
from ...common.paths import inside, joined, name_of, parent, printable
from ...common.tree import CIRCLE, REFUSED, Tree
from ..elf.library import constants
from .interpreter import LIBRARY, PythonPlace, base_prefix, libraries, problem_at

_SETTING = lazy_pattern(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?(?!\d)")
_PROGRAM = lazy_pattern(r"(python|pypy)(\d+\.\d+)")
_PATCHLEVEL = r'(?m)^#define\s+PY_VERSION\s+"(\d+\.\d+\.\d+[0-9A-Za-z.+]{0,10})"'


def version_of_settings(settings: dict[str, str]) -> str | None:
    """The version in ``pyvenv.cfg``: ``3.12.1`` of ``3.12.1.final.0``."""
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


def full_version(tree: Tree, base: str | None, minor: str | None, program: str | None) -> str | None:
    """The version with its patch level, from the files of an installation of ``minor`` at ``base``."""
    if base is None or minor is None:
        return None
    for name in tree.list_names(f"{base}/conda-meta") or []:
        match = re.match(r"python-(\d+\.\d+\.\d+[0-9a-z]*)-[^-]*\.json$", name)
        if match and minor_of(match[1]) == minor:
            return match[1]
    for name in tree.list_names(f"{base}/include") or []:
        if minor_of_program(name) == minor:
            match = re.search(_PATCHLEVEL, tree.read_text(f"{base}/include/{name}/patchlevel.h", 65536) or "")
            if match and minor_of(match[1]) == minor:
                return match[1]
    # The version string in the interpreter's file, if exactly one fits.
    wanted = re.compile(rb"\0(" + re.escape(minor).encode() + rb"\.\d{1,3}(?:(?:a|b|rc)\d{1,2})?\+?)(?=\0)")
    for path in (f"{base}/lib/libpython{minor}.so.1.0", program):
        data = constants(tree, tree.real_path(path)) if path else None
        found = {each[1].decode() for each in wanted.finditer(data or b"")}
        if len(found) == 1:
            return found.pop()
    return None


# What an environment is: its base, its version, who manages it; by ``pyvenv.cfg`` and the folders of its prefix.
#
# Names in ``pyvenv.cfg``: PEP 405 (``home``, ``include-system-site-packages``), and what venv (``version``,
# ``executable``), uv (``uv``, ``version_info``, ``implementation``) and virtualenv (``virtualenv``,
# ``base-executable``).


_LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock")
_MANAGED = "EXTERNALLY-MANAGED"


class EnvironmentLayout(NamedTuple):
    """One environment. ``minor`` is ``3.12``, ``version`` as much of ``3.12.1`` as is known."""

    prefix: str
    base: str | None
    virtual: bool
    system_packages: bool  # Whether the packages of the base (and of the user) are visible
    minor: str | None
    version: str | None
    implementation: str | None
    standard_library: str | None  # Its folder, which ``sys.path`` has before those of packages
    manager: str
    lock_file: str | None
    externally_managed: bool | None
    moved_from: str | None
    problem: str | None


def read_layout(tree: Tree, place: PythonPlace, prefix: str) -> EnvironmentLayout:
    text = tree.read_text(f"{prefix}/pyvenv.cfg", 65536)
    virtual = text is not None or place.unmarked
    pairs = (line.partition("=") for line in (text or "").splitlines() if "=" in line)
    settings = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if place.unmarked:
        settings["include-system-site-packages"] = "false"  # as venv has it
    program, base_gone = place.executable, None
    base: str | None = prefix
    if virtual:
        program, base_gone = _base_program(tree, place, prefix, settings)
        base = base_prefix(tree, program) if program else None
        if program and base is None:
            base_gone = f"its base interpreter {printable(program)} has lost its standard library"
    elif not libraries(tree, prefix, "os.py"):
        base_gone = "it has lost its standard library"
    of_library = (LIBRARY.match(name_of(path)) for path in libraries(tree, prefix, "site-packages"))
    minors = {match[2] for match in of_library if match}
    stated = version_of_settings(settings)
    now = minor_of_program(name_of(program)) if virtual and program else None
    # ``venv --upgrade`` by a newer Python writes that one's release; links and packages stay what they were.
    filled = {each for each in minors if now and minors != {now} and _is_filled(tree, f"{prefix}/lib/python{each}")}
    minor = now if now in filled else next(iter(filled), minor_of(stated))
    if minor is None and place.executable:
        minor = minor_of_program(name_of(tree.real_path(place.executable)))
    if minor is None and len(minors) == 1:
        (minor,) = minors
    implementation: str | None = settings.get("implementation", "").lower()
    if not re.fullmatch(r"[a-z]{1,20}", implementation or ""):
        match = _PROGRAM.match(name_of(tree.real_path(program))) if program else None
        folders = [] if match else libraries(tree, prefix, "site-packages") or libraries(tree, prefix, "os.py")
        kinds = {match[1]} if match else {"pypy" if name_of(path).startswith("pypy") else "python" for path in folders}
        implementation = "cpython" if "python" in kinds else "pypy" if kinds else None
    named = ((path, LIBRARY.match(name_of(path))) for path in (libraries(tree, base, "os.py") if base else ()))
    stdlib = next((path for path, match in named if match and match[2] == minor), None)
    # A virtual environment whose base became another Python no longer sees its packages.
    made = f"it was created for Python {minor}, and its base interpreter {printable(program or '')} is {now} now"
    outgrown = made if now and minor and now != minor else None
    locks = (f"{parent(prefix)}/{name}" for name in _LOCK_FILES)  # of the project around a virtual environment
    return EnvironmentLayout(
        prefix=prefix,
        base=base,
        virtual=virtual,
        system_packages=settings.get("include-system-site-packages", "true").lower() == "true",  # as site.py has it
        minor=minor,
        version=(stated if minor_of(stated) == minor else None) or full_version(tree, base, minor, program) or minor,
        implementation=implementation,
        standard_library=stdlib,
        manager=_manager(tree, prefix, settings, virtual=virtual),
        lock_file=next((printable(path) for path in locks if tree.is_file(path)), None) if virtual else None,
        externally_managed=False if virtual else tree.lexists(f"{stdlib}/{_MANAGED}") if stdlib else None,
        moved_from=_moved_from(tree, prefix) if virtual else None,
        problem=place.problem or base_gone or outgrown,
    )


def _is_filled(tree: Tree, library: str) -> bool:
    """Whether more was installed there than what venv brings along."""
    names = tree.list_names(f"{library}/site-packages") or ()
    return any(name.endswith(".dist-info") and not name.startswith(("pip-", "setuptools-")) for name in names)


# ``activate`` of venv, virtualenv and uv, and the first lines of ``pip``.
_WRITTEN_FOR = lazy_pattern(
    r"""^[ \t]*(?:export )?VIRTUAL_ENV=['"]?(/[^'"$\n]+?)['"]?$|^(?:#!|'''exec' )"?(/[^'"\n]+)/bin/python""",
    re.MULTILINE,
)


def _moved_from(tree: Tree, prefix: str) -> str | None:
    """The folder that its programs take for it, where that is another one."""
    for name in ("activate", "pip"):
        for match in _WRITTEN_FOR.finditer(tree.read_text(f"{prefix}/bin/{name}", 16384) or ""):
            folder = tree.real_path(match[1] or match[2])
            # A pip that starts another Python by choice is no sign.
            if folder != prefix and (match[1] or not tree.is_folder(folder) or tree.is_file(f"{folder}/pyvenv.cfg")):
                return printable(match[1] or match[2])
    return None


def _base_program(
    tree: Tree, place: PythonPlace, prefix: str, settings: dict[str, str]
) -> tuple[str | None, str | None]:
    """The interpreter that a virtual environment was created from, or a message that it is gone."""
    if place.executable and not inside(tree.real_path(place.executable), prefix):
        target = tree.real_path(place.executable)
        return (target, None) if tree.lexists(target) else (None, None)  # a dangling link: ``place.problem`` reports it
    home = settings.get("home", "")
    if not home.startswith("/"):
        return None, "its pyvenv.cfg does not name the interpreter that it was made from"
    minor = minor_of(version_of_settings(settings))
    beside = [f"{home}/{name}" for name in (f"python{minor}", "python3", "python", "python2") if name != "pythonNone"]
    named = [settings[key] for key in ("executable", "base-executable") if settings.get(key, "").startswith("/")]
    for program in (*named, *beside):
        if tree.is_program(program):
            return program, None
    return None, f"its base interpreter {printable((named or beside)[0])} is gone"


def _manager(tree: Tree, prefix: str, settings: dict[str, str], *, virtual: bool) -> str:
    if virtual:
        return next((name for name in ("uv", "virtualenv") if name in settings), "venv")
    if tree.is_folder(f"{prefix}/conda-meta"):
        return "conda"
    folder = parent(prefix)
    root = tree.variables.get("PYENV_ROOT")
    if name_of(folder) == "versions" and (parent(folder) == root or tree.is_folder(f"{parent(folder)}/shims")):
        return "pyenv"
    if re.match(r"(cpython|pypy|graalpy)-\d+\.\d+[^/]*-linux-[^/]*$", name_of(prefix)):
        return "uv"
    return "system" if prefix == "/usr" else "other"


_MOST = 50
_NAMED_BY = ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT")


def unreadable(
    tree: Tree, place: PythonPlace, layout: EnvironmentLayout, folders: Iterable[str], *, asked_for: bool
) -> list[dict[str, Any]]:
    """Unreadable parts of an environment and, unless it was named, of candidates that would precede it."""
    whole = [layout.prefix] if layout.virtual or layout.manager == "conda" else []
    own = [*whole, *folders]
    if not asked_for:
        own += [str(value) for name in _NAMED_BY if (value := tree.variables.get(name))]
        own.append(joined(tree.cwd, ".venv"))
    parts = {f"{layout.prefix}{part}" for part in ("", "/pyvenv.cfg", "/bin", "/lib", "/lib64")}
    found = {path: why for path, why in REFUSED.items() if path in parts or any(inside(path, each) for each in own)}
    if place.problem is None and layout.problem is None and not found:
        # An environment without a folder for its packages: what is there instead.
        libs = ((lib, name) for lib in ("lib", "lib64") for name in tree.list_names(f"{layout.prefix}/{lib}") or [])
        of_minor = [
            f"{lib}/{name}" for lib, name in libs if (match := LIBRARY.match(name)) and match[2] == layout.minor
        ]
        places = [f"{layout.prefix}/{each}/site-packages" for each in of_minor or [f"lib/python{layout.minor}"]]
        if layout.minor and layout.manager != "system" and not any(map(tree.is_folder, places)):
            found[places[0]] = problem_at(tree, places[0], "folder")
    return _records(found)


def unreadable_place(tree: Tree, place: PythonPlace, asked: str) -> list[dict[str, Any]]:
    """Unreadable parts of a named place that led to no environment, or that Python would not take."""
    path = joined(tree.cwd, asked)
    found = {name: reason for name, reason in REFUSED.items() if inside(name, path) and reason != CIRCLE}
    return _records({**found, **dict([place.lost] if place.lost else ())})


def _records(found: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {"path": printable(path), "problem": printable(reason), "source": f"file {printable(path)}"}
        for path, reason in sorted(found.items())[:_MOST]
    ]
