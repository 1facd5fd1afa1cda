"""Packages that are built for one PyTorch: extensions that were compiled against it, and its family, as torchvision."""

from __future__ import annotations

import re
from typing import NamedTuple

from envcheck.compat.candidates import named_by
from envcheck.compat.package_needs import admits, bounds_on, needed_of, requirement_name, same_minor
from envcheck.knowledge.error_lines import matches_fragment
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.torch import compiled_for, tag_of, torch_of_label
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import STATUSES, Evidence, Fix, Status, ways
from envcheck.model.snapshot import PASTED, Distribution, Extension, Framework, items_in
from envcheck.model.versions import CudaVersion, is_release
from envcheck.rules.api import Facts, Outcome, evidence_of, limit_by_confidence, passed, rule
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.fixes.frameworks import (
    INDEX,
    SELECTOR,
    TorchChoice,
    family_of_build,
    install_fitting_build,
    install_gpu_build,
)
from envcheck.rules.fixes.install import How, compile_again, in_steps, install
from envcheck.rules.fixes.reinstall import wheel_addresses
from envcheck.rules.packages.matching import Misfit, incompatible_packages
from envcheck.text.lazy import lazy_pattern

_OF_CUDA = lazy_pattern(r"\+cu\d{2,3}$")
_SHOWN = 4


class Package(NamedTuple):
    """A package that is built on PyTorch, with its most detailed record."""

    name: str
    version: str  # Empty where no metadata tells it
    record: Framework | Distribution | Extension
    extension: Extension | None = None  # Its compiled files, where it is no framework and they link PyTorch

    @property
    def framework(self) -> Framework | None:
        return self.record if isinstance(self.record, Framework) else None

    @property
    def compiled(self) -> Framework | Extension | None:
        """The record of its compiled files."""
        return self.framework or self.extension

    @property
    def unresolved(self) -> tuple[str, ...] | None:
        return self.compiled.unresolved if self.compiled else None

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".rstrip()


def known_torch(facts: Facts) -> Framework | None:
    """The PyTorch of the environment, if its version is known."""
    torch = facts.framework("torch")
    return torch if torch and torch.version else None


def _is_python(package: Package, matrix: Matrix) -> bool:
    """Whether it is not compiled against PyTorch, or nothing shows that it is: then its metadata alone asks for one."""
    unknown = package.compiled is None and not matrix.rows_of(package.name)
    return unknown or matrix.has_trait(package.name, "pure-python")


def packages_of(framework: Framework, facts: Facts, *, released_with_it: bool) -> list[Package]:
    """The subject itself; for PyTorch, packages that are no frameworks: those released with it, or the others."""
    found = []
    if framework.name == "torch":
        known = {each.name for each in facts.frameworks}
        linking = {each.name: each for each in items_in(facts.environment.extensions) if each.unresolved is not None}
        own, others = {"triton", *linking}, (each for each in facts.distributions if each.name not in known)
        listed = [
            each
            for each in others
            if each.requires or "+" in each.version or each.name in own or "torch" in named_by(each.name, facts.matrix)
        ]
        found = [Package(each.name, each.version, each, linking.get(each.name)) for each in listed]
        apart = linking.keys() - known - {each.name for each in listed}
        found += [Package(name, "", linking[name], linking[name]) for name in sorted(apart)]
        found = [each for each in found if not facts.matrix.has_trait(each.name, "distributes-torch")]
    elif framework.version:
        found = [Package(framework.name, framework.version, framework)]
    return [each for each in found if facts.matrix.has_trait(each.name, "released-with-torch") is released_with_it]


def misfit(package: Package, torch: Framework, facts: Facts) -> Misfit | None:
    """Why a package is not built for this PyTorch; None if it is, or that is unknown."""
    lacking = tuple(name for name in package.unresolved or () if matches_fragment("plain-symbol-of-torch", name))
    if lacking:
        works_without = package.extension and facts.matrix.has_trait(package.name, "loses-compiled-parts")
        return _lacks(package, torch, lacking, "warn" if works_without else "fail", facts.matrix)
    return (
        _misfit_by_build(package, torch)
        or _misfit_by_metadata(package, torch, facts)
        or _misfit_by_rows(package, torch, facts)
    )


def _lacks(package: Package, torch: Framework, names: tuple[str, ...], status: Status, matrix: Matrix) -> Misfit:
    record = package.compiled or Framework(name=package.name)
    what = f"symbols that {package.name} needs and torch {torch.version} lacks"
    shown = Evidence(what, " ".join(names[:_SHOWN]), record.source_of("unresolved"))
    parts = (evidence_of(f"compiled parts of {package.name}", record, "binaries"),) if record.binaries else ()
    releases, rows = compiled_for(matrix, names)
    why = "it was compiled against another release, or another kind of build"
    if _only_lacks_cuda(package, torch):
        why = "it is built for CUDA, but this PyTorch for the CPU only"
    elif releases:
        why = f"it was compiled for {releases}"
    elif any("cxx11" in name for name in names):
        why = "it was compiled with the other C++ ABI (_GLIBCXX_USE_CXX11_ABI)"
    reason = f"{package.title} needs symbols that torch {torch.version} does not have: {why}"
    return Misfit(package.title, reason, (shown, *parts, *_versions(package, torch)), status, matrix.cite(*rows))


