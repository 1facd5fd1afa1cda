"""Numbers in other people's files: longer than Python converts (4300 digits), or digits that are no number."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.snapshot import Snapshot, frameworks_in, items_in
from probes.machine.kernel import parse_record
from tests.probes.environment_trees import Tree

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
LONG = "9" * 5000
NO_NUMBER = "²"  # str.isdigit() says yes, int() refuses


@pytest.mark.parametrize("number", [LONG, NO_NUMBER], ids=["too long", "no number"])
def test_no_probe_fails_over_a_number_of_the_machine(number: str, tmp_path: Path, run_probe: RunProbe) -> None:
    tree = Tree(tmp_path)
    gpu = "/proc/driver/nvidia/gpus/0000:01:00.0/information"
    tree.file(gpu, f"Model: \t\t NVIDIA H100\nDevice Minor: \t {number}\n")
    tree.file("/proc/meminfo", f"MemTotal:       {number} kB\n")
    tree.file("/proc/mounts", f"shm /dev/shm tmpfs rw,size={number}k 0 0\n")
    tree.file("/proc/devices", f"Character devices:\n{number} nvidia-uvm\n195 nvidia\n\nBlock devices:\n")
    tree.file("/etc/passwd", f"someone:x:{number}:0::/:/bin/sh\nroot:x:0:0::/root:/bin/sh\n")
    tree.file("/etc/group", f"some:x:{number}:\n")
    tree.file(f"/dev/nvidia{number[:200]}")
    tree.file("/var/log/kern.log", f"[{number}.5] NVRM: Xid (PCI:0000:01:00): {number}, pid=1\n")
    for probe in ("platform", "kernel", "pci"):
        _, done = run_probe(probe, {"root": str(tmp_path)})
        assert done["status"] in ("ok", "absent"), (probe, done)


def test_no_probe_fails_over_a_number_of_an_environment(tmp_path: Path, run_probe: RunProbe) -> None:
    for version in (f"3.{LONG}", f"{LONG}.1", f"3.11.{LONG}", f"3.{NO_NUMBER}.1"):
        root = tmp_path / str(len(list(tmp_path.iterdir())))
        tree = Tree(root)
        site = tree.venv("/a", tree.base("/usr"))
        tree.file("/a/pyvenv.cfg", f"home = /usr/bin\nversion = {version}\n")
        tree.torch(site)
        tree.file(f"{site}/torch-2.5.1.dist-info/RECORD", f"torch/__init__.py,,{NO_NUMBER}\ntorch/x.py,,{LONG}\n")
        snapshot, done = run_probe("environments", tree.view(python=["/a"]))
        assert done["status"] == "ok", done
        assert [each.name for each in frameworks_in(items_in(snapshot.environments)[0])] == ["torch"]


@pytest.mark.parametrize("number", [LONG, NO_NUMBER])
def test_a_kernel_message_at_no_time_is_read_without_one(number: str) -> None:
    assert parse_record(f"6,1,{number},-;a message\n") == (None, "a message")
