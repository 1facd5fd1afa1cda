"""The NVML probe against drivers that are made up below the real binding."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from envcheck.snapshot import Gpu, Snapshot
from probes import nvml
from probes._kit import Out
from tests.probes import fake_gpus
from tests.probes.fake_gpus import h200, kepler, mig_h200, mig_instance, pci_info, switched_h200
from tests.probes.fake_nvml import ByInput, FakeLibrary, Status, Typed, binding, fabric, listed, numbered

Ask = Callable[..., tuple[Snapshot, dict[str, str]]]


@pytest.fixture
def ask(
    run_probe: Callable[..., tuple[Snapshot, dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Ask:
    """Run the probe over GPUs; it must have met nothing that it did not expect."""

    def ask(
        *gpus: Any, request: Mapping[str, Any] | None = None, system: Mapping[str, Any] | None = None, **library: Any
    ) -> tuple[Snapshot, dict[str, str]]:
        driver = FakeLibrary(list(gpus), {**fake_gpus.SYSTEM, **(system or {})}, **library)
        monkeypatch.setitem(sys.modules, "pynvml", binding(driver))
        result = run_probe("nvml", {"root": "/nonexistent", **(request or {})})
        assert capsys.readouterr().err == ""
        return result

    return ask


def only_gpu(result: tuple[Snapshot, dict[str, str]]) -> Gpu:
    listing = result[0].gpus
    assert listing
    (gpu,) = listing.items
    return gpu


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
    assert (gpu.part_number, gpu.gsp_firmware) == ("692-2G520-0282-000", "580.159.04")
    assert gpu.cores == 16896


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
        435e6,
        1.98e9,
        3.201e9,
        3.201e9,
    )
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
        "ecc.retired_pages",
        "ecc.retirement_pending",
        "fan",
        "fabric",
        "nvlinks",
    }


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
    monkeypatch.setitem(sys.modules, "pynvml", binding(library))
    lines: list[bytes] = []
    nvml.collect({"root": "/nonexistent"}, Out("nvml", lines.append))
    return [next(iter(message)) for line in lines if (message := json.loads(line)) and message.pop("probe")]


def test_each_gpu_is_sent_as_soon_as_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = sent_facts(FakeLibrary([h200(), h200(7)], fake_gpus.SYSTEM), monkeypatch)
    assert kinds == ["progress", "fact", "progress", "fact", "progress", "fact", "fact", "fact"]


# --- lost GPUs ----------------------------------------------------------------------------------------------------


def eight_with_a_lost_one() -> list[Any]:
    gpus: list[Any] = [switched_h200(0x10 * (index + 1)) for index in range(8)]
    gpus[3] = Status(15)
    return gpus


def test_a_lost_gpu_is_an_item_with_its_error(ask: Ask) -> None:
    snapshot, done = ask(*eight_with_a_lost_one())
    assert snapshot.gpus
    assert len(snapshot.gpus.items) == 8
    assert not snapshot.gpus.complete
    (lost,) = [gpu for gpu in snapshot.gpus.items if gpu.errors]
    assert (lost.label, lost.index, lost.pci_bus_id) == ("nvml-3", 3, None)
    (error,) = lost.errors
    assert (error.call, error.code, error.name) == ("nvmlDeviceGetHandleByIndex", 15, "GPU_IS_LOST")
    assert error.text == "GPU is lost"
    assert done["status"] == "ok"


def test_a_lost_gpu_is_named_by_the_kernel_modules_list(ask: Ask, tmp_path: Path) -> None:
    for index in range(8):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{0x10 * (index + 1):02x}:00.0").mkdir(parents=True)
    snapshot, _ = ask(*eight_with_a_lost_one(), request={"root": str(tmp_path)})
    assert snapshot.gpus
    (lost,) = [gpu for gpu in snapshot.gpus.items if gpu.errors]
    assert (lost.pci_bus_id, lost.label) == ("0000:40:00.0", None)
    assert lost.source_of("pci_bus_id") == "procfs"
    assert lost.source_of("errors") == "nvml"


def test_a_list_that_contradicts_nvml_names_nobody(ask: Ask, tmp_path: Path) -> None:
    for index in range(8):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{0x10 * (index + 1) + 5:02x}:00.0").mkdir(parents=True)
    snapshot, _ = ask(*eight_with_a_lost_one(), request={"root": str(tmp_path)})
    assert snapshot.gpus
    assert [gpu.label for gpu in snapshot.gpus.items if gpu.errors] == ["nvml-3"]


def test_a_gpu_lost_halfway_keeps_its_identity_and_is_left_alone(ask: Ask) -> None:
    gpu = only_gpu(ask(h200(nvmlDeviceGetSerial=Status(15))))
    assert (gpu.pci_bus_id, gpu.name, gpu.serial, gpu.memory) == ("0000:00:06.0", "NVIDIA H200", None, None)
    assert [(error.call, error.code) for error in gpu.errors] == [("nvmlDeviceGetSerial", 15)]


def test_other_errors_are_kept_once_and_the_rest_goes_on(ask: Ask) -> None:
    gpu = only_gpu(
        ask(
            h200(
                nvmlDeviceGetTotalEccErrors=Status(999),
                nvmlDeviceGetRemappedRows=Status(16),
                nvmlDeviceGetSerial=Status(4),
            )
        )
    )
    assert sorted((error.call, error.code, error.name) for error in gpu.errors) == [
        ("nvmlDeviceGetRemappedRows", 16, "RESET_REQUIRED"),
        ("nvmlDeviceGetSerial", 4, "NO_PERMISSION"),
        ("nvmlDeviceGetTotalEccErrors", 999, "UNKNOWN"),
    ]
    assert gpu.pcie
    assert gpu.ecc
    assert gpu.ecc.volatile_uncorrected is None
    assert gpu.row_remap is None
    assert "row_remap" not in gpu.not_supported


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
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetAddressingMode",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlSystemGetCudaDriverVersion_v2",
    }
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
    assert gpu.throttle.reasons == ("gpu_idle",)
    assert (gpu.addressing_mode, gpu.fabric) == (None, None)
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
    monkeypatch.setitem(sys.modules, "pynvml", module)
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
    monkeypatch.setitem(sys.modules, "pynvml", module)
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

    monkeypatch.setitem(sys.modules, "pynvml", binding(FakeLibrary([h200(nvmlDeviceGetSerial=broken)])))
    gpu = only_gpu(run_probe("nvml", {"root": "/nonexistent"}))
    assert (gpu.serial, gpu.vbios) == (None, "96.00.A5.00.1A")
    assert "nvmlDeviceGetSerial: UnicodeDecodeError" in capsys.readouterr().err


def test_unknown_numbers_stay_numbers_and_closed_sets_stay_closed(ask: Ask) -> None:
    gpu = only_gpu(
        ask(
            h200(
                nvmlDeviceGetArchitecture=77,
                nvmlDeviceGetBrand=20,
                nvmlDeviceGetVirtualizationMode=9,
                nvmlDeviceGetAddressingMode={"value": 7},
                nvmlDeviceGetComputeMode=9,
                nvmlDeviceGetPerformanceState=32,
                nvmlDeviceGetCurrentClocksEventReasons=0x4 | 1 << 40,
                nvmlDeviceGetFieldValues=fake_gpus.fields(f230=Typed(1, 99)),
            )
        )
    )
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


@pytest.mark.parametrize(
    ("domain", "shown"), [(0, "0000:1b:00.0"), (0xABCD, "abcd:1b:00.0"), (0x10000, "10000:1b:00.0")]
)
def test_bus_ids_are_canonical(ask: Ask, domain: int, shown: str) -> None:
    assert only_gpu(ask(h200(nvmlDeviceGetPciInfo_v3=pci_info(0x1B, domain=domain)))).pci_bus_id == shown


def test_an_answer_of_another_shape_costs_its_field_only(
    run_probe: Callable[..., tuple[Snapshot, dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = binding(FakeLibrary([h200()], fake_gpus.SYSTEM))
    module.nvmlDeviceGetEccMode = lambda handle: [1, 1, 1]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    gpu = only_gpu(run_probe("nvml", {"root": "/nonexistent"}))
    assert gpu.ecc
    assert gpu.ecc.volatile_corrected == 0
    assert gpu.row_remap
    assert "GPU 0: ValueError" in capsys.readouterr().err


def test_a_gpu_without_address_and_uuid_is_named_by_its_index(ask: Ask) -> None:
    gpu = only_gpu(ask(h200(nvmlDeviceGetPciInfo_v3=Status(999), nvmlDeviceGetUUID=Status(999))))
    assert (gpu.label, gpu.index, gpu.name) == ("nvml-0", 0, "NVIDIA H200")


# --- throttling, fabric, links, MIG, processes ----------------------------------------------------------------------


def throttle_seconds(ask: Ask, values: Mapping[int, Any]) -> dict[str, float] | None:
    gpu = only_gpu(ask(h200(nvmlDeviceGetFieldValues=numbered(values))))
    assert gpu.throttle
    return gpu.throttle.seconds


def test_throttle_counters_are_nanoseconds(ask: Ask) -> None:
    values = {74: 1, 75: 2, 76: 3, 269: 4, 270: 5, 271: 6}
    seconds = throttle_seconds(ask, {number: Typed(3, value * 500_000_000) for number, value in values.items()})
    assert seconds == {
        "sw_power_cap": 0.5,
        "sync_boost": 1.5,
        "sw_thermal_slowdown": 2.0,
        "hw_thermal_slowdown": 2.5,
        "hw_power_brake_slowdown": 3.0,
    }


def test_throttle_counters_at_the_numbers_of_other_releases(ask: Ask) -> None:
    settings = {number: Typed(1, 1) for number in (269, 270, 271)}
    seconds = throttle_seconds(ask, {**settings, **{number: Typed(3, 10**9) for number in (251, 252, 253)}})
    assert seconds == {"sw_thermal_slowdown": 1.0, "hw_thermal_slowdown": 1.0, "hw_power_brake_slowdown": 1.0}


def test_throttle_counters_that_cannot_be_told_from_settings_are_left_out(ask: Ask) -> None:
    settings = {number: Typed(1, 1) for number in (251, 252, 253, 269, 270, 271)}
    assert throttle_seconds(ask, {**settings, 75: Typed(3, 10**9)}) == {"sw_thermal_slowdown": 1.0}


def test_a_driver_that_does_not_know_a_field_says_nothing_about_the_gpu(ask: Ask) -> None:
    gpu = only_gpu(ask(h200(nvmlDeviceGetFieldValues=numbered({}))))
    assert gpu.recovery_action is None
    assert not {"recovery_action", "temperature.memory", "throttle.seconds"} & set(gpu.not_supported)
    assert gpu.errors == ()


def test_recovery_action_is_named(ask: Ask) -> None:
    for number, name in enumerate(("none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset")):
        gpu = only_gpu(ask(h200(nvmlDeviceGetFieldValues=fake_gpus.fields(f230=Typed(1, number)))))
        assert gpu.recovery_action == name
    refusing = only_gpu(ask(h200(nvmlDeviceGetFieldValues=fake_gpus.fields(f230=Status(3)))))
    assert "recovery_action" in refusing.not_supported


def test_fabric_of_a_healthy_switched_gpu(ask: Ask) -> None:
    state = only_gpu(ask(switched_h200(0x1B))).fabric
    assert state
    assert (state.state, state.status, state.status_name, state.health) == ("completed", 0, "SUCCESS", ())


@pytest.mark.parametrize(
    ("health", "conditions"),
    [
        (0, ()),
        (0x001, ("degraded_bandwidth",)),
        (0x055, ("degraded_bandwidth", "route_recovery", "route_unhealthy", "access_timeout_recovery")),
        (0x400 | 0xAA, ("no_partition",)),
        (0x21AA, ("partition_not_assigned",)),
        (0x11AA, ()),
        (0x81AA, ("fabric_manager_disconnected",)),
    ],
)
def test_fabric_health_is_decoded(ask: Ask, health: int, conditions: tuple[str, ...]) -> None:
    state = only_gpu(ask(h200(nvmlDeviceGetGpuFabricInfoV=fabric(0, 3, health)))).fabric
    assert state
    assert state.health == conditions


def test_fabric_of_a_driver_that_knows_the_first_form_only(ask: Ask) -> None:
    def first_form(_inputs: Any, outputs: Any) -> int:
        outputs[0].status, outputs[0].state = 0, 2
        return 0

    lacks = frozenset({"nvmlDeviceGetGpuFabricInfoV"})
    state = only_gpu(ask(h200(nvmlDeviceGetGpuFabricInfo=first_form), lacks=lacks)).fabric
    assert state
    assert (state.state, state.health) == ("in_progress", ())


def test_a_failed_fabric_registration_keeps_its_status(ask: Ask) -> None:
    state = only_gpu(ask(h200(nvmlDeviceGetGpuFabricInfoV=fabric(999, 3, 0)))).fabric
    assert state
    assert (state.state, state.status, state.status_name) == ("completed", 999, "UNKNOWN")


def test_nvlinks_into_switches(ask: Ask) -> None:
    snapshot, _ = ask(*(switched_h200(0x10 * (index + 1)) for index in range(3)))
    assert snapshot.gpus
    links = snapshot.gpus.items[0].nvlinks
    assert links
    assert [link.link for link in links] == list(range(18))
    first = links[0]
    assert (first.active, first.version, first.remote_kind, first.bandwidth) == (True, 4, "switch", 26.562e9)
    assert first.remote_pci_bus_id == "0000:c0:00.0"
    assert snapshot.fabric
    assert snapshot.fabric.links
    assert [(link.first[5:7], link.second[5:7], link.nvlinks, link.path) for link in snapshot.fabric.links] == [
        ("10", "20", 18, "system"),
        ("10", "30", 18, "system"),
        ("20", "30", 18, "system"),
    ]


def test_switches_that_do_not_let_two_gpus_reach_each_other_join_nothing(ask: Ask) -> None:
    apart = {**switched_h200(0x20), "nvmlDeviceGetP2PStatus": 5}
    snapshot, _ = ask({**switched_h200(0x10), "nvmlDeviceGetP2PStatus": 5}, apart)
    assert snapshot.fabric
    assert snapshot.fabric.links
    assert [link.nvlinks for link in snapshot.fabric.links] == [0]


def bridged(bus: int, other: int, active: tuple[int, ...] = (1, 1, 1, 1)) -> dict[str, Any]:
    return h200(
        bus,
        0,
        nvmlDeviceGetFieldValues=fake_gpus.fields(f91=Typed(1, 4), f164=Status(3)),
        nvmlDeviceGetNvLinkState=ByInput(dict(enumerate(active))),
        nvmlDeviceGetNvLinkRemotePciInfo_v2=pci_info(other),
        nvmlDeviceGetNvLinkRemoteDeviceType=0,
        nvmlDeviceGetTopologyCommonAncestor=30,
    )


def test_nvlinks_straight_to_another_gpu(ask: Ask) -> None:
    snapshot, _ = ask(bridged(0x10, 0x20, (1, 1, 0, 1)), bridged(0x20, 0x10, (1, 1, 0, 1)), h200(0x30, 0))
    assert snapshot.fabric
    assert snapshot.fabric.links
    assert [link.nvlinks for link in snapshot.fabric.links] == [3, 0, 0]
    assert [link.path for link in snapshot.fabric.links] == ["hostbridge", "hostbridge", "hostbridge"]
    assert snapshot.gpus
    links = snapshot.gpus.items[0].nvlinks
    assert links
    assert [link.active for link in links] == [True, True, False, True]
    assert links[0].bandwidth is None


def test_a_single_gpu_has_no_links_to_others(ask: Ask) -> None:
    snapshot, _ = ask(h200())
    assert snapshot.fabric
    assert snapshot.fabric.links == ()


def test_mig_instances(ask: Ask) -> None:
    gpu = only_gpu(ask(mig_h200(), handles={1000: mig_instance(1), 1002: mig_instance(2)}))
    assert gpu.mig
    assert gpu.mig.enabled
    assert gpu.mig.instances
    first, second = gpu.mig.instances
    assert (first.uuid, second.uuid) == (
        "MIG-41b3a1c9-0000-0000-0000-000000000001",
        "MIG-41b3a1c9-0000-0000-0000-000000000002",
    )
    assert (first.name, first.memory, first.sm_count) == ("NVIDIA H200 MIG 1g.18gb", 16384 << 20, 16)
    assert {"utilisation", "memory_utilisation"} <= set(gpu.not_supported)


def test_mig_without_instances_is_an_empty_list(ask: Ask) -> None:
    gpu = only_gpu(ask({**mig_h200(), "nvmlDeviceGetMigDeviceHandleByIndex": Status(6)}))
    assert gpu.mig
    assert gpu.mig.instances == ()


def test_mig_instances_that_may_not_be_seen_are_not_absent(ask: Ask) -> None:
    gpu = only_gpu(ask({**mig_h200(), "nvmlDeviceGetMigDeviceHandleByIndex": Status(4)}))
    assert gpu.mig
    assert gpu.mig.instances is None
    assert ("nvmlDeviceGetMigDeviceHandleByIndex", 4) in {(error.call, error.code) for error in gpu.errors}


def test_processes_are_listed_once_and_without_names(ask: Ask) -> None:
    computing = listed([{"pid": 11, "usedGpuMemory": 1 << 30}, {"pid": 12, "usedGpuMemory": 2 << 30}])
    drawing = listed([{"pid": 12, "usedGpuMemory": 2 << 30}, {"pid": 13, "usedGpuMemory": 1 << 20}])
    gpu = only_gpu(
        ask(
            h200(
                nvmlDeviceGetComputeRunningProcesses_v3=computing,
                nvmlDeviceGetGraphicsRunningProcesses_v3=drawing,
            )
        )
    )
    assert gpu.processes
    assert [(process.pid, process.kind, process.memory) for process in gpu.processes] == [
        (11, "compute", 1 << 30),
        (12, "compute", 2 << 30),
        (13, "graphics", 1 << 20),
    ]


@pytest.mark.parametrize(("code", "known"), [(3, True), (4, False)])
def test_one_kind_of_processes_is_all_of_them_only_if_there_is_no_other(ask: Ask, code: int, *, known: bool) -> None:
    drawing = listed([{"pid": 13, "usedGpuMemory": 1 << 20}])
    calls = {f"nvmlDeviceGetComputeRunningProcesses{version}": Status(code) for version in ("", "_v2", "_v3")}
    gpu = only_gpu(ask({**h200(nvmlDeviceGetGraphicsRunningProcesses_v3=drawing), **calls}))
    assert (gpu.processes is not None) is known
    assert "processes" not in gpu.not_supported


# --- a driver that does not start -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name"),
    [(9, "DRIVER_NOT_LOADED"), (18, "LIB_RM_VERSION_MISMATCH"), (4, "NO_PERMISSION"), (999, "UNKNOWN")],
)
def test_a_failed_start_is_a_fact(ask: Ask, code: int, name: str) -> None:
    uninitialised = {"nvmlSystemGetDriverVersion": Status(1), "nvmlSystemGetCudaDriverVersion_v2": Status(1)}
    snapshot, done = ask(system={"nvmlInitWithFlags": Status(code), **uninitialised})
    assert snapshot.driver
    assert snapshot.driver.nvml
    assert (snapshot.driver.nvml.code, snapshot.driver.nvml.name) == (code, name)
    assert snapshot.driver.nvml.text
    assert (snapshot.driver.release, snapshot.driver.nvml_version) == (None, "13.580.159.04")
    assert snapshot.gpus is None
    assert done["status"] == "ok"


def test_a_status_that_the_binding_does_not_know_keeps_its_number(ask: Ask) -> None:
    snapshot, _ = ask(system={"nvmlInitWithFlags": Status(4711)})
    assert snapshot.driver
    assert snapshot.driver.nvml
    assert (snapshot.driver.nvml.code, snapshot.driver.nvml.name) == (4711, "")


@pytest.mark.parametrize(
    ("complaint", "status"),
    [
        ("libnvidia-ml.so.1: cannot open shared object file: No such file or directory", "absent"),
        ("Error loading shared library libnvidia-ml.so.1: No such file or directory", "absent"),
        ("/usr/lib/libnvidia-ml.so.1: wrong ELF class: ELFCLASS32", "ok"),
        ("libfoo.so.2: cannot open shared object file: No such file or directory", "ok"),
        (
            "Error loading shared library libfoo.so.2: No such file or directory (needed by libnvidia-ml.so.1)",
            "ok",
        ),
    ],
)
def test_a_library_that_cannot_be_loaded(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, complaint: str, status: str
) -> None:
    monkeypatch.setattr(nvml, "why_not_loadable", lambda soname: complaint)
    snapshot, done = ask(system={"nvmlInitWithFlags": Status(12)})
    assert snapshot.driver
    assert snapshot.driver.nvml
    assert (snapshot.driver.nvml.code, snapshot.driver.nvml.name) == (-1, "LIBRARY_NOT_FOUND")
    assert snapshot.driver.nvml.text == complaint
    assert done["status"] == status


def test_a_count_that_fails_ends_the_probe_with_the_reason(ask: Ask) -> None:
    with pytest.raises(RuntimeError, match="nvmlDeviceGetCount failed: 999 UNKNOWN"):
        ask(system={"nvmlDeviceGetCount_v2": Status(999)})


# --- a binding that is not the one ----------------------------------------------------------------------------------


def load_from(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.syspath_prepend(str(folder))
    try:
        nvml.load_binding()
    finally:
        sys.modules.pop("pynvml", None)


def test_the_deprecated_distribution_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml/__init__.py").write_text("class NVMLError(Exception): pass\ndef nvmlInit(): pass\n")
    with pytest.raises(ImportError, match=r"deprecated distribution 'pynvml' hides nvidia-ml-py: .*__init__\.py"):
        load_from(tmp_path, monkeypatch)


def test_a_strange_module_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml.py").write_text("answer = 42\n")
    with pytest.raises(ImportError, match=r"pynvml\.py is not the pynvml of nvidia-ml-py"):
        load_from(tmp_path, monkeypatch)


def test_a_broken_module_is_an_import_error_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pynvml.py").write_text("raise ValueError('torn file')\n")
    with pytest.raises(ImportError, match="broken: ValueError: torn file"):
        load_from(tmp_path, monkeypatch)


def test_a_missing_module_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ImportError, match="pynvml"):
        nvml.load_binding()


def test_the_deprecation_notice_of_the_redirecting_distribution_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("pynvml")
    module.NVMLError, module.nvmlInit = type("NVMLError", (Exception,), {}), print  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert nvml.load_binding() is module
