"""What a process is given: limits, control groups, processors and networks, of constructed trees."""

import ctypes
import errno
import os
import resource
from pathlib import Path
from unittest.mock import Mock

import pytest

from envcheck.model.snapshot import Platform
from probes.common.tree import Tree
from probes.machine.limits import given
from tests.every import cases
from tests.probes.conftest import BuildRoot, RunProbe

V2, V1 = "0::/a/b\n", "4:memory:/a\n3:cpu,cpuacct:/a\n"
NET = "Inter-|   Receive\n face |bytes\n    lo:  0 0\n  eth0: 1 2\n ib0:1 2\n"


def look(run_probe: RunProbe, root: str) -> Platform:
    snapshot, done = run_probe("platform", {"root": root})
    assert done["status"] == "ok"
    assert snapshot.platform
    return snapshot.platform


@cases("files, memory, share",
    ({"/proc/self/cgroup": V2, "/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "1024\n",
      "/sys/fs/cgroup/a/b/cpu.max": "150000 100000\n", "/sys/fs/cgroup/cpu.max": "max 100000\n"}, 1024, 1.5),
    ({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "2048\n"}, 2048, None),
    ({"/proc/self/cgroup": V1, "/sys/fs/cgroup/memory/memory.limit_in_bytes": "4096\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 4096, 0.5),
    ({"/proc/self/cgroup": V1, "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, None, None),
    ({}, None, None),
)  # fmt: skip
def test_control_groups(
    run_probe: RunProbe, build_root: BuildRoot, files: dict[str, str], memory: int | None, share: float | None
) -> None:
    found = look(run_probe, build_root(None, files))
    assert (found.memory_limit, found.cpu_limit) == (memory, share)


@cases("files, tasks",
    ({"/proc/self/cgroup": V2, "/sys/fs/cgroup/a/b/pids.max": "max\n", "/sys/fs/cgroup/a/pids.max": "100\n"}, 100),
    ({"/proc/self/cgroup": "5:pids:/a\n", "/sys/fs/cgroup/pids/a/pids.max": "64\n"}, 64),
    ({"/proc/self/cgroup": V2, "/sys/fs/cgroup/a/b/pids.max": "max\n"}, None),
)  # fmt: skip
def test_processes_of_the_control_group(
    run_probe: RunProbe, build_root: BuildRoot, files: dict[str, str], tasks: int | None
) -> None:
    assert look(run_probe, build_root(None, files)).task_limit == tasks


def test_what_profilers_need(run_probe: RunProbe, build_root: BuildRoot) -> None:
    files = {
        "/proc/sys/kernel/perf_event_paranoid": "4\n", "/proc/self/status": "Name:\tx\nCapEff:\t0000000000200000\n",
        "/usr/local/cuda-12.8/bin/ncu": "#!", "/usr/local/cuda-12.8/bin/nsys": "#!",
    }  # fmt: skip
    root = build_root(None, files)
    Path(f"{root}/usr/local/cuda-12.8/bin/ncu").chmod(0o644)
    found = look(run_probe, root)
    assert (found.perf_event_paranoid, found.capabilities) == (4, ("sys_admin",))
    assert found.programs == ("/usr/local/cuda-12.8/bin/nsys",), "what may not be started is no program"


def test_networks_and_processors(run_probe: RunProbe, build_root: BuildRoot) -> None:
    files = {
        "/proc/net/dev": NET, "/sys/class/infiniband/mlx5_0/": "", "/sys/devices/system/cpu/online": "0-3,8\n",
        "/proc/self/numa_maps": "7f00 default file=x\n7f01 bind:1-2 anon=1\n",
        "/sys/devices/system/node/has_cpu": "0-1\n", "/sys/devices/system/node/has_memory": "0,2-9\n",
    }  # fmt: skip
    found = look(run_probe, build_root(None, files))
    assert (found.interfaces, found.adapters) == (("eth0", "ib0", "lo"), ("mlx5_0",))
    assert (found.processors, found.memory_nodes) == (5, (1, 2))
    assert found.nodes_without_memory == (1,)


def test_adapters_are_absent_only_where_devices_are_listed(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert look(run_probe, build_root("debian-container", {"/sys/class/net/": ""})).adapters == ()
    assert given(Tree({"root": build_root(None, {"/x": ""})}))["adapters"] is None


def test_limits_that_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {resource.RLIMIT_NOFILE: 64, resource.RLIMIT_AS: 1 << 30}
    monkeypatch.setattr(resource, "getrlimit", lambda which: (values.get(which, resource.RLIM_INFINITY), -1))
    found = given(Tree({}))["limits"]
    assert found is not None
    assert found.value == {"open-files": 64, "address-space": 1 << 30}
    monkeypatch.setattr(os, "memfd_create", Mock(side_effect=PermissionError), raising=False)
    assert (given(Tree({}))["limits"] or found).value == {**found.value, "memory-files": 0}, "seccomp refuses it"
    refusing = Mock(syscall=Mock(side_effect=lambda *_: (ctypes.set_errno(errno.EPERM), -1)[1]))
    monkeypatch.setattr(ctypes, "CDLL", Mock(return_value=refusing))
    assert (given(Tree({}))["limits"] or found).value["threads"] == 0, "it refuses clone3"
    assert given(Tree({"root": "/nowhere"}))["limits"] is None, "they are those of this process"
