"""The rules about memory errors, clocks, links, MIG and the fabric."""

from typing import Any

from envcheck.model.runs import Told
from envcheck.model.snapshot import (
    Ecc,
    Gpu,
    GpuFabric,
    MigInstance,
    NvLink,
    ObservedError,
    ProbeRun,
    Process,
    RowRemap,
    Snapshot,
    Temperature,
    Throttle,
)
from tests.every import cases, every
from tests.rules.machines import (
    DOCKER,
    UBUNTU,
    answered,
    but,
    check_of,
    checks_of,
    driver,
    eight,
    geforce,
    gpus,
    h200,
    kernel,
    links,
    machine,
    statuses,
)

T4 = geforce("Tesla T4", "7.5", "10de:1eb8")
DESKTOP = geforce("NVIDIA GeForce RTX 3050", "8.6", "10de:2582")
WITHOUT_WAY = {"flavour": "proprietary", "peer_memory_loaded": False}
CARD: dict[str, Any] = {"name": "NVIDIA A100 80GB PCIe", "compute_capability": "8.0", "fabric": None}
"""A card with NVLinks on a bridge, on no switch."""


def bridged(number: int, *, inactive: range | tuple[int, ...]) -> Gpu:
    return h200(number, **CARD, nvlinks=links(12, inactive=inactive, kind="gpu"))


def h800(active: int) -> Gpu:
    """One whose chip has eighteen NVLinks, of which the model uses eight."""
    return h200(name="NVIDIA H800", pci_device_id="10de:2324", nvlinks=links(inactive=range(active, 18)))


def slowdown(sm: float | None, **changes: Any) -> Snapshot:
    """A GPU whose hardware lowers the clocks and names no reason."""
    given = {"throttle__reasons": ("hw_slowdown",), "clocks__sm": sm, "clocks__sm_max": 1980e6, **changes}
    return machine(h200(**{"performance_state": "P0", **given}))


def near_idle(*reasons: str, sm: float = 232e6, utilisation: float = 1.0) -> Snapshot:
    return machine(h200(throttle__reasons=reasons, clocks__sm=sm, clocks__sm_max=3090e6, utilisation=utilisation))


def idle_state(state: str, utilisation: float, **changes: Any) -> Snapshot:
    return machine(h200(performance_state=state, utilisation=utilisation, **changes))


def holding(mode: str, *processes: Process) -> Snapshot:
    """A GPU with this compute mode and these processes."""
    return machine(h200(compute_mode=mode, processes=processes))


SLOW = (ObservedError(source="pasted text", text="the training is very slow"),)


LINKED = h200(
    fabric=None, nvlinks=tuple(NvLink(source="nvml", link=number, active=number < 14) for number in range(18))
)


def sharing(*pids: int) -> Snapshot:
    """A GPU on which these programs compute; and a desktop's, and one with little memory."""
    others = (Process(source="nvml", pid=7, kind="graphics"), Process(source="nvml", pid=8, kind="compute", memory=9))
    programs = (Process(source="nvml", pid=pid, kind="compute", memory=2 << 30) for pid in pids)
    return machine(h200(processes=(*programs, *others)))


def at(degrees: float, limit: float | None = 57.0, **changes: Any) -> Snapshot:
    """A GPU of which only temperatures are known, as ``nvidia-smi -q -d TEMPERATURE`` shows them."""
    heat = Temperature(source="pasted text", gpu=degrees, gpu_max=limit, slowdown=97.0)
    return machine(but(DESKTOP, throttle=None, temperature=heat, **changes))


def hot(degrees: float, watts: float) -> Snapshot:
    """A busy GPU in nvidia-smi's table, which shows neither reasons nor limits of the temperature."""
    heat = Temperature(source="pasted text", gpu=degrees)
    return machine(h200(throttle=None, temperature=heat, utilisation=1.0, power__draw=watts))


