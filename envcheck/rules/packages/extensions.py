"""Packages compiled against PyTorch: whether they match it, have their compiled parts, and see it when being built."""

from __future__ import annotations

from envcheck.model.checks import STATUSES, Fix
from envcheck.model.snapshot import Framework
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.frameworks import full_name
from envcheck.rules.facts.machine import may_have_gpus
from envcheck.rules.facts.trials import ran_on_gpu
from envcheck.rules.fixes.install import How, install
from envcheck.rules.packages.beside_torch import misfit, packages_of, torch_of
from envcheck.rules.packages.torch import not_built_for


def _match_or_compile(_facts: Facts) -> tuple[Fix, ...]:
    text = "Install the extension's release for the installed PyTorch, or compile it again"
    return (Fix(text=f"{text} (pip install --no-build-isolation --no-cache-dir --force-reinstall --no-deps NAME)"),)


@rule(
    layer="framework",
    per="framework",
    remedy=_match_or_compile,
    explains=("extension-binary-missing", "gpu-code-missing", "requirement-broken"),
)
def extension_built_for_other_torch(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """An extension was compiled for another PyTorch."""
    framework, torch = subject.framework, torch_of(subject)
    if torch is None or "torch" not in (framework.name, framework.extends):
        return None
    if torch.is_inferred("version"):
        return None  # another package pins this release: two packages' bounds prove no installation
    if facts.matrix.has_trait(framework.name, "released-with-torch"):
        return None
    packages = packages_of(subject, facts.matrix, released_with_it=False)
    wrong = [(each, found) for each in packages if (found := misfit(each, torch, facts))]
    if wrong:
        worst, _ = min(wrong, key=lambda pair: STATUSES.index(pair[1].status))
        how = "requires" if facts.matrix.has_trait(worst.name, "pure-python") else "was built for"
        return not_built_for(torch, wrong, facts, f"{how} another PyTorch")
    if framework.name == "torch" or framework.unresolved is None:
        return None
    evidence = (
        evidence_of("symbols that are missing", framework, "unresolved"),
        evidence_of("torch", torch, "version"),
    )
    return passed(f"{full_name(framework)} finds all symbols in torch {torch.version}", *evidence)


@rule(layer="framework", per="framework", remedy=_match_or_compile)
def extension_binary_missing(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """The compiled part of an extension is missing."""
    framework = subject.framework
    needed = facts.matrix.has_trait(framework.name, "needs-compiled-parts")
    if framework.path is None or not (needed or facts.matrix.has_trait(framework.name, "loses-compiled-parts")):
        return None
    for_cuda = framework.problem if framework.problem and "libraries for CUDA" in framework.problem else None
    if framework.binaries and not for_cuda:
        return passed(
            f"{full_name(framework)} has its compiled files",
            evidence_of("compiled parts", framework, "binaries"),
        )
    if (framework.binaries is None and not for_cuda) or ran_on_gpu(framework):
        return None
    if framework.cpu_only and framework.name == "bitsandbytes" and not may_have_gpus(facts):
        return None
    what = for_cuda or f"no compiled file in or beside {framework.path}"
    field = "problem" if for_cuda else "binaries"
    return Outcome(
        status="fail" if needed else "warn",
        title=f"{full_name(framework)} lacks its compiled files",
        message=f"{full_name(framework)}: {what}.",
        evidence=(evidence_of(f"{framework.name}: {field}", framework, field), evidence_of("path", framework, "path")),
        decided_by="declared",
        fixes=_reinstall(framework, facts),
    )


def _reinstall(framework: Framework, facts: Facts) -> tuple[Fix, ...]:
    if framework.name == "bitsandbytes":
        text = "Install the newest release, which has libraries for more CUDA versions"
        return install(facts, (framework.name,), text, How(newest=True))
    public = (framework.version or "").partition("+")[0]
    compiled = facts.matrix.has_trait(framework.name, "compiled-by-pip")
    build = ("--no-cache-dir", *(("--no-build-isolation",) if compiled else ()))
    wanted = f"{framework.name}=={public}" if public else framework.name
    return install(facts, (wanted,), f"Install {framework.name} again", How(build=build, alone=True, again=True))
