"""What the machine is: its hypervisor, its processor, and whether it is a Jetson or DRIVE; from files alone."""

from __future__ import annotations

import os
import re

from ..common.lazy import lazy_pattern
from ..common.record import Found
from ..common.system import TEGRA_RELEASE, is_gvisor, kernel_release, mount_points, tegra_mark, wsl_mark
from ..common.tree import Tree

_DMI = "/sys/class/dmi/id"

_DMI_NAMES = (
    ("KVM", "kvm"), ("OpenStack", "kvm"), ("KubeVirt", "kvm"), ("Google", "kvm"), ("Amazon EC2", "kvm"),
    ("Alibaba Cloud ECS", "kvm"), ("QEMU", "qemu"), ("Standard PC (", "qemu"), ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"), ("innotek GmbH", "virtualbox"), ("HVM domU", "xen"), ("Xen", "xen"),
    ("Parallels", "parallels"), ("BHYVE", "bhyve"), ("Apple Virtualization", "apple"),
    ("Cloud Hypervisor", "cloud-hypervisor"), ("Bochs", "bochs"),
)  # fmt: skip
"""Beginnings of product, vendor, board or BIOS names of virtual machines."""

_CLOCKS = (("kvm-clock", "kvm"), ("hyperv_clocksource", "hyperv"), ("xen", "xen"))
_CLOCK_FILE = "/sys/devices/system/clocksource/clocksource0/available_clocksource"

_FIRECRACKER_OEM = b"FIRECK"
_FIRECRACKER_BOOT = {"reboot=k", "panic=1"}


def virtualization(tree: Tree, flags: frozenset[str] | None) -> Found | None:
    """The hypervisor; ``none`` on bare metal, ``other`` for an unknown one, None if nothing shows it.

    ``flags`` are those of an x86 processor, whose ``hypervisor`` decides whether there is one.
    """
    if is_gvisor(tree):
        return Found("gvisor", "file /proc/version")
    if "control_d" in (tree.read_text("/proc/xen/capabilities", 4096) or ""):
        return Found("none", "file /proc/xen/capabilities")
    if flags is not None and "hypervisor" not in flags:
        return Found("none", "file /proc/cpuinfo")
    if mark := wsl_mark(tree):
        return Found("hyperv", f"file {mark}")
    if named := _dmi(tree):
        return named
    if tree.read_line("/sys/hypervisor/type") == "xen":
        return Found("xen", "file /sys/hypervisor/type")
    if sign := _firecracker(tree):
        return Found("firecracker", f"file {sign}")
    clocks = tree.read_line(_CLOCK_FILE) or ""
    if name := next((name for clock, name in _CLOCKS if clock in clocks), None):
        return Found(name, f"file {_CLOCK_FILE}")
    # The device tree has no such node on bare metal.
    path = "/proc/device-tree/hypervisor/compatible"
    if kind := tree.read_line(path):
        return Found(next((name for name in ("kvm", "xen", "vmware") if name in kind), "other"), f"file {path}")
    if tree.lexists("/proc/device-tree/compatible"):
        return Found("none", "file /proc/device-tree")
    return Found("other", "file /proc/cpuinfo") if flags is not None else None


def _dmi(tree: Tree) -> Found | None:
    vendor, product = (tree.read_line(f"{_DMI}/{name}") for name in ("sys_vendor", "product_name"))
    if vendor == "Microsoft Corporation" and product == "Virtual Machine":
        return Found("hyperv", f"file {_DMI}/product_name")
    if ".metal" in (product or ""):
        return Found("none", f"file {_DMI}/product_name")
    for field in ("product_name", "sys_vendor", "board_vendor", "bios_vendor"):
        text = tree.read_line(f"{_DMI}/{field}") or ""
        name = next((name for start, name in _DMI_NAMES if text.startswith(start)), None)
        if name == "qemu" and "kvm-clock" in (tree.read_line(_CLOCK_FILE) or ""):
            return Found("kvm", f"file {_CLOCK_FILE}")
        if name:
            return Found(name, f"file {_DMI}/{field}")
    return None


def _firecracker(tree: Tree) -> str | None:
    """The file that shows Firecracker, which has no DMI: its ACPI tables, or its guests' typical command line."""
    table = tree.read_bytes("/sys/firmware/acpi/tables/DSDT", 64) or b""
    if table[10:16] == _FIRECRACKER_OEM:
        return "/sys/firmware/acpi/tables/DSDT"
    line = tree.read_line("/proc/cmdline") or ""
    virtio = "virtio_mmio.device=" in line or "pci=off" in line
    return "/proc/cmdline" if "firecracker" in line or (virtio and set(line.split()) >= _FIRECRACKER_BOOT) else None


CPUINFO = "/proc/cpuinfo"

_ENOUGH = 256 * 1024  # Bytes to read: a processor's paragraph has one or two kilobytes, and the first ones suffice

