"""The PCI probe, on made-up trees and on this machine, and what isolates a GPU from its peers."""

import struct
from pathlib import Path

import pytest

from envcheck.model.snapshot import Fabric, Gpu, Listing, Pcie
from tests.every import cases
from tests.known import Expected, fields, known
from tests.probes.conftest import BuildRoot, Changes, Probed, RunProbe

BUS = "/sys/bus/pci/devices"
CARD = "/sys/devices/pci0000:15/0000:15:01.0/0000:1b:00.0"
PORT = "/sys/devices/pci0000:15/0000:15:01.0"
UUID = "GPU-11111111-2222-3333-4444-555555555555"
TOLD = f"Model: \t\t NVIDIA L4\nGPU UUID: \t {UUID}\nDevice Minor: \t 2\nGPU Excluded:\t Yes\n"


def look(probed: Probed, tree: str | None, changes: Changes | None = None) -> Listing[Gpu]:
    return known(probed("pci", tree, changes).gpus)


def one(probed: Probed, tree: str | None, changes: Changes | None = None) -> Gpu:
    (gpu,) = look(probed, tree, changes).items
    return gpu


def device(name: str, vendor: str, number: str, kind: str) -> dict[str, str]:
    return {f"{BUS}/{name}/vendor": vendor, f"{BUS}/{name}/device": number, f"{BUS}/{name}/class": kind}


FUNCTION = {
    **device("0000:1b:00.4", "0x10de\n", "0x2335\n", "0x030200\n"),
    f"{BUS}/0000:1b:00.4/physfn": "-> ../0000:1b:00.0",
}


@cases("near, expected", ("0-7,32-39\n", 3), ("8-15\n", 0), ("", None))
def test_processors_beside_a_gpu(
    probed: Probed, monkeypatch: pytest.MonkeyPatch, near: str, expected: int | None
) -> None:
    monkeypatch.setattr("probes.pci.own_processors", lambda _tree: {0, 1, 32})
    assert one(probed, "ubuntu-580-open", {f"{CARD}/local_cpulist": near}).processors_near == expected


@cases("tree, status, complete", ("ubuntu-580-open", "ok", True), ("debian-container", "absent", True))
def test_status(run_probe: RunProbe, build_root: BuildRoot, tree: str, status: str, *, complete: bool) -> None:
    snapshot, done = run_probe("pci", {"root": build_root(tree)})
    assert (done["status"], known(snapshot.gpus).complete) == (status, complete)


@cases("about, tree, changes, expected",
    ("an H200 under a port", "ubuntu-580-open", {},
     {"pci_bus_id": "0000:1b:00.0", "pci_device_id": "10de:2335", "pci_subsystem_id": "10de:18be",
      "kernel_driver": "nvidia", "numa_node": 0, "minor": 0, "name": "NVIDIA H200",
      "uuid": "GPU-0a1b2c3d-0000-1111-2222-333344445555", "vbios": "96.00.CF.00.01", "gsp_firmware": "580.159.04",
      "source_of.minor": "procfs", "source_of.pci_device_id": "sysfs", "pcie.generation": 1,
      "pcie.generation_device_max": 5, "pcie.upstream_generation_max": 5, "pcie.generation_max": 5, "pcie.width": 16,
      "pcie.width_max": 16, "pcie.upstream_width_max": 16}),
    ("a slower port bounds what both can do", "ubuntu-580-open",
     {f"{PORT}/max_link_speed": "8 GT/s\n", f"{PORT}/max_link_width": "8\n", f"{CARD}/current_link_width": "8\n"},
     {"pcie.generation_max": 3, "pcie.generation_device_max": 5, "pcie.upstream_generation_max": 3, "pcie.width": 8,
      "pcie.width_max": 8, "pcie.upstream_width_max": 8}),
    ("a port made by QEMU says nothing", "ubuntu-580-open", {f"{PORT}/vendor": "0x1b36\n"},
     {"pcie.upstream_generation_max": None, "pcie.generation_max": None, "pcie.generation_device_max": 5}),
    ("an audio function is no GPU", "nouveau", {},
     {"pci_bus_id": "0000:01:00.0", "kernel_driver": "nouveau", "numa_node": None}),
    ("a GPU without a driver has the empty one", "secure-boot", {}, {"kernel_driver": ""}),
    ("question marks of the driver are no values", "rhel", {},
     {"uuid": None, "vbios": None, "gsp_firmware": None, "name": "NVIDIA A100-SXM4-80GB", "minor": 3}),
    ("told by the driver alone", None, {"/proc/driver/nvidia/gpus/0000:00:04.0/information": TOLD},
     {"pci_bus_id": "0000:00:04.0", "name": "NVIDIA L4", "minor": 2, "excluded": True}),
    ("virtual functions on their host are no GPUs", "ubuntu-580-open", FUNCTION, {"pci_bus_id": "0000:1b:00.0"}),
    ("hostile files", "ubuntu-580-open",
     {f"{CARD}/numa_node": b"\xff\xfe", f"{CARD}/subsystem_device": b"\x1b[2J",
      f"{CARD}/max_link_speed": "-> max_link_speed"},
     {"pci_device_id": "10de:2335", "pci_subsystem_id": None, "numa_node": None}),
)  # fmt: skip
def test_the_only_gpu(probed: Probed, about: str, tree: str | None, changes: Changes, expected: Expected) -> None:
    assert fields(one(probed, tree, changes), expected) == expected


