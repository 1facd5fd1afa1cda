"""Commands that install packages into the judged environment, in the words of its own manager: printed, never run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.checks import Fix
from envcheck.rules.api import Facts
from envcheck.snapshot import Environment

_VENV = ".venv"


class How(msgspec.Struct, frozen=True):
    """How packages are installed."""

    options: tuple[str, ...] = ()
    """Of pip, and of uv where it has none of its own: ``("--index-url", ADDRESS)``."""
    uv_options: tuple[str, ...] | None = None
    variables: tuple[str, ...] = ()
    """What must be set for it: ``("CMAKE_ARGS=-DGGML_CUDA=on",)``."""
    again: bool = False
    """Also where the same version is there already."""
    risk: str = "replaces what is installed, and what it needs"


def install(
    facts: Facts, requirements: Sequence[str], text: str, how: How | None = None, *, remove: Sequence[str] = ()
) -> tuple[Fix, ...]:
    """Install ``requirements``, after removing ``remove``; in a virtual environment where the system forbids pip."""
    way, environment = how or How(), facts.environment
    if environment is not None and environment.externally_managed:
        why = "The system forbids pip to install here: make a virtual environment first"
        make = Fix(text=why, command=(environment.executable or "python3", "-m", "venv", _VENV))
        command = (*_set(way), f"{_VENV}/bin/python", "-m", "pip", "install", *requirements, *way.options)
        return (make, Fix(text=text, command=command))
    prefix = _uvs_prefix(environment)
    if prefix:
        again = ("--reinstall",) if way.again else ()
        options = way.options if way.uv_options is None else way.uv_options
        command = ("uv", "pip", "install", "--python", prefix, *again, *requirements, *options)
    else:
        again = ("--force-reinstall",) if way.again else ()
        command = (_python(environment), "-m", "pip", "install", *again, *requirements, *way.options)
    fix = Fix(text=text, command=(*_set(way), *command), risk=way.risk)
    return (*((_removed(environment, remove),) if remove else ()), fix)


def _removed(environment: Environment | None, names: Sequence[str]) -> Fix:
    prefix = _uvs_prefix(environment)
    pip = (_python(environment), "-m", "pip", "uninstall", "--yes")
    command = ("uv", "pip", "uninstall", "--python", prefix) if prefix else pip
    return Fix(text=f"Remove {' and '.join(names)}, whose files are in the way", command=(*command, *names))


def _set(how: How) -> tuple[str, ...]:
    return ("env", *how.variables) if how.variables else ()


def _python(environment: Environment | None) -> str:
    return (environment.executable if environment else None) or "python"


def _uvs_prefix(environment: Environment | None) -> str | None:
    """The prefix of an environment that uv manages."""
    return environment.prefix if environment is not None and environment.manager == "uv" else None
