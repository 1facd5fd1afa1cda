"""What this process is given: limits, processors, memory of its control group, and the network as it sees it."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator, Mapping

from ..common.out import clean
from ..common.record import Found
from ..common.tree import Tree
from .hardware import NODES, listed_numbers, numa_nodes, own_processors, processors_of

_LIMITS = (
    ("address-space", "RLIMIT_AS"), ("locked-memory", "RLIMIT_MEMLOCK"), ("open-files", "RLIMIT_NOFILE"),
    ("processes", "RLIMIT_NPROC"), ("file-size", "RLIMIT_FSIZE"), ("data", "RLIMIT_DATA"),
    ("processor-time", "RLIMIT_CPU"),
)  # fmt: skip
_GROUPS = "/sys/fs/cgroup"
_MEMORY = {"": ("memory.max",), "memory": ("memory.limit_in_bytes",)}
_TASKS = {"": ("pids.max",), "pids": ("pids.max",)}
_QUOTA = {"": ("cpu.max",), "cpu": ("cpu.cfs_quota_us", "cpu.cfs_period_us")}
"""The files of a group by controller; the second version has one tree for all."""
_UNLIMITED = 1 << 60  # What the first version of control groups says for no limit is above it
_NOT_RUN = 1 | 8  # MFD_CLOEXEC and MFD_NOEXEC_SEAL: a filter may admit only files from which nothing can be started
_CLONE3 = 435  # The system call, of one number on all architectures
_PARANOID, _STATUS = "/proc/sys/kernel/perf_event_paranoid", "/proc/self/status"
_CAPABILITIES = {"sys_admin": 21, "perfmon": 38}
_PROGRAMS, _TOOLKITS = ("ninja", "ncu", "nsys"), "/usr/local/cuda*/bin"
_DEVICES, _ADAPTERS, _ONLINE = "/proc/net/dev", "/sys/class/infiniband", "/sys/devices/system/cpu/online"


def given(tree: Tree) -> dict[str, Found | None]:
    """The fields of the ``platform`` section about it."""
    adapters = tree.list_names(_ADAPTERS) or ([] if tree.list_names("/sys/class") else None)
    links = re.findall(r"^ *([^\s:]{1,15}):", tree.read_text(_DEVICES) or "", re.MULTILINE)
    online = tree.read_line(_ONLINE)
    near = [node for node in numa_nodes(tree) if own_processors(tree) & processors_of(tree, node)]
    lists = [listed_numbers(tree.read_line(f"{NODES}/has_{what}")) for what in ("cpu", "memory")]
    maps = tree.read_text("/proc/self/numa_maps", 1 << 16) or ""
    bound = re.search(r"^\S+ bind(?:=\w+)?:([\d,-]+)", maps, re.MULTILINE)
    paranoid = re.fullmatch(r"-?\d{1,3}", tree.read_line(_PARANOID) or "")
    effective = re.search(r"^CapEff:\s*([0-9a-f]{1,16})$", tree.read_text(_STATUS) or "", re.MULTILINE)
    granted = [name for name, bit in _CAPABILITIES.items() if effective and int(effective[1], 16) >> bit & 1]
    memory, tasks = _stated(tree, _MEMORY, r"\d{1,20}"), _stated(tree, _TASKS, r"\d{1,12}")
    quota = _stated(tree, _QUOTA, r"\d{1,12} \d{1,12}")
    folders = [each for each in tree.variables.get("PATH", "").split(":") if each.startswith("/")]
    places = (f"{folder}/{name}" for name in _PROGRAMS for folder in (*folders, *tree.expand(_TOOLKITS)))
    found = [clean(place) for place in dict.fromkeys(places) if tree.is_program(place)]
    return {
        "limits": _limits(tree),
        "memory_limit": _lowest((most, path) for (most,), path in memory if most < _UNLIMITED),
        "task_limit": _lowest((most, path) for (most,), path in tasks),
        "cpu_limit": _lowest((round(share / period, 2), path) for (share, period), path in quota if period),
        "perf_event_paranoid": Found(int(paranoid[0]), f"file {_PARANOID}") if paranoid else None,
        "capabilities": Found(granted, f"file {_STATUS}") if effective else None,
        "programs": Found(found, "PATH") if found or folders else None,
        "processors": Found(len(listed_numbers(online)), f"file {_ONLINE}") if online else None,
        "processor_nodes": Found(near, f"file {NODES}") if near else None,
        "memory_nodes": Found(sorted(listed_numbers(bound[1])), "file /proc/self/numa_maps") if bound else None,
        "nodes_without_memory": Found(sorted(lists[0] - lists[1]), f"file {NODES}/has_memory") if lists[1] else None,
        "interfaces": Found(sorted(links), f"file {_DEVICES}") if links else None,
        "adapters": Found(adapters, f"file {_ADAPTERS}") if adapters is not None else None,
    }


def _limits(tree: Tree) -> Found | None:
    """The soft limits that are set; ``memory-files`` of 0 where the kernel refuses memfd_create, ``threads`` of 0 where
    it refuses clone3 in a way that the C library takes for final. No others are.
    """
    try:
        import resource
    except ImportError:
        return None
    if not tree.at_real_root:
        return None
    soft = {name: resource.getrlimit(getattr(resource, constant))[0] for name, constant in _LIMITS}
    found = {name: limit for name, limit in soft.items() if limit != resource.RLIM_INFINITY}
    try:
        os.close(os.memfd_create("envcheck", _NOT_RUN))
    except (OSError, AttributeError) as problem:  # of an older kernel or C library says nothing of CUDA
        found.update({"memory-files": 0} if isinstance(problem, PermissionError) else {})
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(_CLONE3, None, 0) == -1 and ctypes.get_errno() == errno.EPERM:  # EINVAL where it is admitted
        found["threads"] = 0
    return Found(found, "getrlimit")


def _stated(tree: Tree, files: Mapping[str, tuple[str, ...]], form: str) -> Iterator[tuple[list[int], str]]:
    """The numbers in these files of the control groups that this process is in, from its own up; and which file."""
    lines = re.findall(r"^\d+:([^:\n]*):(/.*)$", tree.read_text("/proc/self/cgroup") or "", re.MULTILINE)
    for controller, names in files.items():
        path = next((path for listed, path in lines if controller in listed.split(",")), None)
        parts = ["", *path.strip("/").split("/")[:20]] if path else []
        for number in range(len(parts), 0, -1):
            folder = f"{_GROUPS}/{controller}".rstrip("/") + "/".join(parts[:number])
            stated = " ".join(tree.read_line(f"{folder}/{name}") or "" for name in names)
            if re.fullmatch(form, stated):
                yield [int(word) for word in stated.split()], f"{folder}/{names[0]}"


def _lowest(found: Iterable[tuple[float, str]]) -> Found | None:
    value, place = min(found, default=(0, ""))
    return Found(value, f"file {place}") if place else None
