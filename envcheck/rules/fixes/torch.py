"""Install commands for a PyTorch build that fits the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envcheck.checks import Fix
from envcheck.compat.question.package_needs import release_for, requirement_name
from envcheck.rules.api import Facts
from envcheck.rules.facts.driver import supported_cuda
from envcheck.rules.facts.frameworks import installed, machine
from envcheck.rules.facts.library_names import cuda_of_wheel, shares_its_folder
from envcheck.rules.facts.machine import on_tegra
from envcheck.rules.fixes.commands import conda_command
from envcheck.rules.fixes.conda import is_conda_package
from envcheck.rules.fixes.install import How, install
from envcheck.rules.fixes.releases import TorchChoice, torch_build
from envcheck.snapshot import Environment, Framework, frameworks_in
from envcheck.versions import CudaVersion

INDEX = "https://download.pytorch.org/whl/"
SELECTOR = "https://pytorch.org/get-started/locally/"
_FOR_JETSON = "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/index.html"

_EXACT = re.compile(r"==[0-9.]+")


def install_fitting_build(facts: Facts, framework: Framework | None = None) -> tuple[Fix, ...]:
    """Commands that install a build for this driver and these GPUs; a pointer to PyTorch's page where none is known."""
    choice = torch_build(facts, framework)
    if on_tegra(facts) and (choice is None or not facts.usable_gpus):
        return (Fix(text=f"Install NVIDIA's build of PyTorch for this JetPack: {_FOR_JETSON}"),)
    if choice is None:
        return (Fix(text=f"Choose a CUDA build of PyTorch for this driver and GPU: {SELECTOR}"),)
    return _install(choice, facts)


def _install(choice: TorchChoice, facts: Facts) -> tuple[Fix, ...]:
    environment = facts.environment
    task = f"Install torch {choice.version} built for {choice.tag}{_reason_for_choice(choice, facts)}"
    if environment is not None and _is_conda_package(environment, facts):
        cuda = CudaVersion.from_tag(choice.tag)
        command = conda_command(environment, ("pytorch-gpu", f"cuda-version={cuda}"))
        return (Fix(text=f"{task} (newest on conda-forge)", command=command),)
    managed = environment is not None and environment.externally_managed
    of_its_cuda = facts.matrix.names_with("cuda-of-torch")
    companions = () if managed else tuple(name for name in of_its_cuda if installed(environment, name))
    labelled = machine(facts) == "x86_64"
    how = How(
        index=f"{INDEX}{choice.tag}",
        torch_backend=choice.tag,
        again=not labelled,
        risk="replaces the installed torch and what it pins",
    )
    wanted = _pinned(companions, choice, facts, label=f"+{choice.tag}" if labelled else "")
    return install(facts, wanted, task, how, remove=() if managed else _conflicting_wheels(environment, choice))


def _conflicting_wheels(environment: Environment | None, choice: TorchChoice) -> tuple[str, ...]:
    """NVIDIA's wheels for another CUDA major version that only torch required and that share a folder with the new
    ones.
    """
    if environment is None:
        return ()
    major = str(CudaVersion.from_tag(choice.tag)).partition(".")[0]
    needed = {
        requirement_name(line) for each in frameworks_in(environment) if each.name != "torch" for line in each.requires
    }
    return tuple(
        each.name
        for each in environment.distributions or ()
        if shares_its_folder(each)
        and each.name not in needed
        and cuda_of_wheel(each) not in (None, major)
        and not is_conda_package(each)
    )


def _reason_for_choice(choice: TorchChoice, facts: Facts) -> str:
    """What the build was chosen for, and what remains unknown."""
    driver = supported_cuda(facts) is not None
    known = [name for name, there in (("driver", driver), ("GPU", bool(facts.usable_gpus))) if there]
    fits = f", which fits this {' and '.join(known)}" if known else ""
    return fits if driver else f"{fits}; the driver must run CUDA {CudaVersion.from_tag(choice.tag)}"


def _pinned(companions: Sequence[str], choice: TorchChoice, facts: Facts, *, label: str) -> tuple[str, ...]:
    """Torch in the chosen build, and its companion packages in the matching releases.

    The label selects the exact build: without it, an installer accepts any installed build of that version.
    """
    found = [f"torch=={choice.version}{label}"]
    for name in companions:
        bounds = release_for(facts.matrix, name, "torch", choice.version, facts.driver_os, machine(facts)) or ""
        found.append(f"{name}{bounds}{label if _EXACT.fullmatch(bounds) else ''}")
    return tuple(found)


def _is_conda_package(environment: Environment, facts: Facts) -> bool:
    """Whether conda installed PyTorch, or would install it into this conda environment."""
    found = [dist for dist in environment.distributions or () if facts.matrix.has_trait(dist.name, "distributes-torch")]
    return all(map(is_conda_package, found)) if found else environment.manager == "conda"
