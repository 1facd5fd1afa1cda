"""The NVML probe against drivers that are made up below the real binding: what it reads, and what is not there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from envcheck.model.snapshot import Snapshot
from probes import nvml
from probes.common.out import Out
from probes.common.tree import Tree
from tests.every import cases
from tests.probes import fake_gpus
from tests.probes.fake_gpus import h200, kepler, pci_info, switched_h200
from tests.probes.fake_nvml import FakeLibrary, Status, Typed, binding, install, listed
from tests.probes.fake_nvml_run import Ask, asking, only_gpu

Run = Callable[..., tuple[Snapshot, dict[str, str]]]


@pytest.fixture
def ask(run_probe: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(run_probe, monkeypatch, capsys)


def test_driver_facts(ask: Ask) -> None:
    snapshot, done = ask(h200())
    driver = snapshot.driver
    assert driver
    assert (driver.release, driver.cuda, driver.nvml_version) == ("580.159.04", "13.0", "13.580.159.04")
    assert driver.nvml
    assert (driver.nvml.call, driver.nvml.code, driver.nvml.name) == ("nvmlInit", 0, "SUCCESS")
    assert driver.nvml.seconds is not None
    assert done == {"status": "ok", "detail": ""}


def test_identity_of_a_healthy_gpu(ask: Ask) -> None:
    gpu = only_gpu(ask(h200()))
    assert (gpu.pci_bus_id, gpu.pci_device_id, gpu.pci_subsystem_id) == ("0000:00:06.0", "10de:2335", "10de:18bf")
    assert gpu.uuid == "GPU-0e153505-8466-b46e-c83c-8251dbfbca00"
    assert (gpu.index, gpu.minor, gpu.label, gpu.errors) == (0, 0, None, ())
    assert (gpu.name, gpu.brand, gpu.architecture, gpu.compute_capability) == ("NVIDIA H200", "nvidia", "hopper", "9.0")
    assert (gpu.serial, gpu.vbios) == ("1653724057450", "96.00.A5.00.1A")
    assert (gpu.part_number, gpu.gsp_firmware, gpu.cores) == ("692-2G520-0282-000", "580.159.04", 16896)


def test_modes_of_a_healthy_gpu(ask: Ask) -> None:
    gpu = only_gpu(ask(h200()))
    assert (gpu.performance_state, gpu.compute_mode, gpu.persistence_mode) == ("P0", "default", True)
    assert (gpu.virtualization, gpu.recovery_action, gpu.addressing_mode) == ("passthrough", "none", "none")
    assert gpu.mig
    assert (gpu.mig.enabled, gpu.mig.pending, gpu.mig.instances) == (False, False, None)
    assert (gpu.utilisation, gpu.memory_utilisation, gpu.processes) == (0.0, 0.0, ())


def test_quantities_are_in_base_units(ask: Ask) -> None:
    gpu = only_gpu(ask(h200()))
    assert gpu.memory
    assert gpu.bar1
    assert gpu.clocks
    assert gpu.power
    assert gpu.temperature
    mib = 1 << 20
    assert (gpu.memory.total, gpu.memory.reserved, gpu.memory.used) == (143771 * mib, 616 * mib, 0)
    assert (gpu.memory.free, gpu.memory.bus_width) == (143156 * mib, 6144)
    assert (gpu.bar1.total, gpu.bar1.used, gpu.bar1.free) == (262144 * mib, mib, 262143 * mib)
    assert (gpu.clocks.sm, gpu.clocks.sm_max, gpu.clocks.memory, gpu.clocks.memory_max) == (
        435e6, 1.98e9, 3.201e9, 3.201e9,
    )  # fmt: skip
    assert (gpu.clocks.sm_application, gpu.clocks.sm_application_default) == (1.98e9, 1.98e9)
    assert (gpu.power.draw, gpu.power.limit, gpu.power.limit_default) == (92.82, 700.0, 700.0)
    assert (gpu.power.limit_min, gpu.power.limit_max) == (200.0, 700.0)
    assert (gpu.temperature.gpu, gpu.temperature.memory) == (33.0, 33.0)
    assert (gpu.temperature.slowdown, gpu.temperature.shutdown, gpu.temperature.gpu_max) == (89.0, 95.0, 87.0)


def test_health_of_a_healthy_gpu(ask: Ask) -> None:
    gpu = only_gpu(ask(h200()))
    assert gpu.ecc
    assert gpu.row_remap
    assert gpu.pcie
    assert (gpu.ecc.enabled, gpu.ecc.pending) == (True, True)
    assert (gpu.ecc.volatile_uncorrected, gpu.ecc.aggregate_uncorrected) == (0, 0)
    assert (gpu.row_remap.corrected, gpu.row_remap.uncorrected) == (0, 0)
    assert (gpu.row_remap.pending, gpu.row_remap.failed) == (False, False)
    assert (gpu.pcie.generation, gpu.pcie.generation_max, gpu.pcie.generation_device_max) == (5, 5, 5)
    assert (gpu.pcie.width, gpu.pcie.width_max, gpu.pcie.replays) == (16, 16, 0)


def test_what_a_healthy_gpu_does_not_have_is_named(ask: Ask) -> None:
    assert set(only_gpu(ask(h200())).not_supported) == {
        "ecc.retired_pages", "ecc.retirement_pending", "fan", "fabric", "nvlinks",
    }  # fmt: skip


def test_listing_is_complete_once_every_gpu_was_read(ask: Ask) -> None:
    snapshot, _ = ask(*(switched_h200(bus) for bus in (0x1B, 0x43, 0x52)))
    assert snapshot.gpus
    assert snapshot.gpus.complete
    assert [gpu.pci_bus_id for gpu in snapshot.gpus.items] == ["0000:1b:00.0", "0000:43:00.0", "0000:52:00.0"]
    assert [gpu.index for gpu in snapshot.gpus.items] == [0, 1, 2]


def test_no_gpu_is_a_complete_and_empty_list(ask: Ask) -> None:
    snapshot, done = ask()
    assert snapshot.gpus
    assert (snapshot.gpus.items, snapshot.gpus.complete) == ((), True)
    assert done["status"] == "ok"


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
    assert (gpu.name, gpu.pci_bus_id, gpu.pci_subsystem_id) == ("Tesla K80", "0000:04:00.0", None)
    refused = {"memory", "bar1", "row_remap", "mig", "clocks", "power", "pcie", "fabric", "nvlinks", "processes", "fan"}
    assert refused <= set(gpu.not_supported)
    assert gpu.ecc
    assert gpu.ecc.retired_pages == 4
    assert {"ecc.enabled", "ecc.volatile_uncorrected"} <= set(gpu.not_supported)
    assert "ecc" not in gpu.not_supported
    assert "ecc.retired_pages" not in gpu.not_supported
    assert gpu.errors == ()


def test_unified_memory_has_no_size_of_its_own(ask: Ask) -> None:
    gpu = only_gpu(ask(h200(nvmlDeviceGetMemoryInfo_v2=Status(3), nvmlDeviceGetMemoryInfo=Status(3))))
    assert {"memory.total", "memory.used", "memory.free"} <= set(gpu.not_supported)
    assert gpu.memory
    assert gpu.memory.total is None


def test_symbols_that_the_driver_lacks_say_nothing_about_the_gpu(ask: Ask) -> None:
    lacks = {
        "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetAddressingMode", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlSystemGetCudaDriverVersion_v2",
    }  # fmt: skip
    result = ask(
        h200(nvmlDeviceGetComputeRunningProcesses=listed([])),
        system={"nvmlSystemGetCudaDriverVersion": 11040},
        lacks=frozenset(lacks),
    )
    gpu = only_gpu(result)
    assert gpu.memory
    assert gpu.temperature
    assert gpu.throttle
    assert (gpu.memory.total, gpu.memory.reserved, gpu.temperature.gpu) == (143771 << 20, None, 33.0)
    assert (gpu.throttle.reasons, gpu.addressing_mode, gpu.fabric) == (("gpu_idle",), None, None)
    assert not {"addressing_mode", "fabric", "memory.reserved"} & set(gpu.not_supported)
    assert gpu.errors == ()
    assert result[0].driver
    assert result[0].driver.cuda == "11.4"


def test_a_binding_without_newer_calls_and_constants(
    run_probe: Callable[..., tuple[Snapshot, dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
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
    assert gpu.temperature
    assert gpu.temperature.gpu == 33.0
    assert capsys.readouterr().err == ""


def test_texts_as_bytes(
    run_probe: Callable[..., tuple[Snapshot, dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = binding(FakeLibrary([h200()], fake_gpus.SYSTEM))
    for name in (
        "nvmlDeviceGetName",
        "nvmlDeviceGetUUID",
        "nvmlDeviceGetSerial",
        "nvmlSystemGetDriverVersion",
        "nvmlSystemGetNVMLVersion",
    ):
        decoded = getattr(module, name)
        setattr(module, name, lambda *arguments, decoded=decoded: decoded(*arguments).encode())
    install(monkeypatch, module)
    snapshot, _ = run_probe("nvml", {"root": "/nonexistent"})
    gpu = only_gpu((snapshot, {}))
    assert (gpu.name, gpu.serial) == ("NVIDIA H200", "1653724057450")
    assert gpu.uuid == "GPU-0e153505-8466-b46e-c83c-8251dbfbca00"
    assert snapshot.driver
    assert (snapshot.driver.release, snapshot.driver.nvml_version) == ("580.159.04", "13.580.159.04")


def test_a_text_that_is_not_unicode_costs_its_field_only(
    run_probe: Callable[..., tuple[Snapshot, dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(_inputs: Any, outputs: Any) -> int:
        outputs[0].value = b"\xff\xfe\x80"
        return 0

    install(monkeypatch, binding(FakeLibrary([h200(nvmlDeviceGetSerial=broken)])))
    gpu = only_gpu(run_probe("nvml", {"root": "/nonexistent"}))
    assert (gpu.serial, gpu.vbios) == (None, "96.00.A5.00.1A")
    assert "nvmlDeviceGetSerial: UnicodeDecodeError" in capsys.readouterr().err


def test_unknown_numbers_stay_numbers_and_closed_sets_stay_closed(ask: Ask) -> None:
    gpu = only_gpu(
        ask(
            h200(
                nvmlDeviceGetArchitecture=77, nvmlDeviceGetBrand=20, nvmlDeviceGetVirtualizationMode=9,
                nvmlDeviceGetAddressingMode={"value": 7}, nvmlDeviceGetComputeMode=9, nvmlDeviceGetPerformanceState=32,
                nvmlDeviceGetCurrentClocksEventReasons=0x4 | 1 << 40,
                nvmlDeviceGetFieldValues=fake_gpus.fields(f230=Typed(1, 99)),
            ),
        ),
    )  # fmt: skip
    assert (gpu.architecture, gpu.brand, gpu.virtualization, gpu.addressing_mode) == ("77", "20", "9", "7")
    assert (gpu.compute_mode, gpu.performance_state, gpu.recovery_action) == (None, None, "99")
    assert gpu.throttle
    assert gpu.throttle.reasons == ("sw_power_cap", "0x10000000000")


def test_marks_for_no_value_are_not_values(ask: Ask) -> None:
    gpu = only_gpu(
        ask(
            h200(
                nvmlDeviceGetArchitecture=0xFFFFFFFF,
                nvmlDeviceGetPcieReplayCounter=0xFFFFFFFF,
                nvmlDeviceGetPowerUsage=0xFFFFFFFF,
                nvmlDeviceGetTotalEccErrors=0xFFFFFFFFFFFFFFFF,
                nvmlDeviceGetSerial="",
                nvmlDeviceGetComputeRunningProcesses_v3=listed([{"pid": 7, "usedGpuMemory": 0xFFFFFFFFFFFFFFFF}]),
            )
        )
    )
    assert (gpu.architecture, gpu.serial) == (None, None)
    assert gpu.pcie
    assert gpu.power
    assert gpu.ecc
    assert (gpu.pcie.replays, gpu.power.draw, gpu.ecc.volatile_corrected) == (None, None, None)
    assert gpu.processes
    assert (gpu.processes[0].pid, gpu.processes[0].memory) == (7, None)


@cases("domain, shown", (0, "0000:1b:00.0"), (0xABCD, "abcd:1b:00.0"), (0x10000, "10000:1b:00.0"))
def test_bus_ids_are_canonical(ask: Ask, domain: int, shown: str) -> None:
    assert only_gpu(ask(h200(nvmlDeviceGetPciInfo_v3=pci_info(0x1B, domain=domain)))).pci_bus_id == shown


def test_an_answer_of_another_shape_costs_its_field_only(
    run_probe: Callable[..., tuple[Snapshot, dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = binding(FakeLibrary([h200()], fake_gpus.SYSTEM))
    module.nvmlDeviceGetEccMode = lambda handle: [1, 1, 1]  # type: ignore[attr-defined]
    install(monkeypatch, module)
    gpu = only_gpu(run_probe("nvml", {"root": "/nonexistent"}))
    assert gpu.ecc
    assert gpu.ecc.volatile_corrected == 0
    assert gpu.row_remap
    assert "GPU 0: ValueError" in capsys.readouterr().err


def test_a_gpu_without_address_and_uuid_is_named_by_its_index(ask: Ask) -> None:
    gpu = only_gpu(ask(h200(nvmlDeviceGetPciInfo_v3=Status(999), nvmlDeviceGetUUID=Status(999))))
    assert (gpu.label, gpu.index, gpu.name) == ("nvml-0", 0, "NVIDIA H200")
