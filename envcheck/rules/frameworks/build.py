"""Whether frameworks are built for CUDA, and hold code for the present GPUs, as do other compiled packages."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import msgspec

from envcheck.compat.devices import refused
from envcheck.compat.question import AskedGpu
from envcheck.enrich.stated import first_of
from envcheck.knowledge.error_lines import lines_with, matches_fragment
from envcheck.knowledge.relations.fit import WEAKEST_FIRST, Fit, conclude
from envcheck.knowledge.relations.gpu_code import code_runs_on, compiler_of, cuda_serves, cuda_targets, only_ptx_serves
from envcheck.knowledge.relations.variables import hides_all
from envcheck.model.checks import Evidence, Fix, Missing, Status
from envcheck.model.snapshot import PASTED, Environment, Extension, Framework, Gpu, items_in
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion
from envcheck.rules.api import (
    Facts,
    KnownGpus,
    Outcome,
    evidence_of,
    incompatible,
    limit_by_confidence,
    note,
    passed,
    rule,
    sentence,
)
from envcheck.rules.facts.frameworks import built_for_cuda, code_targets, gpus_proven, proof_of, proves, ran_on
from envcheck.rules.facts.library_names import wheel_of
from envcheck.rules.facts.machine import basis_of, plural, title_of_first, unanswered
from envcheck.rules.facts.variables import VISIBLE, setting_evidence
from envcheck.rules.fixes.frameworks import install_gpu_build, install_other_release
from envcheck.rules.fixes.install import compile_again, in_steps
from envcheck.rules.fixes.libraries import without_variable
from envcheck.rules.messages.observed import line_evidence
from envcheck.rules.packages.matching import Misfit, incompatible_packages, worst_first
from envcheck.text.lazy import lazy_pattern


def _gpu_is_here_or_wanted(framework: Framework, facts: Facts) -> bool:
    """Whether a GPU is there or wanted, or a framework built for the CPU is worth a note where none was found.

    A build for ROCm uses CUDA's names for its own GPUs: only an NVIDIA GPU makes it the wrong one. Of an extension the
    question arises where its files tell, and where the framework itself is another build.
    """
    base = facts.framework(framework.extends)
    if not facts.is_main_framework(framework) and (framework.cpu_only is None or (base is not None and base.cpu_only)):
        return False
    if framework.hip:
        return bool(facts.usable_gpus)
    if facts.usable_gpus or evidence_for_cuda(facts):
        return True
    return facts.snapshot.gpus is not None and facts.is_main_framework(framework) and bool(framework.cpu_only)


@rule(
    layer="framework",
    needs=("framework.cpu_only",),
    arises=_gpu_is_here_or_wanted,
    proof=proves("ran on a GPU"),
    remedy=install_gpu_build,
)
def cpu_only_build(framework: Framework, facts: Facts) -> Outcome | None:
    """A framework was installed as a build for the CPU only."""
    build = tuple(
        evidence_of(f"{framework.name}: {field}", framework, field)
        for field in ("version", "cuda", "hip")
        if getattr(framework, field)
    )
    if framework.gpu_available or not (framework.cpu_only or framework.hip):
        return passed(f"{framework.title} is built for CUDA", *build, decided_by=basis_of(framework, "cpu_only"))
    kind = f"a build for ROCm {framework.hip}" if framework.hip else "CPU-only build"
    wanted = evidence_for_cuda(facts)
    if not (facts.usable_gpus or wanted):
        title = f"{framework.title} is a CPU build: it never uses a GPU"
        return note(title=title, evidence=build, decided_by=basis_of(framework, "cpu_only"))
    message = f"{framework.title} was built without CUDA."
    if framework.name.startswith("jax"):
        message = f"{framework.title} has no CUDA plug-in here."
    elif "CUDA" in (framework.providers or ()):
        message = f"{framework.title} is a CPU build; the CUDA provider next to it belongs to another package."
    elif framework.providers is not None:
        message = f"{framework.title} has no CUDA provider, only: {', '.join(framework.providers)}."
    # PYTHONPATH precedes installed packages.
    named_there = (facts.variable("PYTHONPATH") or "").split(":")
    folders = [each for each in named_there if each and (framework.path or "").startswith(f"{each.rstrip('/')}/")]
    return Outcome(
        status=_status(framework, facts),
        title=f"{facts.matrix.title_of(framework.name)} cannot use the GPU: {kind}",
        message=message,
        evidence=(*build, evidence_of("CPU only", framework, "cpu_only"), *wanted, *_place(facts)),
        decided_by=basis_of(framework, "cpu_only"),
        confidence="medium" if wanted else "high",
        fixes=(
            *(without_variable("PYTHONPATH", folders, facts) if folders else ()),
            *install_gpu_build(facts, framework),
        ),
    )


def _status(framework: Framework, facts: Facts) -> Status:
    """The status of a build without CUDA; many packages depend on a CPU build of ONNX Runtime on purpose."""
    others = facts.other_cuda_builds(framework)
    if framework.name == "torch":
        return "fail"
    if "onnxruntime" in facts.matrix.projects(framework.name, "shares-its-folder"):
        # A GPU package that is installed too was overwritten by this one.
        names = {each.name for each in facts.distributions} - {framework.name}
        overwritten = any("onnxruntime" in facts.matrix.projects(name, "has-cuda-provider") for name in names)
        return "warn" if overwritten or not others else "note"
    # Many packages bring JAX for the CPU: it is meant for the GPU where it was asked for one.
    meant = not framework.name.startswith("jax") or framework.gpu_available is False
    return "fail" if facts.is_main_framework(framework) and meant and not others else "warn"


def _place(facts: Facts) -> tuple[Evidence, ...]:
    environment = facts.environment
    place = environment.prefix or environment.key
    parts = (environment.why if environment.why != place else "", environment.python and f"Python {environment.python}")
    words = ", ".join(filter(None, parts))
    return (Evidence("environment", f"{place} ({words})" if words else place, environment.source),)


def _cuda_build_on_gpus(framework: Framework, facts: Facts) -> bool:
    """For what brings a part of its GPU code, or extends another framework: only where files or documents say."""
    whole = facts.is_main_framework(framework) and not facts.compiles_its_code(framework)
    return (
        built_for_cuda(framework, facts)
        and bool(facts.usable_gpus)
        and (whole or bool(framework.gpu_code) or bool(_refusals(framework, facts.gpus_with_capability, facts)))
    )


def _ran_on_every_kind_of_gpu(framework: Framework, facts: Facts) -> Outcome | None:
    """Pass where the framework ran on every kind of GPU here: it has code for them."""
    proven = gpus_proven(framework, facts)
    if not proven or len(proven) < len(facts.usable_gpus):
        return None
    kinds = ", ".join(dict.fromkeys(f"compute capability {gpu.compute_capability}" for gpu in proven))
    return passed(f"{framework.title} ran on {kinds}", *proof_of(framework), decided_by="framework-ran")


@rule(
    layer="framework",
    arises=_cuda_build_on_gpus,
    proof=_ran_on_every_kind_of_gpu,
    ground="framework",
    remedy=install_other_release,
    told_by=("extension-code-missing",),
)
def gpu_code_missing(framework: Framework, facts: Facts) -> Outcome | None:
    """A framework's build has no code for the GPU."""
    code, known = code_targets(framework), facts.gpus_with_capability
    if framework.gpu_code is None:
        refusals = _refusals(framework, known, facts)
        if not refusals:
            return unanswered("framework.gpu_code", gpu_code_missing.title, facts.snapshot)
        return _lacking(framework, refusals, len(known), evidence_of("release", framework, "version"), facts)
    if not known:
        text = "the compute capability of the GPUs is not known"
        missing = (Missing(fact="gpu.compute_capability"),)
        return Outcome(status="unknown", title=_NOT_KNOWN, message=text, missing=missing)
    proven = gpus_proven(framework, facts)
    fits = tuple((gpu, _fit(framework, code, capability, facts)) for gpu, capability in known if gpu not in proven)
    lacking = _unserved(framework, facts) or tuple((gpu, fit) for gpu, fit in fits if fit.bad)
    base = facts.framework(framework.extends)
    its_code = code_targets(base) if base else ()
    if base and its_code and lacking and all(_fit(base, its_code, each, facts).bad for _, each in known):
        return None  # the framework that it extends has no code for the GPUs either, which is reported there
    code_evidence = evidence_of(f"GPU code of {framework.name}", framework, "gpu_code")
    if lacking:
        return _lacking(framework, lacking, len(fits), code_evidence, facts)
    if found := _compiled_at_start(framework, known, code_evidence, facts):
        return found
    open_questions = [fit.reason for _, fit in fits if not fit.ok]
    if open_questions:
        status: Status = "unknown" if facts.is_main_framework(framework) else "skipped"
        return Outcome(status=status, title=_NOT_KNOWN, message=open_questions[0], evidence=(code_evidence,))
    names = ", ".join(dict.fromkeys(capability.sm for _, capability in known))
    return Outcome(
        status="pass",
        title=f"{framework.title} has code for {names}",
        message="; ".join(dict.fromkeys(fit.reason for _, fit in fits)),
        evidence=(code_evidence,),
        decided_by=basis_of(framework, "gpu_code"),
    )


