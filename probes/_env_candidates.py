"""Which Python environments come into question, best first, and why each does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ._env_interpreter import Place, locate
from ._env_paths import absolute, is_program, is_there, real
from ._kit import Request

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
