"""Packages that are built for one PyTorch, and whether they match the installed one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envcheck.compat.package_needs import admits, bounds_on, release_fits, release_for, same_minor
from envcheck.knowledge.error_lines import matches_fragment
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import PASTED, Distribution, Framework, frameworks_in
from envcheck.model.versions import CudaVersion, is_release
from envcheck.rules.api import Facts, FrameworkSubject, evidence_of
from envcheck.rules.facts.frameworks import framework_named, machine
from envcheck.rules.facts.trials import imported, ran_on_gpu
from envcheck.rules.fixes.frameworks import INDEX
from envcheck.rules.fixes.install import How, install
from envcheck.rules.fixes.outcomes import Misfit, limit_by_confidence

_LABEL = re.compile(r"(?:^|[^a-z])(?:pt|torch)([1-9])\.?(\d{1,2})(?:\.\d+)?(?![\d])")
"""PyTorch's version in a local tag, among other words: ``pt28``, ``torch2.5``."""
_SHOWN = 4


class Package(NamedTuple):
    """A package that is built on PyTorch, with its most detailed record."""

    name: str
    version: str
    record: Framework | Distribution

    @property
    def framework(self) -> Framework | None:
        return self.record if isinstance(self.record, Framework) else None

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}"


def torch_of(subject: FrameworkSubject) -> Framework | None:
    """The PyTorch of the environment, if its version is known."""
    torch = framework_named("torch", subject.environment)
    return torch if torch and torch.version else None


def packages_of(subject: FrameworkSubject, matrix: Matrix, *, released_with_it: bool) -> list[Package]:
    """The subject itself; for PyTorch, the listed packages without a framework record: those with one release for each
    of PyTorch's, or the others.
    """
    found = _packages(subject, matrix)
    return [each for each in found if matrix.has_trait(each.name, "released-with-torch") is released_with_it]


def _packages(subject: FrameworkSubject, matrix: Matrix) -> Iterator[Package]:
    framework = subject.framework
    if framework.name != "torch":
        if framework.version:
            yield Package(framework.name, framework.version, framework)
        return
    known = {each.name for each in frameworks_in(subject.environment)}
    for each in subject.environment.distributions or ():
        if each.name not in known and not matrix.has_trait(each.name, "distributes-torch"):
            yield Package(each.name, each.version, each)


def misfit(package: Package, torch: Framework, facts: Facts) -> Misfit | None:
    """Why a package is not built for this PyTorch; None if it is, or that is unknown."""
    unresolved = (package.framework.unresolved if package.framework else None) or ()
    lacking = tuple(name for name in unresolved if matches_fragment("plain-symbol-of-torch", name))
    if lacking:
        return _lacks(package, torch, lacking)
    return (
        _misfit_by_build(package, torch)
        or _misfit_by_metadata(package, torch, facts)
        or _misfit_by_rows(package, torch, facts)
    )


def _lacks(package: Package, torch: Framework, names: tuple[str, ...]) -> Misfit:
    record = package.framework or Framework(name=package.name)
    shown = Evidence(
        what=f"symbols that {package.name} needs and torch {torch.version} lacks",
        value=" ".join(names[:_SHOWN]),
        source=record.source_of("unresolved"),
    )
    parts = (evidence_of(f"compiled parts of {package.name}", record, "binaries"),) if record.binaries else ()
    reason = f"{package.title} needs symbols that torch {torch.version} does not have: {_why(record, torch, names)}"
    return Misfit(package.title, reason, (shown, *parts, *_versions(package, torch)), "fail")


def _why(package: Framework, torch: Framework, names: tuple[str, ...]) -> str:
    if torch.cpu_only and not package.cpu_only and any("cuda" in name.lower() for name in names):
        return "it is built for CUDA, but this PyTorch for the CPU only"
    if any("cxx11" in name for name in names):
        return "it was compiled with the other C++ ABI (_GLIBCXX_USE_CXX11_ABI)"
    return "it was compiled against another release, or another kind of build"


def _misfit_by_build(package: Package, torch: Framework) -> Misfit | None:
    """Compare the PyTorch that its files, or its local version tag, name."""
    built, evidence = _built_for(package)
    if built is None or _satisfied_range(package, torch):
        return None
    own, met = parse_version(built), parse_version(torch.version or "")
    if own is None or met is None or own.numbers[:2] == met.numbers[:2]:
        return None
    reason = f"{package.title} was built for torch {built}, but {torch.version} is installed"
    return Misfit(package.title, reason, (evidence, *_versions(package, torch)), _status(package, "fail"))


def _built_for(package: Package) -> tuple[str | None, Evidence]:
    framework = package.framework
    if framework is not None and "torch" in framework.built_for:
        built = framework.built_for["torch"]
        source = framework.source_of("built_for")
        return built, Evidence(what=f"torch that {package.name} was built for", value=built, source=source)
    label = package.version.partition("+")[2]
    match = _LABEL.search(label)
    torch = f"{match[1]}.{match[2]}" if match else None
    return torch, Evidence(what=f"{package.name}: build", value=label, source=package.record.source)


