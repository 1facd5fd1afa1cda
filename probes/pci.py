"""NVIDIA devices on the PCI bus, as the kernel enumerated them: GPUs and NVSwitches."""

from __future__ import annotations

import os
import re
import struct
from typing import Any

from .common.lazy import lazy_pattern
from .common.out import Out
from .common.record import Found, record
from .common.system import is_gvisor, tegra_mark, wsl_mark
from .common.tree import Tree, refused
from .machine.hardware import listed_numbers, own_processors

PROBE = {
    "title": "NVIDIA devices on the PCI bus",
    "early": True,
    "seconds": 10.0,
    "fills": [
        "gpus.items", "gpus.complete", "gpus.pci_bus_id", "gpus.pci_device_id", "gpus.kernel_driver", "gpus.excluded",
        "gpus.minor", "gpus.numa_node", "gpus.processors_near", "gpus.pcie.generation_max", "gpus.pcie.width_max",
        "gpus.pcie.iommu", "gpus.pcie.redirecting", "gpus.adapters", "fabric.nvswitches", "fabric.manager_running",
    ],
}  # fmt: skip

_DEVICES = "/sys/bus/pci/devices"
_DRIVER, _ADAPTERS, _ROOTS = "/proc/driver/nvidia/gpus", "/sys/class/infiniband", "/sys/devices"
_ADDRESS = lazy_pattern(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

_NVIDIA = 0x10DE
_DISPLAY_CLASS = 0x03  # Of display controllers: VGA (0x0300) and, for GPUs without outputs, 3D controllers (0x0302)
_BRIDGE_CLASS = 0x0680
_FIRST_NVSWITCH = 0x1000  # NVIDIA's mainboard chips of the 2000s have the NVSwitch's class and smaller device numbers

_EMULATED_VENDOR = 0x1B36  # QEMU's ports report made-up speeds

_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}  # By 10⁹ transfers per second
_MAX_WIDTH = 32

_MANAGER = "nv-fabricmanage"  # The kernel keeps 15 characters of the name nv-fabricmanager


def collect(tree: Tree, out: Out) -> None:
    """Send the ``gpus`` found on the bus, and ``fabric``."""
    names = tree.list_names(_DEVICES)
    buses = tree.list_names("/sys/bus")
    if names is None and buses and "pci" not in buses:
        names = []  # sysfs knows of no PCI bus at all
    vendors = {name: tree.read_int(f"{_DEVICES}/{name}/vendor") for name in names or ()}
    ours = [(name, tree.read_int(f"{_DEVICES}/{name}/class")) for name, vendor in vendors.items() if vendor == _NVIDIA]
    displays = (name for name, kind in ours if kind is not None and kind >> 16 == _DISPLAY_CLASS)
    # A virtual function on its host is a share of a GPU, meant for a guest.
    gpus = [_gpu(tree, name) for name in displays if not tree.lexists(f"{_DEVICES}/{name}/physfn")]
    seen = {gpu["pci_bus_id"] for gpu in gpus}
    by_driver = [name for name in tree.list_names(_DRIVER) or () if _ADDRESS.fullmatch(name) and name not in seen]
    gpus += [record(pci_bus_id=Found(name, "procfs"), **_by_driver(tree, name)) for name in by_driver]
    if names is not None or gpus:
        read = None not in vendors.values() and all(kind is not None for _, kind in ours)
        elsewhere = wsl_mark(tree) or tegra_mark(tree) or is_gvisor(tree)
        complete = names is not None and read and not elsewhere
        out.fact({"gpus": {"items": gpus, "complete": complete}})
    bridges = [name for name, kind in ours if kind is not None and kind >> 8 == _BRIDGE_CLASS]
    if fabric := _fabric(tree, bridges if names is not None else None, has_gpus=bool(gpus)):
        out.fact({"fabric": fabric})
    tree.report_unreadable(out)
    if not ours and not gpus:
        out.absent("no NVIDIA device on the PCI bus")


