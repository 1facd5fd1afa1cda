"""What a process is given to run with: limits, processors, memory of several kinds, and names of the network."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from operator import eq

from envcheck.knowledge.tables.environment import LimitRow
from envcheck.model.checks import ASSUMED, Evidence, Fix, Status
from envcheck.model.snapshot import Gpu, Memory, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, if_known, note, passed, rule, warning
from envcheck.rules.facts.machine import OF_GROUP, and_more, is_listed, plural, title_of_first
from envcheck.rules.facts.variables import SetVariable, VariableFault, finding, relevant_variables
from envcheck.rules.messages.observed import line_evidence
from envcheck.text.lazy import lazy_pattern

_GIB, _MIB = 1 << 30, 1 << 20
_REACHED = {"open-files": ("open-files",), "tasks": ("tasks",), "processes": ("processes", "tasks")}
"""What kept a probe from being started (``ProbeRun.limit``), and the limits that may be the one."""
_FEWEST = 2  # processors: one starts kernels, another one loads data
_LOOPBACK = "lo"
_ADDRESS = lazy_pattern(r"[\d.]+|.*:.*|localhost")
_BY_FLAG = ("docker", "podman")


_GRANTS = ("shared_memory", "limits", "cpu_limit", *OF_GROUP.values())


def _is_granted(facts: Facts) -> bool:
    """Whether ``--assume`` states what a container or job is given."""
    return any(facts.platform.read.get(field) == ASSUMED for field in _GRANTS)


def _may_limit_gpus(_subject: Snapshot | Gpu, facts: Facts) -> bool:
    """Whether what Linux grants to a process can matter to a GPU of this machine."""
    return facts.os == "linux" and facts.may_have_gpus and (not facts.is_assumed or _is_granted(facts))


@rule(layer="container")
def limit_too_low(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A limit of the operating system is too low for programs on the GPU."""
    limits, platform = facts.platform.limits, facts.platform
    refused = next((run for run in snapshot.runs if run.limit), None)
    if (limits is None and refused is None and not _is_granted(facts)) or not _may_limit_gpus(snapshot, facts):
        return None
    limits = dict(limits or {})
    if platform.uid == 0:
        limits.pop("processes", None)  # the kernel does not hold root to it
    granted = {name: getattr(platform, field) for name, field in OF_GROUP.items()}
    limits |= {name: most for name, most in granted.items() if most is not None}
    rows = [row for row in facts.matrix.limits if row.beside != "infiniband" or platform.adapters or _is_granted(facts)]
    low = [row for row in rows if limits.get(row.name, row.least) < row.least]
    reached = [row for row in rows if refused is not None and row.name in _REACHED[refused.limit]]
    if refused is not None and not any(row in low for row in reached):
        return failure(
            title=f"No more {'files can be opened' if refused.limit == 'open-files' else 'processes can be started'}",
            message=f"{reached[0].effect} The limit is that for {', or for '.join(row.title for row in reached)}.",
            evidence=(Evidence(refused.title, refused.detail, "fork"),),
            decided_by="declared",
            fixes=(
                Fix("End programs that are not needed"),
                *(Fix(f"Raise the limit: {_raised(row, facts)}") for row in reached),
            ),
        )
    if not low:
        listed = Evidence("limits", ", ".join(limits), platform.source_of("limits"))
        return passed("No limit is too low", listed if limits else None)
    started = facts.driver.cuda_init
    answered = [row for row in low if started is not None and started.code in row.codes]
    failed = answered or [row for row in low if row in reached or limits[row.name] <= row.fatal]
    first = (failed or sorted(low, key=lambda row: row.status != "warn"))[0]
    fixes, evidence = [], []
    for row in low:
        text = f"{_amount(row, limits[row.name])} (at least {_amount(row, row.least)} is needed)"
        evidence.append(Evidence(row.title, text, platform.source_of(OF_GROUP.get(row.name, "limits"))))
        flag = f"start the container with {row.flag}" if row.flag and platform.container in _BY_FLAG else ""
        how = flag or f"{_raised(row, facts)}, and for good in the service that starts the job"
        fixes.append(Fix(f"Raise it: {how}", who="cluster-admin" if row.name in OF_GROUP and not flag else "user"))
    return Outcome(
        status="fail" if failed else first.status,
        title=title_of_first(f"The limit for {first.title} is {_amount(first, limits[first.name])}", low),
        message=" ".join(dict.fromkeys(row.effect for row in low)),
        evidence=tuple(evidence),
        decided_by="driver-answered" if answered else "declared",
        sources=facts.matrix.cite(*low),
        fixes=tuple(dict.fromkeys(fixes)),
    )


