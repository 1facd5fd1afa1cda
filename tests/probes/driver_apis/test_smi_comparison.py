"""The comparison with nvidia-smi that the tests on real GPUs rest on: it agrees with a faithful probe and no other."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from probes import nvml
from probes.common.out import Out
from probes.common.tree import Tree
from tests.gpu.smi_facts import LINES, differences
from tests.known import known
from tests.probes import fake_gpus
from tests.probes.fake_nvml import FakeLibrary, Status, Typed, addresses, binding, fabric, install

RECORDED = Path(__file__).parents[2] / "importers/data/h200_smi.xml"
Read = Callable[..., Snapshot]


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Read:
    def read(**changes: Any) -> Snapshot:
        gpu = {
            **fake_gpus.h200(), "nvmlDeviceGetUUID": "GPU-00000000-1111-2222-3333-444444444444",
            "nvmlDeviceGetSerial": "1650000012345", **changes,
        }  # fmt: skip
        install(monkeypatch, binding(FakeLibrary([gpu], fake_gpus.SYSTEM)))
        lines: list[bytes] = []
        nvml.collect(Tree({"root": "/nonexistent"}), Out("nvml", lines.append))
        facts = [json.loads(line).get("fact") for line in lines]
        return merge(msgspec.convert(fact, Snapshot) for fact in facts if fact)

    return read


@pytest.fixture
def recorded() -> ET.Element:
    return ET.parse(RECORDED).getroot()


def test_the_made_up_h200_is_the_recorded_one(read: Read, recorded: ET.Element) -> None:
    assert differences(recorded, recorded, read()) == []


def test_every_line_compares_something_that_the_recorded_machine_prints(recorded: ET.Element) -> None:
    gpu = recorded.find("gpu")
    assert [line.fact for line in LINES if all(known(gpu).find(place) is None for place in line.places)] == []


CHANGES: dict[str, tuple[str, Any]] = {
    "pci_device_id": ("nvmlDeviceGetPciInfo_v3", {**fake_gpus.pci_info(0, 6), "pciDeviceId": 0x233010DE}),
    "name": ("nvmlDeviceGetName", "NVIDIA H100"), "serial": ("nvmlDeviceGetSerial", Status(3)),
    "gsp_firmware": ("nvmlDeviceGetGspFirmwareVersion", "570.1"),
    "persistence_mode": ("nvmlDeviceGetPersistenceMode", 0),
    "memory.total": ("nvmlDeviceGetMemoryInfo_v2", {"total": 143769 << 20, "reserved": 616 << 20}),
    "ecc.enabled": ("nvmlDeviceGetEccMode", (0, 1)), "ecc.volatile_uncorrected": ("nvmlDeviceGetTotalEccErrors", 1),
    "ecc.retired_pages": ("nvmlDeviceGetRetiredPages", addresses([])),
    "row_remap.failed": ("nvmlDeviceGetRemappedRows", (0, 0, 0, 1)), "mig.pending": ("nvmlDeviceGetMigMode", (0, 1)),
    "power.limit": ("nvmlDeviceGetEnforcedPowerLimit", 600000), "pcie.width": ("nvmlDeviceGetCurrPcieLinkWidth", 8),
    "temperature.gpu": ("nvmlDeviceGetTemperatureV", {"temperature": 60}),
    "temperature.shutdown": ("nvmlDeviceGetTemperatureThreshold", 60),
    "recovery_action": ("nvmlDeviceGetFieldValues", fake_gpus.fields(f230=Typed(1, 1))),
    "throttle.seconds hw_thermal_slowdown": ("nvmlDeviceGetFieldValues", fake_gpus.fields(f270=Typed(3, 10**9))),
    "fabric.state": ("nvmlDeviceGetGpuFabricInfoV", fabric(0, 3, 0)),
    "nvmlDeviceGetVbiosVersion": ("nvmlDeviceGetVbiosVersion", Status(999)),
}  # fmt: skip


@pytest.mark.parametrize("fact", CHANGES)
def test_a_difference_is_named(read: Read, recorded: ET.Element, fact: str) -> None:
    call, answer = CHANGES[fact]
    found = differences(recorded, recorded, read(**{call: answer}))
    assert any(line.startswith(f"0000:00:06.0 {fact}:") for line in found), found


def test_a_gpu_too_many_and_another_driver_are_named(read: Read, recorded: ET.Element) -> None:
    release = recorded.find("driver_version")
    known(release).text = "570.1"
    found = differences(recorded, recorded, read(nvmlDeviceGetPciInfo_v3=fake_gpus.pci_info(0x1B)))
    assert found == [
        "driver.release: '580.159.04', nvidia-smi: '570.1'",
        "GPUs: ['0000:1b:00.0'], nvidia-smi: ['0000:00:06.0']",
    ]
