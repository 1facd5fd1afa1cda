"""What rules ask of a framework's build."""

from __future__ import annotations

from envcheck.compat.tables import Machine
from envcheck.rules.api import Facts, FrameworkSubject
from envcheck.snapshot import Framework
from envcheck.versions import CodeTarget


def built_for_cuda(subject: FrameworkSubject, _facts: Facts) -> bool:
    """Whether it may be a CUDA build: nobody says that it is built for the CPU alone, or for ROCm."""
    return not subject.framework.cpu_only and not subject.framework.hip


def named(framework: Framework) -> str:
    return f"{framework.name} {framework.version}" if framework.version else framework.name


def machine(facts: Facts) -> Machine:
    """The processor that wheels are chosen by; x86_64 when nobody said."""
    platform = facts.snapshot.platform
    return "aarch64" if platform and platform.machine in ("aarch64", "arm64") else "x86_64"


def targets(framework: Framework) -> tuple[CodeTarget, ...]:
    """What it holds GPU code for."""
    return tuple(target for text in framework.gpu_code or () if (target := CodeTarget.parse(text)))