def networked(
    gpu: Gpu | None = None, adapters: tuple[str, ...] = ("mlx5_0",), near: dict[str, str] | None = None, **changes: Any
) -> Snapshot:
    """A GPU beside network adapters, with the proprietary kernel module and without nvidia-peermem."""
    found = but(kernel(), **{f"nvidia__{key}": value for key, value in (WITHOUT_WAY | changes).items()})
    platform = but(UBUNTU, adapters=adapters, virtualization="none")
    return machine(but(gpu or h200(), adapters=near), kernel=found, platform=platform)


def drawing(watts: float) -> Snapshot:
    """A GPU that its power cap slows down now, with a limit of 700 W, as ``nvidia-smi -q`` shows it."""
    capped = Throttle(source="pasted text", reasons=("sw_power_cap",))
    return machine(h200(throttle=capped, power__draw=watts))


def copying(direct: float) -> Snapshot:
    """A text with 20 GB/s between GPUs without peer access."""
    return Snapshot(told=Told(source="pasted text", direct_copies=direct, staged_copies=20.0))


def with_fabric(**state: object) -> Snapshot:
    """Eight GPUs of which the last has this state."""
    last = h200(7, fabric=GpuFabric(source="nvml", **state))  # type: ignore[arg-type]
    return but(eight(), gpus=gpus(*(h200(number) for number in range(7)), last))


LOADED: dict[str, Any] = {"pcie__generation": 1, "utilisation": 0.99, "performance_state": "P0"}

CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("adapter-without-gpudirect", "no way to GPU memory", networked(), ("note",)),
    ("adapter-without-gpudirect", "nvidia-peermem", networked(peer_memory_loaded=True), ("pass",)),
    ("adapter-without-gpudirect", "DMA-BUF", networked(flavour="open"), ("pass",)),
    ("adapter-without-gpudirect", "adapters of AWS", networked(adapters=("rdmap0s6",)), ()),
    ("adapter-without-gpudirect", "far from the GPU", networked(near={"mlx5_0": "far"}, flavour="open"), ("note",)),
    ("adapter-without-gpudirect", "one near", networked(near={"a": "far", "b": "root"}, flavour="open"), ("pass",)),
    ("adapter-without-gpudirect", "no adapter", networked(adapters=()), ()),
    ("adapter-without-gpudirect", "modules not listed", networked(peer_memory_loaded=None), ()),
    ("adapter-without-gpudirect", "a GeForce", networked(DESKTOP), ()),
    ("peer-access-blocked", "direct copies below half of the others", copying(9.9), ("fail",)),
    ("peer-access-blocked", "direct copies at half of the others", copying(10.0), ()),
    ("uncorrected-ecc", "since the driver was loaded", machine(h200(ecc__volatile_uncorrected=2)), ("fail",)),
    ("uncorrected-ecc", "in its life", machine(h200(ecc__aggregate_uncorrected=2)), ("note",)),
    ("uncorrected-ecc", "none", machine(), ("pass",)),
    ("uncorrected-ecc", "corrected ones are normal", machine(h200(ecc__volatile_corrected=12)), ("pass",)),
    ("uncorrected-ecc", "ECC is off", machine(h200(ecc=Ecc(source="nvml", enabled=False))), ()),
    ("uncorrected-ecc", "no ECC", machine(T4), ()),
    ("uncorrected-ecc", "not known", machine(h200(ecc=None)), ("skipped",)),
    ("row-remap-pending", "pending", machine(h200(row_remap__pending=True)), ("warn",)),
    ("row-remap-pending", "none", machine(), ("pass",)),
    ("row-remap-pending", "a page on an older GPU",
     machine(but(T4, ecc=Ecc(enabled=True, retirement_pending=True), not_supported=("row_remap",))), ("warn",)),
    ("row-remap-pending", "neither", machine(T4), ()),
    ("row-remap-pending", "not known", machine(h200(row_remap=None)), ("skipped",)),
    ("row-remap-failed", "failed", machine(h200(row_remap__failed=True)), ("fail",)),
    ("row-remap-failed", "not", machine(), ("pass",)),
    ("row-remap-failed", "no remapping", machine(T4), ()),
    ("row-remap-failed", "not known", machine(h200(row_remap=RowRemap(pending=False))), ("skipped",)),
    ("power-throttled", "braked earlier", machine(h200(throttle__seconds={"hw_power_brake_slowdown": 2.5})), ("note",)),
    ("power-throttled", "power brake", machine(h200(throttle__reasons=("hw_slowdown", "hw_power_brake_slowdown"))),
     ("warn",)),
    ("power-throttled", "hardware slowdown without another reason", slowdown(345e6), ("warn",)),
    ("power-throttled", "hardware slowdown, clocks not known", slowdown(None), ("warn",)),
    ("power-throttled", "hardware slowdown, clocks not halved", slowdown(1755e6), ("note",)),
    ("power-throttled", "hardware slowdown of an idle GPU", slowdown(345e6, performance_state="P8"), ("pass",)),
    ("power-throttled", "near idle at full load, capped", near_idle("sw_power_cap"), ("warn",)),
    ("power-throttled", "near idle at full load, no reason", near_idle(), ("warn",)),
    ("power-throttled", "near idle, reasons not known",
     machine(h200(throttle=None, clocks__sm=232e6, utilisation=1.0)), ("warn",)),
    ("power-throttled", "a low limit, reasons not known", machine(h200(power__limit=300.0, throttle=None)), ("warn",)),
    ("power-throttled", "near idle at full load by set clocks", near_idle("applications_clocks_setting"), ("warn",)),
    ("power-throttled", "set clocks, idle", near_idle("applications_clocks_setting", utilisation=0.3), ("pass",)),
    ("power-throttled", "set clocks, not far down", near_idle("applications_clocks_setting", sm=2400e6), ("pass",)),
    ("power-throttled", "idle state at full load", idle_state("P8", 1.0), ("warn",)),
    ("power-throttled", "idle state at full load, reasons not known", idle_state("P8", 1.0, throttle=None), ("warn",)),
    ("power-throttled", "idle state, hardly used", idle_state("P8", 0.1), ("pass",)),
    ("power-throttled", "fast state at full load", idle_state("P2", 1.0), ("pass",)),
    ("power-throttled", "limited below half of the default", machine(h200(power__limit=300.0)), ("warn",)),
    ("power-throttled", "a board with less than its model's",
     machine(h200(power__limit=400.0, power__limit_default=400.0)), ("note",)),
    ("gpu-shared", "two programs that compute", but(sharing(1, 2), observed_errors=SLOW), ("warn",)),
    ("gpu-shared", "one program", but(sharing(1), observed_errors=SLOW), ("pass",)),
    ("gpu-shared", "no complaint", sharing(1, 2), ()),
    ("gpu-shared", "not known", but(machine(h200(processes=None)), observed_errors=SLOW), ()),
    ("gpu-held-exclusively", "default", machine(), ("pass",)),
    ("gpu-held-exclusively", "one process, and free", holding("exclusive_process"), ("pass",)),
    ("gpu-held-exclusively", "one process, and there", holding("exclusive_process", Process(source="nvml", pid=7)),
     ("warn",)),
    ("gpu-held-exclusively", "a desktop's",
     holding("exclusive_process", Process(source="nvml", pid=7, kind="graphics")), ("pass",)),
    ("gpu-held-exclusively", "the server of MPS",
     holding("exclusive_process", Process(source="nvml", pid=7, mps_server=True)), ("pass",)),
    ("gpu-held-exclusively", "none", holding("prohibited"), ("warn",)),
    ("gpu-held-exclusively", "not known", machine(h200(compute_mode=None)), ()),
    ("power-throttled", "near idle and hardly used", near_idle("sw_power_cap", utilisation=0.3), ("pass",)),
    ("power-throttled", "a board of 72 W at full load", near_idle("sw_power_cap", sm=800e6), ("pass",)),
    ("power-throttled", "capped below the default",
     machine(h200(throttle__reasons=("sw_power_cap",), power__limit=400.0)), ("warn",)),
    ("power-throttled", "limited below the default, idle", machine(h200(power__limit=400.0)), ("note",)),
    ("power-throttled", "capped at the default", machine(h200(throttle__reasons=("sw_power_cap",))), ("pass",)),
    ("power-throttled", "capped at the default, in a text about a slow program",
     but(machine(h200(throttle__reasons=("sw_power_cap",))), observed_errors=SLOW), ("note",)),
    ("power-throttled", "limit raised", machine(h200(throttle__reasons=("sw_power_cap",), power__limit=750.0)),
     ("pass",)),
    ("power-throttled", "rounded", machine(h200(throttle__reasons=("sw_power_cap",), power__limit=699.99)), ("pass",)),
    ("power-throttled", "no limits known", machine(h200(throttle__reasons=("sw_power_cap",), power=None)), ("pass",)),
    ("power-throttled", "capped below four fifths of the limit", drawing(559.0), ("warn",)),
    ("power-throttled", "capped at four fifths of the limit", drawing(560.0), ("pass",)),
    ("power-throttled", "not known", machine(h200(throttle=None)), ("skipped",)),
    ("thermal-throttled", "by hardware", machine(h200(throttle__reasons=("hw_thermal_slowdown",))), ("warn",)),
    ("thermal-throttled", "by software", machine(h200(throttle__reasons=("sw_thermal_slowdown",))), ("warn",)),
    ("thermal-throttled", "earlier", machine(h200(throttle__seconds={"sw_thermal_slowdown": 90.0})), ("note",)),
    ("thermal-throttled", "nearly a second", machine(h200(throttle__seconds={"sw_thermal_slowdown": 0.9})), ("pass",)),
    ("thermal-throttled", "a second", machine(h200(throttle__seconds={"sw_thermal_slowdown": 1.0})), ("note",)),
    ("thermal-throttled", "clocks set by the user", machine(h200(throttle__reasons=("applications_clocks_setting",))),
     ("pass",)),
    ("thermal-throttled", "not known", machine(h200(throttle=None)), ("skipped",)),
    ("thermal-throttled", "reasons refused", machine(h200(throttle=None, not_supported=("throttle",))), ()),
    ("thermal-throttled", "just below the limit, reasons not known", at(56), ("warn",)),
    ("thermal-throttled", "above the limit, reasons not known", at(59), ("warn",)),
    ("thermal-throttled", "a degree below the limit, reasons not known", at(55.9), ("pass",)),
    ("thermal-throttled", "limit not known either", at(90, None), ("skipped",)),
    ("thermal-throttled", "hot, busy, and far below its power limit", hot(88, 300), ("warn",)),
    ("thermal-throttled", "hot and busy at its power limit", hot(88, 680), ("skipped",)),
    ("thermal-throttled", "cool and far below its power limit", hot(84, 300), ("skipped",)),
    ("thermal-throttled", "at the limit, but the driver says that it does not slow down",
     machine(h200(temperature__gpu=87.0, temperature__gpu_max=87.0)), ("pass",)),
    ("persistence-mode-off", "off", machine(h200(persistence_mode=False)), ("note",)),
    ("persistence-mode-off", "on", machine(), ("pass",)),
    ("persistence-mode-off", "no such mode", machine(h200(persistence_mode=None, not_supported=("persistence_mode",))),
     ()),
    ("persistence-mode-off", "not known", machine(h200(persistence_mode=None)), ("skipped",)),
    ("pcie-link-degraded", "half the lanes", machine(h200(pcie__width=8)), ("warn",)),
    ("pcie-link-degraded", "half the lanes of a desktop card", machine(but(DESKTOP, pcie__width=8)), ("note",)),
    ("pcie-link-degraded", "fewer than half", machine(but(DESKTOP, pcie__width=4)), ("warn",)),
    ("pcie-link-degraded", "idle generation", machine(h200(pcie__generation=1)), ("pass",)),
    ("pcie-link-degraded", "a low generation at work", machine(h200(**LOADED)), ("warn",)),
    ("pcie-link-degraded", "an older slot", machine(h200(pcie__generation_max=4)), ("note",)),
    ("pcie-link-degraded", "a narrow slot", machine(h200(pcie__width=8, pcie__width_max=8)), ("pass",)),
    ("pcie-link-degraded", "no PCIe link", machine(h200(pcie=None, not_supported=("pcie",))), ()),
    ("pcie-link-degraded", "not known", machine(h200(pcie=None)), ("skipped",)),
    ("nvlink-down", "one of eighteen, on a switch", machine(h200(nvlinks=links(inactive=(5,)))), ("warn",)),
    ("nvlink-down", "all up", machine(), ("pass",)),
    ("nvlink-down", "eight of eighteen, on a switch", machine(h200(nvlinks=links(inactive=range(8, 18)))), ("warn",)),
    ("nvlink-down", "all eight of an H800", machine(h800(8)), ("pass",)),
    ("nvlink-down", "seven of the eight of an H800", machine(h800(7)), ("warn",)),
    ("nvlink-down", "a card without bridge", machine(h200(**CARD, nvlinks=links(12, inactive=range(12)))), ()),
    ("nvlink-down", "a single GPU, of a slow program", but(machine(LINKED), observed_errors=SLOW), ("warn",)),
    ("nvlink-down", "a single GPU, no complaint", machine(LINKED), ("note",)),
    ("nvlink-down", "two cards without bridge", machine(*(bridged(n, inactive=range(12)) for n in (0, 1))), ()),
    ("nvlink-down", "a bridge that uses four links", machine(*(bridged(n, inactive=range(4, 12)) for n in (0, 1))),
     ("note", "note")),
    ("nvlink-down", "a pair with a bridge, a card without",
     machine(*(bridged(n, inactive=() if n < 2 else range(12)) for n in (0, 1, 2))), ("pass", "pass")),
    ("nvlink-down", "a link that works on the sibling", machine(bridged(0, inactive=()), bridged(1, inactive=(3,))),
     ("pass", "warn")),
    ("nvlink-down", "MIG switches links off",
     machine(h200(mig__enabled=True, mig__instances=(MigInstance(),), nvlinks=links(inactive=range(18)))), ()),
    ("nvlink-down", "no NVLink", machine(T4), ()),
    ("nvlink-down", "not known", machine(h200(nvlinks=None)), ("skipped",)),
    ("mig-without-instances", "none", machine(h200(mig__enabled=True, mig__instances=())), ("fail",)),
    ("mig-without-instances", "one", machine(h200(mig__enabled=True, mig__instances=(MigInstance(uuid="MIG-1"),))),
     ("pass",)),
    ("mig-without-instances", "not in MIG mode", machine(), ()),
    ("mig-without-instances", "instances not known", machine(h200(mig__enabled=True)), ("skipped",)),
    ("fabric-manager-not-running", "802", machine(driver=driver(cuda_init=answered("cuInit", 802))), ("fail",)),
    ("fabric-manager-not-running", "802 from the count",
     machine(driver=driver(cuda_device_count=answered("cuDeviceGetCount", 802))), ("fail",)),
    ("fabric-manager-not-running", "one has not joined, CUDA works", with_fabric(state="in_progress"), ("warn",)),
    ("fabric-manager-not-running", "one joined with an error", with_fabric(state="completed", status=999), ("warn",)),
    ("fabric-manager-not-running", "a guest without switches",
     but(with_fabric(state="not_started"), fabric__nvswitches=0), ("pass",)),
    ("fabric-manager-not-running", "not supported", machine(h200(fabric=GpuFabric(state="not_supported"))), ()),
    ("fabric-manager-not-running", "no fabric", machine(T4), ()),
    ("fabric-manager-not-running", "nobody looked", Snapshot(), ()),
]  # fmt: skip


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected


