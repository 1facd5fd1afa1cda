"""The GPU code in compiled files of packages that are no frameworks, and of folders without metadata."""

from __future__ import annotations

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.gpu_code import code_runs_on, cuda_targets, read_targets
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Environment, Extension, Gpu, items_in
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion, PtxVersion
from envcheck.rules.api import (
    Facts,
    Misfit,
    Outcome,
    evidence_of,
    incompatible_packages,
    limit_by_confidence,
    passed,
    rule,
    sentence,
    worst_first,
)
from envcheck.rules.facts.frameworks import code_targets, framework_named
from envcheck.rules.facts.machine import gpu_title, gpus_with_capability, supported_cuda, title_of_first
from envcheck.rules.fixes.install import How, install

_FIXES = 3
_ALONE = (".cubin", ".fatbin", ".ptx")


def _has_extensions(environment: Environment, facts: Facts) -> bool:
    return bool(facts.usable_gpus) and any(each.gpu_code for each in items_in(environment.extensions))


@rule(
    layer="framework",
    per="environment",
    arises=_has_extensions,
    remedy=(
        Fix(
            text="Build the package again for this GPU: extensions of PyTorch with TORCH_CUDA_ARCH_LIST set to its "
            "compute capability, CMake projects with CMAKE_CUDA_ARCHITECTURES"
        ),
    ),
)
def extension_code_missing(environment: Environment, facts: Facts) -> Outcome | None:
    """A package's compiled code does not run on the GPU."""
    known = gpus_with_capability(facts)
    torch = framework_named("torch", environment)
    its_code = code_targets(torch) if torch else ()
    # Of a PyTorch without code for the GPUs either, its own rule tells.
    lost = bool(its_code) and all(code_runs_on(facts.matrix, its_code, each).bad for _, each in known)
    wrong: list[tuple[Extension, Misfit]] = []
    sound: list[Extension] = []
    for each in items_in(environment.extensions):
        code = read_targets(each.gpu_code or ())
        fits = [(gpu, _fit(each, code, capability, facts)) for gpu, capability in known]
        lacking = [(gpu, fit) for gpu, fit in fits if fit.bad]
        by_choice = bool(lacking) and _is_for_others(code, known)
        if by_choice and all(path.endswith(_ALONE) for path in each.binaries):
            continue  # a program loads such a file where it fits
        if lacking and not (lost and each.unresolved is not None):
            wrong.append((each, _misfit(each, lacking, len(fits), facts, noted=by_choice and each.version is not None)))
        elif code and fits and all(fit.ok for _, fit in fits):
            sound.append(each)
    if wrong:
        found = worst_first(misfit for _, misfit in wrong)
        fixes = tuple(fix for each, _ in wrong[:_FIXES] for fix in build_for_gpus(each, known, facts))
        return incompatible_packages(found, title_of_first(found[0].name, found), fixes)
    if environment.extensions and not environment.extensions.complete:
        return Outcome(status="unknown", title="Not all compiled files could be read for their GPU code")
    names = ", ".join(each.name for each in sound)
    evidence = (evidence_of(f"GPU code of {each.name}", each, "gpu_code") for each in sound)
    title = f"Compiled code of packages runs on the GPU: {names}"
    return passed(title, *evidence, decided_by="declared") if sound else None


def _title(extension: Extension) -> str:
    return f"{extension.name} {extension.version}" if extension.version else extension.name


def _is_for_others(code: tuple[CodeTarget, ...], known: tuple[tuple[Gpu, ComputeCapability], ...]) -> bool:
    """Whether there is code for newer GPUs alone, some of it in a form that serves no other, or none but such code: as
    packages have it that use it there, and do without it elsewhere.
    """
    special = [target for target in code if target.suffix]
    if len(special) == len(code):
        return True
    return bool(special) and all(target.capability > capability for target in code for _, capability in known)


