"""Which Python environments come into question, best first, and why each does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..kit.paths import absolute, home, is_file, is_folder, is_program, is_there, parent, real
from ..kit.reading import Request, list_names, read_text
from .interpreter import Place, locate

_NAMES = ("python3", "python")


class Candidate(NamedTuple):
    """An environment to look at. ``asked`` is how it was named; ``own``: it is the one that envcheck runs in."""

    why: str
    asked: str
    place: Place
    own: bool = False

    def key(self, request: Request) -> str:
        """The real prefix, or what was asked for when there is no prefix."""
        return real(request, self.place.prefix) if self.place.prefix else self.asked


def asked_for(request: Request) -> Iterator[Candidate]:
    """The environments named by ``--python``, in order."""
    for text in request.get("python") or ():
        path = absolute(request, text)
        if "/" not in text and not text.startswith("~") and not is_there(request, path):
            yield _by_name(request, text)
        else:
            yield Candidate("--python", path, locate(request, path))


def found(request: Request) -> Iterator[Candidate]:
    """The environments that this machine's variables and folders suggest; envcheck's own is the last."""
    variables = request["variables"]
    conda = variables.get("CONDA_PREFIX")
    conda_is_base = variables.get("CONDA_DEFAULT_ENV") in {"base", "root"}
    if variables.get("VIRTUAL_ENV"):
        yield _at(request, "VIRTUAL_ENV", variables["VIRTUAL_ENV"])
    if conda and not conda_is_base:
        yield _at(request, "CONDA_PREFIX", conda)
    local = _at(request, "./.venv", ".venv")
    if local.place.prefix or local.place.executable:
        yield local
    if conda and conda_is_base:  # active by default in every shell, so it says less than the folder does
        yield _at(request, "CONDA_PREFIX", conda)
    yield from _on_path(request)
    if request.get("own_prefix"):
        yield _at(request, "envcheck", request["own_prefix"])


def _at(request: Request, why: str, text: str) -> Candidate:
    path = absolute(request, text)
    place = locate(request, path)
    return Candidate(why, path, place, own=_is_own(request, place))


def _by_name(request: Request, name: str) -> Candidate:
    """A program name such as ``python3.11``, looked up as a shell would."""
    place = Place(problem="it is neither in the current folder nor on PATH")
    for path in _programs(request, (name,)):
        place = locate(request, path)
        if not place.system:
            break
    return Candidate("--python", name, place, own=_is_own(request, place))


def _on_path(request: Request) -> Iterator[Candidate]:
    """PATH's first interpreter; when that is envcheck's own, then the first other one too."""
    own_seen = False
    for path in _programs(request, _NAMES):
        place = locate(request, path)
        own = _is_own(request, place)
        if place.system or (own and own_seen):
            continue
        yield Candidate("PATH", path, place, own=own)
        own_seen = own_seen or own
        if not own:
            return


def _programs(request: Request, names: tuple[str, ...]) -> Iterator[str]:
    for folder in str(request["variables"].get("PATH", "")).split(":"):
        for name in names:
            path = absolute(request, f"{folder or '.'}/{name}")
            if is_program(request, path):
                yield path


def _is_own(request: Request, place: Place) -> bool:
    own = request.get("own_prefix")
    return own is not None and place.prefix is not None and real(request, place.prefix) == real(request, own)


# Where else environments lie, for ``--all-envs``: known places, each listed once and not searched in depth.


WHY = "--all-envs"

_PROGRAM_NAMES = (".venv", "venv", "env", ".env")
_IN_HOME = (
    ".virtualenvs",
    ".local/share/virtualenvs",
    ".cache/pypoetry/virtualenvs",
    ".local/share/uv/python",
    "venvs",
    ".venvs",
    "envs",
)
"""Folders of environments: virtualenvwrapper, pipenv, Poetry, uv's interpreters, and what people call their own."""
_CONDA_IN_HOME = ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", ".micromamba", ".conda", "conda")
_CONDA = ("/opt/conda", "/opt/miniconda3", "/opt/anaconda3", "/opt/miniforge3", "/opt/mamba", "/opt/micromamba")
_PROJECTS = ("/app", "/workspace", "/code", "/srv", "/src", "/home/user", "/root")
"""Working folders of common images."""
_FOLDERS = 300
"""As many names of one folder are looked at."""
_NUMBERED = re.compile(r"python3\.\d{1,2}t?")


