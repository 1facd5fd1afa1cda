"""The CUDA toolkit, which matters only where something is compiled on the machine that runs it."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix, Status
from envcheck.compat.relations.gpu_cuda import cuda_targets
from envcheck.rules.api import Facts, Outcome, rule, seen
from envcheck.rules.facts.frameworks import framework_named, named
from envcheck.rules.facts.machine import called
from envcheck.rules.fixes.fits import does_not_fit
from envcheck.snapshot import Environment, Toolkit
from envcheck.versions import ComputeCapability, CudaVersion

_COMPILE_HERE = ("deepspeed", "gsplat", "nvdiffrast", "exllamav2", "tinycudann")
"""Packages that compile CUDA code on the machine that runs them."""
_STRICT = ("deepspeed",)
"""Those of them that refuse a toolkit of another CUDA major than PyTorch's."""
_DOWNLOADS = "https://developer.nvidia.com/cuda-toolkit-archive"


def _compiling(environment: Environment) -> tuple[str, ...]:
    names = {each.name for each in environment.distributions or ()}
    return tuple(name for name in _COMPILE_HERE if name in names)


def _compiles(environment: Environment, facts: Facts) -> bool:
    toolkits = facts.snapshot.toolkits
    return bool(_compiling(environment)) and toolkits is not None


def _chosen(facts: Facts) -> Toolkit | None:
    """The toolkit that builds take: that of CUDA_HOME, else the one on PATH, else the only one."""
    toolkits = facts.snapshot.toolkits
    items = [each for each in (toolkits.items if toolkits else ()) if each.nvcc or each.path == "unknown folder"]
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


@rule(layer="framework", per="environment", arises=_compiles, remedy=_other_toolkit)
def toolkit_lacks_gpu(environment: Environment, facts: Facts) -> Outcome | None:
    """The CUDA toolkit cannot compile for the GPU.

    What it checks
        The targets of the nvcc that builds would take (CUDA_HOME, else PATH) against the compute
        capability of the GPUs; only where a package is installed that compiles on this machine.

    Why it matters
        A build for the GPU stops with "nvcc fatal: Unsupported gpu architecture". Nothing else of the
        environment is affected: wheels do not use the toolkit.

    How to fix
        Install a toolkit that knows the GPU, and name it in CUDA_HOME.

    Sources
        nvcc, GPU feature list:
            https://docs.nvidia.com/cuda/cuda-compiler-driver-nvcc/index.html#gpu-feature-list
    """
    toolkit = _chosen(facts)
    version = CudaVersion.parse(toolkit.version) if toolkit else None
    if toolkit is None or version is None:
        return None
    for gpu in facts.usable_gpus:
        capability = ComputeCapability.parse(gpu.compute_capability)
        fit = cuda_targets(facts.tables, capability, version) if capability else None
        if fit is not None and fit.bad:
            return does_not_fit(
                f"nvcc of CUDA {version} cannot compile for {called(gpu)}",
                fit,
                evidence=(seen(f"toolkit in {toolkit.path}", toolkit, "version"), _who(environment)),
                fixes=_other_toolkit(facts),
                worst="warn",
            )
    return None


@rule(layer="framework", per="environment", arises=_compiles, remedy=_other_toolkit)
def toolkit_missing(environment: Environment, facts: Facts) -> Outcome | None:
    """There is no CUDA toolkit, and something is to be compiled.

    What it checks
        Whether there is an nvcc, where a package is installed that compiles CUDA code on the machine
        that runs it (such as DeepSpeed).

    Why it matters
        It is a remark: such packages work as long as nothing has to be compiled. What has stops with
        "CUDA_HOME environment variable is not set". Wheels that were compiled elsewhere, and PyTorch
        itself, need no toolkit.

    How to fix
        Install the toolkit of the CUDA that PyTorch was built with, and name it in CUDA_HOME.

    Sources
        PyTorch, building extensions: https://docs.pytorch.org/docs/stable/cpp_extension.html
        DeepSpeed, installation: https://www.deepspeed.ai/tutorials/advanced-install/
    """
    toolkits = facts.snapshot.toolkits
    if toolkits is None or not toolkits.complete or any(each.nvcc for each in toolkits.items):
        return None
    return Outcome(
        status="note",
        title=f"There is no CUDA toolkit to compile {_compiling(environment)[0]}'s operations with",
        message="It works as long as nothing has to be compiled.",
        evidence=(_who(environment),),
        fixes=_other_toolkit(facts),
    )


@rule(
    layer="framework",
    per="environment",
    arises=_compiles,
    remedy=_other_toolkit,
    explains=("extension-built-for-other-torch",),
)
def toolkit_differs_from_build(environment: Environment, facts: Facts) -> Outcome | None:
    """The CUDA toolkit that compiles here is of another major than PyTorch's build.

    What it checks
        The nvcc that builds would take (CUDA_HOME, else PATH) against the CUDA that PyTorch was built
        with; only where a package is installed that compiles on this machine. Another minor version
        of the same major is no finding, and where nothing is compiled no nvcc is.

    Why it matters
        PyTorch refuses to build extensions with a toolkit of another major: "The detected CUDA
        version mismatches the version that was used to compile PyTorch".

    How to fix
        Install the toolkit of PyTorch's CUDA major beside the other one and name it in CUDA_HOME; or
        install a PyTorch for the toolkit; or a wheel of the extension that was compiled elsewhere.

    Sources
        PyTorch, building extensions: https://docs.pytorch.org/docs/stable/cpp_extension.html
        DeepSpeed, installation: https://www.deepspeed.ai/tutorials/advanced-install/
    """
    toolkit = _chosen(facts)
    torch = framework_named("torch", environment)
    version, built = (
        CudaVersion.parse(toolkit.version if toolkit else None),
        CudaVersion.parse(torch.cuda if torch else None),
    )
    if toolkit is None or torch is None or version is None or built is None or version.major == built.major:
        return None
    strict = any(name in _STRICT for name in _compiling(environment))
    status: Status = "warn" if strict else "note"
    return Outcome(
        status=status,
        title=f"The toolkit is of CUDA {version}, PyTorch of {built}, and something is compiled",
        message=f"{_compiling(environment)[0]} compiles here, with {toolkit.nvcc or toolkit.path}.",
        evidence=(
            seen(f"toolkit in {toolkit.path}", toolkit, "version"),
            seen(f"{named(torch)} was built with", torch, "cuda"),
            _who(environment),
        ),
        fixes=_other_toolkit(facts),
    )


def _who(environment: Environment) -> Evidence:
    return Evidence(what="compiles on this machine", value=", ".join(_compiling(environment)), source="wheel metadata")
