"""The CUDA toolkit, which is needed only by software that compiles on the machine where it runs."""

from __future__ import annotations

from envcheck.knowledge.error_lines import lines_with
from envcheck.knowledge.relations.driver import minor_compatible
from envcheck.knowledge.relations.gpu_code import code_runs_on, cuda_targets
from envcheck.knowledge.relations.libraries import TOOLKIT
from envcheck.knowledge.relations.torch import torch_row
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import PASTED, Environment, Framework, Snapshot, Toolkit, frameworks_in, items_in
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion
from envcheck.rules.api import Facts, Outcome, evidence_of, rule
from envcheck.rules.facts.frameworks import framework_named, full_name
from envcheck.rules.facts.machine import gpu_title
from envcheck.rules.fixes.outcomes import incompatible

_DOWNLOADS = "https://developer.nvidia.com/cuda-toolkit-archive"


def _compiling(environment: Environment, facts: Facts) -> tuple[str, ...]:
    """The installed packages that compile CUDA code on this machine."""
    names = (each.name for each in environment.distributions or ())
    return tuple(name for name in names if facts.matrix.has_trait(name, "compiles-where-it-runs"))


def _compiles(environment: Environment, facts: Facts) -> bool:
    toolkits = facts.snapshot.toolkits
    return bool(_compiling(environment, facts)) and toolkits is not None


def _build_fails(facts: Facts) -> bool:
    """Whether a text tells of a build that fails."""
    return any(error.source == PASTED for error in lines_with("build-fails", facts.snapshot.observed_errors))


def _stated_toolkit(facts: Facts) -> Toolkit | None:
    """The toolkit of which a text states the version alone."""
    said = [each for each in items_in(facts.snapshot.libraries) if each.stated and each.family == TOOLKIT]
    return Toolkit(source=PASTED, path=said[0].path, version=said[0].declared) if len(said) == 1 else None


def _chosen(facts: Facts) -> Toolkit | None:
    """The toolkit that builds use: in CUDA_HOME, else on PATH, else the only one."""
    toolkits = facts.snapshot.toolkits
    if toolkits is None and _build_fails(facts):
        return _stated_toolkit(facts)
    items = [each for each in items_in(toolkits) if each.nvcc or each.path == "unknown folder"]
    home = [each for each in items if each.cuda_home] or [each for each in items if each.on_path]
    return next(iter(home), items[0] if len(items) == 1 else None)


def _other_toolkit(facts: Facts) -> tuple[Fix, ...]:
    torch = framework_named("torch", facts.environment)
    wanted, folder = (f" {torch.cuda}", f"-{torch.cuda}") if torch and torch.cuda else ("", "")
    home = f"/usr/local/cuda{folder}"
    return (
        Fix(text=f"Install the CUDA toolkit{wanted}, beside any other: {_DOWNLOADS}", who="root"),
        Fix(text="Compile with it", command=("env", f"CUDA_HOME={home}", "python", "-m", "pip", "install", "…")),
    )


def _compiler_was_asked(_snapshot: Snapshot, facts: Facts) -> bool:
    toolkit = _chosen(facts)
    compiling = _build_fails(facts) or (facts.environment is not None and _compiles(facts.environment, facts))
    return compiling or (toolkit is not None and toolkit.targets is not None)


