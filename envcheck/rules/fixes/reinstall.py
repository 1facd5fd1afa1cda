"""Commands that reinstall a damaged package in the same version and build, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from envcheck.checks import Changes, Fix
from envcheck.compat.load import load_matrix
from envcheck.compat.tables import Trait
from envcheck.rules.fixes.commands import conda_command, in_user_site, pip_command, uv_prefix
from envcheck.rules.fixes.install import in_steps, install_pip
from envcheck.rules.fixes.torch import INDEX
from envcheck.snapshot import Distribution, Environment

_ON_INDEX: tuple[Trait, ...] = ("distributes-torch", "released-with-torch", "on-torch-index")
"""The packages that PyTorch's index has, each in the folder of its build."""
_BUILD = re.compile(r"(?:cu\d{2,3}|cpu|rocm[\d.]+|xpu)$")
"""Local version labels that are also folder names of PyTorch's index."""
_RISK = "downloads the package; no other package changes"


def reinstall(environment: Environment, distributions: Sequence[Distribution]) -> tuple[Fix, ...]:
    """Reinstall these packages with the tool that installed them, in as few commands as possible."""
    fixes = [_by_conda(environment, [each for each in distributions if each.channel == "conda"])]
    of_user = [each for each in distributions if in_user_site(environment, each)]
    wheels = [each for each in distributions if each.channel != "conda" and each not in of_user]
    fixes += [_by_pip(environment, group, index) for index, group in _by_index(of_user).items()]
    if wheels and environment.externally_managed:
        task = f"Install {_listed(wheels)} again, with the system's package manager"
        fixes.append([Fix(text=task, who="root")])
    else:
        fixes += [_by_pip(environment, group, index) for index, group in _by_index(wheels).items()]
    pip = install_pip(environment) if any("pip" in fix.command for group in fixes for fix in group) else ()
    return in_steps((*pip, *(fix for group in fixes for fix in group)))


def _by_index(wheels: Iterable[Distribution]) -> dict[str | None, list[Distribution]]:
    """The packages by the index that has their builds: the empty string is the default index, None an unknown one."""
    groups: dict[str | None, list[Distribution]] = {}
    for each in wheels:
        label = each.version.partition("+")[2]
        own = _BUILD.match(label) and any(load_matrix().has_trait(each.name, trait) for trait in _ON_INDEX)
        groups.setdefault("" if not label else f"{INDEX}{label}" if own else None, []).append(each)
    return groups


def _by_pip(environment: Environment, wheels: Sequence[Distribution], index: str | None) -> list[Fix]:
    task = f"Install {_listed(wheels)} again"
    pins = tuple(f"{each.name}=={each.version}" for each in wheels)
    if index is None:
        return [Fix(text=f"{task}: {', '.join(pins)}, from the index that has this build")]
    options = ("--index-url", index) if index else ()
    user = in_user_site(environment, wheels[0])
    if uv_prefix(environment) and not user:
        # Without uv's cache: its files may be hard links to the damaged ones.
        again: tuple[str, ...] = ("--reinstall", "--no-deps", "--no-cache")
    else:
        listed = all(each.record is not False for each in wheels)
        again = ("--force-reinstall" if listed else "--ignore-installed", "--no-deps")
    command = pip_command(environment, "install", *again, *pins, *options, user=user)
    changes = Changes(installs=pins, alone=True, again=True)
    return [Fix(text=task, command=command, risk=_RISK, changes=changes)]


def _by_conda(environment: Environment, packages: Sequence[Distribution]) -> list[Fix]:
    """The conda command, or the pixi command where the prefix belongs to a pixi project."""
    if not packages:
        return []
    task = f"Install {_listed(packages)} again"
    pins = [f"{each.name}={each.version}" + (f"={each.build}" if each.build else "") for each in packages]
    command = conda_command(environment, pins, again=True, alone=True)
    return [Fix(text=task, command=command)]


def _listed(packages: Sequence[Distribution]) -> str:
    names = [each.name for each in packages]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