def _only_lacks_cuda(package: Package, torch: Framework) -> bool:
    """Whether it is built for CUDA, and this PyTorch for the CPU only."""
    for_cpu = package.framework is not None and package.framework.cpu_only
    return bool(torch.cpu_only) and not for_cpu and any("cuda" in name.lower() for name in package.unresolved or ())


def _misfit_by_build(package: Package, torch: Framework) -> Misfit | None:
    """Compare the PyTorch that its files, or its local version tag, name."""
    framework, label = package.framework, package.version.partition("+")[2]
    built = framework.built_for.get("torch") if framework else None
    if framework is not None and built is not None:
        evidence = Evidence(f"torch that {package.name} was built for", built, framework.source_of("built_for"))
    elif built := torch_of_label(label):
        evidence = Evidence(f"{package.name}: build", label, package.record.source)
    else:
        return None
    if framework is not None and framework.unresolved == ():
        # It only asks for a range, which is met, and all symbols that it asks for are there (a stable ABI).
        bounds = bounds_on(framework.requires, "torch", {})
        if bounds and "==" not in bounds and admits(bounds, torch.version or "") is True:
            return None
    own, there = parse_version(built), parse_version(torch.version or "")
    if own is None or there is None or own.numbers[:2] == there.numbers[:2]:
        return None
    reason = f"{package.title} was built for torch {built}, but {torch.version} is installed"
    return Misfit(package.title, reason, (evidence, *_versions(package, torch)), _status(package, "fail"))


def _misfit_by_metadata(package: Package, torch: Framework, facts: Facts) -> Misfit | None:
    """Compare the requirement in its metadata; for Triton, in PyTorch's metadata."""
    asking, asked, there = package.framework, "torch", torch.version or ""
    if package.name == "triton":
        asking, asked, there = torch, "triton", package.version
    own = () if isinstance(package.record, Extension) else package.record.requires
    bounds = bounds_on((asking.requires if asking else ()) or own or (), asked, facts.markers)
    if not bounds or admits(bounds, there) is not False:
        return None
    asks = f"torch {torch.version}" if asking is torch else package.title
    line = Evidence(f"{asks} requires", f"{asked}{bounds}", "wheel metadata")
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
    fit = facts.fit_of_release(package.name, package.version, "torch", there)
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
    if _is_python(package, matrix):
        return "note" if torch.source == PASTED and torch.gpu_available else "warn"
    return "warn" if package.name == "triton" else "fail"


def _status(package: Package, worst: Status) -> Status:
    """The status; lower if the package ran, or if all symbols that it needs are there."""
    framework = package.framework
    if framework is not None and framework.ran_on_gpu:
        return "note"
    if package.unresolved is None or worst != "fail":
        return worst
    return "fail" if framework is not None and framework.imported is False else "warn"


def _versions(package: Package, torch: Framework) -> tuple[Evidence, ...]:
    of_torch = evidence_of("torch", torch, "version")
    return (evidence_of(package.name, package.record, "version"), of_torch) if package.version else (of_torch,)


