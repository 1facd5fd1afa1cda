"""PyTorch's family: torchvision, torchaudio, Triton and other packages with one release for each of PyTorch's."""

from __future__ import annotations

from envcheck.knowledge.relations.torch import tag_of
from envcheck.model.checks import Fix
from envcheck.model.snapshot import Framework
from envcheck.model.versions import CudaVersion, is_release
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.fixes.frameworks import SELECTOR, TorchChoice, family_of_build, install_fitting_build
from envcheck.rules.fixes.install import How, install
from envcheck.rules.packages.extensions import Package, known_torch, misfit, not_built_for, packages_of
from envcheck.rules.packages.matching import Misfit


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
    listed = {each.name for each in facts.distributions}
    of_its_cuda = facts.matrix.names_with("cuda-of-torch")
    others = [name for name in of_its_cuda if name in listed] or of_its_cuda[:1]
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
    evidence = (
        evidence_of(f"{package.name}: {field}", package.record, field),
        evidence_of("CUDA of torch", torch, "cuda"),
    )
    reason = f"{package.title} is built for CUDA {own}, torch {torch.version} for {its}"
    return Misfit(package.title, reason, evidence, "fail")
