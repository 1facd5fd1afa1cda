"""Commands that restore a virtual environment's Python, or rebuild it with the same packages."""

from __future__ import annotations

import re

from envcheck.checks import Fix
from envcheck.rules.fixes.commands import create_command, fill_command
from envcheck.rules.fixes.install import in_steps
from envcheck.rules.fixes.torch import INDEX
from envcheck.snapshot import Distribution, Environment, frameworks_in

_MINOR = re.compile(r"\d+\.\d+")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}==[A-Za-z0-9][A-Za-z0-9.!+_-]{0,80}")
_LABEL = re.compile(r"\+(cu\d+|cpu)$")
_LONGEST = 900
"""Longest command, in characters, that is still readable; a longer one names only the frameworks."""
_TOOLS = frozenset({"pip", "setuptools", "wheel"})
_VIRTUAL = ("venv", "virtualenv", "uv")


def rebuild(environment: Environment) -> tuple[Fix, ...]:
    """Two alternatives: link it to a Python of the same minor version, which keeps the packages, or create it again."""
    prefix = environment.prefix
    minor = _MINOR.match(environment.python or "")
    if prefix is None or environment.manager not in _VIRTUAL:
        return (Fix(text="Create the environment again on this system, and install what it needs"),)
    again = _recreated(environment, prefix, minor[0] if minor else None)
    return (*(_relinked(environment, prefix, minor[0]) if minor else ()), *again)


def _relinked(environment: Environment, prefix: str, minor: str) -> tuple[Fix, ...]:
    text = f"Link the environment to a Python {minor} of this system; its packages stay"
    if environment.manager == "uv":
        return (Fix(text=text, command=("uv", "venv", "--allow-existing", "--python", minor, prefix)),)
    # venv does not replace broken links.
    links = tuple(f"{prefix}/bin/{name}" for name in ("python", "python3", f"python{minor}"))
    return in_steps(
        (
            Fix(text="Delete the links to the Python that is gone", command=("rm", "-f", "--", *links)),
            Fix(text=text, command=(f"python{minor}", "-m", "venv", "--upgrade", prefix)),
        )
    )


def _recreated(environment: Environment, prefix: str, minor: str | None) -> tuple[Fix, ...]:
    """Create it empty and reinstall its packages, or only the frameworks where the command would be too long."""
    text = "Or create it again" + (f" with Python {minor}" if minor else "")
    risk = "deletes what is installed in it; the next step installs it again"
    uv = environment.manager == "uv"
    create = create_command(prefix, uv=uv, python=minor or "", interpreter=f"python{minor or '3'}", clear=True)
    pins = _pins(environment)
    if not pins:
        return (Fix(text=f"{text}, and install what it needs", command=create, risk=risk),)
    fill = Fix(text=f"Install {'the frameworks' if len(pins) < len(_wheels(environment)) else 'its packages'} again",
               command=fill_command(prefix, *pins, *_indexes(pins), uv=uv))  # fmt: skip
    return in_steps((Fix(text=text, command=create, risk=risk), fill))


def _pins(environment: Environment) -> tuple[str, ...]:
    everything = _pinned(_wheels(environment))
    if sum(map(len, everything)) + len(everything) <= _LONGEST:
        return everything
    names = {each.name for each in frameworks_in(environment)}
    return _pinned([each for each in _wheels(environment) if each.name in names])


def _wheels(environment: Environment) -> list[Distribution]:
    found = {each.name: each for each in environment.distributions or () if not each.editable}
    return [each for each in found.values() if each.name not in _TOOLS]


def _pinned(wheels: list[Distribution]) -> tuple[str, ...]:
    pins = (f"{each.name}=={each.version}" for each in wheels)
    return tuple(pin for pin in pins if _PLAIN.fullmatch(pin))


def _indexes(pins: tuple[str, ...]) -> tuple[str, ...]:
    """The options for PyTorch's index, which has the builds with a local version label."""
    labels = dict.fromkeys(match[1] for pin in pins if (match := _LABEL.search(pin)))
    return tuple(word for label in labels for word in ("--extra-index-url", f"{INDEX}{label}"))
