"""IOMMU and Access Control Services between a GPU and its peers, on made-up trees."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from envcheck.snapshot import Pcie, Snapshot

RunProbe = Callable[..., tuple[Snapshot, dict[str, str]]]
BuildRoot = Callable[..., str]

BUS = "/sys/bus/pci/devices"
ROOT_PORT = "/sys/devices/pci0000:15/0000:15:01.0"
SWITCH_PORT = f"{ROOT_PORT}/0000:16:00.0"
LAST_PORT = f"{SWITCH_PORT}/0000:17:08.0"
CARD = f"{LAST_PORT}/0000:1b:00.0"

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
        f"{CARD}/vendor": "0x10de",
        f"{CARD}/device": "0x2335",
        f"{CARD}/class": "0x030200",
        f"{BUS}/0000:1b:00.0": f"-> ../../../..{CARD}",
        f"{ROOT_PORT}/config": places.get("root_port", config((AER, 0))),
        f"{SWITCH_PORT}/config": places.get("switch_port", config((AER, 0))),
        f"{LAST_PORT}/config": places.get("last_port", config((AER, 0))),
    }
    kind = places.get("iommu")
    if kind is not None:
        tree[f"{CARD}/iommu_group"] = "-> /sys/kernel/iommu_groups/12"
        tree["/sys/kernel/iommu_groups/12/type"] = kind
    snapshot, _ = run_probe("pci", {"root": build_root(None, tree)})
    assert snapshot.gpus
    (gpu,) = snapshot.gpus.items
    assert gpu.pcie
    return gpu.pcie


@pytest.mark.parametrize("kind", ["DMA-FQ", "DMA", "identity"])
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


@pytest.mark.parametrize("hidden", ["switch_port", "last_port"])
def test_registers_that_only_root_may_read_leave_it_open(
    run_probe: RunProbe, build_root: BuildRoot, hidden: str
) -> None:
    assert pcie(run_probe, build_root, **{hidden: config((ACS, REDIRECT), size=64)}).redirecting is None


@pytest.mark.parametrize(
    "data",
    [config((AER, 0), (AER, 0), loop=True), config((ACS, REDIRECT), size=0x104), bytes([0xFF]) * 4096, bytes(256)],
    ids=["a loop", "cut off", "a device that is gone", "no extended space"],
)
def test_damaged_registers_name_no_port(run_probe: RunProbe, build_root: BuildRoot, data: bytes) -> None:
    assert pcie(run_probe, build_root, switch_port=data).redirecting == ()