def _fit(extension: Extension, code: tuple[CodeTarget, ...], capability: ComputeCapability, facts: Facts) -> Fit:
    built = max((cuda for isa in extension.ptx.values() if (cuda := _writes(facts.matrix, isa))), default=None)
    return code_runs_on(facts.matrix, code, capability, driver_cuda=supported_cuda(facts), built_with=built)


def _writes(matrix: Matrix, isa: str) -> CudaVersion | None:
    """The first CUDA version whose compiler writes PTX of this ISA."""
    wanted = PtxVersion.parse(isa)
    found = (CudaVersion.parse(row.version) for row in matrix.cuda if wanted and PtxVersion.parse(row.ptx) == wanted)
    return min(filter(None, found), default=None)


def _misfit(extension: Extension, lacking: list[tuple[Gpu, Fit]], total: int, facts: Facts, *, noted: bool) -> Misfit:
    gpu, fit = lacking[0]
    # Without the variable, PyTorch compiles what is in its cache again for the GPU that it finds.
    again = extension.cache and not facts.variable("TORCH_CUDA_ARCH_LIST")
    status: Status = "note" if noted or again else "warn"
    some = f" ({len(lacking)} of {total} GPUs)" if len(lacking) < total else ""
    evidence = (
        evidence_of(f"GPU code of {extension.name}", extension, "gpu_code"),
        Evidence(what=f"compiled files of {extension.name}", value=extension.binaries[0], source=extension.source),
        evidence_of(gpu_title(gpu), gpu, "compute_capability"),
    )
    reason = f"{_title(extension)}{some}: {fit.reason}"
    title = f"{_title(extension)} has no code that runs on {gpu_title(gpu)}"
    return Misfit(title, reason, evidence, limit_by_confidence(status, fit), fit.sources)


def build_for_gpus(
    extension: Extension, known: tuple[tuple[Gpu, ComputeCapability], ...], facts: Facts
) -> tuple[Fix, ...]:
    """Compile it for the GPUs that are here."""
    special = any(target.suffix == "a" for target in read_targets(extension.gpu_code or ()))
    capabilities = sorted({capability for _, capability in known})
    listed = ";".join(f"{each}{'a' if special else ''}" for each in capabilities)
    numbers = ";".join(each.sm.removeprefix("sm_") for each in capabilities)
    if extension.cache:
        text = f"Delete {extension.path}: PyTorch compiles {extension.name} again for this GPU"
        return (Fix(text=text, command=("rm", "-r", "--", extension.path)),)
    own = facts.matrix.extension_build(extension.name).architectures
    majors = ";".join(dict.fromkeys(f"{each.major}0" for each in capabilities))
    setting = (own or "TORCH_CUDA_ARCH_LIST={dotted}").format(numbers=numbers, dotted=listed, majors=majors)
    torch = framework_named("torch", facts.environment)
    cuda = CudaVersion.parse(torch.cuda) if torch else None
    refusing = [fit for each in capabilities if cuda and (fit := cuda_targets(facts.matrix, each, cuda)).bad]
    after = f", after PyTorch: {sentence(refusing[0].reason)}" if refusing else ""
    if extension.unresolved is None:
        text = f"Install a release of {extension.name} for compute capability {listed.replace(';', ' and ')}, or build"
        text = f"{text} it for that: CMAKE_CUDA_ARCHITECTURES={numbers} with CMake, {setting} with PyTorch"
        return (Fix(text=text),)
    if extension.version is None:
        return (Fix(text=f"Build {extension.name} again from its source with {setting} in the environment{after}"),)
    text = f"Build {extension.name} again for compute capability {listed.replace(';', ' and ')}{after}"
    public = extension.version.partition("+")[0]
    build = ("--no-build-isolation", "--no-cache-dir", "--no-binary", extension.name)
    how = How(build=build, variables=tuple(setting.split()), alone=True, again=True)
    return install(facts, (f"{extension.name}=={public}",), text, how)
