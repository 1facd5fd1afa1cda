"""The PCI probe, on made-up trees and on this machine, and what isolates a GPU from its peers."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from envcheck.model.snapshot import Fabric, Gpu, Listing, Pcie, Snapshot
from tests.every import cases

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
BuildRoot = Callable[..., str]

BUS = "/sys/bus/pci/devices"
CARD = "/sys/devices/pci0000:15/0000:15:01.0/0000:1b:00.0"
PORT = "/sys/devices/pci0000:15/0000:15:01.0"


def look(run_probe: RunProbe, root: str) -> Listing[Gpu]:
    snapshot, _ = run_probe("pci", {"root": root})
    assert snapshot.gpus
    return snapshot.gpus


def one(run_probe: RunProbe, root: str) -> Gpu:
    (gpu,) = look(run_probe, root).items
    return gpu


def device(name: str, vendor: str, number: str, kind: str) -> dict[str, str]:
    return {f"{BUS}/{name}/vendor": vendor, f"{BUS}/{name}/device": number, f"{BUS}/{name}/class": kind}


def test_h200_under_a_port(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, done = run_probe("pci", {"root": build_root("ubuntu-580-open")})
    assert done["status"] == "ok"
    assert snapshot.gpus
    assert snapshot.gpus.complete is True
    (gpu,) = snapshot.gpus.items
    assert (gpu.pci_bus_id, gpu.pci_device_id) == ("0000:1b:00.0", "10de:2335")
    assert (gpu.pci_subsystem_id, gpu.kernel_driver, gpu.numa_node, gpu.minor) == ("10de:18be", "nvidia", 0, 0)
    assert (gpu.name, gpu.uuid) == ("NVIDIA H200", "GPU-0a1b2c3d-0000-1111-2222-333344445555")
    assert (gpu.vbios, gpu.gsp_firmware) == ("96.00.CF.00.01", "580.159.04")
    assert gpu.source_of("minor") == "procfs"
    assert gpu.source_of("pci_device_id") == "sysfs"
    pcie = gpu.pcie
    assert pcie
    assert (pcie.generation, pcie.generation_device_max, pcie.upstream_generation_max, pcie.generation_max) == (
        1,
        5,
        5,
        5,
    )
    assert (pcie.width, pcie.width_max, pcie.upstream_width_max) == (16, 16, 16)
    assert snapshot.fabric == Fabric(
        source="sysfs", read={"manager_running": "procfs"}, nvswitches=1, manager_running=True
    )


def test_slower_port_bounds_what_both_can_do(run_probe: RunProbe, build_root: BuildRoot) -> None:
    slow = {f"{PORT}/max_link_speed": "8 GT/s\n", f"{PORT}/max_link_width": "8\n", f"{CARD}/current_link_width": "8\n"}
    pcie = one(run_probe, build_root("ubuntu-580-open", slow)).pcie
    assert pcie
    assert (pcie.generation_max, pcie.generation_device_max, pcie.upstream_generation_max) == (3, 5, 3)
    assert (pcie.width, pcie.width_max, pcie.upstream_width_max) == (8, 8, 8)


def test_port_made_by_qemu_says_nothing(run_probe: RunProbe, build_root: BuildRoot) -> None:
    pcie = one(run_probe, build_root("ubuntu-580-open", {f"{PORT}/vendor": "0x1b36\n"})).pcie
    assert pcie
    assert (pcie.upstream_generation_max, pcie.generation_max, pcie.generation_device_max) == (None, None, 5)


@cases("speed", "Unknown\n", "", "fast\n", "7.0 GT/s PCIe\n")
@cases("width", "0\n", "255\n", "", "wide\n")
def test_unknown_link_values_are_left_out(run_probe: RunProbe, build_root: BuildRoot, speed: str, width: str) -> None:
    unknown = {f"{CARD}/current_link_speed": speed, f"{CARD}/current_link_width": width}
    pcie = one(run_probe, build_root("ubuntu-580-open", unknown)).pcie
    assert pcie
    assert (pcie.generation, pcie.width) == (None, None)


def test_container_with_no_gpu_on_the_bus(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, done = run_probe("pci", {"root": build_root("debian-container")})
    assert done["status"] == "absent"
    assert (snapshot.gpus, snapshot.fabric) == (Listing(items=(), complete=True), Fabric(source="sysfs", nvswitches=0))


def test_audio_function_is_no_gpu(run_probe: RunProbe, build_root: BuildRoot) -> None:
    gpu = one(run_probe, build_root("nouveau"))
    assert (gpu.pci_bus_id, gpu.kernel_driver, gpu.numa_node) == ("0000:01:00.0", "nouveau", None)


def test_gpu_without_a_driver_has_the_empty_one(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert one(run_probe, build_root("secure-boot")).kernel_driver == ""


def test_question_marks_of_the_driver_are_no_values(run_probe: RunProbe, build_root: BuildRoot) -> None:
    gpu = one(run_probe, build_root("rhel"))
    assert (gpu.uuid, gpu.vbios, gpu.gsp_firmware) == (None, None, None)
    assert (gpu.name, gpu.minor) == ("NVIDIA A100-SXM4-80GB", 3)


@cases("name", "wsl2", "jetson-orin")
def test_bus_does_not_show_every_gpu_on_wsl_and_tegra(run_probe: RunProbe, build_root: BuildRoot, name: str) -> None:
    assert look(run_probe, build_root(name)) == Listing(items=(), complete=False)


def test_gvisor_shows_what_it_likes(run_probe: RunProbe, build_root: BuildRoot) -> None:
    root = build_root("debian-container", {"/proc/version": "Linux version 4.19.0-gvisor #1 SMP\n"})
    assert look(run_probe, root).complete is False


def test_system_without_a_pci_bus_has_no_gpu(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert look(run_probe, build_root(None, {"/sys/bus/platform/": ""})) == Listing(items=(), complete=True)


def test_nobody_looked_without_sysfs(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, _ = run_probe("pci", {"root": build_root()})
    assert snapshot.gpus is None
    assert snapshot.fabric is None


def test_gpu_told_by_the_driver_alone(run_probe: RunProbe, build_root: BuildRoot) -> None:
    told = ("Model: \t\t NVIDIA L4", "GPU UUID: \t GPU-11111111-2222-3333-4444-555555555555", "Device Minor: \t 2")
    text = "\n".join((*told, "GPU Excluded:\t Yes\n"))
    gpus = look(run_probe, build_root(None, {"/proc/driver/nvidia/gpus/0000:00:04.0/information": text}))
    assert gpus.complete is False
    (gpu,) = gpus.items
    assert (gpu.pci_bus_id, gpu.name, gpu.minor, gpu.excluded) == ("0000:00:04.0", "NVIDIA L4", 2, True)


def test_device_that_cannot_be_read_leaves_the_list_open(run_probe: RunProbe, build_root: BuildRoot) -> None:
    gpus = look(run_probe, build_root("nouveau", {f"{BUS}/0000:02:00.0/class": "0x030000\n"}))
    assert (len(gpus.items), gpus.complete) == (1, False)


def test_virtual_functions_on_their_host_are_no_gpus(run_probe: RunProbe, build_root: BuildRoot) -> None:
    function = device("0000:1b:00.4", "0x10de\n", "0x2335\n", "0x030200\n")
    root = build_root("ubuntu-580-open", {**function, f"{BUS}/0000:1b:00.4/physfn": "-> ../0000:1b:00.0"})
    assert len(look(run_probe, root).items) == 1


@cases(
    "changes, count",
    (device("0000:07:00.0", "0x10de\n", "0x22a3\n", "0x068000\n"), 1),
    (device("0000:00:0a.0", "0x10de\n", "0x0057\n", "0x068000\n"), 0),  # the Ethernet bridge of an nForce4 board
    (device("0000:07:00.0", "0x15b3\n", "0x22a3\n", "0x068000\n"), 0),
)
def test_nvswitches(run_probe: RunProbe, build_root: BuildRoot, changes: Mapping[str, str], count: int) -> None:
    snapshot, _ = run_probe("pci", {"root": build_root(None, changes)})
    assert snapshot.fabric
    assert snapshot.fabric.nvswitches == count


@cases(
    "changes, running",
    ({"/proc/2417/comm": "bash\n"}, False),
    ({"/proc/2417/comm": None, "/proc/1/comm": None}, None),  # the processes of others are hidden
)
def test_fabric_manager_that_is_not_seen(
    run_probe: RunProbe, build_root: BuildRoot, *, changes: Mapping[str, str | None], running: bool | None
) -> None:
    snapshot, _ = run_probe("pci", {"root": build_root("ubuntu-580-open", changes)})
    assert snapshot.fabric
    assert snapshot.fabric.manager_running is running


def test_hostile_device_files(run_probe: RunProbe, build_root: BuildRoot) -> None:
    bad = {
        f"{CARD}/numa_node": b"\xff\xfe",
        f"{CARD}/subsystem_device": b"\x1b[2J",
        f"{CARD}/max_link_speed": "-> max_link_speed",
    }
    gpu = one(run_probe, build_root("ubuntu-580-open", bad))
    assert (gpu.pci_device_id, gpu.pci_subsystem_id, gpu.numa_node) == ("10de:2335", None, None)


def test_this_machine(run_probe: RunProbe) -> None:
    snapshot, _ = run_probe("pci", {"root": "/"})
    folder = Path("/sys/bus/pci/devices")
    if not folder.is_dir():
        pytest.skip("this machine has no PCI bus")
    shown = [
        place.name
        for place in sorted(folder.iterdir())
        if (place / "vendor").read_text(encoding="ascii").strip() == "0x10de"
        and (place / "class").read_text(encoding="ascii").startswith("0x03")
        and not (place / "physfn").exists()
    ]
    assert snapshot.gpus
    assert [gpu.pci_bus_id for gpu in snapshot.gpus.items][: len(shown)] == shown


# --- IOMMU and Access Control Services between a GPU and its peers, on made-up trees --------------------------------

ROOT_PORT = "/sys/devices/pci0000:15/0000:15:01.0"
SWITCH_PORT = f"{ROOT_PORT}/0000:16:00.0"
LAST_PORT = f"{SWITCH_PORT}/0000:17:08.0"
CARD_ISOLATION = f"{LAST_PORT}/0000:1b:00.0"

AER, ACS = 0x0001, 0x000D
SOURCE_VALIDATION, REDIRECT, UPSTREAM = 0b1, 0b1100, 0b10000


def config(*capabilities: tuple[int, int], size: int = 4096, loop: bool = False) -> bytes:
    """A configuration space with extended capabilities, each with what stands in its control register."""
    data = bytearray(4096)
    for number, (kind, control) in enumerate(capabilities):
        at = 0x100 + 0x40 * number
        last = number == len(capabilities) - 1
        following = (0x100 if loop else 0) if last else at + 0x40
        struct.pack_into("<IHH", data, at, following << 20 | 1 << 16 | kind, 0, control)
    return bytes(data[:size])


def pcie(run_probe: RunProbe, build_root: BuildRoot, **places: str | bytes | None) -> Pcie:
    tree: dict[str, str | bytes | None] = {
        f"{CARD_ISOLATION}/vendor": "0x10de",
        f"{CARD_ISOLATION}/device": "0x2335",
        f"{CARD_ISOLATION}/class": "0x030200",
        f"{BUS}/0000:1b:00.0": f"-> ../../../..{CARD_ISOLATION}",
        f"{ROOT_PORT}/config": places.get("root_port", config((AER, 0))),
        f"{SWITCH_PORT}/config": places.get("switch_port", config((AER, 0))),
        f"{LAST_PORT}/config": places.get("last_port", config((AER, 0))),
    }
    kind = places.get("iommu")
    if kind is not None:
        tree[f"{CARD_ISOLATION}/iommu_group"] = "-> /sys/kernel/iommu_groups/12"
        tree["/sys/kernel/iommu_groups/12/type"] = kind
    snapshot, _ = run_probe("pci", {"root": build_root(None, tree)})
    assert snapshot.gpus
    (gpu,) = snapshot.gpus.items
    assert gpu.pcie
    return gpu.pcie


@cases("kind", "DMA-FQ", "DMA", "identity")
def test_how_the_iommu_treats_the_gpu(run_probe: RunProbe, build_root: BuildRoot, kind: str) -> None:
    found = pcie(run_probe, build_root, iommu=f"{kind}\n")
    assert found.iommu == kind
    assert found.source_of("iommu") == "sysfs"


def test_no_group_is_no_iommu(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert pcie(run_probe, build_root).iommu == ""


def test_ports_that_redirect_are_named_from_the_root(run_probe: RunProbe, build_root: BuildRoot) -> None:
    acs = config((AER, 0), (ACS, SOURCE_VALIDATION | REDIRECT | UPSTREAM))
    found = pcie(run_probe, build_root, root_port=acs, switch_port=acs, last_port=acs)
    assert found.redirecting == ("0000:16:00.0", "0000:17:08.0")


def test_a_root_port_is_at_the_root_already(run_probe: RunProbe, build_root: BuildRoot) -> None:
    assert pcie(run_probe, build_root, root_port=config((ACS, REDIRECT), size=64)).redirecting == ()


def test_acs_without_redirection_lets_peers_through(run_probe: RunProbe, build_root: BuildRoot) -> None:
    acs = config((ACS, SOURCE_VALIDATION | UPSTREAM))
    assert pcie(run_probe, build_root, switch_port=acs, last_port=acs).redirecting == ()


@cases("hidden", "switch_port", "last_port")
def test_registers_that_only_root_may_read_leave_it_open(
    run_probe: RunProbe, build_root: BuildRoot, hidden: str
) -> None:
    assert pcie(run_probe, build_root, **{hidden: config((ACS, REDIRECT), size=64)}).redirecting is None


@cases(
    "data",
    config((AER, 0), (AER, 0), loop=True),
    config((ACS, REDIRECT), size=0x104),
    bytes([0xFF]) * 4096,
    bytes(256),
    ids=["a loop", "cut off", "a device that is gone", "no extended space"],
)
def test_damaged_registers_name_no_port(run_probe: RunProbe, build_root: BuildRoot, data: bytes) -> None:
    assert pcie(run_probe, build_root, switch_port=data).redirecting == ()