@cases(
    "rule, snapshot, title",
    ("uncorrected-ecc", machine(h200(ecc__volatile_uncorrected=1)), "GPU 0 (NVIDIA H200): 1 uncorrected memory error"),
    ("row-remap-pending", machine(h200(row_remap__pending=True)),
     "GPU 0 (NVIDIA H200): row remapping pending until a reset"),
    ("row-remap-failed", machine(h200(row_remap__failed=True)), "GPU 0 (NVIDIA H200): row remapping has failed"),
    ("power-throttled", machine(h200(power__limit=400.0)),
     "GPU 0 (NVIDIA H200): power limit set at 400 W (default 700 W)"),
    ("pcie-link-degraded", machine(h200(pcie__width=8)), "GPU 0 (NVIDIA H200): PCIe link at 8 of 16 lanes"),
    ("nvlink-down", machine(h200(nvlinks=links(inactive=(5,)))), "GPU 0 (NVIDIA H200): 17 of 18 NVLinks active"),
)  # fmt: skip
def test_titles_say_which_gpu_and_how_much(rule: str, snapshot: Snapshot, title: str) -> None:
    assert check_of(rule, snapshot).title == title


def test_heat_without_reasons_is_judged_by_what_was_pasted() -> None:
    found = check_of("thermal-throttled", at(56.0))
    assert found.title == "GPU 0 (NVIDIA GeForce RTX 3050) is at its temperature limit of 57 °C"
    assert (found.decided_by, found.confidence) == ("declared", "medium")
    assert [each.value for each in found.evidence] == ["56.0", "57.0", "97.0"]


