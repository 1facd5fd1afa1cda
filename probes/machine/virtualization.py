"""Which hypervisor this machine runs on, as far as files tell (no CPUID instruction from here)."""

from __future__ import annotations

from collections.abc import Callable

from ..kit.reading import Request, exists, read_bytes, read_line, read_text
from ..kit.record import Found
from ..kit.system import is_gvisor, wsl_mark

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
"""How the product, vendor, board or BIOS names of virtual machines start."""

_CLOCKS = (("kvm-clock", "kvm"), ("hyperv_clocksource", "hyperv"), ("xen", "xen"))
_CLOCK_FILE = "/sys/devices/system/clocksource/clocksource0/available_clocksource"

_FIRECRACKER_OEM = b"FIRECK"
_FIRECRACKER_BOOT = {"reboot=k", "panic=1"}


def virtualization(request: Request, flags: frozenset[str] | None) -> Found | None:
    """The hypervisor; ``none`` on bare metal, ``other`` when one is there but not known, None when nothing tells.

    ``flags`` are those of an x86 processor, whose ``hypervisor`` decides whether there is one.
    """
    if is_gvisor(request):
        return Found("gvisor", "file /proc/version")
    if "control_d" in (read_text(request, "/proc/xen/capabilities", 4096) or ""):
        return Found("none", "file /proc/xen/capabilities")
    if flags is not None and "hypervisor" not in flags:
        return Found("none", "file /proc/cpuinfo")
    steps: tuple[Callable[[Request], Found | None], ...] = (_wsl, _hyperv, _dmi, _xen, _firecracker, _clock, _tree)
    named = next((found for step in steps if (found := step(request))), None)
    if named is None and flags is not None:
        return Found("other", "file /proc/cpuinfo")
    return named


def _wsl(request: Request) -> Found | None:
    mark = wsl_mark(request)
    return Found("hyperv", f"file {mark}") if mark else None


def _hyperv(request: Request) -> Found | None:
    vendor, product = (read_line(request, f"{_DMI}/{name}") for name in ("sys_vendor", "product_name"))
    virtual = vendor == "Microsoft Corporation" and product == "Virtual Machine"
    return Found("hyperv", f"file {_DMI}/product_name") if virtual else None


def _dmi(request: Request) -> Found | None:
    if ".metal" in (read_line(request, f"{_DMI}/product_name") or ""):
        return Found("none", f"file {_DMI}/product_name")
    for field in ("product_name", "sys_vendor", "board_vendor", "bios_vendor"):
        text = read_line(request, f"{_DMI}/{field}") or ""
        name = next((name for start, name in _DMI_NAMES if text.startswith(start)), None)
        if name == "qemu" and "kvm-clock" in (read_line(request, _CLOCK_FILE) or ""):
            return Found("kvm", f"file {_CLOCK_FILE}")
        if name:
            return Found(name, f"file {_DMI}/{field}")
    return None


def _xen(request: Request) -> Found | None:
    kind = read_line(request, "/sys/hypervisor/type")
    return Found(kind, "file /sys/hypervisor/type") if kind == "xen" else None


def _firecracker(request: Request) -> Found | None:
    """Firecracker has no DMI; its ACPI tables name it, and its guests are booted with a command line of their own."""
    table = read_bytes(request, "/sys/firmware/acpi/tables/DSDT", 64) or b""
    if table[10:16] == _FIRECRACKER_OEM:
        return Found("firecracker", "file /sys/firmware/acpi/tables/DSDT")
    line = read_line(request, "/proc/cmdline") or ""
    virtio = "virtio_mmio.device=" in line or "pci=off" in line
    if "firecracker" in line or (virtio and set(line.split()) >= _FIRECRACKER_BOOT):
        return Found("firecracker", "file /proc/cmdline")
    return None


def _clock(request: Request) -> Found | None:
    clocks = read_line(request, _CLOCK_FILE) or ""
    name = next((name for clock, name in _CLOCKS if clock in clocks), None)
    return Found(name, f"file {_CLOCK_FILE}") if name else None


def _tree(request: Request) -> Found | None:
    """A device tree names the hypervisor, and has no such node on bare metal."""
    kind = read_line(request, "/proc/device-tree/hypervisor/compatible")
    place = "file /proc/device-tree/hypervisor/compatible"
    if kind:
        known = (("kvm", "kvm"), ("xen", "xen"), ("vmware", "vmware"))
        return Found(next((name for mark, name in known if mark in kind), "other"), place)
    return Found("none", "file /proc/device-tree") if exists(request, "/proc/device-tree/compatible") else None
