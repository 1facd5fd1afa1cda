"""Install commands for a PyTorch build that fits the machine, in the words of the environment's own manager."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.checks import Fix
from envcheck.compat.tables import TorchBuild, TorchRow
from envcheck.compat.torch_builds import builds_that_fit
from envcheck.rules.api import Facts
from envcheck.rules.driver_facts import runs, speaks, speaks_natively
from envcheck.rules.framework_facts import machine
from envcheck.rules.install import How, install
from envcheck.snapshot import Environment, Framework
from envcheck.versions import ComputeCapability, CudaVersion

INDEX = "https://download.pytorch.org/whl/"
SELECTOR = "https://pytorch.org/get-started/locally/"

_COMPANIONS = ("torchvision", "torchaudio")
"""Packages that are built for one build of torch and must be installed with it."""


class Choice(msgspec.Struct, frozen=True):
    """A build to install."""

    version: str
    tag: str
    """Name of PyTorch's index for the build's CUDA: ``cuNNN``."""


def install_fitting_build(facts: Facts, framework: Framework | None = None) -> tuple[Fix, ...]:
    """Commands that install a build which the present driver runs and which has code for the GPUs; often none.

    The release that is installed is kept where it has such a build, else the newest one that has.
    """
    choice = fitting_build(facts, framework)
    if choice is None:
        return (Fix(text=f"Choose a CUDA build of PyTorch for this driver and GPU: {SELECTOR}"),)
    return _install(choice, facts)


def fitting_build(facts: Facts, framework: Framework | None = None) -> Choice | None:
    """The build to install, or None when the matrix knows none that fits."""
    if framework is not None and framework.name != "torch":
        return None
    for version in dict.fromkeys((framework.version if framework else None, None)):
        fitting = [(row, cuda) for row, build in _builds(facts, version) if (cuda := CudaVersion.parse(build.cuda))]
        runnable = [(row, cuda) for row, cuda in fitting if runs(facts, cuda)]
        of_newest = [(row, cuda) for row, cuda in runnable if row is runnable[0][0]]
        best = next((pair for pair in of_newest if speaks_natively(facts, pair[1])), None) or next(
            iter(of_newest), None
        )
        if best is not None:
            return Choice(best[0].version, f"cu{best[1].major}{best[1].minor}")
    return None


def _builds(facts: Facts, version: str | None) -> list[tuple[TorchRow, TorchBuild]]:
    """The builds for this system and Python with code for all GPUs; what the driver runs is asked for apart."""
    environment = facts.environment
    capabilities = [ComputeCapability.parse(gpu.compute_capability) for gpu in facts.usable_gpus]
    return builds_that_fit(
        facts.tables,
        version,
        list(dict.fromkeys(capability for capability in capabilities if capability)),
        None,
        facts.driver_os,
        environment.python if environment else None,
        machine(facts),
    )


def _install(choice: Choice, facts: Facts) -> tuple[Fix, ...]:
    environment = facts.environment
    task = f"Install torch {choice.version} built for {choice.tag}{_to_what_it_fits(choice, facts)}"
    if environment is not None and _is_conda_package(environment):
        return (Fix(text=f"{task} (newest on conda-forge)", command=_conda(environment, choice)),)
    managed = environment is not None and environment.externally_managed
    packages = ("torch",) if managed else ("torch", *_installed_companions(environment))
    how = How(
        options=("--index-url", f"{INDEX}{choice.tag}"),
        uv_options=(f"--torch-backend={choice.tag}",),
        again=True,
        risk="replaces the installed torch and what it pins",
    )
    return install(facts, _pinned(packages, choice), task, how)


def _to_what_it_fits(choice: Choice, facts: Facts) -> str:
    """What the choice was made for, and what it leaves open."""
    driver = speaks(facts) is not None
    known = [name for name, there in (("driver", driver), ("GPU", bool(facts.usable_gpus))) if there]
    fits = f", which fits this {' and '.join(known)}" if known else ""
    return fits if driver else f"{fits}; the driver must run CUDA {CudaVersion.from_tag(choice.tag)}"


def _conda(environment: Environment, choice: Choice) -> tuple[str, ...]:
    place = ("--prefix", environment.prefix) if environment.prefix else ()
    cuda = CudaVersion.from_tag(choice.tag)
    return ("conda", "install", *place, "--channel", "conda-forge", "pytorch-gpu", f"cuda-version={cuda}")


def _pinned(packages: Sequence[str], choice: Choice) -> tuple[str, ...]:
    return tuple(f"{name}=={choice.version}" if name == "torch" else name for name in packages)


def _is_conda_package(environment: Environment) -> bool:
    """Whether conda, not pip, installed PyTorch here (or would: a conda environment without it)."""
    found = [dist for dist in environment.distributions or () if dist.name in ("torch", "pytorch")]
    if found:
        return all(dist.channel == "conda" for dist in found)
    return environment.manager == "conda"


def _installed_companions(environment: Environment | None) -> tuple[str, ...]:
    installed = {dist.name for dist in (environment.distributions if environment else None) or ()}
    return tuple(name for name in _COMPANIONS if name in installed)
