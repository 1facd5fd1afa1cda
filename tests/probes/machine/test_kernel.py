"""The kernel probe, on made-up trees and on this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from envcheck.model.snapshot import Kernel, KernelLog, KernelModule, Snapshot
from probes.common.tree import Tree
from probes.machine.kernel import (
    MAX_LENGTH,
    MAX_MESSAGES,
    _read_kmsg,
    kernel_log,
    messages,
    parse_log,
    parse_record,
)
from tests.every import cases
from tests.known import known

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
BuildRoot = Callable[..., str]

SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


def look(run_probe: RunProbe, root: str) -> Kernel:
    snapshot, done = run_probe("kernel", {"root": root})
    assert done["status"] == "ok"
    assert snapshot.kernel
    return snapshot.kernel


def module(run_probe: RunProbe, root: str) -> KernelModule:
    kernel = look(run_probe, root)
    assert kernel.nvidia
    return kernel.nvidia


def log(run_probe: RunProbe, root: str) -> KernelLog:
    kernel = look(run_probe, root)
    assert kernel.log
    return kernel.log


def test_ubuntu_with_the_open_module(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("ubuntu-580-open"))
    nvidia = kernel.nvidia
    assert nvidia
    assert (nvidia.loaded, nvidia.version, nvidia.flavour) == (True, "580.159.04", "open")
    assert nvidia.source_of("version") == "file /proc/driver/nvidia/version"
    assert nvidia.counters_for_admins is None
    assert nvidia.uvm_loaded is True
    assert nvidia.built is True
    assert nvidia.file == "/lib/modules/6.8.0-88-generic/updates/dkms/nvidia.ko.zst"
    assert nvidia.built_for == ("6.8.0-87-generic",)
    assert nvidia.blacklisted_by is None
    assert kernel.nouveau_loaded is False
    assert kernel.nova_loaded is False
    assert kernel.secure_boot is False
    assert kernel.lockdown == "none"
    assert kernel.device_nodes is not None
    by_path = {node.path: node for node in kernel.device_nodes}
    assert set(by_path) == {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-caps/nvidia-cap1"}
    assert by_path["/dev/nvidia0"].minor == 0
    assert by_path["/dev/nvidiactl"].minor is None


@cases("tree", "ubuntu-580-open", "rhel")
def test_the_release_of_the_running_driver(tree: str, run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, _ = run_probe("kernel", {"root": build_root(tree)})
    assert snapshot.kernel
    assert snapshot.kernel.nvidia
    assert snapshot.driver
    assert snapshot.driver.release == snapshot.kernel.nvidia.version is not None


@cases("tree", "nouveau", "jetson-orin")
def test_no_release_where_no_module_of_the_driver_runs(tree: str, run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, _ = run_probe("kernel", {"root": build_root(tree)})
    assert snapshot.driver is None


def test_rhel_with_the_proprietary_module(run_probe: RunProbe, build_root: BuildRoot) -> None:
    nvidia = module(run_probe, build_root("rhel"))
    assert (nvidia.loaded, nvidia.version, nvidia.flavour) == (True, "535.216.03", "proprietary")
    assert nvidia.built is True
    assert nvidia.file == "/lib/modules/5.14.0-427.42.1.el9_4.x86_64/weak-updates/nvidia/nvidia.ko"
    assert nvidia.built_for == ("5.14.0-427.13.1.el9_4.x86_64",)


def test_container_without_modules_folder_says_nothing_of_the_build(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("debian-container"))
    assert kernel.nvidia
    assert kernel.nvidia.loaded is False
    assert kernel.nvidia.built is None
    assert kernel.device_nodes == ()
    assert kernel.secure_boot is None  # /sys/firmware is hidden, so that its emptiness means nothing


def test_container_sees_the_module_of_its_host(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root("debian-container", {"/proc/modules": "nvidia 56717312 3 - Live 0x0000000000000000 (POE)\n"})
    assert module(run_probe, root).loaded is True


def test_kernel_upgraded_without_module(run_probe: RunProbe, build_root: BuildRoot) -> None:
    nvidia = module(run_probe, build_root("kernel-upgraded"))
    assert nvidia.loaded is False
    assert nvidia.built is False
    assert nvidia.file is None
    assert nvidia.built_for == ("6.11.0-29-generic", "6.8.0-88-generic")


def test_nouveau(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("nouveau"))
    assert kernel.nouveau_loaded is True
    assert kernel.nvidia
    assert (kernel.nvidia.loaded, kernel.nvidia.built) == (False, False)
    assert kernel.secure_boot is False
    assert kernel.source_of("secure_boot") == "file /sys/firmware"
    assert kernel.device_nodes == ()


def test_log_file_counts_from_the_last_start(run_probe: RunProbe, build_root: BuildRoot) -> None:
    found = log(run_probe, build_root("nouveau"))
    assert found.readable is True
    assert found.source == "file /var/log/kern.log"
    assert [(message.text, message.seconds) for message in found.messages] == [
        ("nouveau 0000:01:00.0: NVIDIA GP104 (134000a1)", 2.713)
    ]
    assert found.messages[0].pci_bus_id == "0000:01:00.0"
    assert found.messages[0].xid is None


def test_nova(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("nouveau", {"/proc/modules": "nova_core 90112 0 - Live 0x0000000000000000\n"}))
    assert (kernel.nouveau_loaded, kernel.nova_loaded) == (False, True)


def test_secure_boot_refuses_an_unsigned_module(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("secure-boot"))
    assert kernel.secure_boot is True
    assert kernel.lockdown == "integrity"
    assert kernel.nvidia
    assert (kernel.nvidia.loaded, kernel.nvidia.built) == (False, True)
    assert kernel.nvidia.file == "/lib/modules/5.15.0-130-generic/updates/dkms/nvidia.ko"
    assert kernel.log
    assert [message.text for message in kernel.log.messages] == [
        "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
        "Loading of unsigned module is rejected",
    ]


@cases("content, state", (b"\x06\0\0\0\x01", True), (b"\x06\0\0\0\0", False), (b"\x06\0", None), (b"", None))
def test_secure_boot_variable(
    run_probe: RunProbe, build_root: BuildRoot, *, content: bytes, state: bool | None
) -> None:
    assert look(run_probe, build_root("secure-boot", {SECURE_BOOT: content})).secure_boot is state


def test_efi_without_secure_boot_variable(run_probe: RunProbe, build_root: BuildRoot) -> None:
    other = "/sys/firmware/efi/efivars/BootOrder-8be4df61-93ca-11d2-aa0d-00e098032b8c"
    assert look(run_probe, build_root("secure-boot", {SECURE_BOOT: None, other: "x"})).secure_boot is False


def test_efi_whose_variables_are_not_mounted(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root("secure-boot", {SECURE_BOOT: None, "/sys/firmware/efi/efivars/": ""})
    assert look(run_probe, root).secure_boot is None


def test_jetson_counts_nvgpu(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("jetson-orin"))
    assert kernel.nvidia
    assert kernel.nvidia.loaded is True
    assert kernel.nvidia.source_of("loaded") == "file /proc/modules (nvgpu)"
    assert kernel.nvidia.file == "/lib/modules/5.15.148-tegra/updates/drivers/gpu/nvgpu/nvgpu.ko"
    assert kernel.device_nodes is not None
    assert [node.path for node in kernel.device_nodes] == ["/dev/nvgpu/igpu0/ctrl", "/dev/nvmap"]


def test_wsl_has_its_own_device(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("wsl2"))
    assert kernel.nvidia
    assert kernel.nvidia.loaded is False  # an empty /proc/modules is read: no module at all
    assert kernel.device_nodes is not None
    assert [node.path for node in kernel.device_nodes] == ["/dev/dxg"]


@cases(
    "path, text, forbids",
    ("/etc/modprobe.d/x.conf", "# off\nblacklist nvidia\n", True),
    ("/usr/lib/modprobe.d/x.conf", "install nvidia /bin/false\n", True),
    ("/lib/modprobe.d/x.conf", "alias nvidia off\n", True),
    ("/etc/modprobe.d/x.conf", "blacklist nvidia_current\n", True),
    ("/etc/modprobe.d/x.conf", "# blacklist nvidia\n", False),
    ("/etc/modprobe.d/x.conf", "blacklist nvidiafb\nblacklist nvidia_drm\nblacklist nouveau\n", False),
    ("/etc/modprobe.d/x.conf", "install nvidia modprobe -i nvidia-current $CMDLINE_OPTS\n", False),
    ("/etc/modprobe.d/x.conf.disabled", "blacklist nvidia\n", False),
)
def test_blacklists(run_probe: RunProbe, build_root: BuildRoot, path: str, text: str, *, forbids: bool) -> None:
    assert module(run_probe, build_root("nouveau", {path: text})).blacklisted_by == (path if forbids else None)


def test_blacklist_hidden_by_a_file_of_the_same_name(run_probe: RunProbe, build_root: BuildRoot) -> None:
    changes = {"/etc/modprobe.d/x.conf": "", "/usr/lib/modprobe.d/x.conf": "blacklist nvidia\n"}
    assert module(run_probe, build_root("nouveau", changes)).blacklisted_by is None


def test_blacklist_on_the_command_line(run_probe: RunProbe, build_root: BuildRoot) -> None:
    line = "root=/dev/sda1 modprobe.blacklist=nouveau,nvidia quiet\n"
    assert module(run_probe, build_root("nouveau", {"/proc/cmdline": line})).blacklisted_by == "/proc/cmdline"


@cases("noise", b"\xff\xfe garbage \x00\x1b[2J\n" * 100, b"nvidia\n", b"nvidia a b c\n")
def test_garbage_in_proc_modules_is_no_answer(run_probe: RunProbe, build_root: BuildRoot, noise: bytes) -> None:
    kernel = look(run_probe, build_root("nouveau", {"/proc/modules": noise}))
    assert kernel.nvidia
    assert kernel.nvidia.loaded is None
    assert kernel.nouveau_loaded is None


@cases("text, known",
    ("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\nPreserveVideoMemoryAllocations: 0\n", True),
    ("RmProfilingAdminOnly: 0\n", False),
    ("RmMsg: x\n", None),
)  # fmt: skip
def test_who_may_read_the_counters(
    run_probe: RunProbe, build_root: BuildRoot, text: str, *, known: bool | None
) -> None:
    root = build_root("ubuntu-580-open", {"/proc/driver/nvidia/params": text})
    assert module(run_probe, root).counters_for_admins is known


def test_module_that_is_only_being_loaded_is_not_loaded(run_probe: RunProbe, build_root: BuildRoot) -> None:
    text = "ext4 1 1 - Live 0x0\nnvidia 56717312 0 - Loading 0x0000000000000000 (OE+)\n"
    assert module(run_probe, build_root("nouveau", {"/proc/modules": text})).loaded is False


def test_sys_module_tells_where_proc_modules_is_not_there(run_probe: RunProbe, build_root: BuildRoot) -> None:
    changes = {"/proc/modules": None, "/sys/module/nvidia/version": "580.95.05\n", "/sys/module/nvidia/taint": "POE\n"}
    nvidia = module(run_probe, build_root("nouveau", changes))
    assert (nvidia.loaded, nvidia.version, nvidia.flavour) == (True, "580.95.05", "proprietary")
    assert nvidia.source_of("loaded") == "file /sys/module"


def test_nothing_is_known_of_an_empty_root(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root())
    assert kernel.nvidia
    assert kernel.nvidia.loaded is None
    assert kernel.nouveau_loaded is None
    assert kernel.secure_boot is None
    assert kernel.device_nodes is None
    assert kernel.log
    assert kernel.log.readable is False
    assert kernel.log.why_not


def test_module_folder_full_of_loops_ends(run_probe: RunProbe, build_root: BuildRoot) -> None:
    base = "/lib/modules/6.1.0-28-amd64"
    loops = {
        f"{base}/updates/again": "-> .",
        f"{base}/extra": f"-> {base}/extra",
        f"{base}/updates/nvidia.ko": "-> ./nvidia.ko",
    }
    assert module(run_probe, build_root("nouveau", loops)).built is False


def test_device_nodes_are_judged_without_being_opened(run_probe: RunProbe, build_root: BuildRoot) -> None:
    """Opening a named pipe for reading would wait for a writer for ever."""
    root = build_root("nouveau", {"/etc/passwd": "root:x:0:0::/:/bin/sh\nbroken\n", "/etc/group": "root:x:0:\n"})
    node = Path(root) / "dev" / "nvidia7"
    os.mkfifo(node)
    node.chmod(0o640)
    nodes = known(look(run_probe, root).device_nodes)
    (found,) = nodes
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


def test_no_numbers_where_no_module_of_nvidia_is_loaded(run_probe: RunProbe, build_root: BuildRoot) -> None:
    kernel = look(run_probe, build_root("nouveau", {"/proc/devices": "Character devices:\n  1 mem\n"}))
    assert kernel.device_numbers is None


def test_node_without_permission(run_probe: RunProbe, build_root: BuildRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may open anything, so the system's answer is replaced."""
    root = build_root("ubuntu-580-open")
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith("nvidia0"))
    nodes = known(look(run_probe, root).device_nodes)
    assert {node.path for node in nodes if not node.openable} == {"/dev/nvidia0"}


