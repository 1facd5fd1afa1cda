"""The NVML probe where something fails, and what it puts together from several calls."""

import os
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from probes import nvml
from tests.every import cases, tabled
from tests.known import Expected, fields, known
from tests.probes import fake_gpus
from tests.probes.conftest import RunProbe
from tests.probes.fake_gpus import h200, mig_h200, mig_instance, pci_info, switched_h200
from tests.probes.fake_nvml import ByInput, Status, Typed, fabric, listed, numbered
from tests.probes.fake_nvml_run import Ask, asking, only_gpu


@pytest.fixture
def ask(run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(run_probe, monkeypatch, capsys)


def eight_with_a_lost_one() -> list[Any]:
    gpus: list[Any] = [switched_h200(0x10 * (index + 1)) for index in range(8)]
    gpus[3] = Status(15)
    return gpus


def test_a_lost_gpu_is_an_item_with_its_error(ask: Ask) -> None:
    snapshot, done = ask(*eight_with_a_lost_one())
    gpus = known(snapshot.gpus)
    assert (len(gpus.items), gpus.complete, done["status"]) == (8, False, "ok")
    (lost,) = [gpu for gpu in gpus.items if gpu.errors]
    expected = {
        "label": "nvml-3", "index": 3, "pci_bus_id": None, "errors.call": ("nvmlDeviceGetHandleByIndex",),
        "errors.code": (15,), "errors.name": ("GPU_IS_LOST",), "errors.text": ("GPU is lost",),
    }  # fmt: skip
    assert fields(lost, expected) == expected


@tabled
def test_a_lost_gpu_is_named_by_the_modules_list(ask: Ask, tmp_path: Path, shift: int, expected: Expected) -> None:
    for index in range(8):
        (tmp_path / f"proc/driver/nvidia/gpus/0000:{0x10 * (index + 1) + shift:02x}:00.0").mkdir(parents=True)
    snapshot, _ = ask(*eight_with_a_lost_one(), request={"root": str(tmp_path)})
    (lost,) = [gpu for gpu in known(snapshot.gpus).items if gpu.errors]
    assert fields(lost, expected) == expected


def test_other_errors_are_kept_once_and_the_rest_goes_on(ask: Ask) -> None:
    failing = {"nvmlDeviceGetTotalEccErrors": 999, "nvmlDeviceGetRemappedRows": 16, "nvmlDeviceGetSerial": 4}
    gpu = only_gpu(ask({**h200(), **{call: Status(code) for call, code in failing.items()}}))
    assert sorted((error.call, error.code, error.name) for error in gpu.errors) == [
        ("nvmlDeviceGetRemappedRows", 16, "RESET_REQUIRED"),
        ("nvmlDeviceGetSerial", 4, "NO_PERMISSION"),
        ("nvmlDeviceGetTotalEccErrors", 999, "UNKNOWN"),
    ]
    assert gpu.pcie
    assert (known(gpu.ecc).volatile_uncorrected, gpu.row_remap) == (None, None)
    assert "row_remap" not in gpu.not_supported


# --- a driver that does not start -----------------------------------------------------------------------------------
@cases("code, name", (9, "DRIVER_NOT_LOADED"), (18, "LIB_RM_VERSION_MISMATCH"), (4, "NO_PERMISSION"), (999, "UNKNOWN"))
def test_a_failed_start_is_a_fact(ask: Ask, code: int, name: str) -> None:
    uninitialised = {"nvmlSystemGetDriverVersion": Status(1), "nvmlSystemGetCudaDriverVersion_v2": Status(1)}
    snapshot, done = ask(system={"nvmlInitWithFlags": Status(code), **uninitialised})
    expected = {"nvml.code": code, "nvml.name": name, "release": None, "nvml_version": "13.580.159.04"}
    assert fields(snapshot.driver, expected) == expected
    assert known(known(snapshot.driver).nvml).text
    assert (snapshot.gpus, done["status"]) == (None, "ok")


def test_a_status_that_the_binding_does_not_know_keeps_its_number(ask: Ask) -> None:
    snapshot, _ = ask(system={"nvmlInitWithFlags": Status(4711)})
    result = known(known(snapshot.driver).nvml)
    assert (result.code, result.name) == (4711, "")


@tabled
def test_a_library_that_cannot_be_loaded(
    run_probe: RunProbe, monkeypatch: pytest.MonkeyPatch, complaint: str, status: str
) -> None:
    monkeypatch.setattr(nvml, "why_not_loadable", lambda soname: complaint)
    monkeypatch.setitem(sys.modules, "pynvml", None)  # nothing is to be asked of it
    snapshot, done = run_probe("nvml")
    result = known(known(snapshot.driver).nvml)
    assert (result.code, result.name, result.text) == (-1, "LIBRARY_NOT_FOUND", complaint)
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


@tabled
def test_another_module_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, content: str, complaint: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content)
    with pytest.raises(ImportError, match=complaint):
        load_from(tmp_path, monkeypatch)