_NOT_KNOWN = "Not known whether it has code for the GPU"


def _compiled_at_start(framework: Framework, known: KnownGpus, code_evidence: Evidence, facts: Facts) -> Outcome | None:
    """What explains a slow start, or wrong results, in a text: the driver has to compile all code of the build. CUDA's
    libraries of a release that is older than the GPU's generation have nothing that it could compile.
    """
    code = code_targets(framework)
    cuda = CudaVersion.parse(framework.cuda)
    if framework.source != PASTED or cuda is None:
        return None
    waiting = [(gpu, each) for gpu, each in known if only_ptx_serves(facts.matrix, code, each)]
    errors = facts.snapshot.observed_errors if waiting else ()
    slow, wrong = lines_with("slow-start", errors), lines_with("without-code-in-libraries", errors)
    if not (slow or wrong):
        return None
    gpu, capability = waiting[0]
    older = cuda_serves(facts.matrix, capability, cuda).bad
    if not older and not slow:
        return None
    libraries = f", and the libraries of CUDA {cuda} hold no code for it" if older else ""
    return Outcome(
        status="warn" if older else "note",
        title=f"{framework.title} has no native code for {gpu.title} ({capability.sm})",
        message=f"The driver compiles its PTX at the first start, which takes minutes{libraries}.",
        evidence=(code_evidence, evidence_of(gpu.title, gpu, "compute_capability")),
        decided_by=basis_of(framework, "gpu_code"),
        fixes=install_other_release(facts, framework),
    )


