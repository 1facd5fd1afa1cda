"""What rules ask of a framework's build."""

from __future__ import annotations

from envcheck.compat.tables import Machine
from envcheck.rules.api import Facts, FrameworkSubject
from envcheck.snapshot import Environment, Framework
from envcheck.versions import CodeTarget

_LEADING = (
    "torch", "tensorflow", "tf-nightly", "intel-tensorflow", "jax", "onnxruntime", "ort-nightly", "cupy", "amd-cupy",
    "mxnet", "paddlepaddle", "cntk", "caffe2",
)  # fmt: skip
"""How the names of frameworks begin that programs are written against: what holds them up holds the environment up."""

_COMPILES = ("jax", "cupy", "amd-cupy")
"""Those of them that compile nearly all of their GPU code when it is needed."""

_SHOWN = {
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "jax": "JAX",
    "onnxruntime": "ONNX Runtime",
    "paddlepaddle": "PaddlePaddle",
    "mxnet": "MXNet",
    "cntk": "CNTK",
    "caffe2": "Caffe2",
}


def built_for_cuda(subject: FrameworkSubject, _facts: Facts) -> bool:
    """Whether it may be a CUDA build: nobody says that it is built for the CPU alone, or for ROCm."""
    return not subject.framework.cpu_only and not subject.framework.hip


def leads(framework: Framework) -> bool:
    """Whether it is a framework of its own: no extension of one, no compiler, no engine for one kind of model."""
    return framework.extends is None and framework.name.startswith(_LEADING)


def compiles_its_code(framework: Framework) -> bool:
    """Whether what it holds is only a part of the GPU code that it runs."""
    return framework.name.startswith(_COMPILES)


def extended(subject: FrameworkSubject) -> Framework | None:
    """The framework that it is an extension of, where that is in its environment."""
    name = subject.framework.extends
    return next((each for each in of(subject.environment) if each.name == name), None) if name else None


def of(environment: Environment) -> tuple[Framework, ...]:
    """The frameworks of an environment."""
    return environment.frameworks.items if environment.frameworks else ()


def others_on_cuda(subject: FrameworkSubject) -> tuple[Framework, ...]:
    """Other frameworks of its environment that are built for CUDA; what it extends is no other one."""
    own = (subject.framework.name, subject.framework.extends)
    return tuple(
        each
        for each in of(subject.environment)
        if each.name not in own and leads(each) and each.cpu_only is False and not each.hip
    )


def for_cuda(framework: Framework) -> bool:
    """Whether its files say that it is a build for CUDA."""
    return framework.cpu_only is False or framework.cuda is not None


def gives_the_gpu(subject: FrameworkSubject) -> bool:
    """Whether what it extends uses the GPU by it alone: numba-cuda."""
    base = extended(subject)
    return base is not None and base.cpu_only is None and base.cuda is None


def named(framework: Framework) -> str:
    return f"{framework.name} {framework.version}" if framework.version else framework.name


def shown(framework: Framework) -> str:
    """The name that people know it by: ``PyTorch``."""
    return _SHOWN.get(framework.name, framework.name)


def machine(facts: Facts) -> Machine:
    """The processor that wheels are chosen by; x86_64 when nobody said."""
    platform = facts.snapshot.platform
    return "aarch64" if platform and platform.machine in ("aarch64", "arm64") else "x86_64"


def targets(framework: Framework) -> tuple[CodeTarget, ...]:
    """What it holds GPU code for."""
    return tuple(target for text in framework.gpu_code or () if (target := CodeTarget.parse(text)))
