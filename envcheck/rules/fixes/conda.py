"""Commands for packages that conda installed. Its solver keeps them consistent; pip would overwrite them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from envcheck.checks import Changes, Fix
from envcheck.compat.matrix import Matrix
from envcheck.compat.question.package_needs import normalised, read_requirement
from envcheck.compat.relations.libraries import TOOLKIT
from envcheck.rules.api import Facts
from envcheck.rules.fixes.commands import CHANNEL, conda_command
from envcheck.snapshot import Distribution, Environment

_SUFFIX = re.compile(r"-cu\d{2}$")
_MINOR = re.compile(r"==\s*(\d+(?:\.\d+)?)")


def is_managed_by_conda(environment: Environment, requirements: Iterable[str], owner: str = "") -> bool:
    """Whether conda installed the packages that these requirements replace, or the ``owner`` that needs them."""
    names = {normalised(asked.name) for line in requirements if (asked := read_requirement(line))}
    found = [each for each in environment.distributions or () if each.name in {owner, *names}]
    return bool(found) and all(is_conda_package(each) for each in found)


def is_conda_package(distribution: Distribution) -> bool:
    """Whether conda installed it. conda also writes a ``dist-info`` for Python packages, and its INSTALLER file names
    conda.
    """
    return distribution.channel == "conda" or distribution.installer == "conda"


def conda_installs(
    facts: Facts, environment: Environment, requirements: Sequence[str], text: str, *, again: bool, risk: str
) -> tuple[Fix, ...]:
    """Install these with conda; nothing where the conda-forge name of one is unknown."""
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
    """A PyPI requirement as conda specifications."""
    asked = read_requirement(line)
    if asked is None:
        return []
    names = {row.name: row.package for row in matrix.conda}
    name, bounds = normalised(asked.name), str(asked.specifier)
    if name == TOOLKIT:
        bases = [_package_of_extra(extra, names) for extra in sorted(asked.extras)]
        minor = _MINOR.match(bounds)
        return [*filter(None, bases), *([f"cuda-version={minor[1]}"] if minor else [])]
    base = _SUFFIX.sub("", name)
    if base.startswith("nvidia-"):
        # The framework's own recipe sets the other bounds: wheels and conda packages have different releases.
        major = _MINOR.match(bounds)
        return [f"{names[base]}={major[1].partition('.')[0]}" if major else names[base]] if base in names else []
    return [f"{names.get(name, name)}{bounds}"]


def _package_of_extra(extra: str, names: dict[str, str]) -> str | None:
    """The conda-forge package for an extra of the distribution ``cuda-toolkit``."""
    base = "runtime" if extra == "cudart" else extra
    return names.get(f"nvidia-{base}") or names.get(f"nvidia-cuda-{base}")