def _satisfied_range(package: Package, torch: Framework) -> bool:
    """Whether it only asks for a range, which is met, and all symbols that it asks for are there (a stable ABI)."""
    framework = package.framework
    if framework is None or framework.unresolved != ():
        return False
    bounds = bounds_on(framework.requires, "torch", {})
    return bool(bounds) and "==" not in (bounds or "") and admits(bounds or "", torch.version or "") is True


def _misfit_by_metadata(package: Package, torch: Framework, facts: Facts) -> Misfit | None:
    """Compare the requirement in its metadata; for Triton, in PyTorch's metadata."""
    asking, asked, there = (
        (torch, "triton", package.version)
        if package.name == "triton"
        else (package.framework, "torch", torch.version or "")
    )
    lines = (asking.requires if asking else ()) or package.record.requires or ()
    bounds = bounds_on(lines, asked, facts.markers)
    if not bounds or admits(bounds, there) is not False:
        return None
    asks = f"torch {torch.version}" if asking is torch else package.title
    line = Evidence(what=f"{asks} requires", value=f"{asked}{bounds}", source="wheel metadata")
    worst = _worst(package, bounds, torch, there, facts.matrix)
    reason = f"{asks} requires {asked}{bounds}, but {there} is installed"
    return Misfit(package.title, reason, (line, *_versions(package, torch)), _status(package, worst))


def _misfit_by_rows(package: Package, torch: Framework, facts: Facts) -> Misfit | None:
    """Compare the rows of its release."""
    framework = package.framework
    if framework is not None and bounds_on(framework.requires, "torch", facts.markers):
        return None  # its own metadata has spoken
    there = torch.version or ""
    if not (is_release(there) and is_release(package.version)):
        return None  # rows tell of releases, not of what builds of the day or from somebody's sources go with
    fit = release_fits(facts.matrix, package.name, package.version, "torch", there, facts.driver_os, machine(facts))
    if fit is None or not fit.bad:
        return None
    worst = limit_by_confidence(_worst(package, fit.nearest_change, torch, there, facts.matrix), fit)
    return Misfit(package.title, fit.reason, _versions(package, torch), _status(package, worst), fit.sources)


def _worst(package: Package, bounds: str, torch: Framework, there: str, matrix: Matrix) -> Status:
    """The worst status: releases that differ only in the last number mostly work, Triton matters only for compiling,
    and a package without compiled parts may work with a PyTorch that it was not tested with. Images pin such packages
    to another one on purpose: a text whose PyTorch works is not about that.
    """
    if same_minor(bounds, there):
        return "note"
    if matrix.has_trait(package.name, "pure-python"):
        return "note" if torch.source == PASTED and torch.gpu_available else "warn"
    return "warn" if package.name == "triton" else "fail"


def _status(package: Package, worst: Status) -> Status:
    """The status; lower if the package ran, or if all symbols that it needs are there."""
    framework = package.framework
    if framework is None or framework.unresolved is None or worst != "fail":
        ran = framework is not None and ran_on_gpu(framework)
        return "note" if ran else worst
    if ran_on_gpu(framework):
        return "note"
    return "fail" if imported(framework) is False else "warn"


def _versions(package: Package, torch: Framework) -> tuple[Evidence, ...]:
    return evidence_of(package.name, package.record, "version"), evidence_of("torch", torch, "version")


def install_matching(package: Package, torch: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Install the release for this PyTorch, or rebuild a package that is compiled on installation."""
    there = torch.version or ""
    if package.name == "triton":
        bounds = bounds_on(torch.requires, "triton", facts.markers) or ""
    else:
        bounds = release_for(facts.matrix, package.name, "torch", there, facts.driver_os, machine(facts)) or ""
    if "==" in bounds:
        text = f"Install the {package.name} release for torch {there.partition('+')[0]}"
        return install(facts, (f"{package.name}{bounds}",), text, _from_index(package, torch, facts.matrix))
    public = package.version.partition("+")[0]
    if facts.matrix.has_trait(package.name, "pure-python"):
        text = f"Install a release of {package.name} that admits torch {there}"
        return install(facts, (f"{package.name}{bounds}",), text, How(newest=True))
    text = f"Build {package.name} again, against the installed torch (or use its build for torch {there})"
    how = How(build=("--no-build-isolation", "--no-cache-dir"), alone=True, again=True)
    return install(facts, (f"{package.name}=={public}",), text, how)


def _from_index(package: Package, torch: Framework, matrix: Matrix) -> How:
    cuda = CudaVersion.parse(torch.cuda)
    if cuda is None or "." not in (torch.cuda or "") or not matrix.has_trait(package.name, "on-torch-index"):
        return How(alone=True, again=True)
    return How(index=f"{INDEX}cu{cuda.major}{cuda.minor}", alone=True, again=True)
