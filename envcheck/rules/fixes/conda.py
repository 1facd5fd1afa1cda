"""Commands for packages that conda installed: its solver keeps together what belongs together, pip writes over it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from envcheck.checks import Changes, Fix
from envcheck.compat.matrix import Matrix
from envcheck.compat.question.package_needs import normalised, read_requirement
from envcheck.rules.api import Facts
from envcheck.rules.fixes.commands import CHANNEL, conda_command
from envcheck.snapshot import Distribution, Environment

_SUFFIX = re.compile(r"-cu\d{2}$")
_TOOLKIT = "cuda-toolkit"
_MINOR = re.compile(r"==\s*(\d+(?:\.\d+)?)")


def is_condas(environment: Environment, requirements: Iterable[str], owner: str = "") -> bool:
    """Whether conda installed what these would replace, or that for whose sake they are installed."""
    names = {normalised(asked.name) for line in requirements if (asked := read_requirement(line))}
    found = [each for each in environment.distributions or () if each.name in {owner, *names}]
    return bool(found) and all(by_conda(each) for each in found)


def by_conda(distribution: Distribution) -> bool:
    """Whether conda installed it: of a Python package it leaves a ``dist-info`` too, whose INSTALLER says so."""
    return distribution.channel == "conda" or distribution.installer == "conda"


def conda_installs(
    facts: Facts, environment: Environment, requirements: Sequence[str], text: str, *, again: bool, risk: str
) -> tuple[Fix, ...]:
    """Install these by conda; nothing where conda-forge's name of one is not known."""
    specs = list(dict.fromkeys(spec for line in requirements for spec in _specs(line, facts.matrix)))
    if not specs:
        return ()
    there = {each.name for each in environment.distributions or () if each.channel == "conda"}
    force = again and any(re.split(r"[=<>!~]", spec, maxsplit=1)[0] in there for spec in specs)
    command = conda_command(environment, specs, again=force)
    words = f"{text}, from {CHANNEL}" + ("" if command[0] == "pixi" else " (or with mamba or micromamba)")
    changes = Changes(installs=tuple(requirements), again=again)
    told = "; ".join(filter(None, (risk, "conda may move other packages: it asks before it does")))
    return (Fix(text=words, command=command, risk=told, changes=changes),)


def _specs(line: str, matrix: Matrix) -> list[str]:
    """A requirement of PyPI as conda's specifications."""
    asked = read_requirement(line)
    if asked is None:
        return []
    names = {row.name: row.package for row in matrix.conda}
    name, bounds = normalised(asked.name), str(asked.specifier)
    if name == _TOOLKIT:
        bases = [_of_extra(extra, names) for extra in sorted(asked.extras)]
        minor = _MINOR.match(bounds)
        return [*filter(None, bases), *([f"cuda-version={minor[1]}"] if minor else [])]
    base = _SUFFIX.sub("", name)
    if base.startswith("nvidia-"):
        # The framework's own recipe bounds the rest; releases of wheels and of conda's packages are not the same.
        major = _MINOR.match(bounds)
        return [f"{names[base]}={major[1].partition('.')[0]}" if major else names[base]] if base in names else []
    return [f"{names.get(name, name)}{bounds}"]


def _of_extra(extra: str, names: dict[str, str]) -> str | None:
    """conda-forge's package for an extra of the distribution ``cuda-toolkit``."""
    base = "runtime" if extra == "cudart" else extra
    return names.get(f"nvidia-{base}") or names.get(f"nvidia-cuda-{base}")