@rule(layer="framework", arises=_compiler_was_asked, remedy=_other_toolkit)
def toolkit_lacks_gpu(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The CUDA toolkit cannot compile for the GPU."""
    toolkit = _chosen(facts)
    version = CudaVersion.parse(toolkit.version) if toolkit else None
    if toolkit is None:
        return None
    environment = facts.environment
    who = (_compiling_packages(environment, facts),) if environment and _compiling(environment, facts) else ()
    for gpu in facts.usable_gpus:
        capability = ComputeCapability.parse(gpu.compute_capability)
        fit = cuda_targets(facts.matrix, capability, version) if capability and version else None
        if fit is not None and fit.bad:
            return incompatible(
                f"nvcc of CUDA {version} cannot compile for {gpu_title(gpu)}",
                fit,
                evidence=(evidence_of(f"toolkit in {toolkit.path}", toolkit, "version"), *who),
                fixes=_other_toolkit(facts),
                worst="warn",
            )
        if capability and toolkit.targets is not None and not _compiles_for(toolkit.targets, capability):
            return Outcome(
                status="warn",
                title=f"nvcc does not compile for {gpu_title(gpu)} ({capability.sm})",
                message=f"Its list of targets ends at {toolkit.targets[-1]} and begins at {toolkit.targets[0]}.",
                evidence=(
                    evidence_of("targets of nvcc", toolkit, "targets"),
                    evidence_of(gpu_title(gpu), gpu, "compute_capability"),
                    *who,
                ),
                fixes=_other_toolkit(facts),
            )
    return None


def _compiles_for(targets: tuple[str, ...], capability: ComputeCapability) -> bool:
    """Whether a target has the GPU's major version, and no newer minor one."""
    known = [target.capability for text in targets if (target := CodeTarget.parse(text))]
    return not known or any(each.major == capability.major and each.minor <= capability.minor for each in known)


@rule(layer="framework", per="environment", arises=_compiles, remedy=_other_toolkit)
def toolkit_missing(environment: Environment, facts: Facts) -> Outcome | None:
    """An installed package compiles CUDA code, but there is no CUDA toolkit."""
    toolkits = facts.snapshot.toolkits
    if toolkits is None or not toolkits.complete or any(each.nvcc for each in toolkits.items):
        return None
    return Outcome(
        status="note",
        title=f"No CUDA toolkit to compile operations of {_compiling(environment, facts)[0]}",
        message="It works as long as nothing has to be compiled.",
        evidence=(_compiling_packages(environment, facts),),
        fixes=_other_toolkit(facts),
    )


def _told_its_compiler(environment: Environment, _facts: Facts) -> bool:
    """Whether a report tells the CUDA with which an extension was compiled."""
    return any(map(_tells_its_compiler, frameworks_in(environment)))


def _tells_its_compiler(extension: Framework) -> bool:
    return bool(extension.extends == "torch" and extension.cuda and extension.source_of("cuda") == PASTED)


@rule(
    layer="framework",
    per="environment",
    arises=lambda environment, facts: (
        _compiles(environment, facts) or _told_its_compiler(environment, facts) or _build_fails(facts)
    ),
    remedy=_other_toolkit,
    explains=("cuda-major-mismatch", "extension-built-for-other-torch", "gpu-code-missing"),
)
def toolkit_differs_from_build(environment: Environment, facts: Facts) -> Outcome | None:
    """The CUDA toolkit and PyTorch have different CUDA major versions."""
    toolkit = _chosen(facts)
    torch = framework_named("torch", environment)
    told = _compiled_with_another(torch, environment, facts) if torch else None
    if told is not None:
        return told
    version, built = (
        CudaVersion.parse(toolkit.version if toolkit else None),
        CudaVersion.parse(torch.cuda if torch else None),
    )
    if toolkit is None or torch is None or version is None or built is None or version.major == built.major:
        return None
    if not _compiling(environment, facts) and not _build_fails(facts):
        return None
    compiling = _compiling(environment, facts) or ("the build",)
    strict = _build_fails(facts) or any(facts.matrix.has_trait(name, "toolkit-of-torch") for name in compiling)
    status: Status = "warn" if strict else "note"
    return Outcome(
        status=status,
        title=f"CUDA toolkit {version} does not match PyTorch, built for CUDA {built}",
        message=f"{compiling[0]} compiles on this machine, with {toolkit.nvcc or toolkit.path}.",
        evidence=(
            evidence_of(f"toolkit in {toolkit.path}", toolkit, "version"),
            evidence_of(f"{full_name(torch)} was built with", torch, "cuda"),
            *((_compiling_packages(environment, facts),) if _compiling(environment, facts) else ()),
        ),
        fixes=_other_toolkit(facts),
    )


def _compiled_with_another(torch: Framework, environment: Environment, facts: Facts) -> Outcome | None:
    """The finding that an extension was compiled with a CUDA for which this PyTorch is not built."""
    possible = [torch.cuda] if torch.cuda else _possible(torch, facts)
    known = [cuda for text in possible if (cuda := CudaVersion.parse(text))]
    for extension in frameworks_in(environment):
        cuda = CudaVersion.parse(extension.cuda if _tells_its_compiler(extension) else None)
        if cuda is None or not known or any(_goes_with(cuda, built) for built in known):
            continue
        if _lacks_code(extension, facts):
            continue
        return Outcome(
            status="fail" if facts.snapshot.observed_errors else "warn",
            title=f"{extension.name} was compiled with CUDA {cuda}, PyTorch was not",
            message=f"{full_name(torch)} is built for CUDA {' or '.join(dict.fromkeys(map(str, known)))}.",
            evidence=(
                evidence_of(f"compiler of {extension.name}", extension, "cuda"),
                evidence_of("torch", torch, "version") if torch.version else evidence_of("torch: CUDA", torch, "cuda"),
            ),
            fixes=_other_toolkit(facts),
        )
    return None


def _possible(torch: Framework, facts: Facts) -> list[str]:
    """The CUDAs that a wheel of this version may be for; conda's channels have builds of their own."""
    row = torch_row(facts.matrix, torch.version or "")
    if row is None or not row.all_builds or "conda" in (torch.path or ""):
        return []
    if row.tagged and row.default_cuda and "+" not in (torch.version or ""):
        return [row.default_cuda]
    return [build.cuda for build in row.builds]


def _lacks_code(extension: Framework, facts: Facts) -> bool:
    """Whether an extension has no code for a GPU, which is a fault whatever compiled it."""
    code = tuple(target for text in extension.gpu_code or () if (target := CodeTarget.parse(text)))
    capabilities = (ComputeCapability.parse(gpu.compute_capability) for gpu in facts.usable_gpus)
    return bool(code) and any(
        each and code_runs_on(facts.matrix, code, each, driver_cuda=None).bad for each in capabilities
    )


def _goes_with(one: CudaVersion, other: CudaVersion) -> bool:
    """Whether code of both runs in one process: one runtime serves a major version, of old ones a minor one."""
    return one == other or (one.major == other.major and minor_compatible(one))


def _compiling_packages(environment: Environment, facts: Facts) -> Evidence:
    return Evidence(
        what="compiles on this machine", value=", ".join(_compiling(environment, facts)), source="wheel metadata"
    )