@cases("speed", "Unknown\n", "", "fast\n", "7.0 GT/s PCIe\n")
@cases("width", "0\n", "255\n", "", "wide\n")
def test_unknown_link_values_are_left_out(probed: Probed, speed: str, width: str) -> None:
    unknown = {f"{CARD}/current_link_speed": speed, f"{CARD}/current_link_width": width}
    pcie = known(one(probed, "ubuntu-580-open", unknown).pcie)
    assert (pcie.generation, pcie.width) == (None, None)


@cases("tree, changes, count, complete",
    ("debian-container", {}, 0, True),
    ("wsl2", {}, 0, False),  # the bus does not show every GPU
    ("jetson-orin", {}, 0, False),
    ("debian-container", {"/proc/version": "Linux version 4.19.0-gvisor #1 SMP\n"}, 0, False),  # shows what it likes
    (None, {"/sys/bus/platform/": ""}, 0, True),  # without a PCI bus
    (None, {"/proc/driver/nvidia/gpus/0000:00:04.0/information": TOLD}, 1, False),
    ("nouveau", {f"{BUS}/0000:02:00.0/class": "0x030000\n"}, 1, False),  # a device that cannot be read
)  # fmt: skip
def test_how_many(probed: Probed, tree: str | None, changes: Changes, count: int, *, complete: bool) -> None:
    gpus = look(probed, tree, changes)
    assert (len(gpus.items), gpus.complete) == (count, complete)


def test_nobody_looked_without_sysfs(probed: Probed) -> None:
    snapshot = probed("pci")
    assert (snapshot.gpus, snapshot.fabric) == (None, None)


@cases("tree, changes, expected",
    ("ubuntu-580-open", {}, Fabric(source="sysfs", read={"manager_running": "procfs"}, nvswitches=1,
                                   manager_running=True)),
    ("debian-container", {}, Fabric(source="sysfs", nvswitches=0)),
)  # fmt: skip
def test_fabric(probed: Probed, tree: str, changes: Changes, expected: Fabric) -> None:
    assert probed("pci", tree, changes).fabric == expected


@cases("changes, count",
    (device("0000:07:00.0", "0x10de\n", "0x22a3\n", "0x068000\n"), 1),
    (device("0000:00:0a.0", "0x10de\n", "0x0057\n", "0x068000\n"), 0),  # the Ethernet bridge of an nForce4 board
    (device("0000:07:00.0", "0x15b3\n", "0x22a3\n", "0x068000\n"), 0),
)  # fmt: skip
def test_nvswitches(probed: Probed, changes: Changes, count: int) -> None:
    assert known(probed("pci", None, changes).fabric).nvswitches == count


@cases("changes, running",
    ({"/proc/2417/comm": "bash\n"}, False),
    ({"/proc/2417/comm": None, "/proc/1/comm": None}, None),  # the processes of others are hidden
)  # fmt: skip
def test_fabric_manager_that_is_not_seen(probed: Probed, *, changes: Changes, running: bool | None) -> None:
    assert known(probed("pci", "ubuntu-580-open", changes).fabric).manager_running is running


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


