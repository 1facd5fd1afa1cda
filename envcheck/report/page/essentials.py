"""What a stranger needs to know of a machine: its versions in a few lines, for pages that are sent to others."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.checks import Report
from envcheck.report.page.subject import framework_title, gpu_name, judged_environment, place
from envcheck.snapshot import Environment, Snapshot, frameworks_in, items_in

_WITH_CUDA = ("nvidia-", "cuda-", "cupy", "jax", "tensorrt", "onnxruntime", "triton", "torch", "numpy", "tensorflow")
"""Beginnings of the names of distributions that decide what works."""


def versions(report: Report) -> list[tuple[str, str]]:
    """Names and versions of what is here; nothing for what was not checked."""
    snapshot = report.snapshot or Snapshot()
    environment = judged_environment(report)
    found = [
        *_system(snapshot),
        *_gpus(report),
        *_driver(snapshot),
        *_toolkits(snapshot),
        *([("Environment", place(environment))] if environment else []),
        *(("Framework", framework_title(framework)) for framework in frameworks_in(environment)),
    ]
    return [(label, text) for label, text in found if text]


def distributions(environment: Environment | None) -> list[str]:
    """``nvidia-nccl-cu13 2.28.9`` and the like: the installed distributions that decide what works."""
    listed = environment.distributions if environment else None
    named = {
        f"{found.name} {found.version}" + (f" ({found.build})" if found.build else "")
        for found in listed or ()
        if found.name.startswith(_WITH_CUDA)
    }
    return sorted(named)


def made_by(report: Report) -> str:
    """``envcheck 0.1.0, matrix of 2026-11-20, made 2026-11-20T17:03:29+00:00 in 0.4 s``."""
    tool = report.tool
    return f"{tool.name} {tool.version}, matrix of {tool.matrix}, made {report.created} in {report.duration_s:.1f} s"


def made_at(report: Report) -> str:
    """``2026-11-20 17:03:29 UTC``."""
    return report.created.replace("T", " ")[:19] + " UTC"


def _system(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    platform = snapshot.platform
    if platform is None:
        return
    system = platform.distribution_title or platform.distribution or platform.os or ""
    yield "System", ", ".join(filter(None, (system, platform.machine, platform.libc)))
    yield "Kernel", platform.kernel_release or ""
    inside = [platform.container, platform.virtualization, "wsl" if platform.wsl else None]
    yield "Inside", ", ".join(name for name in inside if name and name != "none")


def _gpus(report: Report) -> Iterator[tuple[str, str]]:
    for gpu in report.gpus:
        traits = (gpu_name(gpu), gpu.compute_capability, f"VBIOS {gpu.vbios}" if gpu.vbios else "", gpu.pci_bus_id)
        yield f"GPU {gpu.index if gpu.index is not None else ''}".strip(), ", ".join(filter(None, traits))


def _driver(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    driver, module = snapshot.driver, snapshot.kernel.nvidia if snapshot.kernel else None
    release = (driver.release if driver else None) or (module.version if module else None) or ""
    flavour = f"{module.flavour} module" if module and module.flavour else ""
    speaks = f"CUDA {driver.cuda}" if driver and driver.cuda else ""
    yield "Driver", ", ".join(filter(None, (release, flavour, speaks))) if release else ""


def _toolkits(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for toolkit in items_in(snapshot.toolkits):
        yield "Toolkit", f"{toolkit.version or 'unknown version'} in {toolkit.path}"