def _refusals(framework: Framework, known: KnownGpus, facts: Facts) -> tuple[tuple[Gpu, Fit], ...]:
    """The GPUs that its CUDA or a release's documents exclude; gpu-feature-unsupported asks about kernel packages."""
    unserved = _unserved(framework, facts)
    if unserved or framework.gpu_code is not None or facts.matrix.has_trait(framework.name, "own-kernels"):
        return unserved
    rows = facts.rows_of_release(framework.name, first_of(framework.version or ""))
    found: list[tuple[Gpu, Fit]] = []
    for gpu, capability in known:
        answers = [refused(facts.matrix, row, AskedGpu(gpu.name or "GPU", capability, None)) for row in rows]
        if answers and answers[0] and all(answers) and not ran_on(framework, gpu):
            what, change = answers[0]
            reason = f"the release {what}, and {gpu.title} has {capability}"
            found.append((gpu, conclude(facts.matrix, "incompatible", reason, *rows, change=change)))
    return tuple(found)


def _unserved(framework: Framework, facts: Facts) -> tuple[tuple[Gpu, Fit], ...]:
    """The GPUs that the CUDA does not serve with which it compiles its code."""
    own = CudaVersion.parse(framework.cuda) if facts.compiles_its_code(framework) else None
    return tuple(each for each in facts.unserved_gpus(own) if not ran_on(framework, each[0])) if own else ()


