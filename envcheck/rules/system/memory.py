"""Exhausted memory: the shared memory of a container, and the memory of a GPU."""

from __future__ import annotations

from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Gpu, Memory, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, note, passed, rule
from envcheck.rules.facts.machine import is_listed, may_limit_gpus
from envcheck.rules.messages.observed import line_evidence

_PLACE = "/dev/shm"  # noqa: S108 - it is named, nothing is put there

_MIB, _GIB = 1 << 20, 1 << 30

_DEFAULT = 64 * _MIB  # of Docker and Kubernetes
_TINY = 16 * _MIB  # too little for the tensors of a single data loader
_RECOMMENDED = _GIB  # in NCCL's documentation

_NEARLY_FULL = 0.05
_LITTLE = 2 * _GIB  # Free memory below this share and this size is reported: most models need more
_SHOWN = 3


def _enlarge(facts: Facts) -> tuple[Fix, ...]:
    """In the terms of the container runtime; on a host, by a remount. Pasted text usually comes from a container."""
    runtime = facts.platform.container or "docker"
    if runtime == "kubernetes":
        text = f"Mount a volume on {_PLACE} in the pod: emptyDir with medium: Memory and a sizeLimit (1Gi or more)"
        return (Fix(text),)
    if runtime in ("none", "apptainer", "lxc", "systemd-nspawn"):
        command = ("sudo", "mount", "-o", "remount,size=50%", _PLACE)
        return (Fix(f"Enlarge the file system on {_PLACE}, on the host", command=command, who="root"),)
    return (Fix("Start the container with --shm-size=1g (or more; shm_size in a compose file), or with --ipc=host"),)


@rule(layer="container", needs=("platform.shared_memory",), arises=may_limit_gpus, remedy=_enlarge)
def shared_memory_too_small(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The shared memory (/dev/shm) is too small for several processes."""
    platform = facts.platform
    size, free = platform.shared_memory or 0, platform.shared_memory_free
    several = len(facts.usable_gpus) > 1
    evidence = [Evidence(_PLACE, _size(size), platform.source_of("shared_memory"))]
    if free is not None:
        evidence.append(Evidence(f"free in {_PLACE}", _size(free), platform.source_of("shared_memory_free")))
    crashed = facts.lines_with("bus-error")
    if size <= _DEFAULT and crashed:
        return failure(
            title=f"A process crashed with a bus error, and {_PLACE} has only {_size(size)}",
            message="Writing to a full shared memory causes a bus error.",
            evidence=(*map(line_evidence, crashed), *evidence),
            decided_by="framework-ran",
            confidence="medium",
        )
    blocked = next((each.obstacle for each in facts.variables.places or () if each.path == _PLACE), "")
    waits = several or facts.lines_with("loader-stops")
    status: Status = "warn" if waits or size < _TINY or blocked else "note"
    fixes: tuple[Fix, ...] = ()
    if blocked:
        title, text = f"Nothing can be written in {_PLACE}: {blocked}", "NCCL and PyTorch data loaders stop there."
        change = ("mount", "-o", "remount,rw") if "read-only" in blocked else ("chmod", "1777")
        if not facts.in_container:
            fixes = (Fix("Let every user write there", command=("sudo", *change, _PLACE), who="root"),)
    elif size <= _DEFAULT:
        title, text = f"{_PLACE} has only {_size(size)}", "This is too little for NCCL and PyTorch data loaders."
    elif free is not None and free <= _DEFAULT:
        title = f"{_PLACE} is nearly full: {_size(free)} of {_size(size)} free"
        text = "Crashed jobs may have filled it."
        fixes = (Fix("List its files, and delete those that no process uses", command=("ls", "-la", _PLACE)),)
    elif several and size < _RECOMMENDED and facts.in_container:
        title, text = f"{_PLACE} has {_size(size)}", "NCCL's documentation recommends 1 GiB or more for containers."
        status = "note"
    else:
        return passed(f"{_PLACE} has {_size(size)}", *evidence)
    return Outcome(status=status, title=title, message=text, evidence=tuple(evidence), fixes=fixes or _enlarge(facts))


def _size(count: int) -> str:
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / _MIB:.0f} MiB"


_FREE_MEMORY = (
    Fix("List the processes that hold the memory", command=("nvidia-smi",)),
    Fix("End processes that are not needed, use less memory (a smaller batch), or use another GPU"),
)


@rule(
    layer="gpu",
    decided_by="driver-answered",
    needs=("gpu.memory.free", "gpu.memory.total"),
    arises=lambda gpu, facts: is_listed(gpu, facts) and not (gpu.mig and gpu.mig.enabled),
    remedy=_FREE_MEMORY,
)
def gpu_memory_exhausted(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """A GPU's memory is nearly full."""
    memory = gpu.memory or Memory()
    free, total = memory.free or 0, memory.total or 0
    largest = sorted(gpu.processes or (), key=lambda each: -(each.memory or 0))[:_SHOWN]
    sizes = [(each, _size(each.memory) if each.memory else "memory unknown") for each in largest]
    evidence = (evidence_of("bytes free", memory, "free"), evidence_of("bytes in total", memory, "total"))
    if not total or free >= min(total * _NEARLY_FULL, _LITTLE):
        return passed(f"{_size(free)} of {_size(total)} free", *evidence)
    return note(
        title=f"{gpu.title}: {_size(free)} of {_size(total)} free",
        message="New programs on this GPU may run out of memory.",
        evidence=(*evidence, *(Evidence(f"process {each.pid}", size, each.source) for each, size in sizes)),
        fixes=_FREE_MEMORY,
    )