def _raised(row: LimitRow, facts: Facts) -> str:
    """How a shell raises the limit: only root may raise it beyond the hard one."""
    option = row.shell.removeprefix("ulimit -")[:1]
    if not row.shell.startswith("ulimit -") or facts.platform.uid == 0:
        return row.shell
    return f"ulimit -S{option} hard; where the hard limit is as low, as root: {row.shell}"


def _amount(row: LimitRow, count: int) -> str:
    return _size(count) if row.unit == "bytes" else str(count)


def _size(count: int) -> str:
    """``1.5 GiB``, ``64 MiB``, ``64 KiB``."""
    if 0 < count < _MIB:
        return f"{count / 1024:.0f} KiB"
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / _MIB:.0f} MiB"


_PARANOID = 2  # The highest perf_event_paranoid at which Nsight Systems samples processors
_SAMPLES = Fix(
    "For samples of the processors (Nsight Systems), admit users to performance events",
    command=("sudo", "sysctl", "-w", f"kernel.perf_event_paranoid={_PARANOID}"),
    who="root",
    continues=True,
)


def _admit(facts: Facts) -> tuple[Fix, ...]:
    text = "Let the driver give counters to all users, then restart (or load the module anew)"
    option = "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | sudo tee /etc/modprobe.d/nvidia-profiler.conf"
    on_host = Fix(text, command=("sh", "-c", option), who="root", risk="other users can observe what the GPU runs")
    boxed = Fix("Start the container with --cap-add=SYS_ADMIN, or (from driver 565 on) --cap-add=PERFMON")
    alone = Fix("Start the profiler with sudo", who="root")
    paranoid = (facts.platform.perf_event_paranoid or 0) > _PARANOID
    return (boxed if facts.in_container else alone, on_host, *((_SAMPLES,) if paranoid else ()))