def test_a_missing_module_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(ImportError, match=r"nvidia-ml-py.* cannot be imported: ModuleNotFoundError"):
        nvml.load_binding()


def test_the_deprecation_notice_of_the_redirecting_distribution_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("pynvml")
    module.NVMLError, module.nvmlInit = type("NVMLError", (Exception,), {}), print  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    assert nvml.load_binding() is module


# --- What the NVML probe puts together from several calls: throttling, fabric, links, MIG, processes ----------------
def counting(nanoseconds: dict[int, int], settings: tuple[int, ...] = ()) -> dict[str, Any]:
    """An H200 with these numbered counters; at ``settings`` it has other fields."""
    values = {number: Typed(3, value) for number, value in nanoseconds.items()}
    return h200(nvmlDeviceGetFieldValues=numbered({**{number: Typed(1, 1) for number in settings}, **values}))


DRAWING = listed([{"pid": 12, "usedGpuMemory": 2 << 30}, {"pid": 13, "usedGpuMemory": 1 << 20}])
COMPUTING = listed([{"pid": 11, "usedGpuMemory": 1 << 30}, {"pid": 12, "usedGpuMemory": 2 << 30}])


@cases("about, gpu, expected",
    ("a GPU lost halfway keeps its identity and is left alone", h200(nvmlDeviceGetSerial=Status(15)),
     {"pci_bus_id": "0000:00:06.0", "name": "NVIDIA H200", "serial": None, "memory": None,
      "errors.call": ("nvmlDeviceGetSerial",), "errors.code": (15,)}),
    ("throttle counters are nanoseconds",
     counting({number: place * 500_000_000 for place, number in enumerate((74, 75, 76, 269, 270, 271), 1)}),
     {"throttle.seconds": {"sw_power_cap": 0.5, "sync_boost": 1.5, "sw_thermal_slowdown": 2.0,
                           "hw_thermal_slowdown": 2.5, "hw_power_brake_slowdown": 3.0}}),
    ("throttle counters at the numbers of other releases",
     counting(dict.fromkeys((251, 252, 253), 10**9), (269, 270, 271)),
     {"throttle.seconds": {"sw_thermal_slowdown": 1.0, "hw_thermal_slowdown": 1.0, "hw_power_brake_slowdown": 1.0}}),
    ("throttle counters that cannot be told from settings are left out",
     counting({75: 10**9}, (251, 252, 253, 269, 270, 271)), {"throttle.seconds": {"sw_thermal_slowdown": 1.0}}),
    ("fabric of a healthy switched GPU", switched_h200(0x1B),
     {"fabric.state": "completed", "fabric.status": 0, "fabric.status_name": "SUCCESS", "fabric.health": ()}),
    *((f"health of a fabric: {health:#x}", h200(nvmlDeviceGetGpuFabricInfoV=fabric(0, 3, health)),
       {"fabric.health": conditions})
      for health, conditions in (
          (0, ()), (0x001, ("degraded_bandwidth",)), (0x400 | 0xAA, ("no_partition",)), (0x11AA, ()),
          (0x055, ("degraded_bandwidth", "route_recovery", "route_unhealthy", "access_timeout_recovery")),
          (0x21AA, ("partition_not_assigned",)), (0x81AA, ("fabric_manager_disconnected",)))),
    ("a failed registration with the fabric keeps its status", h200(nvmlDeviceGetGpuFabricInfoV=fabric(999, 3, 0)),
     {"fabric.state": "completed", "fabric.status": 999, "fabric.status_name": "UNKNOWN"}),
    ("MIG without instances is an empty list", {**mig_h200(), "nvmlDeviceGetMigDeviceHandleByIndex": Status(6)},
     {"mig.instances": ()}),
    ("processes are listed once and without names",
     h200(nvmlDeviceGetComputeRunningProcesses_v3=COMPUTING, nvmlDeviceGetGraphicsRunningProcesses_v3=DRAWING),
     {"processes.pid": (11, 12, 13), "processes.kind": ("compute", "compute", "graphics"),
      "processes.memory": (1 << 30, 2 << 30, 1 << 20)}),
)  # fmt: skip
def test_the_only_gpu(ask: Ask, about: str, gpu: dict[str, Any], expected: Expected) -> None:
    assert fields(only_gpu(ask(gpu)), expected) == expected


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


def test_fabric_of_a_driver_that_knows_the_first_form_only(ask: Ask) -> None:
    def first_form(_inputs: Any, outputs: Any) -> int:
        outputs[0].status, outputs[0].state = 0, 2
        return 0

    lacks = frozenset({"nvmlDeviceGetGpuFabricInfoV"})
    state = known(only_gpu(ask(h200(nvmlDeviceGetGpuFabricInfo=first_form), lacks=lacks)).fabric)
    assert (state.state, state.health) == ("in_progress", ())


