"""The hypervisor of this machine, from files (without the CPUID instruction)."""

from __future__ import annotations

from collections.abc import Callable

from ..kit.record import Found
from ..kit.system import is_gvisor, wsl_mark
from ..kit.tree import Tree

_DMI = "/sys/class/dmi/id"

_DMI_NAMES = (
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("KubeVirt", "kvm"),
    ("Google", "kvm"),
    ("Amazon EC2", "kvm"),
    ("Alibaba Cloud ECS", "kvm"),
    ("QEMU", "qemu"),
    ("Standard PC (", "qemu"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("innotek GmbH", "virtualbox"),
    ("HVM domU", "xen"),
    ("Xen", "xen"),
    ("Parallels", "parallels"),
    ("BHYVE", "bhyve"),
    ("Apple Virtualization", "apple"),
    ("Cloud Hypervisor", "cloud-hypervisor"),
    ("Bochs", "bochs"),
)
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
    steps: tuple[Callable[[Tree], Found | None], ...] = (_wsl, _hyperv, _dmi, _xen, _firecracker, _clock, _tree)
    named = next((found for step in steps if (found := step(tree))), None)
    if named is None and flags is not None:
        return Found("other", "file /proc/cpuinfo")
    return named


def _wsl(tree: Tree) -> Found | None:
    mark = wsl_mark(tree)
    return Found("hyperv", f"file {mark}") if mark else None


def _hyperv(tree: Tree) -> Found | None:
    vendor, product = (tree.read_line(f"{_DMI}/{name}") for name in ("sys_vendor", "product_name"))
    virtual = vendor == "Microsoft Corporation" and product == "Virtual Machine"
    return Found("hyperv", f"file {_DMI}/product_name") if virtual else None


def _dmi(tree: Tree) -> Found | None:
    if ".metal" in (tree.read_line(f"{_DMI}/product_name") or ""):
        return Found("none", f"file {_DMI}/product_name")
    for field in ("product_name", "sys_vendor", "board_vendor", "bios_vendor"):
        text = tree.read_line(f"{_DMI}/{field}") or ""
        name = next((name for start, name in _DMI_NAMES if text.startswith(start)), None)
        if name == "qemu" and "kvm-clock" in (tree.read_line(_CLOCK_FILE) or ""):
            return Found("kvm", f"file {_CLOCK_FILE}")
        if name:
            return Found(name, f"file {_DMI}/{field}")
    return None


def _xen(tree: Tree) -> Found | None:
    kind = tree.read_line("/sys/hypervisor/type")
    return Found(kind, "file /sys/hypervisor/type") if kind == "xen" else None


def _firecracker(tree: Tree) -> Found | None:
    """Whether this is Firecracker, which has no DMI; its ACPI tables name it, and its guests have a typical command
    line.
    """
    table = tree.read_bytes("/sys/firmware/acpi/tables/DSDT", 64) or b""
    if table[10:16] == _FIRECRACKER_OEM:
        return Found("firecracker", "file /sys/firmware/acpi/tables/DSDT")
    line = tree.read_line("/proc/cmdline") or ""
    virtio = "virtio_mmio.device=" in line or "pci=off" in line
    if "firecracker" in line or (virtio and set(line.split()) >= _FIRECRACKER_BOOT):
        return Found("firecracker", "file /proc/cmdline")
    return None


def _clock(tree: Tree) -> Found | None:
    clocks = tree.read_line(_CLOCK_FILE) or ""
    name = next((name for clock, name in _CLOCKS if clock in clocks), None)
    return Found(name, f"file {_CLOCK_FILE}") if name else None


def _tree(tree: Tree) -> Found | None:
    """The hypervisor in the device tree, which has no such node on bare metal."""
    kind = tree.read_line("/proc/device-tree/hypervisor/compatible")
    place = "file /proc/device-tree/hypervisor/compatible"
    if kind:
        known = (("kvm", "kvm"), ("xen", "xen"), ("vmware", "vmware"))
        return Found(next((name for mark, name in known if mark in kind), "other"), place)
    return Found("none", "file /proc/device-tree") if tree.lexists("/proc/device-tree/compatible") else None
