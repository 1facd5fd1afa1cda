"""Fixes for a library of which an error line alone is known."""

from __future__ import annotations

import re

from envcheck.knowledge.relations.libraries import cuda_majors
from envcheck.model.checks import Fix
from envcheck.model.snapshot import Framework
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import distributions_in, framework_named
from envcheck.rules.facts.library_names import LibraryName, wheel_with
from envcheck.rules.fixes.install import in_steps, install, python_of
from envcheck.rules.fixes.libraries import (
    look_in_wheels,
    names_not_found,
    requirements,
    show_loader_search,
    wheels_with,
)
from envcheck.rules.messages.observed import at_fault


def install_or_locate_library(facts: Facts) -> tuple[Fix, ...]:
    """Install the package with the library, or show the loader where it is, where only an error line is known."""
    names = names_not_found(facts)
    torch = framework_named("torch", facts.environment)
    cuda = CudaVersion.parse(torch.cuda) if torch else None
    majors = cuda_majors(facts.matrix, names[0].family, names[0].number) if names else frozenset[int]()
    if cuda and majors and cuda.major not in majors:
        other = max(majors)
        text = f"{names[0].file} belongs to CUDA {other}, and PyTorch is built for CUDA {cuda}: "
        listed = [each.name for each in distributions_in(facts.environment)]
        of_other = " and ".join(name for name in listed if re.search(rf"-cu(?:da)?{other}x?$", name))
        whose = of_other or at_fault(facts.snapshot)
        return (
            Fix(f"{text}install the release of {whose} that is built for CUDA {cuda.major}"),
            Fix(f"Otherwise install PyTorch for CUDA {other} in a new environment, with all that is built on it"),
        )
    if names and (wheels := wheels_with(names[0], facts)):
        return (*look_in_wheels(wheels, names[0], facts), *show_loader_search(facts))
    text = (
        "Install the package that holds the library, for the CUDA major in its name: one of NVIDIA's wheels, or the "
        "framework's own extra"
    )
    if names and majors and names[0].file.endswith(".dll"):
        version = names[0].number if "." in names[0].number else max(majors)
        text = f"Install the CUDA toolkit {version}, which has {names[0].file}, with its bin folder in PATH; "
        text += "or install the package's build for the CUDA that is there"
    wheel = _wheel_for(names[0], cuda, majors, facts) if names else ()
    return (*(wheel or (Fix(text),)), *show_loader_search(facts))


def _wheel_for(name: LibraryName, cuda: CudaVersion | None, majors: frozenset[int], facts: Facts) -> tuple[Fix, ...]:
    """Install the wheel with a library, for the CUDA that its number or PyTorch names, and show where it then lies."""
    base, major = wheel_with(name.family), cuda.major if cuda else max(majors) if len(majors) == 1 else 0
    if not base or not major or facts.driver_os == "windows":
        return ()
    wanted = requirements((name,), Framework(name="", cuda=str(cuda or major)), facts)
    if not wanted and facts.matrix.is_published(f"{base}-cu{major}"):
        wanted = (f"{base}-cu{major}",)
    found = install(facts, wanted, f"Install the wheel with {name.file}") if wanted else ()
    text = "A program that does not look into NVIDIA's wheels finds it by LD_LIBRARY_PATH: put this file's folder there"
    show = f'import glob, nvidia; print(*glob.glob(nvidia.__path__[0] + "/**/{name.file}", recursive=True))'
    return in_steps((*found, Fix(text, command=(python_of(facts.environment), "-c", show)))) if found else ()
