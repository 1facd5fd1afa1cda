"""The PCI probe, on made-up trees and on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from envcheck.snapshot import Fabric, Gpu, Listing, Snapshot

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


@pytest.mark.parametrize("speed", ["Unknown\n", "", "fast\n", "7.0 GT/s PCIe\n"])
@pytest.mark.parametrize("width", ["0\n", "255\n", "", "wide\n"])
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


@pytest.mark.parametrize("name", ["wsl2", "jetson-orin"])
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


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        (device("0000:07:00.0", "0x10de\n", "0x22a3\n", "0x068000\n"), 1),
        (device("0000:00:0a.0", "0x10de\n", "0x0057\n", "0x068000\n"), 0),  # the Ethernet bridge of an nForce4 board
        (device("0000:07:00.0", "0x15b3\n", "0x22a3\n", "0x068000\n"), 0),
    ],
)
def test_nvswitches(run_probe: RunProbe, build_root: BuildRoot, changes: Mapping[str, str], count: int) -> None:
    snapshot, _ = run_probe("pci", {"root": build_root(None, changes)})
    assert snapshot.fabric
    assert snapshot.fabric.nvswitches == count


@pytest.mark.parametrize(
    ("changes", "running"),
    [
        ({"/proc/2417/comm": "bash\n"}, False),
        ({"/proc/2417/comm": None, "/proc/1/comm": None}, None),  # the processes of others are hidden
    ],
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