@cases("rule, lacking",
    ("thermal-throttled", "throttle"), ("row-remap-pending", "row_remap"), ("gpu-needs-reset", "recovery_action"),
)  # fmt: skip
def test_a_fact_that_a_probe_owed_is_unknown(rule: str, lacking: str) -> None:
    died = ProbeRun(name="nvml", status="crashed", detail="SIGSEGV", fills=("gpus",))
    found = check_of(rule, but(machine(but(h200(), **{lacking: None})), runs=(died,)))
    assert (found.status, found.missing[0].probe) == ("unknown", "nvml")


def test_a_gpu_off_the_fabric_of_its_siblings_has_all_links_down() -> None:
    dark = h200(7, nvlinks=links(inactive=range(18)), fabric=None)
    found = checks_of("nvlink-down", but(eight(), gpus=gpus(*(h200(number) for number in range(7)), dark)))
    assert [each.status for each in found] == ["pass"] * 7 + ["warn"]


@cases(
    "snapshot, action",
    (machine(h200(ecc__volatile_uncorrected=1)), "reset"),
    (machine(h200(row_remap__pending=True)), "reset"),
    (machine(h200(row_remap__failed=True)), "replace"),
)
def test_what_is_to_be_done_with_the_gpu(snapshot: Snapshot, action: str) -> None:
    found = [
        each
        for each in (
            *checks_of("uncorrected-ecc", snapshot),
            *checks_of("row-remap-pending", snapshot),
            *checks_of("row-remap-failed", snapshot),
        )
        if each.action != "none"
    ]
    assert [each.action for each in found] == [action]


