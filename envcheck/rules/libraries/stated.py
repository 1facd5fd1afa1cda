"""Libraries of which a text alone tells: CUDA and cuDNN as it states them, held against what a framework's release
needs of the system, and fixes for a library that only an error line names.

Only a framework whose builds are all known, and that brings neither with it, is judged: a finding is what holds for
each of its builds. Beside wheels of NVIDIA it is the wheel's cuDNN that counts, and only its major version. People mix
up the CUDA of a driver, a toolkit and a build, so CUDA counts only beside a stated cuDNN or where something failed.
"""

from __future__ import annotations

import re
from typing import Literal

from envcheck.enrich.stated import ARCHIVE, first_of
from envcheck.knowledge.names import canonical
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.libraries import TOOLKIT, cuda_majors, cudnn_serves
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import OF_FRAMEWORK_IMAGE, PASTED, Framework, items_in
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts, Outcome, incompatible
from envcheck.rules.facts.library_names import (
    LibraryName,
    cuda_of_wheel,
    family_of_wheel,
    name_of,
    names_in,
    wheel_of,
    wheel_with,
)
from envcheck.rules.fixes.install import install
from envcheck.rules.fixes.libraries import (
    look_in_wheels,
    names_not_found,
    requirements,
    show_in_wheel,
    show_loader_search,
    wheels_with,
)
from envcheck.rules.messages.observed import at_fault, observed_problems, tells_of

_SHOWN = {"cuda": "CUDA", "cudnn": "cuDNN"}


def states_versions(framework: Framework, facts: Facts) -> bool:
    """Whether a text says which CUDA or cuDNN is beside a framework that takes it from the system."""
    if framework.source != PASTED or framework.loads is not None or framework.version is None:
        return False
    if framework.cpu_only or framework.hip or framework.gpu_available:
        return False
    # A program that got as far as the GPU's memory or its compiler has its libraries.
    got_far = tells_of(facts, "gpu-memory-exhausted", "jit-compiler-too-old")
    if got_far or not facts.matrix.has_trait(framework.name, "builds-listed"):
        return False
    conda = any(each.channel == "conda" for each in facts.distributions)
    stated = _stated_version("cudnn", facts) or _stated_version("cuda", facts)
    loaded = any(each.family == "cudnn" and each.loaded for each in facts.libraries)
    bundles = any(row.bundles for row in facts.rows_of_release(framework.name, first_of(framework.version)))
    return stated is not None and not (conda and wheel_of(stated.what) is None) and (loaded or not bundles)


def _stated_version(component: Literal["cuda", "cudnn"], facts: Facts) -> Evidence | None:
    """The one version that is stated, or the wheel that is listed; None where there are several or no number."""
    wheels = [each for each in facts.distributions if wheel_of(each.name)]
    if wheels and component == "cuda":
        majors = {major: each for each in wheels if (major := cuda_of_wheel(each))}
        only = next(iter(majors.items())) if len(majors) == 1 else None
        return Evidence(only[1].name, only[0], only[1].source) if only else None
    if wheels:
        found = [each for each in wheels if family_of_wheel(each.name) == "cudnn"]
        return Evidence(found[0].name, found[0].version, found[0].source) if len(found) == 1 else None
    family = TOOLKIT if component == "cuda" else "cudnn"
    stated = [each for each in facts.libraries if each.family == family and each.stated]
    if any(each.read.get("declared") == OF_FRAMEWORK_IMAGE for each in stated):
        return None
    if not stated and component == "cuda":  # that of the one toolkit whose compiler the text asks
        versions = {each.version: each for each in items_in(facts.snapshot.toolkits) if each.version}
        version, toolkit = next(iter(versions.items())) if len(versions) == 1 else ("", None)
        return Evidence("CUDA of nvcc", ".".join(version.split(".")[:2]), toolkit.source) if toolkit else None
    if not stated:  # that of the files that the text lists, where all have one major version
        files = (each for each in facts.libraries if each.family == "cudnn" and not each.stub)
        numbered = [(name.number, each) for each in files if (name := name_of(each.path)) and name.number]
        if len({number.partition(".")[0] for number, _ in numbered}) != 1:
            return None
        number, library = max(numbered, key=lambda each: len(each[0]))
        return Evidence(library.path, number, library.source)
    known = stated[0].declared if len(stated) == 1 else None
    return Evidence(f"{_SHOWN[component]} as stated", known, stated[0].source) if known else None