def test_a_capability_is_for_reading_only(
    run_probe: RunProbe, build_root: BuildRoot, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        (None, None, 6.012345),
        (79, "0000:3b:00.0", 7.1),
        (119, "0008:01:00.0", 7.2),
        (None, "0000:3b:00.0", 7.3),
        (None, None, 7.4),
        (None, None, 7.5),
        (None, "0000:08:00.0", 7.6),
        (31, "0000:03:00.0", 7.9),
        (94, "0000:9b:00.0", 8.0),
    ]
    assert found[1]["text"] == "NVRM: Xid (PCI:0000:3b:00): 79, pid=4121, GPU has fallen off the bus."


def test_a_repeated_line_does_not_push_the_others_out() -> None:
    lines = [(1.0, "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")]
    lines += [
        (2.0 + number, "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x22:0xffff:667)") for number in range(5000)
    ]
    found = messages(lines, "x")
    assert [message["seconds"] for message in found] == [1.0, 5001.0]


def test_only_the_last_messages_are_kept_and_long_ones_cut() -> None:
    found = messages([(float(number), f"NVRM: {number} " + "x" * 9999) for number in range(1000)], "x")
    assert len(found) == MAX_MESSAGES
    assert found[-1]["text"].startswith("NVRM: 999 ")
    assert max(len(message["text"]) for message in found) == MAX_LENGTH


@cases("record", "", ";", "a,b,c;", "1,2;NVRM: x", "1,2,three,-;NVRM: x", "NVRM without head")
def test_damaged_records_have_no_time(record: str) -> None:
    assert parse_record(record)[0] is None


@cases(
    "line, seconds, text",
    ("[   12.500000] NVRM: a", 12.5, "NVRM: a"),
    ("[    0.000000] kernel: NVRM: a", 0.0, "NVRM: a"),
    ("Nov 20 08:00:02 pc kernel: [    2.713000] NVRM: a", 2.713, "NVRM: a"),
    ("2024-11-20T08:00:02.000000+00:00 pc kernel: NVRM: a", None, "NVRM: a"),
    ("[    2.713000][  T412] NVRM: a", 2.713, "NVRM: a"),
)
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
        "source": "file /dev/kmsg",
        "readable": False,
        "why_not": "needs root (kernel.dmesg_restrict)",
    }


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