def install_matching(package: Package, torch: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Install the release for this PyTorch, or rebuild a package that is compiled on installation."""
    there = torch.version or ""
    if _only_lacks_cuda(package, torch) and facts.may_have_gpus and _misfit_by_build(package, torch) is None:
        return install_gpu_build(facts, torch)
    pinned = _with_its_torch(package, torch, facts)
    elsewhere = _OF_CUDA.search(package.version) and not facts.matrix.has_trait(package.name, "on-torch-index")
    if elsewhere and not pinned and not facts.matrix.has_trait(package.name, "released-with-torch"):
        return ()  # the build of another index: what the usual one has is for the CPU, or for another CUDA
    bounds = bounds_on(torch.requires, "triton", facts.markers) if package.name == "triton" else None
    bounds = bounds or facts.bounds_for(package.name, "torch", there)
    if "==" in bounds or ("<" in bounds and not facts.matrix.has_trait(package.name, "compiled-by-pip")):
        text = f"Install the {package.name} release for torch {there.partition('+')[0]}"
        cuda = CudaVersion.parse(torch.cuda)
        exact = cuda and "." in (torch.cuda or "") and facts.matrix.has_trait(package.name, "on-torch-index")
        tag = (there.partition("+")[2] or tag_of(str(cuda))) if cuda and exact else ""
        # Without its label, an installer takes the installed build of that release for the one that is asked for. Of
        # others than PyTorch's own, the index has the build that is on PyPI too without a label.
        own = facts.matrix.has_trait(package.name, "released-with-torch") and facts.processor == "x86_64"
        label = f"+{tag}" if tag and own and "==" in bounds and "+" in f"{there}{package.version}" else ""
        alone, compiled = not _is_python(package, facts.matrix), facts.matrix.has_trait(package.name, "compiled-by-pip")
        build = ("--no-build-isolation", "--no-cache-dir") if compiled else ()
        how = How(index=f"{INDEX}{tag}" if tag else "", build=build, alone=alone, again=True)
        return (*pinned, *install(facts, (f"{package.name}{bounds}{label}",), text, how))
    if pinned:
        return pinned
    public = package.version.partition("+")[0]
    if not public:
        return (Fix(f"Build {package.name} again from its source, against the installed torch {there}"),)
    if _is_python(package, facts.matrix) or facts.matrix.has_trait(package.name, "released-with-torch"):
        lines = needed_of(facts.matrix, package.name, public)
        if not bounds and (pins := [line for line in lines if requirement_name(line) == "torch"]):
            text = f"Install {pins[0]}, which {public} asks for: no {package.name} is known for torch {there}"
            return install(facts, (f"{package.name}=={public}", *pins), text)
        text = f"Install a release of {package.name} that admits torch {there}"
        return install(facts, (f"{package.name}{bounds}",), text, How(newest=True))
    page, wheel = wheel_addresses(package.name, public, torch, facts)
    if page:
        text = f"Install the wheel of {package.name} for torch {there}, from the project's own page"
        return install(facts, (f"{package.name}=={public}",), text, How(links=page, alone=True, again=True))
    its_build = f"install its wheel, where there is one: {wheel}" if wheel else f"use its build for torch {there}"
    text = f"Build {package.name} again, against the installed torch (or {its_build})"
    return compile_again(facts, package.name, public, text, no_wheel=package.extension is not None)


def _with_its_torch(package: Package, torch: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Install the PyTorch that a package pins, where its wheels are for that one alone."""
    if facts.environment.planned is not None or facts.matrix.has_trait(  # a plan pins it
        package.name, "on-torch-index", "released-with-torch", "compiled-by-pip", "pure-python"
    ):
        return ()
    record = facts.installed(package.name)
    bounds = bounds_on((record.requires if record else None) or (), "torch", facts.markers) or ""
    if not bounds and is_release(package.version):
        fit = facts.fit_of_release(package.name, package.version, "torch", torch.version or "")
        bounds = fit.nearest_change.removeprefix("torch") if fit else ""
    if not re.fullmatch(r"==[0-9.]+", bounds) or not facts.matrix.rows_of(package.name):
        return ()
    text = f"Install the PyTorch that {package.title} is built for, {bounds[2:]}, and what else it requires"
    return install(facts, (f"{package.name}=={package.version}", f"torch{bounds}"), text)


def not_built_for(torch: Framework, wrong: list[tuple[Package, Misfit]], facts: Facts, how: str) -> Outcome:
    """Packages that are not built for this PyTorch, the worst first."""
    wrong = sorted(wrong, key=lambda pair: STATUSES.index(pair[1].status))
    found = [each for _, each in wrong]
    ways_of_each = [install_matching(each, torch, facts) for each, _ in wrong]
    fixes = tuple(fix for each in ways_of_each[:4] for fix in each)
    if len(wrong) > 1 and all(each and each[0].command for each in ways_of_each):  # one alone would not end it
        fixes = in_steps([fix for each in ways_of_each for fix in ways(each)[0]])
    return incompatible_packages(found, title_of_first(f"{found[0].name} {how} than {torch.version}", found), fixes)


@rule(layer="framework")
def extension_built_for_other_torch(framework: Framework, facts: Facts) -> Outcome | None:
    """An extension was compiled for another PyTorch."""
    torch = known_torch(facts)
    if torch is None or "torch" not in (framework.name, framework.extends):
        return None
    if torch.is_inferred("version"):
        return None  # another package pins this release: two packages' bounds prove no installation
    if facts.matrix.has_trait(framework.name, "released-with-torch"):
        return None
    packages = packages_of(framework, facts, released_with_it=False)
    wrong = [(each, found) for each in packages if (found := misfit(each, torch, facts))]
    if wrong:
        worst, _ = min(wrong, key=lambda pair: STATUSES.index(pair[1].status))
        how = "requires" if _is_python(worst, facts.matrix) else "was built for"
        return not_built_for(torch, wrong, facts, f"{how} another PyTorch")
    if framework.name == "torch" or framework.unresolved is None:
        return None
    evidence = (
        evidence_of("symbols that are missing", framework, "unresolved"),
        evidence_of("torch", torch, "version"),
    )
    return passed(f"{framework.title} finds all symbols in torch {torch.version}", *evidence)


@rule(layer="framework")
def extension_binary_missing(framework: Framework, facts: Facts) -> Outcome | None:
    """The compiled part of an extension is missing."""
    needed = facts.matrix.has_trait(framework.name, "needs-compiled-parts")
    if framework.path is None or not (needed or facts.matrix.has_trait(framework.name, "loses-compiled-parts")):
        return None
    for_cuda = framework.problem if framework.problem and "libraries for CUDA" in framework.problem else None
    if framework.binaries and not for_cuda:
        return passed(f"{framework.title} has its compiled files", evidence_of("compiled parts", framework, "binaries"))
    if (framework.binaries is None and not for_cuda) or framework.ran_on_gpu:
        return None
    if framework.cpu_only and framework.name == "bitsandbytes" and not facts.may_have_gpus:
        return None
    what = for_cuda or f"no compiled file in or beside {framework.path}"
    field = "problem" if for_cuda else "binaries"
    if framework.name == "bitsandbytes":
        text, wanted = "Install the newest release, which has libraries for more CUDA versions", framework.name
        how = How(newest=True)
    else:
        public = (framework.version or "").partition("+")[0]
        compiled = facts.matrix.has_trait(framework.name, "compiled-by-pip")
        build = ("--no-cache-dir", *(("--no-build-isolation",) if compiled else ()))
        text, wanted = f"Install {framework.name} again", f"{framework.name}=={public}" if public else framework.name
        how = How(build=build, alone=True, again=True)
    return Outcome(
        status="fail" if needed else "warn",
        title=f"{framework.title} lacks its compiled files",
        message=f"{framework.title}: {what}.",
        evidence=(evidence_of(f"{framework.name}: {field}", framework, field), evidence_of("path", framework, "path")),
        decided_by="declared",
        fixes=install(facts, (wanted,), text, how),
    )


def _install_all_together(facts: Facts) -> tuple[Fix, ...]:
    """Install the family in one command, since each release of the others requires a certain PyTorch."""
    torch = facts.framework("torch")
    if torch and torch.version and not is_release(torch.version):
        there = f"the installed torch {torch.version}"
        return (Fix(f"Take them from where {there} came from, or build them from their sources against it"),)
    version, _, tag = ((torch.version if torch else "") or "").partition("+")
    cuda = CudaVersion.parse(torch.cuda) if torch else None
    tag = tag or (tag_of(str(cuda)) if cuda else "")
    if torch and torch.cpu_only and facts.usable_gpus:
        return install_fitting_build(facts, torch)
    of_its_cuda = facts.matrix.names_with("cuda-of-torch")
    others = [name for name in of_its_cuda if facts.installed(name)] or of_its_cuda[:1]
    text = f"Install PyTorch and its family in one command, from one index ({SELECTOR})"
    if version and tag:
        wanted, how = family_of_build(TorchChoice(version, tag), others, facts)
        return install(facts, wanted, text, how)
    return install(facts, (f"torch=={version}" if version else "torch", *others), text, How(again=True))


@rule(layer="framework", remedy=_install_all_together)
def torch_family_mismatch(framework: Framework, facts: Facts) -> Outcome | None:
    """A package of PyTorch's family belongs to another release of PyTorch."""
    torch = None if facts.told.other_gpu else known_torch(facts)
    packages = packages_of(framework, facts, released_with_it=True)
    if torch is None or not packages:
        return None
    found = [(each, misfit(each, torch, facts) or _other_cuda(each, torch, facts)) for each in packages]
    wrong = [(each, why) for each, why in found if why]
    if wrong:
        return not_built_for(torch, wrong, facts, "belongs to another PyTorch")
    known = [each for each in packages if each.framework]  # the others are only in a list, and nothing of them is known
    if not known:
        return None
    names = ", ".join(each.title for each in known)
    return passed(f"{names} belongs to torch {torch.version}", evidence_of("torch", torch, "version"))


def _other_cuda(package: Package, torch: Framework, facts: Facts) -> Misfit | None:
    framework = package.framework
    own = CudaVersion.parse(framework.cuda) if framework else CudaVersion.from_tag(package.version.partition("+")[2])
    its = CudaVersion.parse(torch.cuda)
    if own is None or its is None or own.major == its.major:
        return None
    if not facts.matrix.has_trait(package.name, "cuda-of-torch"):
        return None
    field = "cuda" if framework else "version"
    built = evidence_of(f"{package.name}: {field}", package.record, field)
    evidence = (built, evidence_of("CUDA of torch", torch, "cuda"))
    reason = f"{package.title} is built for CUDA {own}, torch {torch.version} for {its}"
    return Misfit(package.title, reason, evidence, "fail")
