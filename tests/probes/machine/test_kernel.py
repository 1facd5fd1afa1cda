"""The kernel probe, on made-up trees and on this machine."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import Kernel
from probes.common.tree import Tree
from probes.machine.kernel import MAX_LENGTH, MAX_MESSAGES, _read_kmsg, kernel_log, messages, parse_log, parse_record
from tests.every import cases, tabled
from tests.known import Expected, fields, known
from tests.probes.conftest import BuildRoot, Changes, Probed, RunProbe

SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
BOOT_ORDER = "/sys/firmware/efi/efivars/BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c"
LOOPS = "/lib/modules/6.1.0-28-amd64"


def look(run_probe: RunProbe, root: str) -> Kernel:
    snapshot, done = run_probe("kernel", {"root": root})
    assert done["status"] == "ok"
    return known(snapshot.kernel)


def test_ubuntu_with_the_open_module(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("ubuntu-580-open"))
    expected = {
        "nvidia.loaded": True, "nvidia.version": "580.159.04", "nvidia.flavour": "open",
        "nvidia.source_of.version": "file /proc/driver/nvidia/version", "nvidia.counters_for_admins": None,
        "nvidia.uvm_loaded": True, "nvidia.built": True,
        "nvidia.file": "/lib/modules/6.8.0-88-generic/updates/dkms/nvidia.ko.zst",
        "nvidia.built_for": ("6.8.0-87-generic",), "nvidia.blacklisted_by": None, "nouveau_loaded": False,
        "nova_loaded": False, "secure_boot": False, "lockdown": "none",
    }  # fmt: skip
    assert fields(kernel, expected) == expected
    by_path = {node.path: node for node in known(kernel.device_nodes)}
    assert set(by_path) == {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1"}
    assert (by_path["/dev/nvidia0"].minor, by_path["/dev/nvidiactl"].minor) == (0, None)


@cases("tree", "ubuntu-580-open", "rhel")
def test_the_release_of_the_running_driver(tree: str, probed: Probed) -> None:
    snapshot = probed("kernel", tree)
    assert known(snapshot.driver).release == known(known(snapshot.kernel).nvidia).version is not None


@cases("tree", "nouveau", "jetson-orin")
def test_no_release_where_no_module_of_the_driver_runs(tree: str, probed: Probed) -> None:
    assert probed("kernel", tree).driver is None


@cases("about, tree, changes, expected",
    ("RHEL with the proprietary module", "rhel", {},
     {"nvidia.loaded": True, "nvidia.version": "535.216.03", "nvidia.flavour": "proprietary", "nvidia.built": True,
      "nvidia.file": "/lib/modules/5.14.0-427.42.1.el9_4.x86_64/weak-updates/nvidia/nvidia.ko",
      "nvidia.built_for": ("5.14.0-427.13.1.el9_4.x86_64",)}),
    # /sys/firmware is hidden, so that its emptiness means nothing
    ("a container without modules folder says nothing of the build", "debian-container", {},
     {"nvidia.loaded": False, "nvidia.built": None, "device_nodes": (), "secure_boot": None}),
    ("a container sees the module of its host", "debian-container",
     {"/proc/modules": "nvidia 56717312 3 - Live 0x0000000000000000 (POE)\n"}, {"nvidia.loaded": True}),
    ("a kernel upgraded without module", "kernel-upgraded", {},
     {"nvidia.loaded": False, "nvidia.built": False, "nvidia.file": None,
      "nvidia.built_for": ("6.11.0-29-generic", "6.8.0-88-generic")}),
    ("nouveau", "nouveau", {},
     {"nouveau_loaded": True, "nvidia.loaded": False, "nvidia.built": False, "secure_boot": False,
      "source_of.secure_boot": "file /sys/firmware", "device_nodes": ()}),
    ("a log file counts from the last start", "nouveau", {},
     {"log.readable": True, "log.source": "file /var/log/kern.log",
      "log.messages.text": ("nouveau 0000:01:00.0: NVIDIA GP104 (134000a1)",), "log.messages.seconds": (2.713,),
      "log.messages.pci_bus_id": ("0000:01:00.0",), "log.messages.xid": (None,)}),
    ("nova", "nouveau", {"/proc/modules": "nova_core 90112 0 - Live 0x0000000000000000\n"},
     {"nouveau_loaded": False, "nova_loaded": True}),
    ("Secure Boot refuses an unsigned module", "secure-boot", {},
     {"secure_boot": True, "lockdown": "integrity", "nvidia.loaded": False, "nvidia.built": True,
      "nvidia.file": "/lib/modules/5.15.0-130-generic/updates/dkms/nvidia.ko",
      "log.messages.text": ("Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
                            "Loading of unsigned module is rejected")}),
    ("Secure Boot is on", "secure-boot", {SECURE_BOOT: b"\x06\0\0\0\x01"}, {"secure_boot": True}),
    ("Secure Boot is off", "secure-boot", {SECURE_BOOT: b"\x06\0\0\0\0"}, {"secure_boot": False}),
    ("its variable is cut off", "secure-boot", {SECURE_BOOT: b"\x06\0"}, {"secure_boot": None}),
    ("its variable is empty", "secure-boot", {SECURE_BOOT: b""}, {"secure_boot": None}),
    ("EFI without its variable", "secure-boot", {SECURE_BOOT: None, BOOT_ORDER: "x"}, {"secure_boot": False}),
    ("EFI whose variables are not mounted", "secure-boot", {SECURE_BOOT: None, "/sys/firmware/efi/efivars/": ""},
     {"secure_boot": None}),
    ("a Jetson counts nvgpu", "jetson-orin", {},
     {"nvidia.loaded": True, "nvidia.source_of.loaded": "file /proc/modules (nvgpu)",
      "nvidia.file": "/lib/modules/5.15.148-tegra/updates/drivers/gpu/nvgpu/nvgpu.ko",
      "device_nodes.path": ("/dev/nvgpu/igpu0/ctrl", "/dev/nvmap")}),
    # an empty /proc/modules is read: no module at all
    ("nvidia-peermem", "ubuntu-580-open", {"/proc/modules": "nvidia_peermem 16384 0 - Live 0x0\n"},
     {"nvidia.peer_memory_loaded": True}),
    ("no way for network adapters", "ubuntu-580-open", {"/proc/modules": "nvidia 16384 0 - Live 0x0\n"},
     {"nvidia.peer_memory_loaded": False}),
    ("WSL has its own device", "wsl2", {}, {"nvidia.loaded": False, "device_nodes.path": ("/dev/dxg",)}),
    ("a blacklist hidden by a file of the same name", "nouveau",
     {"/etc/modprobe.d/x.conf": "", "/usr/lib/modprobe.d/x.conf": "blacklist nvidia\n"},
     {"nvidia.blacklisted_by": None}),
    ("a blacklist on the command line", "nouveau",
     {"/proc/cmdline": "root=/dev/sda1 modprobe.blacklist=nouveau,nvidia quiet\n"},
     {"nvidia.blacklisted_by": "/proc/cmdline"}),
    ("a module that is only being loaded is not loaded", "nouveau",
     {"/proc/modules": "ext4 1 1 - Live 0x0\nnvidia 56717312 0 - Loading 0x0000000000000000 (OE+)\n"},
     {"nvidia.loaded": False}),
    ("/sys/module tells where /proc/modules is not there", "nouveau",
     {"/proc/modules": None, "/sys/module/nvidia/version": "580.95.05\n", "/sys/module/nvidia/taint": "POE\n"},
     {"nvidia.loaded": True, "nvidia.version": "580.95.05", "nvidia.flavour": "proprietary",
      "nvidia.source_of.loaded": "file /sys/module"}),
    ("nothing is known of an empty root", None, {},
     {"nvidia.loaded": None, "nouveau_loaded": None, "secure_boot": None, "device_nodes": None, "log.readable": False,
      "log.why_not": "/dev/kmsg is not examined"}),
    ("a module folder full of loops ends", "nouveau",
     {f"{LOOPS}/updates/again": "-> .", f"{LOOPS}/extra": f"-> {LOOPS}/extra",
      f"{LOOPS}/updates/nvidia.ko": "-> ./nvidia.ko"}, {"nvidia.built": False}),
    ("no numbers where no module of NVIDIA is loaded", "nouveau",
     {"/proc/devices": "Character devices:\n  1 mem\n"}, {"device_numbers": None}),
)  # fmt: skip
def test_what_a_tree_tells(probed: Probed, about: str, tree: str | None, changes: Changes, expected: Expected) -> None:
    assert fields(probed("kernel", tree, changes).kernel, expected) == expected


@tabled
def test_blacklists(probed: Probed, path: str, text: str, *, forbids: bool) -> None:
    kernel = known(probed("kernel", "nouveau", {path: text}).kernel)
    assert known(kernel.nvidia).blacklisted_by == (path if forbids else None)


@cases("noise", b"\xff\xfe garbage \x00\x1b[2J\n" * 100, b"nvidia\n", b"nvidia a b c\n")
def test_garbage_in_proc_modules_is_no_answer(probed: Probed, noise: bytes) -> None:
    kernel = known(probed("kernel", "nouveau", {"/proc/modules": noise}).kernel)
    assert (known(kernel.nvidia).loaded, kernel.nouveau_loaded) == (None, None)


@tabled
def test_who_may_read_the_counters(probed: Probed, text: str, *, told: bool | None) -> None:
    kernel = known(probed("kernel", "ubuntu-580-open", {"/proc/driver/nvidia/params": text}).kernel)
    assert known(kernel.nvidia).counters_for_admins is told


def test_device_nodes_are_judged_without_being_opened(run_probe: RunProbe, build_root: BuildRoot) -> None:
    """Opening a named pipe for reading would wait for a writer for ever."""
    root = build_root("nouveau", {"/etc/passwd": "root:x:0:0::/:/bin/sh\nbroken\n", "/etc/group": "root:x:0:\n"})
    node = Path(root) / "dev" / "nvidia7"
    os.mkfifo(node)
    node.chmod(0o640)
    (found,) = known(look(run_probe, root).device_nodes)
    assert (found.path, found.minor, found.mode) == ("/dev/nvidia7", 7, stat.filemode(node.stat().st_mode))
    names = {0: "root"}
    about = node.stat()
    assert found.owner == f"{names.get(about.st_uid, about.st_uid)}:{names.get(about.st_gid, about.st_gid)}"
    assert found.openable is True


def test_what_device_a_node_is(run_probe: RunProbe, build_root: BuildRoot) -> None:
    """/proc/devices lists block devices too, and other drivers."""
    devices = (
        "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n508 nvidia-uvm\n\nBlock devices:\n 12 nvidia-block\n"
    )
    root = build_root("nouveau", {"/proc/devices": devices, "/dev/nvidia0": ""})
    try:
        os.mknod(Path(root) / "dev" / "nvidia-uvm", 0o600 | stat.S_IFCHR, os.makedev(240, 7))
    except PermissionError:
        pytest.skip("only root may make device nodes")
    kernel = look(run_probe, root)
    assert kernel.device_numbers == {"nvidia": 195, "nvidiactl": 195, "nvidia-uvm": 508}
    assert kernel.source_of("device_numbers") == "file /proc/devices"
    nodes = {node.path: node for node in kernel.device_nodes or ()}
    assert nodes["/dev/nvidia-uvm"].number == "240:7"
    assert (nodes["/dev/nvidia0"].number, (nodes["/dev/nvidia0"].mode or "")[0]) == (None, "-")


def test_node_without_permission(run_probe: RunProbe, build_root: BuildRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may open anything, so the system's answer is replaced."""
    root = build_root("ubuntu-580-open")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("nvidia0"))
    assert {node.path for node in known(look(run_probe, root).device_nodes) if not node.openable} == {"/dev/nvidia0"}