def _fit(framework: Framework, code: tuple[CodeTarget, ...], capability: ComputeCapability, facts: Facts) -> Fit:
    """Whether the build has code for a GPU; if only the driver is too old for its PTX, driver-too-old reports it."""
    cuda, supported = facts.cuda_of_code(framework), facts.supported_cuda
    fit = code_runs_on(facts.matrix, code, capability, driver_cuda=supported, built_with=cuda)
    if not fit.bad or cuda is None:
        return fit
    with_newer_driver = code_runs_on(facts.matrix, code, capability, driver_cuda=cuda, built_with=cuda)
    return with_newer_driver if with_newer_driver.ok else fit


def _lacking(
    framework: Framework, lacking: tuple[tuple[Gpu, Fit], ...], total: int, code_evidence: Evidence, facts: Facts
) -> Outcome:
    """A failure if the build has code for no GPU; a warning that names the GPUs if it has code for others."""
    main = facts.is_main_framework(framework) or not framework.gpu_code
    compiles = facts.compiles_its_code(framework)
    whole = (main and not compiles) or bool(_unserved(framework, facts))
    fit = min((each for _, each in lacking), key=lambda each: WEAKEST_FIRST.index(each.confidence))
    counted = Counter(gpu.title for gpu, _ in lacking)  # GPUs that are assumed have one name
    names = ", ".join(f"{count} x {title}" if count > 1 else title for title, count in counted.items())
    capabilities = tuple(dict.fromkeys(evidence_of(gpu.title, gpu, "compute_capability") for gpu, _ in lacking))
    fixes = install_other_release(facts, framework)
    if framework.binaries and facts.matrix.extension_build(framework.name).architectures:
        extension = Extension(name=framework.name, path="", version=framework.version, unresolved=())
        fixes += build_for_gpus(extension, facts.gpus_with_capability, facts)
    whom = lacking[0][0].title if len(lacking) == 1 else f"{len(lacking)} of {plural(total, 'GPU')}"
    return incompatible(
        f"{framework.title} {'has no code for' if framework.gpu_code else 'does not support'} {whom}",
        fit,
        evidence=(code_evidence, *capabilities, *_place(facts)),
        fixes=fixes,
        worst="fail" if len(lacking) == total and whole else "warn",
        more=f" Without code: {names}." if framework.gpu_code else "",
        decided_by=basis_of(framework, "gpu_code"),
    )


_CODE = lazy_pattern(r"\S{1,200}\.py\b")  # The file of a warning; PyTorch for the CPU has ``torch/cuda/__init__.py``


def evidence_for_cuda(facts: Facts) -> tuple[Evidence, ...]:
    """Evidence that CUDA is wanted, strongest first; none if GPUs were looked for."""
    if facts.snapshot.gpus is not None:
        return ()
    found, driver, matrix = [], facts.driver, facts.matrix
    if known := next((field for field in ("release", "cuda") if getattr(driver, field)), None):
        found.append(evidence_of(f"driver: {known}", driver, known))
    value = facts.variable(VISIBLE)
    if value is not None and not hides_all(value):
        found.append(setting_evidence(VISIBLE, value))
    for each in facts.distributions:
        if wheel_of(each.name) is not None or matrix.has_trait(each.name, "brings-cuda", "chooses-cuda-of-torch"):
            found.append(evidence_of(f"CUDA's libraries: {each.name}", each, "version"))
            break
    for error in facts.snapshot.observed_errors:
        logged = matches_fragment("logged-with-its-place", error.text)
        if not logged and matches_fragment("cuda-wanted", _CODE.sub("", error.text)):
            found.append(line_evidence(error, "asks for CUDA"))
            break
    # Whoever says that CUDA or cuDNN is installed wants CUDA; the chip of a Jetson has a GPU.
    stated = (each for each in facts.libraries if each.stated)
    found += [evidence_of(f"installed: {each.path}", each, "declared") for each in islice(stated, 1)]
    if facts.on_tegra and (source := facts.platform.source_of("tegra")):
        found.append(Evidence("machine", "Jetson", source))
    return tuple(found)


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
