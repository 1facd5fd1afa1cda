"""Questions about a machine: its GPUs, the kind of system, the driver's release and the CUDA that it supports; and the
facts that rules need, or why one is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sized
from typing import Any, Literal, TypeAlias

from envcheck.knowledge.relations.driver import driver_runs_cuda, minimum_driver, newest_cuda_of
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.gpu_code import cuda_serves
from envcheck.model.checks import ASSUMED, LONGEST_TITLE, DecidedBy, Missing
from envcheck.model.names import fact_name, not_checked
from envcheck.model.snapshot import PASTED, DeviceNode, DriverLibrary, Environment, Gpu, Record, Snapshot, frameworks_in
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from envcheck.rules.api import Doubt, Facts, FrameworkSubject, Outcome, Subject
from envcheck.text.lazy import lazy_pattern

_GPU_NODE = lazy_pattern(r"/dev/nvidia\d+")
_OF_GPUS = ("nvidia-frontend", "nvidia")  # Names in /proc/devices, of older and of newer releases of the kernel module
_NODES = {"/dev/nvidiactl": ((*_OF_GPUS, "nvidiactl"), 255), "/dev/nvidia-uvm": (("nvidia-uvm",), 0)}
"""Whose devices the nodes besides the GPUs' are, and their minor numbers."""
_OTHER_FILES = "-bps"  # What ``ls -l`` begins a line with: regular files, block devices, FIFOs, sockets

_DRIVER_SOURCES = ("nvml", "cuda")
_DECLARING_SOURCES = ("wheel metadata", PASTED, "assumed", "file", "elf", "conda")


def may_have_gpus(facts: Facts) -> bool:
    """False only when every source was checked and this system has no GPU of its own."""
    listing = facts.snapshot.gpus
    return listing is None or not listing.complete or bool(facts.own_gpus)


def is_assumed(facts: Facts) -> bool:
    """Whether ``--assume`` or a target names the GPUs or the driver: nobody looked at that machine."""
    return any(record.source == ASSUMED for record in (*facts.gpus, facts.driver))


def may_limit_gpus(_subject: Subject, facts: Facts) -> bool:
    """Whether what Linux grants to a process can matter to a GPU of this machine."""
    return facts.os == "linux" and may_have_gpus(facts) and not is_assumed(facts)


def is_listed(gpu: Gpu, facts: Facts) -> bool:
    """Whether the driver lists the GPU, or was not asked. It reports nothing about a GPU that it does not list."""
    asked = facts.driver.nvml is not None
    return not lacks_handle(gpu) and (not asked or gpu.index is not None or gpu.cuda_ordinal is not None)


def lacks_handle(gpu: Gpu) -> bool:
    """Whether the driver counts the GPU but gives no handle to query it."""
    return any("handle" in error.call.lower() for error in gpu.errors)


def in_container(facts: Facts) -> bool:
    return facts.platform.container not in (None, "", "none")


def on_plain_host(facts: Facts) -> bool:
    """Whether this system has its own kernel and NVIDIA's own kernel module: no container, no WSL, no Jetson."""
    return not in_container(facts) and uses_linux_driver(facts)


def known_to_be_host(facts: Facts) -> bool:
    """Whether somebody looked for a container and found none: only a device node can withhold a GPU there."""
    return facts.platform.container is not None and on_plain_host(facts)


def uses_linux_driver(facts: Facts) -> bool:
    """Whether the driver is NVIDIA's for Linux: in WSL it is Windows', on a Jetson part of the system."""
    return not facts.platform.wsl and not on_tegra(facts)


def on_tegra(facts: Facts) -> bool:
    """Whether this is a Jetson or DRIVE system, or a container on one."""
    return bool(facts.platform.tegra or facts.platform.tegra_release)


def doubt_inside_wsl(title: str, message: str) -> Doubt:
    """A note instead of a failure inside WSL, where the line also has other causes and proves nothing."""
    note = Outcome(status="note", title=title, message=message)
    return lambda facts: note if facts.driver_os == "wsl" else None


def gpu_nodes(facts: Facts) -> tuple[DeviceNode, ...] | None:
    """The device nodes of GPUs; None when they were not checked."""
    nodes = facts.kernel.device_nodes
    return None if nodes is None else tuple(node for node in nodes if _GPU_NODE.fullmatch(node.path))


