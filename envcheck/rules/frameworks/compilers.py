"""Compilers at run time: Triton's ptxas, XLA's compilers, and the C compiler that Triton needs."""

from __future__ import annotations

from envcheck.compat.package_needs import active_requirements, normalised, package_filled_by, requirement_name
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.gpu_code import cuda_targets
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Framework, frameworks_in
from envcheck.model.versions import ComputeCapability, CudaVersion
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.frameworks import full_name, only_compiles_for_torch
from envcheck.rules.facts.machine import gpu_title
from envcheck.rules.facts.trials import ran_on_gpu
from envcheck.rules.fixes.driver import installer
from envcheck.rules.fixes.frameworks import install_fitting_build
from envcheck.rules.fixes.install import How, in_steps, install
from envcheck.rules.fixes.libraries import OTHER_COMPILER, without_variable
from envcheck.rules.fixes.outcomes import incompatible

_ASSEMBLER = "ptxas"
_PATH = "TRITON_PTXAS_PATH"
_OF_XLA = ("with-cuda", "and-cuda")
"""Extras of JAX's plug-ins and TensorFlow that install the CUDA wheels."""
_COMPILERS = ("nvidia-cuda-nvcc", "nvidia-nvvm")
"""Beginnings of the names of wheels with ptxas, nvlink and libdevice."""
_DATA_DIR = "xla_gpu_cuda_data_dir"
_HOSTS = {
    "C compiler": "C compiler (CC, gcc or clang)",
    "CC": "compiler by the name in CC",
    "Python.h": "Python.h of its Python",
}
_HEADERS = {"dnf": "python3-devel", "zypper": "python3-devel"}
"""The package of Python's headers, by the program that installs packages; elsewhere ``python3-dev``."""


def _is_triton(subject: FrameworkSubject) -> bool:
    return package_filled_by(subject.framework.name) == "triton" and subject.framework.problem is None


def _assemblers(framework: Framework) -> dict[str, CudaVersion]:
    """Triton's assemblers, with the CUDA version of each."""
    found = {name: CudaVersion.parse(version) for name, version in framework.built_for.items()}
    return {name: version for name, version in found.items() if name.startswith(_ASSEMBLER) and version}