def test_a_capability_is_read_only(run_probe: RunProbe, build_root: BuildRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver makes its nodes without permission to write, for everybody."""
    root = build_root("ubuntu-580-open")
    monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
    nodes = known(look(run_probe, root).device_nodes)
    assert {node.path for node in nodes if node.openable} == {"/dev/nvidia-caps/nvidia-cap1"}


RECORDS = [
    "4,1203,6012345,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build",
    "3,1300,7100000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=4121, GPU has fallen off the bus.\n SUBSYSTEM=pci",
    "3,1301,7200000,c,caller=T99;NVRM: Xid (PCI:0008:01:00): 119, pid=9, Timeout after 6s of waiting for RPC response!",
    "3,1302,7300000,-;NVRM: GPU 0000:3B:00.0: RmInitAdapter failed! (0x62:0x55:2384)",
    "3,1303,7400000,-;NVRM: API mismatch: the client has the version 580.95.05, but this kernel module has 580.159.04.",
    "3,1304,7500000,-;nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    "4,1305,7600000,-;nvidia-nvswitch3: SXid (PCI:0000:08:00.0): 12028, Non-fatal, Link 56 egress error",
    "6,1306,7700000,-;usb 1-1: new high-speed USB device number 2 using xhci_hcd",
    '6,1307,7800000,-;audit: apparmor="STATUS" name="nvidia_modprobe" pid=812',
    "3,1308,7900000,-;NVRM: Xid (0000:03:00): 31, Ch 00000001",
    "3,1309,8000000,-;NVRM: Xid (PCI:0000:9b:00 GPU-I:05): 94, pid=7, Contained memory error",
]


def test_messages_of_the_kernel_log() -> None:
    found = messages((parse_record(record) for record in RECORDS), "file /dev/kmsg")
    assert [(message.get("xid"), message.get("pci_bus_id"), message["seconds"]) for message in found] == [
        (None, None, 6.012345), (79, "0000:3b:00.0", 7.1), (119, "0008:01:00.0", 7.2), (None, "0000:3b:00.0", 7.3),
        (None, None, 7.4), (None, None, 7.5), (None, "0000:08:00.0", 7.6), (31, "0000:03:00.0", 7.9),
        (94, "0000:9b:00.0", 8.0),
    ]  # fmt: skip
    assert found[1]["text"] == "NVRM: Xid (PCI:0000:3b:00): 79, pid=4121, GPU has fallen off the bus."


def test_a_repeated_line_does_not_push_the_others_out() -> None:
    again = "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x22:0xffff:667)"
    lines = [(1.0, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")]
    lines += [(2.0 + number, again) for number in range(5000)]
    assert [message["seconds"] for message in messages(lines, "x")] == [1.0, 5001.0]


def test_only_the_last_messages_are_kept_and_long_ones_cut() -> None:
    found = messages([(float(number), f"NVRM: {number} " + "x" * 9999) for number in range(1000)], "x")
    assert len(found) == MAX_MESSAGES
    assert found[-1]["text"].startswith("NVRM: 999 ")
    assert max(len(message["text"]) for message in found) == MAX_LENGTH


@cases("record", "", ";", "a,b,c;", "1,2;NVRM: x", "1,2,three,-;NVRM: x", "NVRM without head")
def test_damaged_records_have_no_time(record: str) -> None:
    assert parse_record(record)[0] is None


@tabled
def test_forms_of_log_lines(line: str, seconds: float | None, text: str) -> None:
    assert parse_log(line) == [(seconds, text)]


def test_a_line_in_both_log_files_counts_once(build_root: BuildRoot) -> None:
    line = "[    5.000000] NVRM: once\n"
    root = build_root(None, {"/var/log/dmesg": line, "/var/log/kern.log": line + "[    6.000000] NVRM: twice\n"})
    found = kernel_log(Tree({"root": root}))
    assert [message["text"] for message in found["messages"]] == ["NVRM: once", "NVRM: twice"]


def refused(*_: Any) -> int:
    raise PermissionError(13, "refused")


def test_why_the_log_may_not_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("probes.machine.kernel._FILES", ())
    monkeypatch.setattr("probes.machine.kernel._KMSG", str(tmp_path / "kmsg"))
    assert "is not there" in kernel_log(Tree({"root": "/"}))["why_not"]
    (tmp_path / "kmsg").touch()
    assert "is not the kernel log" in kernel_log(Tree({"root": "/"}))["why_not"]


@pytest.mark.skipif(not Path("/dev/kmsg").is_char_device(), reason="there is no /dev/kmsg here")
def test_without_the_right_to_read_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("probes.machine.kernel._FILES", ())
    monkeypatch.setattr(os, "open", refused)
    assert kernel_log(Tree({"root": "/"})) == {
        "source": "file /dev/kmsg", "readable": False, "why_not": "needs root (kernel.dmesg_restrict)",
    }  # fmt: skip


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="/dev/kmsg may not be read here")
def test_reading_the_real_log_takes_nothing_from_it() -> None:
    (first, why_not), (again, _) = _read_kmsg(), _read_kmsg()
    assert why_not == ""
    assert first
    assert again
    assert first[-1] in again


@pytest.mark.skipif(not Path("/sys/module").is_dir(), reason="sysfs is not mounted here")
def test_this_machine(run_probe: RunProbe) -> None:
    kernel = look(run_probe, "/")
    assert kernel.nvidia
    assert kernel.nvidia.loaded is Path("/sys/module/nvidia").exists()
    assert kernel.log
    assert kernel.log.readable is not bool(kernel.log.why_not)
