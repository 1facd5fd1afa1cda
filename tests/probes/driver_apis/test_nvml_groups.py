"""What the NVML probe puts together from several calls: throttling, fabric, links, MIG, processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from envcheck.snapshot import Snapshot
from tests.probes import fake_gpus
from tests.probes.fake_gpus import h200, mig_h200, mig_instance, pci_info, switched_h200
from tests.probes.fake_nvml import ByInput, Status, Typed, fabric, listed, numbered
from tests.probes.fake_nvml_run import Ask, asking, only_gpu

Run = Callable[..., tuple[Snapshot, dict[str, str]]]


@pytest.fixture
def ask(run_probe: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(run_probe, monkeypatch, capsys)


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
    known = ("none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset")
    newer = ("recover_imex_domain", "bus_reset", "system_reboot")
    for number, name in enumerate((*known, *newer)):
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
    assert [(link.nvlinks, link.peer_read) for link in snapshot.fabric.links] == [(0, "not_supported")]


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
        ask(h200(nvmlDeviceGetComputeRunningProcesses_v3=computing, nvmlDeviceGetGraphicsRunningProcesses_v3=drawing))
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
