"""The GPU code in compiled files of packages that are no frameworks, and of folders without metadata."""

from __future__ import annotations

import msgspec

from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.gpu_code import code_runs_on, compiler_of, cuda_targets
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Environment, Extension, Gpu, items_in
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts, KnownGpus, Outcome, evidence_of, limit_by_confidence, passed, rule, sentence
from envcheck.rules.facts.frameworks import code_targets
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.fixes.install import compile_again, in_steps
from envcheck.rules.messages.observed import line_evidence
from envcheck.rules.packages.matching import Misfit, incompatible_packages, worst_first

_FIXES = 3
_ALONE = (".cubin", ".fatbin", ".ptx")


@rule(layer="framework")
def extension_code_missing(environment: Environment, facts: Facts) -> Outcome | None:
    """A package's compiled code does not run on the GPU."""
    if not facts.usable_gpus or not any(each.gpu_code for each in items_in(environment.extensions)):
        return None
    known = facts.gpus_with_capability
    torch = facts.framework("torch")
    its_code = code_targets(torch) if torch else ()
    # Of a PyTorch without code for the GPUs either, its own rule tells.
    lost = bool(its_code) and all(code_runs_on(facts.matrix, its_code, each).bad for _, each in known)
    wrong: list[tuple[Extension, Misfit]] = []
    sound: list[Extension] = []
    for each in items_in(environment.extensions):
        code, compilers = code_targets(each), (compiler_of(facts.matrix, isa) for isa in each.ptx.values())
        built = max(filter(None, compilers), default=None)  # the first whose compiler writes all the PTX
        fits = [
            (gpu, code_runs_on(facts.matrix, code, capability, driver_cuda=facts.supported_cuda, built_with=built))
            for gpu, capability in known
        ]
        lacking = [(gpu, fit) for gpu, fit in fits if fit.bad]
        # Packages do without code that is for newer GPUs, some of it for these alone, or that is all for one kind.
        newer = all(target.capability > capability for target in code for _, capability in known)
        alone = [bool(target.suffix) for target in code]
        by_choice = bool(lacking) and (all(alone) or (newer and any(alone)))
        if by_choice and all(path.endswith(_ALONE) for path in each.binaries):
            continue  # a program loads such a file where it fits
        if lacking and not (lost and each.unresolved is not None):
            wrong.append((each, _misfit(each, lacking, len(fits), facts, noted=by_choice and each.version is not None)))
        elif code and fits and all(fit.ok for _, fit in fits):
            sound.append(each)
    if wrong:
        found = worst_first(misfit for _, misfit in wrong)
        fixes = tuple(fix for each, _ in wrong for fix in build_for_gpus(each, known, facts))
        fixes = in_steps(fixes) if all(fix.command for fix in fixes) else fixes[:_FIXES]
        outcome = incompatible_packages(found, title_of_first(found[0].name, found), fixes)
        # Where PyTorch has code for the GPU, a program that ends so means one of these.
        lines = () if lost else facts.lines_with("no-kernel-image")
        if not lines or outcome.status != "warn":
            return outcome
        return msgspec.structs.replace(
            outcome, evidence=(*map(line_evidence, lines), *outcome.evidence), decided_by="framework-ran"
        )
    if environment.extensions and not environment.extensions.complete:
        return Outcome(status="unknown", title="Not all compiled files could be read for their GPU code")
    names = ", ".join(each.name for each in sound)
    evidence = (evidence_of(f"GPU code of {each.name}", each, "gpu_code") for each in sound)
    title = f"Compiled code of packages runs on the GPU: {names}"
    return passed(title, *evidence, decided_by="declared") if sound else None


def _misfit(extension: Extension, lacking: list[tuple[Gpu, Fit]], total: int, facts: Facts, *, noted: bool) -> Misfit:
    gpu, fit = lacking[0]
    # Without the variable, PyTorch compiles what is in its cache again for the GPU that it finds.
    again = extension.cache and not facts.variable("TORCH_CUDA_ARCH_LIST")
    status: Status = "note" if noted or again else "warn"
    some = f" ({len(lacking)} of {total} GPUs)" if len(lacking) < total else ""
    evidence = (
        evidence_of(f"GPU code of {extension.name}", extension, "gpu_code"),
        Evidence(f"compiled files of {extension.name}", extension.binaries[0], extension.source),
        evidence_of(gpu.title, gpu, "compute_capability"),
    )
    reason = f"{extension.title}{some}: {fit.reason}"
    title = f"{extension.title} has no code that runs on {gpu.title}"
    return Misfit(title, reason, evidence, limit_by_confidence(status, fit), fit.sources)


def build_for_gpus(extension: Extension, known: KnownGpus, facts: Facts) -> tuple[Fix, ...]:
    """Compile it for the GPUs that are here."""
    if extension.cache:
        text = f"Delete {extension.path}: PyTorch compiles {extension.name} again for this GPU"
        return (Fix(text, command=("rm", "-r", "--", extension.path)),)
    capabilities = sorted({capability for _, capability in known})
    suffix = "a" if any(target.suffix == "a" for target in code_targets(extension)) else ""
    dotted = [f"{each}{suffix}" for each in capabilities]
    numbers = ";".join(each.sm.removeprefix("sm_") for each in capabilities)
    majors = ";".join(dict.fromkeys(f"{each.major}0" for each in capabilities))
    own = facts.matrix.extension_build(extension.name).architectures or "TORCH_CUDA_ARCH_LIST={dotted}"
    setting = own.format(numbers=numbers, dotted=";".join(dotted), majors=majors)
    torch = facts.framework("torch")
    cuda = CudaVersion.parse(torch.cuda) if torch else None
    refusing = (fit for each in capabilities if cuda and (fit := cuda_targets(facts.matrix, each, cuda)).bad)
    after = next((f", after PyTorch: {sentence(fit.reason)}" for fit in refusing), "")
    if extension.unresolved is None:
        text = f"Install a release of {extension.name} for compute capability {' and '.join(dotted)}, or build"
        text = f"{text} it for that: CMAKE_CUDA_ARCHITECTURES={numbers} with CMake, {setting} with PyTorch"
        return (Fix(text),)
    if extension.version is None:
        return (Fix(f"Build {extension.name} again from its source with {setting} in the environment{after}"),)
    text = f"Build {extension.name} again for compute capability {' and '.join(dotted)}{after}"
    return compile_again(facts, extension.name, extension.version, text, *setting.split(), no_wheel=True)