@rule(layer="framework", per="framework", explains=("framework-cannot-use-gpu",), remedy=OTHER_COMPILER)
def jit_compiler_too_old(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """A run-time compiler does not support the GPU."""
    framework = subject.framework
    own = _assemblers(framework)
    if not _is_triton(subject) or not own or facts.variable(_PATH):
        return None
    capabilities = {
        capability: gpu for gpu in facts.usable_gpus if (capability := ComputeCapability.parse(gpu.compute_capability))
    }
    if not capabilities:
        return None
    for capability, gpu in capabilities.items():
        fits = [cuda_targets(facts.matrix, capability, version) for version in own.values()]
        if any(fit.ok for fit in fits) or ran_on_gpu(framework):
            continue
        if not all(fit.bad for fit in fits):
            title = f"Not known whether {full_name(framework)} can compile for {gpu_title(gpu)}"
            return Outcome(status="skipped", title=title, message=next(fit.reason for fit in fits if not fit.bad))
        return _does_not_know(framework, fits[0], gpu_title(gpu), facts)
    return passed(
        f"{full_name(framework)} has a ptxas that supports the GPU",
        evidence_of("assemblers", framework, "built_for"),
    )


def _does_not_know(framework: Framework, fit: Fit, gpu: str, facts: Facts) -> Outcome:
    newer = Fix(
        text=f"Or name a newer ptxas in {_PATH}", command=("env", f"{_PATH}=/usr/local/cuda/bin/ptxas", "python")
    )
    return incompatible(
        f"{full_name(framework)} cannot compile for {gpu}",
        fit,
        evidence=(evidence_of("assemblers that it brings", framework, "built_for"),),
        fixes=(*install_fitting_build(facts), newer),
        worst="warn",
    )


@rule(layer="framework", per="framework", explains=("framework-cannot-use-gpu",), remedy=OTHER_COMPILER)
def jit_compiler_missing(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """A run-time compiler is missing."""
    framework = subject.framework
    if facts.matrix.has_trait(framework.name, "compiles-with-xla"):
        return _without_xlas_compilers(subject, facts)
    if not _is_triton(subject) or framework.binaries is None:
        return None
    lacking = [name for name, place in framework.compiles_with.items() if not place]
    if lacking and not ran_on_gpu(framework):
        return _cannot_compile_in_c(subject, lacking, facts)
    if _assemblers(framework):
        return passed(f"{full_name(framework)} has its own ptxas")
    toolkits = facts.snapshot.toolkits
    elsewhere = facts.variable(_PATH) or (toolkits and any(each.nvcc for each in toolkits.items))
    if elsewhere or ran_on_gpu(framework) or toolkits is None or not toolkits.complete:
        return None
    again = install(facts, (framework.name,), f"Install {framework.name} from its own wheel", How(again=True))
    return Outcome(
        status="warn",
        title=f"{full_name(framework)} has no ptxas",
        message="The package contains none, TRITON_PTXAS_PATH names none, and there is no CUDA toolkit.",
        evidence=(Evidence(what="package", value=framework.path or framework.name, source=framework.source),),
        fixes=again,
    )


def _without_xlas_compilers(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """A warning where all programs are compiled (JAX); a note where only some are (TensorFlow)."""
    framework, environment = subject.framework, subject.environment
    there = {each.name for each in environment.distributions or ()}
    by_conda = any(each.channel == "conda" for each in environment.distributions or ())
    toolkits = facts.snapshot.toolkits
    if not environment.distributions_complete or by_conda or toolkits is None or not toolkits.complete:
        return None
    parts = [each for each in frameworks_in(environment) if framework.name in (each.name, each.extends)]
    required = (each for part in parts for each in active_requirements(part.requires, facts.markers, _OF_XLA))
    asked = {normalised(each.name): each for each in required}
    lacking = {name: each for name, each in asked.items() if name.startswith(_COMPILERS) and name not in there}
    elsewhere = any(each.nvcc for each in toolkits.items) or _DATA_DIR in (facts.variable("XLA_FLAGS") or "")
    if not lacking or elsewhere or there.isdisjoint(asked) or any(map(ran_on_gpu, parts)):
        return None
    names = " and ".join(lacking)
    lines = tuple(
        Evidence(what=f"{part.name} requires", value=line, source=part.source_of("requires"))
        for part in parts
        for line in part.requires
        if requirement_name(line) in lacking
    )
    wanted = [f"{name}{each.specifier}" for name, each in lacking.items()]
    return Outcome(
        status="warn" if facts.matrix.has_trait(framework.name, "compiles-at-run-time") else "note",
        title=f"{full_name(framework)} lacks {names}",
        message="XLA compiles for the GPU with the ptxas and libdevice of these wheels. The other CUDA wheels of the "
        "same extra are installed, and there is no CUDA toolkit in their place.",
        evidence=lines,
        decided_by="declared",
        fixes=install(facts, wanted, f"Install what {full_name(framework)} compiles with", How(owner=framework.name)),
    )


def _cannot_compile_in_c(subject: FrameworkSubject, lacking: list[str], facts: Facts) -> Outcome:
    """A note beside PyTorch, which works without compiling; a warning beside vLLM, which does not."""
    framework = subject.framework
    what = " and ".join(_HOSTS.get(name, name) for name in lacking)
    install = installer(facts)
    headers = _HEADERS.get(install[0], "python3-dev") if install else "python3-dev"
    packages = [headers if name == "Python.h" else "gcc" for name in lacking if name in _HOSTS and name != "CC"]
    command = ("sudo", *install, *packages) if install else ()
    unset = without_variable("CC", (), facts) if "CC" in lacking else ()
    brings = (Fix(text=f"Install {' and '.join(packages)}", command=command, who="root"),) if packages else ()
    return Outcome(
        status="note" if only_compiles_for_torch(subject.environment) else "warn",
        title=f"{full_name(framework)} finds no {what}",
        message=f"Triton compiles C code when the first kernel is called, but there is no {what}.",
        evidence=(evidence_of("what it compiles with", framework, "compiles_with"),),
        fixes=in_steps((*unset, *brings)),
    )
