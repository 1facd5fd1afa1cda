"""Where else environments lie, for ``--all-envs``: known places, each listed once and not searched in depth."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ._env_candidates import Candidate
from ._env_interpreter import locate
from ._env_paths import absolute, home, is_file, is_folder, is_program, parent
from ._kit import Request, list_names, read_text

WHY = "--all-envs"

_NAMES = (".venv", "venv", "env", ".env")
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
    for path in _programs(request):
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
    yield from (f"{folder}/{name}" for name in _NAMES if name in names)
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


def _programs(request: Request) -> Iterator[str]:
    """Every interpreter on PATH, and the system's own."""
    folders = str(request["variables"].get("PATH", "")).split(":")
    for folder in dict.fromkeys([*(absolute(request, entry or ".") for entry in folders), "/usr/bin"]):
        names = list_names(request, folder) or []
        found = [name for name in names if name in ("python3", "python") or _NUMBERED.fullmatch(name)]
        yield from (f"{folder}/{name}" for name in found if is_program(request, f"{folder}/{name}"))