@rule(layer="driver", scope="container", remedy=_admit)
def profiler_not_permitted(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A user may not read the performance counters of the GPU."""
    platform, module = facts.platform, facts.module
    names = {path.rpartition("/")[2] for path in platform.programs or ()} - {"ninja"}
    if not names or platform.capabilities is None or not _may_limit_gpus(snapshot, facts):
        return None
    admitted, paranoid = bool(platform.capabilities), platform.perf_event_paranoid
    counters = module.counters_for_admins and not admitted
    samples = "nsys" in names and paranoid is not None and paranoid > _PARANOID and not admitted
    evidence = (
        evidence_of("counters for administrators alone", module, "counters_for_admins") if counters else None,
        evidence_of("perf_event_paranoid", platform, "perf_event_paranoid") if samples else None,
        evidence_of("profilers", platform, "programs"),
    )
    if not counters and not samples:
        unread = module.counters_for_admins is None and not admitted
        return None if unread else passed("Profilers may read the performance counters", *evidence)
    refused = "GPU's performance counters (ERR_NVGPUCTRPERM)" if counters else "processors' performance events"
    return note(
        title=f"Profilers get no access to the {refused}",
        message="Programs run as before, and so do traces of CUDA calls.",
        evidence=evidence,
        decided_by="declared",
        fixes=_admit(facts) if counters else (_SAMPLES,),
    )


_BOXED = Fix("Give the container more: --cpus and --cpuset-cpus (docker), limits.cpu (Kubernetes)")
_FREE = Fix("Ask the batch system for more (--cpus-per-task), or start the program without taskset or numactl")
_FEWER = Fix("Start fewer workers that load data (num_workers)")


@rule(layer="container", remedy=lambda facts: (_BOXED if facts.in_container else _FREE, _FEWER))
def process_confined(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The process is held to too few processors, or to ones or memory far from the GPU."""
    platform, gpus = facts.platform, len(facts.usable_gpus)
    usable = min(float(platform.cpus or platform.processors or 0) or float("inf"), platform.cpu_limit or float("inf"))
    # What a text or --assume states is what a job has; of the machine it says nothing.
    told = (facts.complains_of_speed or _is_granted(facts)) and (usable <= _FEWEST or usable < gpus)
    if (platform.processors is None and not told) or not _may_limit_gpus(snapshot, facts):
        return None
    evidence = (
        if_known("processors that may be used", platform, "cpus"),
        if_known("processors that the control group grants", platform, "cpu_limit"),
    )
    confined = told or usable < (platform.processors or 0)
    status: Status = "warn"
    bound, near = platform.memory_nodes, platform.processor_nodes
    homes = [gpu for gpu in facts.usable_gpus if gpu.numa_node is not None]
    bare = [gpu for gpu in homes if gpu.numa_node in (platform.nodes_without_memory or ())]
    away = [gpu for gpu in facts.usable_gpus if confined and _is_away(gpu, near)]
    if usable < gpus or (confined and (told or usable < _FEWEST)):
        of = f" of {platform.processors}" if platform.processors else ""
        return warning(
            title=f"{usable:g}{of} processor{'' if usable == 1 and not of else 's'} for {plural(gpus or 1, 'GPU')}",
            message="Each process of a GPU needs a processor to start kernels, and more to load data: the GPUs wait.",
            evidence=(*evidence, if_known("processors of the machine", platform, "processors")),
            decided_by="declared",
        )
    fields = ["processor_nodes"]
    if bound and near and not set(bound) & set(near):
        title, fields = "Memory is taken from another NUMA node than the processors'", ["memory_nodes", *fields]
        text = "Bind both to the node of the GPU (numactl --cpunodebind=N --membind=N), or neither"
    elif away:
        status = "note" if len(away) < gpus else "warn"
        title = f"No processor near {away[0].title}{and_more(away)} may be used"
        node = "" if away[0].numa_node is None else f"numactl --cpunodebind={away[0].numa_node}, or "
        text = f"Start what uses that GPU beside it: {node}taskset (nvidia-smi topo -m lists the processors)"
    elif bare:
        title, fields = f"The NUMA node of {bare[0].title} has no memory", ["nodes_without_memory"]
        text = "Fit memory at that processor (dmidecode -t memory lists the slots)"
    else:
        return passed("Processors suffice for the GPUs", *evidence)
    return Outcome(
        status=status,
        title=title,
        message="Copies to the GPU cross the link between the nodes, and so does much work of the processors.",
        evidence=(
            *(evidence_of(field.replace("_", " "), platform, field) for field in fields),
            *(evidence_of(f"NUMA node of {gpu.title}", gpu, "numa_node") for gpu in homes),
            *(if_known(f"processors near {gpu.title}", gpu, "processors_near") for gpu in away),
        ),
        decided_by="declared",
        fixes=(Fix(text),),
    )


def _is_away(gpu: Gpu, near: tuple[int, ...] | None) -> bool:
    """Whether no processor beside a GPU may be used, by its own list of processors, else by the nodes."""
    if gpu.processors_near is not None:
        return gpu.processors_near == 0
    return bool(near) and gpu.numa_node is not None and gpu.numa_node not in (near or ())


@rule(layer="library", arises=lambda _subject, facts: facts.os == "linux" and not facts.is_assumed)
def network_name_unknown(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A variable names a network interface, adapter or host that is not here."""
    asked = ((each, _unknown(each, facts)) for each in relevant_variables(facts))
    judged = [VariableFault(each, text) for each, text in asked if text is not None]
    found = {each.variable.name: each for each in judged if each.text}
    if not judged:
        return None
    if not found:
        return passed("The names of the network are known", *(each.variable.evidence for each in judged))
    variables = [each.variable for each in found.values()]
    certain = [each for each in variables if each.row.names != "host" or facts.variables.name_server is False]
    fails = any(each.row.invalid == "first-use" for each in certain) and len(facts.usable_gpus) > 1
    title = title_of_first(f"{(certain or variables)[0].name} names nothing that is here", found)
    return finding("fail" if fails else "warn" if certain else "note", title, list(found.values()), facts)


def _unknown(variable: SetVariable, facts: Facts) -> str | None:
    """What the value names that is not here; empty where all is well, None where it is not known what is here."""
    kind, value, platform = variable.row.names, variable.value.strip(), facts.platform
    if not kind or not value:
        return None
    if kind == "host":
        hosts, server = facts.variables.hosts, facts.variables.name_server
        value = value.partition(":")[0] if value.count(":") == 1 else value  # without its port
        if hosts is None or _ADDRESS.fullmatch(value) or value in (*hosts, platform.host):
            return None if hosts is None else ""
        known = "no name server is set" if server is False else "only a name server can know it"
        return f"no file of this machine has the host {value!r}, and {known}"
    links, adapters = platform.interfaces, platform.adapters
    here = {"interface": links, "adapter": adapters, "device": links and (*links, *(adapters or ()))}[kind]
    if here is None or value == "all":
        return None
    # The names that a value selects: prefixes, ``=`` before whole names, ``^`` before what is left out.
    excluded, rest = value.startswith("^"), value.removeprefix("^")
    exact, rest = rest.startswith("="), rest.removeprefix("=")
    names = [name.strip().partition(":")[0] for name in rest.split(",")]
    fits: Callable[[str, str], bool] = fnmatchcase if kind == "device" else eq if exact else str.startswith
    chosen = [each for each in here if any(name and fits(each, name) for name in names)]
    if excluded:
        chosen = [each for each in here if each not in (*chosen, _LOOPBACK)]
    if chosen:
        return ""
    what = "InfiniBand adapter" if kind == "adapter" else "network interface"
    return f"{value!r} selects no {what}; here {', '.join(here) or 'is none'}"


_PLACE = "/dev/shm"  # noqa: S108 - it is named, nothing is put there
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


@rule(layer="container", needs=("platform.shared_memory",), arises=_may_limit_gpus, remedy=_enlarge)
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
