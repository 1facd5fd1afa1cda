"""The NVML probe against drivers that are made up below the real binding: what it reads, and what is not there."""

import json
from typing import Any

import pytest

from probes import nvml
from probes.common.out import Out
from probes.common.tree import Tree
from tests.every import cases
from tests.known import Expected, fields, known
from tests.probes import fake_gpus
from tests.probes.conftest import RunProbe
from tests.probes.fake_gpus import h200, kepler, pci_info, switched_h200
from tests.probes.fake_nvml import FakeLibrary, Status, Typed, binding, install, listed
from tests.probes.fake_nvml_run import Ask, asking, only_gpu

MIB = 1 << 20


@pytest.fixture
def ask(run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(run_probe, monkeypatch, capsys)


def test_driver_facts(ask: Ask) -> None:
    snapshot, done = ask(h200())
    expected = {
        "release": "580.159.04", "cuda": "13.0", "nvml_version": "13.580.159.04", "nvml.call": "nvmlInit",
        "nvml.code": 0, "nvml.name": "SUCCESS",
    }  # fmt: skip
    assert fields(snapshot.driver, expected) == expected
    assert known(known(snapshot.driver).nvml).seconds is not None
    assert done == {"status": "ok", "detail": ""}


HEALTHY: dict[str, Expected] = {
    "identity": {
        "pci_bus_id": "0000:00:06.0", "pci_device_id": "10de:2335", "pci_subsystem_id": "10de:18bf",
        "uuid": "GPU-0e153505-8466-b46e-c83c-8251dbfbca00", "index": 0, "minor": 0, "label": None, "errors": (),
        "name": "NVIDIA H200", "brand": "nvidia", "architecture": "hopper", "compute_capability": "9.0",
        "serial": "1653724057450", "vbios": "96.00.A5.00.1A", "part_number": "692-2G520-0282-000",
        "gsp_firmware": "580.159.04", "cores": 16896,
    },
    "modes": {
        "performance_state": "P0", "compute_mode": "default", "persistence_mode": True,
        "virtualization": "passthrough", "recovery_action": "none", "addressing_mode": "none", "mig.enabled": False,
        "mig.pending": False, "mig.instances": None, "utilisation": 0.0, "memory_utilisation": 0.0, "processes": (),
    },
    "quantities in base units": {
        "memory.total": 143771 * MIB, "memory.reserved": 616 * MIB, "memory.used": 0, "memory.free": 143156 * MIB,
        "memory.bus_width": 6144, "bar1.total": 262144 * MIB, "bar1.used": MIB, "bar1.free": 262143 * MIB,
        "clocks.sm": 435e6, "clocks.sm_max": 1.98e9, "clocks.memory": 3.201e9, "clocks.memory_max": 3.201e9,
        "clocks.sm_application": 1.98e9, "clocks.sm_application_default": 1.98e9, "power.draw": 92.82,
        "power.limit": 700.0, "power.limit_default": 700.0, "power.limit_min": 200.0, "power.limit_max": 700.0,
        "temperature.gpu": 33.0, "temperature.memory": 33.0, "temperature.slowdown": 89.0,
        "temperature.shutdown": 95.0, "temperature.gpu_max": 87.0,
    },
    "health": {
        "ecc.enabled": True, "ecc.pending": True, "ecc.volatile_uncorrected": 0, "ecc.aggregate_uncorrected": 0,
        "row_remap.corrected": 0, "row_remap.uncorrected": 0, "row_remap.pending": False, "row_remap.failed": False,
        "pcie.generation": 5, "pcie.generation_max": 5, "pcie.generation_device_max": 5, "pcie.width": 16,
        "pcie.width_max": 16, "pcie.replays": 0,
    },
}  # fmt: skip


@pytest.mark.parametrize("what", HEALTHY)
def test_a_healthy_gpu(ask: Ask, what: str) -> None:
    assert fields(only_gpu(ask(h200())), HEALTHY[what]) == HEALTHY[what]


def test_what_a_healthy_gpu_does_not_have_is_named(ask: Ask) -> None:
    lacking = {"ecc.retired_pages", "ecc.retirement_pending", "fan", "fabric", "nvlinks"}
    assert set(only_gpu(ask(h200())).not_supported) == lacking


def test_listing_is_complete_once_every_gpu_was_read(ask: Ask) -> None:
    snapshot, _ = ask(*(switched_h200(bus) for bus in (0x1B, 0x43, 0x52)))
    expected = {
        "complete": True, "items.pci_bus_id": ("0000:1b:00.0", "0000:43:00.0", "0000:52:00.0"),
        "items.index": (0, 1, 2),
    }  # fmt: skip
    assert fields(snapshot.gpus, expected) == expected


def test_no_gpu_is_a_complete_and_empty_list(ask: Ask) -> None:
    snapshot, done = ask()
    gpus = known(snapshot.gpus)
    assert (gpus.items, gpus.complete, done["status"]) == ((), True, "ok")


def sent_facts(library: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    install(monkeypatch, binding(library))
    lines: list[bytes] = []
    nvml.collect(Tree({"root": "/nonexistent"}), Out("nvml", lines.append))
    return [next(iter(message)) for line in lines if (message := json.loads(line)) and message.pop("probe")]


def test_each_gpu_is_sent_as_soon_as_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = sent_facts(FakeLibrary([h200(), h200(7)], fake_gpus.SYSTEM), monkeypatch)
    assert kinds == ["progress", "fact", "progress", "fact", "progress", "fact", "fact", "fact"]


# --- what a GPU or a driver does not have ---------------------------------------------------------------------------
def test_groups_of_which_nothing_is_supported_stand_for_their_fields(ask: Ask) -> None:
    gpu = only_gpu(ask(kepler()))
    expected = {
        "name": "Tesla K80", "pci_bus_id": "0000:04:00.0", "pci_subsystem_id": None, "ecc.retired_pages": 4,
        "errors": (),
    }  # fmt: skip
    assert fields(gpu, expected) == expected
    refused = {"memory", "bar1", "row_remap", "mig", "clocks", "power", "pcie", "fabric", "nvlinks", "processes", "fan"}
    assert refused | {"ecc.enabled", "ecc.volatile_uncorrected"} <= set(gpu.not_supported)
    assert not {"ecc", "ecc.retired_pages"} & set(gpu.not_supported)


def test_unified_memory_has_no_size_of_its_own(ask: Ask) -> None:
    gpu = only_gpu(ask(h200(nvmlDeviceGetMemoryInfo_v2=Status(3), nvmlDeviceGetMemoryInfo=Status(3))))
    assert {"memory.total", "memory.used", "memory.free"} <= set(gpu.not_supported)
    assert known(gpu.memory).total is None


def test_symbols_that_the_driver_lacks_say_nothing_about_the_gpu(ask: Ask) -> None:
    lacks = {
        "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetAddressingMode", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlSystemGetCudaDriverVersion_v2",
    }  # fmt: skip
    answering = h200(nvmlDeviceGetComputeRunningProcesses=listed([]))
    result = ask(answering, system={"nvmlSystemGetCudaDriverVersion": 11040}, lacks=frozenset(lacks))
    gpu = only_gpu(result)
    expected = {
        "memory.total": 143771 * MIB, "memory.reserved": None, "temperature.gpu": 33.0,
        "throttle.reasons": ("gpu_idle",), "addressing_mode": None, "fabric": None, "errors": (),
    }  # fmt: skip
    assert fields(gpu, expected) == expected
    assert not {"addressing_mode", "fabric", "memory.reserved"} & set(gpu.not_supported)
    assert known(result[0].driver).cuda == "11.4"


def test_a_binding_without_newer_calls_and_constants(
    run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = binding(FakeLibrary([h200()], fake_gpus.SYSTEM))
    for name in list(vars(module)):
        if name.startswith(("nvmlDeviceGetGpuFabric", "NVML_GPU_RECOVERY", "NVML_FI_", "c_nvmlGpuFabric")):
            delattr(module, name)
    for name in ("nvmlDeviceGetAddressingMode", "nvmlDeviceGetTemperatureV", "NVML_DEVICE_ARCH_HOPPER"):
        delattr(module, name)
    install(monkeypatch, module)
    gpu = only_gpu(run_probe("nvml", {"root": "/nonexistent"}))
    assert (gpu.architecture, gpu.recovery_action, gpu.addressing_mode, gpu.fabric) == ("9", "none", None, None)
    assert known(gpu.temperature).gpu == 33.0
    assert capsys.readouterr().err == ""


def test_texts_as_bytes(run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch) -> None:
    module = binding(FakeLibrary([h200()], fake_gpus.SYSTEM))
    of_gpu = tuple(f"nvmlDeviceGet{what}" for what in ("Name", "UUID", "Serial"))
    for name in (*of_gpu, "nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion"):
        decoded = getattr(module, name)
        setattr(module, name, lambda *arguments, decoded=decoded: decoded(*arguments).encode())
    install(monkeypatch, module)
    snapshot, _ = run_probe("nvml", {"root": "/nonexistent"})
    gpu = only_gpu((snapshot, {}))
    assert (gpu.name, gpu.serial) == ("NVIDIA H200", "1653724057450")
    assert gpu.uuid == "GPU-0e153505-8466-b46e-c83c-8251dbfbca00"
    driver = known(snapshot.driver)
    assert (driver.release, driver.nvml_version) == ("580.159.04", "13.580.159.04")


def test_a_text_that_is_not_unicode_costs_its_field_only(
    run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_inputs: Any, outputs: Any) -> int:
        outputs[0].value = b"\xff\xfe\x80"
        return 0

    install(monkeypatch, binding(FakeLibrary([h200(nvmlDeviceGetSerial=broken)])))
    gpu = only_gpu(run_probe("nvml", {"root": "/nonexistent"}))
    assert (gpu.serial, gpu.vbios) == (None, "96.00.A5.00.1A")
    assert "nvmlDeviceGetSerial: UnicodeDecodeError" in capsys.readouterr().err


ODD = h200(
    nvmlDeviceGetArchitecture=77, nvmlDeviceGetBrand=20, nvmlDeviceGetVirtualizationMode=9,
    nvmlDeviceGetAddressingMode={"value": 7}, nvmlDeviceGetComputeMode=9, nvmlDeviceGetPerformanceState=32,
    nvmlDeviceGetCurrentClocksEventReasons=0x4 | 1 << 40,
    nvmlDeviceGetFieldValues=fake_gpus.fields(f230=Typed(1, 99)),
)  # fmt: skip
UNANSWERED = h200(
    nvmlDeviceGetArchitecture=0xFFFFFFFF, nvmlDeviceGetPcieReplayCounter=0xFFFFFFFF,
    nvmlDeviceGetPowerUsage=0xFFFFFFFF, nvmlDeviceGetTotalEccErrors=0xFFFFFFFFFFFFFFFF, nvmlDeviceGetSerial="",
    nvmlDeviceGetComputeRunningProcesses_v3=listed([{"pid": 7, "usedGpuMemory": 0xFFFFFFFFFFFFFFFF}]),
)  # fmt: skip


@cases("about, gpu, expected",
    ("unknown numbers stay numbers, closed sets stay closed", ODD,
     {"architecture": "77", "brand": "20", "virtualization": "9", "addressing_mode": "7", "compute_mode": None,
      "performance_state": None, "recovery_action": "99", "throttle.reasons": ("sw_power_cap", "0x10000000000")}),
    ("marks for no value are not values", UNANSWERED,
     {"architecture": None, "serial": None, "pcie.replays": None, "power.draw": None, "ecc.volatile_corrected": None,
      "processes.pid": (7,), "processes.memory": (None,)}),
    *((f"canonical: {shown}", h200(nvmlDeviceGetPciInfo_v3=pci_info(0x1B, domain=domain)), {"pci_bus_id": shown})
      for domain, shown in ((0, "0000:1b:00.0"), (0xABCD, "abcd:1b:00.0"), (0x10000, "10000:1b:00.0"))),
    ("without address and UUID it is named by its index",
     h200(nvmlDeviceGetPciInfo_v3=Status(999), nvmlDeviceGetUUID=Status(999)),
     {"label": "nvml-0", "index": 0, "name": "NVIDIA H200"}),
)  # fmt: skip
def test_the_only_gpu(ask: Ask, about: str, gpu: dict[str, Any], expected: Expected) -> None:
    assert fields(only_gpu(ask(gpu)), expected) == expected


def test_an_answer_of_another_shape_costs_its_field_only(
    run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = binding(FakeLibrary([h200()], fake_gpus.SYSTEM))
    module.nvmlDeviceGetEccMode = lambda handle: [1, 1, 1]  # type: ignore[attr-defined]
    install(monkeypatch, module)
    gpu = only_gpu(run_probe("nvml", {"root": "/nonexistent"}))
    assert known(gpu.ecc).volatile_corrected == 0
    assert gpu.row_remap
    assert "GPU 0: ValueError" in capsys.readouterr().err