_ARM_PARTS = {
    ("0x41", "0xd03"): "Cortex-A53", ("0x41", "0xd07"): "Cortex-A57", ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd0c"): "Neoverse-N1", ("0x41", "0xd40"): "Neoverse-V1", ("0x41", "0xd42"): "Cortex-A78AE",
    ("0x41", "0xd49"): "Neoverse-N2", ("0x41", "0xd4f"): "Neoverse-V2", ("0x41", "0xd83"): "Neoverse-V3AE",
    ("0x41", "0xd84"): "Neoverse-V3", ("0x41", "0xd85"): "Cortex-X925", ("0x41", "0xd87"): "Cortex-A725",
    ("0x4e", "0x003"): "NVIDIA Denver 2", ("0x4e", "0x004"): "NVIDIA Carmel", ("0xc0", "0xac3"): "Ampere-1",
    ("0xc0", "0xac4"): "Ampere-1a",
}  # fmt: skip
"""Arm's numbers of implementer and part, for processors that were seen with NVIDIA GPUs."""


def _field(text: str, name: str) -> str | None:
    match = re.search(rf"^{name}[ \t]*:[ \t]*(\S.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def cpu_model(tree: Tree) -> Found | None:
    text = tree.read_text(CPUINFO, _ENOUGH) or ""
    pairs = re.findall(r"^CPU implementer\s*:\s*(0x\w+)$.*?^CPU part\s*:\s*(0x\w+)$", text, re.MULTILINE | re.DOTALL)
    names = (_ARM_PARTS.get(pair, f"Arm implementer {pair[0]} part {pair[1]}") for pair in dict.fromkeys(pairs))
    name = " + ".join(names) or _field(text, "model name") or _field(text, "cpu")
    return Found(name, f"file {CPUINFO}") if name else None


def cpu_flags(tree: Tree) -> frozenset[str] | None:
    """The feature flags of an x86 processor; None if they cannot be read."""
    listed = _field(tree.read_text(CPUINFO, _ENOUGH) or "", "flags")
    return frozenset(listed.split()) if listed else None


def own_processors(tree: Tree) -> set[int]:
    """The numbers of the processors that this process may use; none where that is not known."""
    return os.sched_getaffinity(0) if tree.at_real_root and hasattr(os, "sched_getaffinity") else set()


def cpu_count(tree: Tree) -> Found | None:
    """The number of processors that this process may use, or that the machine has."""
    if own := own_processors(tree):
        return Found(len(own), "sched_getaffinity")
    listed = re.findall(r"^processor\s*:\s*\d+$", tree.read_text(CPUINFO, 16 * 1024 * 1024) or "", re.MULTILINE)
    return Found(len(listed), f"file {CPUINFO}") if listed else None


NODES = "/sys/devices/system/node"


def numa_nodes(tree: Tree) -> list[int]:
    names = tree.list_names(NODES) or ()
    return sorted(int(name[4:]) for name in names if name.startswith("node") and name[4:].isdecimal())


def processors_of(tree: Tree, node: int) -> set[int]:
    return listed_numbers(tree.read_line(f"{NODES}/node{node}/cpulist"))


def listed_numbers(text: str | None) -> set[int]:
    """The numbers of ``0-7,16-23``."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found |= set(range(int(first), min(int(last or first), int(first) + 65535) + 1))
    return found


_SOURCES = "/etc/apt/sources.list.d/nvidia-l4t-apt-source.list"
_BRANCH = lazy_pattern(
    r"^[ \t]*deb[ \t][^\n#]*repo\.download\.nvidia\.com/jetson/\S+[ \t]+r(\d+(?:\.\d+)*)\s", re.MULTILINE
)


def is_tegra(tree: Tree, *, boxed: bool) -> Found | None:
    """Whether the chip is a Tegra; None if neither the device tree nor sysfs is visible.

    In a container (``boxed``), the image's own release file does not count.
    """
    mark = tegra_mark(tree)
    if mark is not None and (mark != TEGRA_RELEASE or not boxed or mark in mount_points(tree)):
        return Found(True, f"file {mark}")
    if (kernel_release(tree) or "").endswith("-tegra"):
        return Found(True, "file /proc/sys/kernel/osrelease")
    return Found(False, "file /sys/devices") if tree.list_names("/sys/devices") else None


def tegra_release(tree: Tree, *, boxed: bool) -> Found | None:
    """The L4T release; an empty string if this is not a Tegra system, None if it is unknown.

    In a container (``boxed``), the file counts only if it is mounted from the host.
    """
    tegra = is_tegra(tree, boxed=boxed)
    if tegra is None or not tegra.value:
        return Found("", tegra.source) if tegra else None
    if boxed and TEGRA_RELEASE not in mount_points(tree):
        return None
    return _of_file(tree)


def image_tegra_release(tree: Tree) -> Found | None:
    """The L4T release that this container's image was built for, from its release file or package source."""
    if TEGRA_RELEASE not in mount_points(tree) and (own := _of_file(tree)):
        return own
    found = _BRANCH.search(tree.read_text(_SOURCES, 65536) or "")
    return Found(found.group(1), f"file {_SOURCES}") if found else None


def _of_file(tree: Tree) -> Found | None:
    match = re.search(r"R(\d+) \(release\), REVISION: ([\d.]+)", tree.read_text(TEGRA_RELEASE, 4096) or "")
    return Found(f"{match.group(1)}.{match.group(2)}", f"file {TEGRA_RELEASE}") if match else None