def test_nvlinks_into_switches(ask: Ask) -> None:
    snapshot, _ = ask(*(switched_h200(0x10 * (index + 1)) for index in range(3)))
    links = known(known(snapshot.gpus).items[0].nvlinks)
    assert [link.link for link in links] == list(range(18))
    first = links[0]
    assert (first.active, first.version, first.remote_kind, first.bandwidth) == (True, 4, "switch", 26.562e9)
    assert first.remote_pci_bus_id == "0000:c0:00.0"
    between = known(known(snapshot.fabric).links)
    assert [(link.first[5:7], link.second[5:7]) for link in between] == [("10", "20"), ("10", "30"), ("20", "30")]
    assert {(link.nvlinks, link.path) for link in between} == {(18, "system")}


def test_switches_that_do_not_let_two_gpus_reach_each_other_join_nothing(ask: Ask) -> None:
    apart = {**switched_h200(0x20), "nvmlDeviceGetP2PStatus": 5}
    snapshot, _ = ask({**switched_h200(0x10), "nvmlDeviceGetP2PStatus": 5}, apart)
    expected = {"links.nvlinks": (0,), "links.peer_read": ("not_supported",)}
    assert fields(snapshot.fabric, expected) == expected


def bridged(bus: int, other: int, active: tuple[int, ...] = (1, 1, 1, 1)) -> dict[str, Any]:
    return h200(
        bus, 0, nvmlDeviceGetFieldValues=fake_gpus.fields(f91=Typed(1, 4), f164=Status(3)),
        nvmlDeviceGetNvLinkState=ByInput(dict(enumerate(active))), nvmlDeviceGetNvLinkRemotePciInfo_v2=pci_info(other),
        nvmlDeviceGetNvLinkRemoteDeviceType=0, nvmlDeviceGetTopologyCommonAncestor=30,
    )  # fmt: skip


def test_nvlinks_straight_to_another_gpu(ask: Ask) -> None:
    snapshot, _ = ask(bridged(0x10, 0x20, (1, 1, 0, 1)), bridged(0x20, 0x10, (1, 1, 0, 1)), h200(0x30, 0))
    expected = {"links.nvlinks": (3, 0, 0), "links.path": ("hostbridge", "hostbridge", "hostbridge")}
    assert fields(snapshot.fabric, expected) == expected
    links = known(known(snapshot.gpus).items[0].nvlinks)
    assert [link.active for link in links] == [True, True, False, True]
    assert links[0].bandwidth is None


def test_a_single_gpu_has_no_links_to_others(ask: Ask) -> None:
    snapshot, _ = ask(h200())
    assert known(snapshot.fabric).links == ()


def test_mig_instances(ask: Ask) -> None:
    gpu = only_gpu(ask(mig_h200(), handles={1000: mig_instance(1), 1002: mig_instance(2)}))
    mig = known(gpu.mig)
    assert mig.enabled
    first, second = known(mig.instances)
    assert [each.uuid for each in (first, second)] == [f"MIG-41b3a1c9-0000-0000-0000-{n:012}" for n in (1, 2)]
    assert (first.name, first.memory, first.sm_count) == ("NVIDIA H200 MIG 1g.18gb", 16384 << 20, 16)
    assert {"utilisation", "memory_utilisation"} <= set(gpu.not_supported)


def test_mig_instances_that_may_not_be_seen_are_not_absent(ask: Ask) -> None:
    gpu = only_gpu(ask({**mig_h200(), "nvmlDeviceGetMigDeviceHandleByIndex": Status(4)}))
    assert known(gpu.mig).instances is None
    assert ("nvmlDeviceGetMigDeviceHandleByIndex", 4) in {(error.call, error.code) for error in gpu.errors}


@cases("namespace, known", ("pid:[4026531836]", True), ("pid:[4026532201]", False))
def test_the_server_of_mps_is_known_by_its_name_on_the_machine_itself(
    monkeypatch: pytest.MonkeyPatch, ask: Ask, namespace: str, *, known: bool
) -> None:
    monkeypatch.setattr(os, "readlink", lambda _path: namespace)
    own = Path("/proc/self/comm")
    before = own.read_text(encoding="utf-8")
    own.write_text("nvidia-cuda-mps-server", encoding="utf-8")
    try:
        gpu = only_gpu(
            ask(h200(nvmlDeviceGetComputeRunningProcesses_v3=listed([{"pid": os.getpid(), "usedGpuMemory": 1}])))
        )
    finally:
        own.write_text(before, encoding="utf-8")
    assert gpu.processes
    assert gpu.processes[0].mps_server is (True if known else None)


@cases("code, known", (3, True), (4, False))
def test_one_kind_of_processes_is_all_of_them_only_if_there_is_no_other(ask: Ask, code: int, *, known: bool) -> None:
    drawing = listed([{"pid": 13, "usedGpuMemory": 1 << 20}])
    calls = {f"nvmlDeviceGetComputeRunningProcesses{version}": Status(code) for version in ("", "_v2", "_v3")}
    gpu = only_gpu(ask({**h200(nvmlDeviceGetGraphicsRunningProcesses_v3=drawing), **calls}))
    assert (gpu.processes is not None) is known
    assert "processes" not in gpu.not_supported