def stated_misfit(
    component: Literal["cuda", "cudnn"], framework: Framework, facts: Facts, *, other_major: bool
) -> Outcome | None:
    """The finding that a stated version is not one that the framework's release needs.

    ``other_major``: whether to report versions of another major (for CUDA of another release), or those too old.
    """
    copy = _stated_version(component, facts)
    if copy is None or not states_versions(framework, facts):
        return None
    of_wheel = wheel_of(copy.what) is not None
    # A failure that a program reports is more certain, unless it is a library that did not load and has no name.
    reported = any(
        problem.line.status == "fail"
        and (problem.line.problem != "library-not-found" or any(names_in(each.value) for each in problem.evidence))
        for problem in observed_problems(facts)
    )
    # No library helps where the driver is too old for the build.
    built = CudaVersion.parse(framework.cuda)
    if reported or (built is not None and not facts.runs_builds_for(built)) or (of_wheel and not other_major):
        return None
    failed = framework.gpu_available is False or bool(facts.snapshot.observed_errors)
    if component == "cuda" and not failed and (of_wheel or _stated_version("cudnn", facts) is None):
        return None
    # By what the framework was built with, else by each build of its release.
    fits: list[Fit | None]
    if component == "cudnn" and framework.cudnn:
        fits = [cudnn_serves(facts.matrix, framework.name, copy.value, framework.cudnn)]
    else:
        builds = _builds(framework, facts)
        fits = [facts.fit_of_release(framework.name, build, component, copy.value) for build in builds]
    fit = fits[0]
    if fit is None or not fit.bad or not all(other is not None and other.bad for other in fits):
        return None
    # No release of the stated major would do, by the change that the fit names.
    wanted = re.search(r"[<>=]\s*([0-9]+)", fit.nearest_change)
    is_other = wanted is not None and copy.value.partition(".")[0] != wanted[1]
    if component == "cudnn" and is_other is not other_major:
        return None
    name, bounds = _SHOWN[component], fit.nearest_change.removeprefix(component)
    text = f"Install the {name} that {framework.name} is built for"
    wheel = of_wheel and component == "cudnn" and bounds != fit.nearest_change
    return incompatible(
        f"{framework.title} does not work with {name} {copy.value}",
        fit,
        evidence=(Evidence(framework.name, framework.version or "", framework.source_of("version")), copy),
        fixes=install(facts, (f"{copy.what}{bounds}",), text) if wheel else (),
        worst="warn" if of_wheel and not failed else "fail",
    )


def _builds(framework: Framework, facts: Facts) -> tuple[str, ...]:
    """The versions of the builds of a release, PyPI's first; those for the stated CUDA, if there are any."""
    version = first_of(framework.version or "")
    there = parse_version(version)
    if "+" in version or there is None or framework.read.get("version") == ARCHIVE:
        return (version,)
    tags = dict.fromkeys(row.build for row in facts.matrix.rows_for(canonical(framework.name), there) if row.build)
    all_builds = (version, *(f"{version}+{tag}" for tag in tags))
    cuda = _stated_version("cuda", facts)
    if cuda is None:
        return all_builds
    fits = {build: facts.fit_of_release(framework.name, build, "cuda", cuda.value) for build in all_builds}
    return tuple(build for build, fit in fits.items() if fit is None or not fit.bad) or all_builds


def install_or_locate_library(facts: Facts) -> tuple[Fix, ...]:
    """Install the package with the library, or show the loader where it is, where only an error line is known."""
    names = names_not_found(facts)
    torch = facts.framework("torch")
    cuda = CudaVersion.parse(torch.cuda) if torch else None
    majors = cuda_majors(facts.matrix, names[0].family, names[0].number) if names else frozenset[int]()
    if cuda and majors and cuda.major not in majors:
        other = max(majors)
        text = f"{names[0].file} belongs to CUDA {other}, and PyTorch is built for CUDA {cuda}: "
        listed = [each.name for each in facts.distributions]
        of_other = " and ".join(name for name in listed if re.search(rf"-cu(?:da)?{other}x?$", name))
        whose = of_other or at_fault(facts)
        return (
            Fix(f"{text}install the release of {whose} that is built for CUDA {cuda.major}"),
            Fix(f"Otherwise install PyTorch for CUDA {other} in a new environment, with all that is built on it"),
        )
    if names and (wheels := wheels_with(names[0], facts)):
        return (*look_in_wheels(wheels, names[0], facts), *show_loader_search(facts))
    text = "Install the package that holds the library, for the CUDA major in its name: NVIDIA's wheel, or an extra"
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
    return show_in_wheel(name, install(facts, wanted, f"Install the wheel with {name.file}") if wanted else (), facts)