def foreign_nodes(facts: Facts) -> tuple[tuple[DeviceNode, str], ...]:
    """The device nodes without which CUDA does not start that are not the kernel module's: other files or devices.

    Each with the number of the device that it should be, as in ``195:0``; empty where that is unknown.
    """
    numbers, found = facts.kernel.device_numbers or {}, []
    for node in facts.kernel.device_nodes or ():
        drivers, minor = _NODES.get(node.path, (_OF_GPUS, node.minor))
        if minor is None:
            continue
        expected = [f"{numbers[name]}:{minor}" for name in drivers if name in numbers]
        other_device = expected and node.number is not None and node.number not in expected
        if other_device or (node.mode and node.mode[0] in _OTHER_FILES):
            found.append((node, expected[0] if expected else ""))
    return tuple(found)


def nvml_answers(facts: Facts) -> bool:
    return facts.driver.nvml is not None and facts.driver.nvml.code == 0


def cuda_answers(facts: Facts) -> bool:
    return facts.driver.cuda_init is not None and facts.driver.cuda_init.code == 0


KnownGpus: TypeAlias = tuple[tuple[Gpu, ComputeCapability], ...]  # GPUs with their compute capability


def gpus_with_capability(facts: Facts) -> KnownGpus:
    """The usable GPUs whose compute capability is known."""
    pairs = ((gpu, ComputeCapability.parse(gpu.compute_capability)) for gpu in facts.usable_gpus)
    return tuple((gpu, capability) for gpu, capability in pairs if capability is not None)


def gpu_title(gpu: Gpu) -> str:
    """A GPU's display name: ``GPU 3 (NVIDIA H200)``."""
    number = str(gpu.index) if gpu.index is not None else gpu.pci_bus_id or gpu.uuid
    if number is None:
        return gpu.name or "the GPU"
    return f"GPU {number} ({gpu.name})" if gpu.name else f"GPU {number}"


def count_by_model(gpus: Iterable[Gpu]) -> str:
    """The number of GPUs of each model: ``8 x NVIDIA H200, 1 x NVIDIA T4``."""
    models = Counter(gpu.name or "NVIDIA GPU" for gpu in gpus)
    return ", ".join(f"{count} x {name}" for name, count in models.items())


def plural(count: int, noun: str) -> str:
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else several}"


def and_more(names: Sized, shown: int = 1) -> str:
    """The number of names after the first ``shown``, in words: `` and 3 more``."""
    return f" and {len(names) - shown} more" if len(names) > shown else ""


def title_of_first(title: str, found: Sized) -> str:
    """The title for the first of several findings, with the number of the others."""
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return title[: LONGEST_TITLE - len(more)] + more


def basis_of(record: Record, field: str) -> DecidedBy:
    """How a fact was established: the driver answered it, a file or a person declared it, or it was inferred."""
    source = record.source_of(field)
    if source.startswith(_DRIVER_SOURCES):
        return "driver-answered"
    return "declared" if source.startswith(_DECLARING_SOURCES) else "inferred"


def release_text(facts: Facts) -> str | None:
    """The driver's release: the running one, else the kernel module's, else that of the libraries on disk."""
    return release_in(facts.snapshot)


def release_in(snapshot: Snapshot) -> str | None:
    """The driver's release in a Snapshot. Of the libraries on disk, libcuda decides: programs load it."""
    driver, kernel = snapshot.driver, snapshot.kernel
    if driver and driver.release:
        return driver.release
    if kernel and kernel.nvidia and kernel.nvidia.version:
        return kernel.nvidia.version
    library = library_on_disk(snapshot)
    return library.version if library else None


def release(facts: Facts) -> DriverRelease | None:
    return DriverRelease.stated(release_text(facts))


def library_on_disk(snapshot: Snapshot) -> DriverLibrary | None:
    """A driver library with a known release, preferably libcuda."""
    driver = snapshot.driver
    libraries = driver.libraries.items if driver and driver.libraries else ()
    known = [library for library in libraries if library.kind == "driver" and library.version and not library.refused]
    return next((library for library in known if "/libcuda.so" in library.path), known[0] if known else None)


def supported_cuda(facts: Facts) -> CudaVersion | None:
    """The newest CUDA version that the driver supports: as it reports, else by its branch."""
    reported, number = CudaVersion.parse(facts.driver.cuda), release(facts)
    return reported or (newest_cuda_of(facts.matrix, number, facts.driver_os) if number else None)


def supports_natively(facts: Facts, cuda: CudaVersion) -> bool | None:
    """Whether the driver supports ``cuda`` without minor-version compatibility; None when that is unknown."""
    supported = supported_cuda(facts)
    return None if supported is None else supported >= cuda