def pcie(probed: Probed, **places: str | bytes | None) -> Pcie:
    tree: dict[str, str | bytes | None] = {
        f"{CARD_ISOLATION}/vendor": "0x10de", f"{CARD_ISOLATION}/device": "0x2335",
        f"{CARD_ISOLATION}/class": "0x030200", f"{BUS}/0000:1b:00.0": f"-> ../../../..{CARD_ISOLATION}",
        f"{ROOT_PORT}/config": places.get("root_port", config((AER, 0))),
        f"{SWITCH_PORT}/config": places.get("switch_port", config((AER, 0))),
        f"{LAST_PORT}/config": places.get("last_port", config((AER, 0))),
    }  # fmt: skip
    if places.get("iommu") is not None:
        tree[f"{CARD_ISOLATION}/iommu_group"] = "-> /sys/kernel/iommu_groups/12"
        tree["/sys/kernel/iommu_groups/12/type"] = places["iommu"]
    return known(one(probed, None, tree).pcie)


@cases("kind", "DMA-FQ", "DMA", "identity")
def test_how_the_iommu_treats_the_gpu(probed: Probed, kind: str) -> None:
    found = pcie(probed, iommu=f"{kind}\n")
    assert (found.iommu, found.source_of("iommu")) == (kind, "sysfs")


def test_no_group_is_no_iommu(probed: Probed) -> None:
    assert pcie(probed).iommu == ""


EVERYTHING = config((AER, 0), (ACS, SOURCE_VALIDATION | REDIRECT | UPSTREAM))
DIRECT = config((ACS, SOURCE_VALIDATION | UPSTREAM))
FOR_ROOT = config((ACS, REDIRECT), size=64)


@cases("about, places, redirecting",
    ("from the root", dict.fromkeys(("root_port", "switch_port", "last_port"), EVERYTHING),
     ("0000:16:00.0", "0000:17:08.0")),
    ("a root port is at the root already", {"root_port": FOR_ROOT}, ()),
    ("without redirection peers get through", {"switch_port": DIRECT, "last_port": DIRECT}, ()),
    ("registers that only root may read leave it open", {"switch_port": FOR_ROOT}, None),
    ("so do those of the last port", {"last_port": FOR_ROOT}, None),
    ("a loop", {"switch_port": config((AER, 0), (AER, 0), loop=True)}, ()),
    ("cut off", {"switch_port": config((ACS, REDIRECT), size=0x104)}, ()),
    ("a device that is gone", {"switch_port": bytes([0xFF]) * 4096}, ()),
    ("no extended space", {"switch_port": bytes(256)}, ()),
)  # fmt: skip
def test_ports_that_redirect(probed: Probed, about: str, places: Changes, redirecting: tuple[str, ...] | None) -> None:
    assert pcie(probed, **places).redirecting == redirecting


ROOTS = "/sys/devices/pci0000"


@cases("place, shared",
    (f"{SWITCH_PORT}/0000:17:00.0/0000:18:00.0", "switch"), (f"{ROOTS}:15/0000:15:03.0/0000:1c:00.0", "root"),
    (f"{ROOTS}:48/0000:48:01.0/0000:4b:00.0", "node"), (f"{ROOTS}:97/0000:97:01.0/0000:9b:00.0", "far"),
)  # fmt: skip
def test_what_it_shares_with_a_network_adapter(probed: Probed, place: str, shared: str) -> None:
    card, adapter = CARD_ISOLATION, f"{place}/infiniband/mlx5_0"
    tree: dict[str, str | bytes | None] = {
        f"{card}/vendor": "0x10de", f"{card}/device": "0x2335", f"{card}/numa_node": "0\n",
        f"{card}/class": "0x030200", f"{BUS}/0000:1b:00.0": f"-> ../../../..{card}",
        f"{adapter}/": "", f"{adapter}/device": f"-> ../../../{place.rpartition('/')[2]}",
        "/sys/class/infiniband/mlx5_0": f"-> ../../..{adapter}",
        f"{place}/numa_node": "1\n" if shared == "far" else "0\n",
    }  # fmt: skip
    assert one(probed, None, tree).adapters == {"mlx5_0": shared}
