"""The candidate Python environments, and the places that ``--all-envs`` searches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...common.lazy import lazy_pattern
from ...common.paths import name_of, parent
from ...common.tree import Tree
from .interpreter import PythonPlace, libraries, locate

_NAMES = ("python3", "python")


class EnvironmentCandidate(NamedTuple):
    """An environment to examine. ``asked`` is how it was named; ``own``: envcheck runs in it."""

    why: str
    asked: str
    place: PythonPlace
    own: bool = False

    def key(self, tree: Tree) -> str:
        """The real prefix, or the given name if there is no prefix."""
        return tree.real_path(self.place.prefix) if self.place.prefix else self.asked


def asked_for(tree: Tree) -> Iterator[EnvironmentCandidate]:
    """The environments named by ``--python``, in order."""
    for text in tree.python:
        path = tree.absolute(text)
        if "/" in text or text.startswith("~") or tree.lexists(path):
            yield EnvironmentCandidate("--python", path, locate(tree, path))
            continue
        # A program name such as ``python3.11``, looked up as a shell would.
        place = PythonPlace(problem="it is neither in the current folder nor on PATH")
        for program in _programs(tree, (text,)):
            place = locate(tree, program)
            if not place.system:
                break
        yield EnvironmentCandidate("--python", text, place, own=_is_own(tree, place))


def found(tree: Tree) -> Iterator[EnvironmentCandidate]:
    """The environments that this machine's variables and folders suggest; envcheck's own is the last."""
    variables = tree.variables
    conda = variables.get("CONDA_PREFIX")
    conda_is_base = variables.get("CONDA_DEFAULT_ENV") in {"base", "root"}
    if variables.get("VIRTUAL_ENV"):
        yield _candidate_at(tree, "VIRTUAL_ENV", variables["VIRTUAL_ENV"])
    if conda and not conda_is_base:
        yield _candidate_at(tree, "CONDA_PREFIX", conda)
    for why, text in (("UV_PROJECT_ENVIRONMENT", variables.get("UV_PROJECT_ENVIRONMENT")), ("./.venv", ".venv")):
        if text and (text.startswith("/") or _was_environment(tree, tree.absolute(text))):
            yield _candidate_at(tree, why, text)
    if conda and conda_is_base:  # active by default in every shell, so it is weaker evidence than the folder
        yield _candidate_at(tree, "CONDA_PREFIX", conda)
    own_seen = False
    for path in _programs(tree, _NAMES):  # the first interpreter on PATH; if that is envcheck's own, the next as well
        place = locate(tree, path)
        own = _is_own(tree, place)
        if not place.system and not (own and own_seen):
            yield EnvironmentCandidate("PATH", path, place, own=own)
            own_seen = own_seen or own
            if not own:
                break
    if tree.request.get("own_prefix"):
        yield _candidate_at(tree, "envcheck", tree.request["own_prefix"])


def _candidate_at(tree: Tree, why: str, text: str) -> EnvironmentCandidate:
    path = tree.absolute(text)
    place = locate(tree, path)
    return EnvironmentCandidate(why, path, place, own=_is_own(tree, place))


def _was_environment(tree: Tree, folder: str) -> bool:
    """Whether an environment is there, what is left of one, or what cannot be listed."""
    names = tree.list_names(folder)
    if names is None:
        return tree.lexists(folder)
    return not {"pyvenv.cfg", "conda-meta", "bin", "Scripts"}.isdisjoint(names) or bool(libraries(tree, folder, ""))


def _programs(tree: Tree, names: tuple[str, ...]) -> Iterator[str]:
    """The programs of these names on PATH; of a virtual environment that lost its interpreter, the folder."""
    for folder in str(tree.variables.get("PATH", "")).split(":"):
        place = tree.absolute(folder or ".")
        usual = [name for name in dict.fromkeys((*names, *_NAMES)) if tree.is_program(f"{place}/{name}")]
        yield from (f"{place}/{name}" for name in usual if name in names)
        if not usual and name_of(place) == "bin" and tree.lexists(f"{parent(place)}/pyvenv.cfg"):
            yield parent(place)


def _is_own(tree: Tree, place: PythonPlace) -> bool:
    own = tree.request.get("own_prefix")
    return own is not None and place.prefix is not None and tree.real_path(place.prefix) == tree.real_path(own)


WHY = "--all-envs"

_IN_HOME = (
    ".virtualenvs", ".local/share/virtualenvs", ".cache/pypoetry/virtualenvs", ".local/share/uv/python", "venvs",
    ".venvs", "envs",
)  # fmt: skip
"""Folders of environments in the home folder: virtualenvwrapper, pipenv, Poetry, uv, and common names."""
_CONDA_IN_HOME = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".micromamba", ".conda", "conda")
_CONDA = ("/opt/conda", "/opt/miniconda3", "/opt/anaconda3", "/opt/miniforge3", "/opt/mamba", "/opt/micromamba")
_PROJECTS = ("/app", "/workspace", "/code", "/srv", "/src", "/home/user", "/root")  # Working folders of common images
_FOLDERS = 300  # Most names of one folder that are examined
_NUMBERED = lazy_pattern(r"python3\.\d{1,2}t?")


def in_known_places(tree: Tree) -> Iterator[EnvironmentCandidate]:
    """All environments in the known places that can be recognised by their files."""
    seen: set[str] = set()
    for folder in _folders(tree):
        programs = (f"{folder}/bin/{name}" for name in _NAMES if folder not in {"/usr", "/"})
        marked = tree.is_file(f"{folder}/pyvenv.cfg") or tree.is_folder(f"{folder}/conda-meta")
        if folder not in seen and (marked or any(map(tree.is_program, programs))):
            seen.add(folder)
            yield EnvironmentCandidate(WHY, folder, locate(tree, folder))
    # Every interpreter on PATH, and the system's own.
    entries = str(tree.variables.get("PATH", "")).split(":")
    for folder in dict.fromkeys([*(tree.absolute(entry or ".") for entry in entries), "/usr/bin"]):
        names = [name for name in tree.list_names(folder) or [] if name in _NAMES or _NUMBERED.fullmatch(name)]
        for path in [f"{folder}/{name}" for name in names if tree.is_program(f"{folder}/{name}")]:
            place = locate(tree, path)
            if place.prefix is not None:  # a shim of pyenv that selects nothing is no environment
                yield EnvironmentCandidate(WHY, path, place)


def _folders(tree: Tree) -> Iterator[str]:
    variables = tree.variables
    yield from _of_project(tree, tree.cwd)
    for child in _inside(tree, tree.cwd):
        yield child
        yield from _of_project(tree, child)
    user = tree.home()
    installations = [f"{user}/{name}" for name in _CONDA_IN_HOME] if user else []
    installations += _CONDA
    if variables.get("MAMBA_ROOT_PREFIX"):
        installations.append(tree.absolute(variables["MAMBA_ROOT_PREFIX"]))
    if variables.get("CONDA_EXE"):
        installations.append(parent(parent(tree.absolute(variables["CONDA_EXE"]))))
    for installation in dict.fromkeys(installations):
        yield installation
        yield from _inside(tree, f"{installation}/envs")
    for name in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"):
        for folder in str(variables.get(name, "")).replace(",", ":").split(":"):
            yield from _inside(tree, tree.absolute(folder)) if folder else ()
    listed = tree.read_text(f"{user}/.conda/environments.txt", 1 << 20) or ""
    yield from (line for line in listed.splitlines()[:_FOLDERS] if line.startswith("/"))
    holders = [f"{user}/{name}" for name in _IN_HOME] if user else []
    holders += [
        tree.absolute(variables[name]) for name in ("WORKON_HOME", "UV_PYTHON_INSTALL_DIR") if variables.get(name)
    ]
    for holder in holders:
        yield from _inside(tree, holder)
    root = tree.absolute(variables.get("PYENV_ROOT") or f"{user}/.pyenv")
    for version in _inside(tree, f"{root}/versions"):
        yield version
        yield from _inside(tree, f"{version}/envs")
    for project in (user, *_PROJECTS):
        yield from _of_project(tree, project) if project else ()
    yield "/venv"
    for folder in _inside(tree, "/opt"):
        yield folder
        yield from _inside(tree, folder)


def _of_project(tree: Tree, folder: str) -> Iterator[str]:
    names = set(tree.list_names(folder) or ())
    yield from (f"{folder}/{name}" for name in (".venv", "venv", "env", ".env") if name in names)
    if ".pixi" in names:
        yield from _inside(tree, f"{folder}/.pixi/envs")


def _inside(tree: Tree, folder: str) -> Iterator[str]:
    """The folders in ``folder``; hidden ones are left out."""
    for name in (tree.list_names(folder) or [])[:_FOLDERS]:
        path = f"{folder.rstrip('/')}/{name}"
        if not name.startswith(".") and tree.is_folder(path):
            yield path