def _fabric(tree: Tree, bridges: list[str] | None, *, has_gpus: bool) -> dict[str, Any]:
    """The NVSwitches, and whether the fabric manager is among the processes; unknown where others' are hidden."""
    numbers = [tree.read_int(f"{_DEVICES}/{name}/device") or 0 for name in bridges or ()]
    switches = sum(number >= _FIRST_NVSWITCH for number in numbers)
    manager = None
    if has_gpus or switches:
        oldest_first = sorted(filter(str.isdigit, tree.list_names("/proc") or ()), key=int)[:50_000]
        found = any(tree.read_line(f"/proc/{name}/comm") == _MANAGER for name in oldest_first)
        manager = Found(found if found or tree.read_line("/proc/1/comm") is not None else None, "procfs")
    return record(nvswitches=Found(switches, "sysfs") if bridges is not None else None, manager_running=manager)


def _gpu(tree: Tree, name: str) -> dict[str, Any]:
    place = f"{_DEVICES}/{name}"
    node, real = tree.read_int(f"{place}/numa_node"), tree.resolve(place)
    near, own = listed_numbers(tree.read_line(f"{place}/local_cpulist")), own_processors(tree)
    gpu = record(
        pci_bus_id=Found(name, "sysfs"),
        pci_device_id=_ids(tree, place, "vendor", "device"),
        pci_subsystem_id=_ids(tree, place, "subsystem_vendor", "subsystem_device"),
        kernel_driver=Found(_bound_driver(tree, place), "sysfs"),
        numa_node=Found(node, "sysfs") if node is not None and node >= 0 else None,
        processors_near=Found(len(near & own), "sysfs") if near and own else None,
        adapters=_adapters(tree, real, node),
        **_by_driver(tree, name),
    )
    device_generation, device_width = _generation(tree, place, "max"), _width(tree, place, "max")
    port = os.path.dirname(real) if real else None
    vendor = tree.read_int(f"{port}/vendor") if port else None
    if vendor in (None, _EMULATED_VENDOR):
        port = None  # it hangs on a root bus, as in many guests
    port_generation = _generation(tree, port, "max") if port else None
    port_width = _width(tree, port, "max") if port else None
    fields = {
        "generation": _generation(tree, place, "current"),
        "generation_max": _least_known(device_generation, port_generation),
        "generation_device_max": device_generation,
        "width": _width(tree, place, "current"),
        "width_max": _least_known(device_width, port_width),
        "upstream_generation_max": port_generation,
        "upstream_width_max": port_width,
    }
    known = {name: value for name, value in fields.items() if value is not None}
    gpu["pcie"] = {"source": "sysfs", **known, **isolation(tree, place)}
    return gpu


def _adapters(tree: Tree, real: str | None, node: int | None) -> Found | None:
    """What a GPU shares with each network adapter that has RDMA, by the nesting in sysfs and the NUMA nodes."""
    found = {}
    for name in tree.list_names(_ADAPTERS) or () if real else ():
        place = tree.resolve(f"{_ADAPTERS}/{name}/device")
        if real and place:
            shared = len(os.path.commonpath((real, place)).split("/")) - len(_ROOTS.split("/"))
            near = node is not None and node >= 0 and node == tree.read_int(f"{place}/numa_node")
            found[name] = "switch" if shared > 1 else "root" if shared else "node" if near else "far"
    return Found(found, f"file {_ADAPTERS}") if found else None


def _bound_driver(tree: Tree, place: str) -> str | None:
    """Name of the kernel driver that has the device; empty text for none."""
    try:
        return os.path.basename(os.readlink(tree.place(f"{place}/driver", follow=False)))
    except FileNotFoundError:
        return ""
    except OSError as error:
        refused(f"{place}/driver", error)
        return None