def everywhere(request: Request) -> Iterator[Candidate]:
    """Every environment in the known places, as far as its files show that it is one."""
    seen: set[str] = set()
    for folder in _folders(request):
        if folder not in seen and _is_environment(request, folder):
            seen.add(folder)
            yield Candidate(WHY, folder, locate(request, folder))
    for path in _named_programs(request):
        place = locate(request, path)
        if place.prefix is not None:  # a shim of pyenv that selects nothing is no environment
            yield Candidate(WHY, path, place)


def _folders(request: Request) -> Iterator[str]:
    variables = request["variables"]
    yield from _of_project(request, request["cwd"])
    for child in _inside(request, request["cwd"]):
        yield child
        yield from _of_project(request, child)
    yield from _of_conda(request)
    user = home(request)
    holders = [f"{user}/{name}" for name in _IN_HOME] if user else []
    holders += [
        absolute(request, variables[name]) for name in ("WORKON_HOME", "UV_PYTHON_INSTALL_DIR") if variables.get(name)
    ]
    for holder in holders:
        yield from _inside(request, holder)
    yield from _of_pyenv(request, absolute(request, variables.get("PYENV_ROOT") or f"{user}/.pyenv"))
    for project in (user, *_PROJECTS):
        yield from _of_project(request, project) if project else ()
    yield "/venv"
    for folder in _inside(request, "/opt"):
        yield folder
        yield from _inside(request, folder)


def _of_project(request: Request, folder: str) -> Iterator[str]:
    names = set(list_names(request, folder) or ())
    yield from (f"{folder}/{name}" for name in _PROGRAM_NAMES if name in names)
    if ".pixi" in names:
        yield from _inside(request, f"{folder}/.pixi/envs")


def _of_conda(request: Request) -> Iterator[str]:
    variables = request["variables"]
    user = home(request)
    installations = [f"{user}/{name}" for name in _CONDA_IN_HOME] if user else []
    installations += _CONDA
    if variables.get("MAMBA_ROOT_PREFIX"):
        installations.append(absolute(request, variables["MAMBA_ROOT_PREFIX"]))
    if variables.get("CONDA_EXE"):
        installations.append(parent(parent(absolute(request, variables["CONDA_EXE"]))))
    for installation in dict.fromkeys(installations):
        yield installation
        yield from _inside(request, f"{installation}/envs")
    for name in ("CONDA_ENVS_PATH", "CONDA_ENVS_DIRS"):
        for folder in str(variables.get(name, "")).replace(",", ":").split(":"):
            yield from _inside(request, absolute(request, folder)) if folder else ()
    listed = read_text(request, f"{user}/.conda/environments.txt", 1 << 20) or ""
    yield from (line for line in listed.splitlines()[:_FOLDERS] if line.startswith("/"))


def _of_pyenv(request: Request, root: str) -> Iterator[str]:
    for version in _inside(request, f"{root}/versions"):
        yield version
        yield from _inside(request, f"{version}/envs")


def _inside(request: Request, folder: str) -> Iterator[str]:
    """The folders in ``folder``; hidden ones are left out."""
    for name in (list_names(request, folder) or [])[:_FOLDERS]:
        path = f"{folder.rstrip('/')}/{name}"
        if not name.startswith(".") and is_folder(request, path):
            yield path


def _is_environment(request: Request, folder: str) -> bool:
    if is_file(request, f"{folder}/pyvenv.cfg") or is_folder(request, f"{folder}/conda-meta"):
        return True
    names = ("python3", "python")
    return folder not in {"/usr", "/"} and any(is_program(request, f"{folder}/bin/{name}") for name in names)


def _named_programs(request: Request) -> Iterator[str]:
    """Every interpreter on PATH, and the system's own."""
    folders = str(request["variables"].get("PATH", "")).split(":")
    for folder in dict.fromkeys([*(absolute(request, entry or ".") for entry in folders), "/usr/bin"]):
        names = list_names(request, folder) or []
        found = [name for name in names if name in ("python3", "python") or _NUMBERED.fullmatch(name)]
        yield from (f"{folder}/{name}" for name in found if is_program(request, f"{folder}/{name}"))