def supports_all_natively(facts: Facts) -> bool:
    """Whether the driver supports the CUDA of every framework that states one, and there is one."""
    stated = [CudaVersion.parse(framework.cuda) for framework in frameworks_in(facts.environment)]
    known = [cuda for cuda in stated if cuda is not None]
    return bool(known) and all(supports_natively(facts, cuda) for cuda in known)


def runs_builds_for(facts: Facts, cuda: CudaVersion) -> bool:
    """Whether the driver runs builds for ``cuda``; true also where no driver is known."""
    number, reported = release(facts), CudaVersion.parse(facts.driver.cuda)
    if number is not None:
        return driver_runs_cuda(facts.matrix, number, cuda, facts.driver_os, reported=reported).ok
    if reported is None or reported >= cuda:
        return True
    # A newer CUDA runs too where the oldest driver that supports what is reported is new enough for it.
    rows = (minimum_driver(facts.matrix, version, facts.driver_os) for version in (cuda, reported))
    needed, present = (DriverRelease.parse(row.driver) if row else None for row in rows)
    return needed is not None and present is not None and needed <= present


def unserved_gpus(facts: Facts, cuda: CudaVersion) -> tuple[tuple[Gpu, Fit], ...]:
    """The GPUs for which no CUDA of this major version has a target."""
    newest = max((each for each in facts.matrix.cuda_rows if each.major == cuda.major), default=None)
    asked = ((gpu, cuda_serves(facts.matrix, each, newest)) for gpu, each in gpus_with_capability(facts) if newest)
    return tuple((gpu, fit) for gpu, fit in asked if fit.bad)


_OWN_SECTION = {"gpu": "gpus", "environment": "environments", "framework": "environments"}

_WORST_FIRST = ("crashed", "timed-out", "failed", "ok", "skipped", "absent")


def lookup(path: str, subject: Subject, snapshot: Snapshot) -> Any:
    """The value at ``path``; None when anything on the way is unknown.

    A path starts at a section of the Snapshot, or with ``gpu``, ``environment`` or ``framework`` at the subject.
    ``SECTION.complete`` is None unless the list is complete.
    """
    root, *steps = path.split(".")
    value: Any
    if isinstance(subject, FrameworkSubject) and root in ("framework", "environment"):
        value = getattr(subject, root)
    elif (root == "gpu" and isinstance(subject, Gpu)) or (root == "environment" and isinstance(subject, Environment)):
        value = subject
    else:
        value = getattr(snapshot, root)
    for step in steps:
        if value is None:
            return None
        value = getattr(value, step)
    if isinstance(value, bool) and steps and steps[-1] == "complete":
        return value or None
    return value


def refused(path: str, subject: Subject) -> bool:
    """Whether the GPU reports that it does not support the fact: checked, and absent."""
    if not isinstance(subject, Gpu):
        return False
    inner = path.removeprefix("gpu.")
    return any(inner == name or inner.startswith(f"{name}.") for name in subject.not_supported)


def unanswered(path: str, title: str, snapshot: Snapshot) -> Outcome:
    """The outcome of a rule that lacks the fact at ``path``."""
    status, missing, reason = why_missing(path, snapshot)
    return Outcome(status=status, title=title, message=reason, missing=(missing,), decided_by="inferred")


def why_missing(path: str, snapshot: Snapshot) -> tuple[Literal["unknown", "skipped"], Missing, str]:
    """Whether a missing fact is unknown (a probe failed to read it) or skipped (no probe was to read it), and why."""
    root, _, rest = path.partition(".")
    section = ".".join(part for part in (_OWN_SECTION.get(root, root), rest) if part)
    runs = [run for run in snapshot.runs if any(_overlap(fill, section) for fill in run.fills)]
    if not runs:
        return "skipped", Missing(fact=path), not_checked(path)
    run = min(runs, key=lambda run: _WORST_FIRST.index(run.status))
    missing = Missing(fact=path, probe=run.name)
    if run.status in ("skipped", "absent"):
        return "skipped", missing, run.detail or f"probe {run.name}: {run.status}"
    detail = f" ({run.detail})" if run.detail else ""
    return "unknown", missing, f"Probe {run.name} did not report {fact_name(path)}{detail}"


def _overlap(one: str, other: str) -> bool:
    """Whether two paths of the Snapshot are equal, or one lies within the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
