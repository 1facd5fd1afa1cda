"""What this process is given: limits, processors, memory of its control group, and the network as it sees it."""

from __future__ import annotations

import os
import re
from typing import Any

from ..common.record import Found
from ..common.tree import Tree

_LIMITS = (
    ("address-space", "RLIMIT_AS"), ("locked-memory", "RLIMIT_MEMLOCK"), ("open-files", "RLIMIT_NOFILE"),
    ("processes", "RLIMIT_NPROC"),
)  # fmt: skip
_MOST_GROUPS = 20
_GROUPS = "/sys/fs/cgroup"
_MEMORY = (("", "memory.max"), ("memory", "memory.limit_in_bytes"))
_QUOTA = (("", "cpu.max", ""), ("cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"))
_UNLIMITED = 1 << 60
"""What the first version of control groups says for no limit is above it."""
_DEVICES, _ADAPTERS = "/proc/net/dev", "/sys/class/infiniband"


def given(tree: Tree) -> dict[str, Found | None]:
    """The fields of the ``platform`` section about it."""
    adapters = tree.list_names(_ADAPTERS)
    if adapters is None and tree.list_names("/sys/class"):
        adapters = []
    links = re.findall(r"^ *([^\s:]{1,15}):", tree.read_text(_DEVICES) or "", re.MULTILINE)
    online = tree.read_line("/sys/devices/system/cpu/online")
    nodes = tree.list_names("/sys/devices/system/node") or []
    own = _affinity(tree)
    of_nodes = {
        int(name[4:]): _numbers(tree.read_line(f"/sys/devices/system/node/{name}/cpulist") or "")
        for name in nodes
        if re.fullmatch(r"node\d{1,4}", name)
    }
    near = sorted(node for node, processors in of_nodes.items() if own and processors & own)
    maps = tree.read_text("/proc/self/numa_maps", 1 << 16) or ""
    bound = re.search(r"^\S+ bind(?:=\w+)?:([\d,-]+)", maps, re.MULTILINE)
    return {
        "limits": _limits(tree),
        "memory_limit": _least(tree, _MEMORY),
        "cpu_limit": _quota(tree),
        "processors": Found(len(_numbers(online)), "file /sys/devices/system/cpu/online") if online else None,
        "processor_nodes": Found(near, "file /sys/devices/system/node") if near else None,
        "memory_nodes": Found(sorted(_numbers(bound[1])), "file /proc/self/numa_maps") if bound else None,
        "interfaces": Found(sorted(links), f"file {_DEVICES}") if links else None,
        "adapters": Found(adapters, f"file {_ADAPTERS}") if adapters is not None else None,
    }


def _affinity(tree: Tree) -> set[int]:
    return os.sched_getaffinity(0) if tree.at_real_root and hasattr(os, "sched_getaffinity") else set()


def _numbers(text: str) -> set[int]:
    """``0-3,8`` as numbers."""
    found: set[int] = set()
    for first, last in re.findall(r"(\d{1,5})(?:-(\d{1,5}))?", text):
        found.update(range(int(first), int(last or first) + 1))
    return found


def _limits(tree: Tree) -> Found | None:
    """The soft limits that are set; what is not among them is unlimited."""
    try:
        import resource
    except ImportError:
        return None
    if not tree.at_real_root:
        return None
    found: dict[str, Any] = {}
    for name, constant in _LIMITS:
        limit = resource.getrlimit(getattr(resource, constant))[0]
        if limit != resource.RLIM_INFINITY:
            found[name] = limit
    return Found(found, "getrlimit")


def _groups(tree: Tree, controller: str) -> list[str]:
    """The folders of the control groups that this process is in, from its own up; ``controller`` is of version 1."""
    lines = re.findall(r"^\d+:([^:\n]*):(/.*)$", tree.read_text("/proc/self/cgroup") or "", re.MULTILINE)
    path = next((path for names, path in lines if controller in names.split(",")), None)
    if path is None:
        return []
    top = f"{_GROUPS}/{controller}" if controller else _GROUPS
    parts = path.strip("/").split("/")[:_MOST_GROUPS]
    return [*("/".join((top, *parts[:number])) for number in range(len(parts), 0, -1)), top]


def _least(tree: Tree, files: tuple[tuple[str, str], ...]) -> Found | None:
    found = [
        (int(line), f"{folder}/{name}")
        for controller, name in files
        for folder in _groups(tree, controller)
        if re.fullmatch(r"\d{1,20}", line := tree.read_line(f"{folder}/{name}") or "")
    ]
    limit, place = min(found, default=(_UNLIMITED, ""))
    return Found(limit, f"file {place}") if limit < _UNLIMITED else None


def _quota(tree: Tree) -> Found | None:
    """The processors whose time the control groups grant, as a fraction."""
    found = []
    for controller, quota, period in _QUOTA:
        for folder in _groups(tree, controller):
            line = tree.read_line(f"{folder}/{quota}") or ""
            line += f" {tree.read_line(f'{folder}/{period}')}" if period else ""
            numbers = re.fullmatch(r"(\d{1,12}) (\d{1,12})", line)
            if numbers and int(numbers[2]):
                found.append((round(int(numbers[1]) / int(numbers[2]), 2), f"{folder}/{quota}"))
    share, place = min(found, default=(0.0, ""))
    return Found(share, f"file {place}") if place else None