def _ids(tree: Tree, place: str, vendor: str, device: str) -> Found | None:
    numbers = [tree.read_int(f"{place}/{field}") for field in (vendor, device)]
    known = [number for number in numbers if number is not None]
    return Found(":".join(f"{number:04x}" for number in known), "sysfs") if len(known) == 2 else None


def _by_driver(tree: Tree, name: str) -> dict[str, Found]:
    """What the kernel driver says of the GPU; it writes ``?`` and ``N/A`` for what it does not know yet."""
    text = tree.read_text(f"{_DRIVER}/{name}/information", 4096) or ""
    stated = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    known = {key: value for key, value in stated.items() if value and "?" not in value and value != "N/A"}
    fields: dict[str, Any] = {
        "name": known.get("Model"),
        "uuid": known.get("GPU UUID"),
        "vbios": known["Video BIOS"].upper() if "Video BIOS" in known else None,  # as NVML writes it
        "gsp_firmware": known.get("GPU Firmware"),
        "excluded": known["GPU Excluded"] == "Yes" if "GPU Excluded" in known else None,
        "minor": int(known["Device Minor"]) if re.fullmatch("[0-9]{1,9}", known.get("Device Minor", "")) else None,
    }
    return {field: Found(value, "procfs") for field, value in fields.items()}


def _least_known(*both: int | None) -> int | None:
    known = [value for value in both if value is not None]
    return min(known) if len(known) == len(both) else None


def _generation(tree: Tree, place: str, which: str) -> int | None:
    match = re.match(r"(\d+(?:\.\d+)?) GT/s", tree.read_line(f"{place}/{which}_link_speed") or "")
    return _GENERATIONS.get(float(match.group(1))) if match else None


def _width(tree: Tree, place: str, which: str) -> int | None:
    width = tree.read_int(f"{place}/{which}_link_width")
    return width if width and 0 < width <= _MAX_WIDTH else None


_CONFIG_OF_USERS = 64  # Bytes of the configuration space that the kernel shows to users other than root

_FIRST_EXTENDED = 0x100
_ACS = 0x000D  # Number of the extended capability Access Control Services in the PCI Express Base Specification
_ACS_CONTROL = 6
_REDIRECTS = 0b1100  # Bits of its control register: P2P Request Redirect and P2P Completion Redirect
_MOST_CAPABILITIES = 64


def isolation(tree: Tree, place: str) -> dict[str, Any]:
    """``iommu`` and ``redirecting`` of a ``Pcie``, as far as they can be read, of the device at ``place`` in sysfs."""
    found: dict[str, Any] = {}
    group = f"{place}/iommu_group"
    if tree.lexists(group):
        treated = tree.read_line(f"{tree.resolve(group)}/type")
    else:
        treated = "" if tree.list_names(place) else None
    if treated is not None:
        found["iommu"] = treated
    # The bridges between the root and the device, by the nesting in sysfs; traffic at the root port has arrived.
    ports: list[str] = []
    above = os.path.dirname(tree.resolve(place) or "")
    while _ADDRESS.fullmatch(os.path.basename(above)):
        ports.insert(0, above)
        above = os.path.dirname(above)
    ports = ports[1:]
    states = [_redirects(tree, port) for port in ports]
    if None not in states:
        found["redirecting"] = [os.path.basename(port) for port, state in zip(ports, states) if state]
    return found


def _redirects(tree: Tree, port: str) -> bool | None:
    """Whether a port redirects traffic between devices to the root; None if its registers cannot be read."""
    data = tree.read_bytes(f"{port}/config", 4096)
    if data is None or len(data) <= _CONFIG_OF_USERS:
        return None
    at = _FIRST_EXTENDED
    for _ in range(_MOST_CAPABILITIES):
        if at < _FIRST_EXTENDED or at + 8 > len(data):
            return False
        (header,) = struct.unpack_from("<I", data, at)
        if header & 0xFFFF == _ACS:
            (control,) = struct.unpack_from("<H", data, at + _ACS_CONTROL)
            return bool(control & _REDIRECTS)
        at = header >> 20
    return False