def test_a_failed_remapping_explains_the_other_memory_findings() -> None:
    worn = h200(
        row_remap__failed=True, row_remap__pending=True, ecc__volatile_uncorrected=3, recovery_action="drain_and_reset"
    )
    explained = {
        each.rule: each.explained_by
        for rule in ("uncorrected-ecc", "row-remap-pending", "gpu-needs-reset")
        for each in checks_of(rule, machine(worn))
    }
    assert set(explained.values()) == {f"row-remap-failed@{worn.pci_bus_id}"}


def test_the_fabric_manager_is_started_where_it_runs() -> None:
    failed = driver(cuda_init=answered("cuInit", 802))
    here = check_of("fabric-manager-not-running", machine(driver=failed))
    assert here.fixes[0].command == ("sudo", "systemctl", "enable", "--now", "nvidia-fabricmanager")
    assert "550.54.14" in here.fixes[0].text
    for elsewhere in (
        machine(driver=failed, platform=DOCKER),
        but(machine(driver=failed), platform__virtualization="kvm"),
    ):
        (fix,) = check_of("fabric-manager-not-running", elsewhere).fixes
        assert (fix.who, fix.command) == ("cluster-admin", ())
    given_the_switches = but(machine(driver=failed), platform__virtualization="kvm", fabric__nvswitches=4)
    assert check_of("fabric-manager-not-running", given_the_switches).fixes == here.fixes
