"""Rules on measured figures: each status, the cause in words, and when no verdict is given."""

from typing import Any

import pytest

from envcheck.model.checks import Check
from envcheck.model.snapshot import Gpu, Measurement, Mig, NvLink, Pcie, ProbeRun, RowRemap, Snapshot
from envcheck.report.answers.rule import rule_page
from envcheck.rules.catalog import find_rule, measured_rules
from envcheck.rules.facts.measurements import measurement_key
from envcheck.rules.speed.trust import causes
from tests.every import cases, every, tabled
from tests.known import Expected
from tests.rules.machines import agreed, but, check_of, checks_of, geforce, h200, judge, machine, variables
from tests.rules.speed.measurements import (
    conditions,
    figure,
    gemm,
    memory_copy,
    memory_read,
    right,
    span,
    to_gpu,
    to_peer,
    wrong,
)

SLOW = ("slow-gpu-memory", "slow-gemm", "slow-host-link", "slow-peer-link")


def measured(*figures: Measurement, gpu: Gpu | None = None, **changes: Any) -> Snapshot:
    return machine(gpu or h200(sm_count=132), measurements=figures, **changes)


def speed(found: Measurement, gpu: Gpu | None = None) -> Check:
    """The check of a figure's size."""
    (check,) = [check for check in judge(measured(found, gpu=gpu)) if check.rule in SLOW]
    return check


# --- statuses -----------------------------------------------------------------------------------------------------
@cases("found, rule",
    (memory_copy(), "slow-gpu-memory"), (memory_read(), "slow-gpu-memory"), (gemm(), "slow-gemm"),
    (gemm("fp8", 1565e12), "slow-gemm"), (to_gpu(), "slow-host-link"), (to_peer(), "slow-peer-link"),
)  # fmt: skip
def test_what_an_h200_gave_passes(found: Measurement, rule: str) -> None:
    check = speed(found)
    assert (check.rule, check.status, check.decided_by) == (rule, "pass", "measured")
    assert "of the ceiling" in check.title
    assert check.sources
    assert {evidence.what for evidence in check.evidence} == {"measured", "expected", "during the run"}


@every(
    (memory_copy(3.9e12), "warn"), (memory_copy(3.0e12), "fail"), (gemm(value=650e12), "warn"),
    (gemm(value=300e12), "fail"), (to_gpu(47e9), "warn"), (to_gpu(12e9), "fail"), (to_peer(330e9), "warn"),
    (to_peer(150e9), "fail"),
)  # fmt: skip
def test_what_is_too_slow_warns_and_what_is_far_too_slow_fails(found: Measurement, status: str) -> None:
    check = speed(found)
    assert check.status == status
    assert "only" in check.title
    assert "healthy GPUs reach" in check.message
    assert len(check.title) <= 80


UNMEASURED = but(gemm(), value=None, samples=(), missing="no cuBLASLt was found")
COUNTED = conditions(rose={"ecc-corrected": 4}, xids=(43,))
CAPPED = conditions(sm_clock=span(1380e6, 1500e6, 1980e6), throttle={"sw_power_cap": 0.9})
HOT = conditions(throttle={"sw_thermal_slowdown": 0.9})
SLOWED = conditions(sm_clock=span(990e6, 990e6, 1980e6), throttle={"sw_thermal_slowdown": 0.9})


@cases("about, found, expected",
    ("more than the ceiling is an error of the measurement", memory_copy(5.2e12),
     {"status": "unknown", "message": "…a measurement error…"}),
    ("what could not be measured says why", UNMEASURED,
     {"status": "skipped", "message": "no cuBLASLt was found", "title": "…not measured"}),
    ("near copies are judged", to_gpu(9e9, variant="pinned, near"), {"status": "fail"}),
    ("a good figure is not limited by what was counted", gemm(conditions=COUNTED), {"status": "pass"}),
    ("a sustained run at the power cap is held to its own clock: what an H200 gives at 700 W, low for a burst",
     gemm(value=681e12, burst=False, conditions=CAPPED), {"status": "pass"}),
    ("and is slow below that", gemm(value=640e12, burst=False, conditions=CAPPED), {"status": "warn"}),
    ("a burst is not", gemm(value=560e12, burst=True, conditions=CAPPED), {"status": "fail"}),
    ("memory that is fast enough is not held down", memory_copy(conditions=HOT), {"status": "pass"}),
    ("the share is split in words", gemm(value=400e12, conditions=SLOWED),
     {"message": "…75% of what its clock allows, at 50% of the data sheet's clock…"}),
)  # fmt: skip
def test_what_is_said_of_a_figure(about: str, found: Measurement, expected: Expected) -> None:
    assert agreed(speed(found), expected) == expected


ADA = geforce("NVIDIA GeForce RTX 4090", "8.9", "10de:2684", sm_count=128)


@cases("share, status", (0.9, "pass"), (0.55, "warn"), (0.5, "fail"))
def test_a_floor_under_the_model_s_own_peak_fails_with_weak_confidence(share: float, status: str) -> None:
    full = conditions(sm_clock=span(2520e6))
    check = speed(gemm(value=share * 165.2e12, conditions=full), ADA)
    assert check.status == status
    assert status == "pass" or check.confidence == "weak"
    assert any("never measured here" in evidence.value for evidence in check.evidence)


def test_slow_memory_has_a_next_step_for_its_gpu() -> None:
    again, then = speed(memory_copy(3.0e12), h200(sm_count=132, index=3)).fixes
    assert again.command == ("envcheck", "bench", "--gpu", "3")
    assert then.continues
    assert not speed(memory_copy()).fixes
    assert not speed(memory_copy(9e12)).fixes  # above the ceiling: an error of the measurement


def test_a_floor_of_a_library_only_warns() -> None:
    slow = figure("cudnn-convolution", 1e12, "FLOP/s", method="cudnn", precision="fp16", variant="forward, NHWC")
    (check,) = [each for each in judge(measured(slow, gpu=ADA)) if each.rule == "slow-library"]
    assert (check.status, check.confidence) == ("warn", "weak")


# --- not judged ---------------------------------------------------------------------------------------------------
BUSY = conditions(utilisation_before=97.0)
FULL = conditions(memory_before=100 << 30)


@cases(
    "found, gpu, words",
    (gemm(value=100e12, conditions=BUSY), h200(sm_count=132), "a kernel ran 97% of the time"),
    (gemm(value=100e12, conditions=FULL), h200(sm_count=132), "100.0 of 140 GiB of its memory are in use"),
    (gemm(value=100e12), h200(sm_count=132, mig=Mig(source="nvml", enabled=True)), "MIG mode"),
    (memory_copy(1e12), h200(name="NVIDIA Frobnicator", pci_device_id="10de:ffff"), "no published memory bandwidth"),
    (to_peer(20e9, variant="one direction, PCIe"), h200(), "baseline"),
)
def test_it_is_measured_not_judged_with_the_reason(found: Measurement, gpu: Gpu, words: str) -> None:
    check = speed(found, gpu)
    assert check.status == "skipped"
    assert check.message.startswith("Measured, not judged: ")
    assert words in check.message
    assert check.title.endswith("not judged")


@cases("variant", "pageable", "pageable, near", "pinned, far")
def test_pageable_and_far_copies_are_not_judged_at_all(variant: str) -> None:
    assert not checks_of("slow-host-link", measured(to_gpu(9e9, variant=variant)))


def test_the_question_does_not_arise_without_measurements() -> None:
    assert not [check for check in judge(machine()) if check.rule in measured_rules()]


def test_a_figure_of_an_unknown_gpu_is_nobodys() -> None:
    assert not [check for check in judge(measured(gemm(gpu="GPU-none"))) if check.rule in SLOW]


# --- causes -------------------------------------------------------------------------------------------------------
@tabled
def test_the_cause_is_named(changes: dict[str, Any], words: str) -> None:
    check = speed(gemm(value=300e12, conditions=conditions(**changes)))
    assert check.status == "fail"
    assert "Likely cause: " in check.message
    assert words in check.message


SWITCH = NvLink(source="nvml", link=0, active=True, remote_kind="switch")
DOWN = h200(sm_count=132, nvlinks=(*(but(SWITCH, link=link) for link in range(17)), but(SWITCH, link=17, active=False)))
PENDING = h200(sm_count=132, row_remap=RowRemap(source="nvml", pending=True))


@cases("found, run, gpu, words",
    (to_gpu(12e9), {"rose": {"pcie-errors": 7, "pcie-replays": 40}}, h200(),
     "cause: the PCI Express link sent 40 packets again (replays); the PCI Express link reported 7 errors (AER)."),
    (to_gpu(12e9), {"pcie_width": 8, "rose": {"pcie-replays": 40}}, h200(), "cause: the PCI Express link has 8 of 16"),
    (to_gpu(12e9), {"rose": {"ecc-corrected": 4}}, h200(), "no cause"),
    (memory_copy(2e12), {"rose": {"ecc-corrected": 4}}, h200(), "cause: ECC corrected 4 memory errors."),
    (memory_copy(2e12), {"rose": {"nvlink-errors": 4, "pcie-replays": 4}}, h200(), "no cause"),
    (memory_copy(2e12), {}, PENDING, "cause: a row of its memory waits for a reset"),
    (gemm(value=300e12), {"xids": (79, 48)}, h200(sm_count=132), "cause: the driver reported Xid 79, 48."),
    (gemm(value=300e12), {"used_by_others": 41.0}, h200(sm_count=132), "cause: another program used the GPU in 41%"),
    (gemm(value=300e12), {"used_by_others": 2.0}, h200(sm_count=132), "no cause"),
    (to_peer(150e9), {"rose": {"nvlink-errors": 4}}, DOWN,
     "cause: NVLinks reported 4 errors; 1 of 18 NVLinks are down."),
)  # fmt: skip
def test_what_was_true_during_the_run_is_named(found: Measurement, run: dict[str, Any], gpu: Gpu, words: str) -> None:
    assert words in speed(but(found, conditions=conditions(**run)), gpu).message
    assert speed(but(found, value=None, missing="x", conditions=conditions(**run)), gpu).status == "skipped"


@cases("pcie, words",
    (Pcie(source="sysfs", redirecting=("0000:15:01.0",), iommu="DMA"), "ACS sends what goes from GPU to GPU up"),
    (Pcie(source="sysfs", redirecting=(), iommu="DMA-FQ"), "the IOMMU translates the addresses"),
    (Pcie(source="sysfs", redirecting=(), iommu="identity"), ""),
)  # fmt: skip
def test_what_lies_between_gpus_without_nvlink_is_named(pcie: Pcie, words: str) -> None:
    found = to_peer(12e9, variant="one direction, PCIe")
    assert (words in "; ".join(causes(h200(nvlinks=(), pcie=pcie), found))) is True
    assert bool(causes(h200(nvlinks=(), pcie=pcie), found)) == bool(words)


@cases("changes", {}, {"throttle": {"sw_power_cap": 1.0}}, {"throttle": {"hw_slowdown": 0.01}})
def test_a_power_cap_at_the_default_limit_is_no_cause(changes: dict[str, Any]) -> None:
    assert speed(gemm(value=300e12, conditions=conditions(**changes))).message.endswith("NVML reports no cause.")


@cases("limit, lowered", (692.0, True), (694.0, False))
def test_a_lowered_limit_is_the_same_to_a_gpu_and_to_its_figures(limit: float, lowered: bool) -> None:  # noqa: FBT001
    check = speed(gemm(value=300e12, conditions=conditions(power_limit=limit)))
    assert ("below the default of 700 W" in check.message) == lowered
    (of_gpu,) = [found for found in judge(machine(h200(power__limit=limit))) if found.rule == "power-throttled"]
    assert (of_gpu.status == "note") == lowered


HELD = [
    {"throttle": {"sw_thermal_slowdown": 0.9}}, {"throttle": {"hw_thermal_slowdown": 0.9}},
    {"throttle": {"hw_slowdown": 0.9}}, {"throttle": {"hw_power_brake_slowdown": 0.9}},
    {"throttle": {"applications_clocks_setting": 0.9}}, {"power_limit": 400.0},
]  # fmt: skip


@pytest.mark.parametrize("changes", HELD)
@cases("clock, status", (1500e6, "warn"), (900e6, "fail"))
def test_a_clock_that_is_held_down_is_no_pass_though_it_was_used_well(
    changes: dict[str, Any], clock: float, status: str
) -> None:
    check = speed(gemm(value=0.77 * 132 * clock * 4096, conditions=conditions(sm_clock=span(clock), **changes)))
    assert (check.status, "77% of the ceiling" in check.message) == (status, True)
    assert check.title.endswith("limited")


@pytest.mark.parametrize("changes", HELD)
def test_a_sustained_run_that_is_held_down_is_a_warning(changes: dict[str, Any]) -> None:
    held = conditions(sm_clock=span(900e6), **changes)
    assert speed(gemm(value=0.8 * 132 * 900e6 * 4096, burst=False, conditions=held)).status == "warn"


@cases("throttle, words", ({"sw_power_cap": 1.0}, "MHz under load at the power cap."), ({}, "MHz under load."))
@cases("burst", True, False)
def test_clocks_near_idle_are_no_pass_though_they_were_used_well(
    throttle: dict[str, float], words: str, *, burst: bool
) -> None:
    for gpu, rate in ((h200(sm_count=132), 132 * 4096), (but(ADA, clocks__sm_max=3090e6), 128 * 512)):
        held = conditions(sm_clock=span(210e6, 225e6, 232e6), throttle=throttle)
        clock = 232e6 if burst else 225e6
        check = speed(gemm(value=0.83 * clock * rate, burst=burst, conditions=held), gpu)
        assert check.status == "fail", check
        assert "the SM clock stayed at 232 of " in check.message
        assert check.message.endswith(words)


def test_a_low_clock_of_the_multiprocessors_explains_no_slow_link() -> None:
    low = conditions(sm_clock=span(345e6))
    assert "SM clock stayed" not in speed(to_gpu(12e9, conditions=low)).message
    assert "SM clock stayed" not in speed(to_peer(150e9, conditions=low)).message


def test_a_memory_clock_that_stayed_low_is_named() -> None:
    gpu = h200(sm_count=132, clocks__memory_max=3201e6)
    slow = memory_copy(1e12, conditions=conditions(memory_clock=span(1593e6)))
    assert "Likely cause: the memory clock stayed at 1593 of 3201 MHz." in speed(slow, gpu).message
    assert "memory clock stayed" not in speed(memory_copy(1e12), gpu).message


def test_a_sustained_product_that_nobody_measured_is_held_to_a_floor() -> None:
    ada = geforce("NVIDIA GeForce RTX 4090", "8.9", "10de:2684", sm_count=128)
    product = gemm("fp16", 0.5 * 128 * 1500e6 * 1024, burst=False, conditions=conditions(sm_clock=span(1500e6)))
    found = speed(product, ada)
    assert found.status == "pass"
    (expected,) = [evidence.value for evidence in found.evidence if evidence.what == "expected"]
    assert "a floor: never measured here" in expected


@tabled
def test_a_degraded_link_is_named(changes: dict[str, Any], words: str) -> None:
    check = speed(to_gpu(1e9, conditions=conditions(**changes)))
    assert check.status == "fail"
    assert words in check.message


def test_conditions_of_the_run_are_evidence() -> None:
    (during,) = [item for item in speed(gemm()).evidence if item.what == "during the run"]
    assert during.value == "SM clock 1980 MHz, power 605 W, limit 700 W, 50 C"


# --- results, baseline --------------------------------------------------------------------------------------------
def test_a_right_result_passes_and_a_wrong_one_fails() -> None:
    assert check_of("wrong-result", measured(gemm(verification=right()))).status == "pass"
    check = check_of("wrong-result", measured(gemm(verification=wrong(3))))
    assert (check.status, check.action) == ("fail", "drain")
    assert "3 of 1,024 checked elements are wrong" in check.message
    assert [item.value for item in check.evidence if item.what == "largest error"] == ["0.5, tolerated 2e-05"]


def test_a_wrong_result_fails_whatever_else_ran_on_the_gpu() -> None:
    assert check_of("wrong-result", measured(gemm(verification=wrong(), conditions=BUSY))).status == "fail"


def test_what_was_not_verified_is_not_called_right() -> None:
    assert not checks_of("wrong-result", measured(gemm(verification=None)))


@cases(
    "now, before, status",
    (memory_copy(4.29e12), memory_copy(4.30e12), "pass"),
    (memory_copy(4.00e12), memory_copy(4.30e12), "warn"),
    (memory_copy(4.50e12), memory_copy(4.30e12), "pass"),
    (figure("copy-latency", 3e-6, "s"), figure("copy-latency", 2e-6, "s"), "warn"),
    (figure("copy-latency", 1e-6, "s"), figure("copy-latency", 2e-6, "s"), "pass"),
)
def test_a_figure_is_held_to_its_baseline(now: Measurement, before: Measurement, status: str) -> None:
    assert check_of("slower-than-baseline", measured(now, baseline=(before,))).status == status


def test_a_wide_spread_is_tolerated() -> None:
    noisy = memory_copy(4.0e12, samples=(3.6e12, 4.0e12, 4.4e12))
    assert check_of("slower-than-baseline", measured(noisy, baseline=(memory_copy(4.3e12),))).status == "pass"


@cases("other",
    memory_read(4.3e12), memory_copy(4.3e12, gpu=h200(1).uuid), gemm(shape=(4096, 4096, 4096)), gemm(burst=False),
    gemm("fp8"),
)  # fmt: skip
def test_only_the_same_quantity_of_the_same_gpu_is_a_baseline(other: Measurement) -> None:
    assert not checks_of("slower-than-baseline", measured(memory_copy(1e12), gemm(value=1e12), baseline=(other,)))


def test_engines_that_are_built_anew_are_not_held_to_their_baseline() -> None:
    now, before = (figure("tensorrt-convolution", value, "FLOP/s", variant="unfused") for value in (302e12, 467e12))
    assert not checks_of("slower-than-baseline", measured(now, baseline=(before,)))


def runs_of(*values: float) -> tuple[Measurement, ...]:
    return tuple(memory_copy(value, samples=()) for value in values)


def test_several_runs_tell_how_far_runs_lie_apart() -> None:
    """Runs that agree within 0.3 % find a loss of 3 %, which one run would tolerate; runs that do not, tolerate it."""
    now = memory_copy(4.16e12)
    assert check_of("slower-than-baseline", measured(now, baseline=runs_of(4.29e12))).status == "pass"
    calm = check_of("slower-than-baseline", measured(now, baseline=runs_of(4.29e12, 4.30e12, 4.285e12, 4.29e12)))
    assert calm.status == "warn"
    assert "median of 4 runs, 4.29 TB/s to 4.30 TB/s" in calm.message
    assert calm.figure is not None
    assert calm.figure.tolerated == pytest.approx(0.02, abs=0.002)
    loose = runs_of(4.29e12, 4.40e12, 4.15e12, 4.30e12)
    assert check_of("slower-than-baseline", measured(now, baseline=loose)).status == "pass"


def test_one_bad_run_in_the_history_hides_nothing() -> None:
    runs = runs_of(4.29e12, 4.30e12, 2.0e12, 4.285e12, 4.29e12)
    assert check_of("slower-than-baseline", measured(memory_copy(4.0e12), baseline=runs)).status == "warn"


def test_a_baseline_of_other_gpus_leaves_no_verdict() -> None:
    (check,) = checks_of("baseline-of-other-gpus", measured(memory_copy(), baseline=(memory_copy(gpu="GPU-other"),)))
    assert (check.status, check.title) == ("unknown", "The baseline has no figure of GPU 0")


def test_a_gpu_that_the_baseline_lacks_is_named() -> None:
    two = machine(
        h200(0), h200(1), measurements=(memory_copy(), memory_copy(gpu=h200(1).uuid)), baseline=(memory_copy(),)
    )
    (check,) = checks_of("baseline-of-other-gpus", two)
    assert (check.status, check.title) == ("note", "The baseline has no figure of GPU 1")
    assert check_of("baseline-of-other-gpus", but(two, baseline=two.measurements)).status == "pass"
    assert not checks_of("baseline-of-other-gpus", but(two, baseline=()))


def test_a_busy_gpu_is_not_held_to_its_baseline() -> None:
    assert not checks_of(
        "slower-than-baseline", measured(memory_copy(1e12, conditions=BUSY), baseline=(memory_copy(4.3e12),))
    )


# --- measurements that did not end --------------------------------------------------------------------------------
def run(status: str, detail: str = "", **more: Any) -> ProbeRun:
    return ProbeRun(name="bench.gemm", title="Matrix products", status=status, detail=detail, **more)  # type: ignore[arg-type]


@tabled
def test_what_did_not_end_is_said(detail: str, status: str, *, cut_short: bool, result: str) -> None:
    runs = (run(status, detail, gpu=h200().uuid, cut_short=cut_short),)
    check = check_of("measurement-unfinished", measured(memory_copy(), runs=runs))
    assert check.status == result
    alone = check_of("measurement-unfinished", measured(memory_copy(conditions=BUSY), runs=runs))
    assert alone.status == "unknown"  # nothing was judged, so there is no verdict
    assert f"GPU 0 (NVIDIA H200): Matrix products: {detail}" in check.message


@cases("status", "ok", "skipped", "absent")
def test_what_ended_or_was_not_started_did_not_fail(status: str) -> None:
    assert not checks_of("measurement-unfinished", machine(runs=(run(status, "GPU 0 is busy"),)))


# --- pages --------------------------------------------------------------------------------------------------------
@every(measured_rules())
def test_each_rule_has_its_page(name: str) -> None:
    rule = find_rule(name)
    assert rule is not None
    for heading in ("What it checks", "Why it matters", "How to fix", "Sources"):
        assert f"\n{heading}\n" in rule_page(rule)
    assert rule.scope == ("env" if rule.layer in ("library", "framework") else "node")


def test_a_variable_that_lowers_a_figure_is_named_beside_it() -> None:
    slow = measured(gemm("tf32", value=50e12))
    assert "NVIDIA_TF32_OVERRIDE" not in check_of("slow-gemm", slow).message
    found = check_of("slow-gemm", but(slow, variables=variables(NVIDIA_TF32_OVERRIDE="0"))).message
    assert "Likely cause: NVIDIA_TF32_OVERRIDE=0: cuBLAS" in found
    other = but(measured(memory_copy(1e12)), variables=variables(NVIDIA_TF32_OVERRIDE="0"))
    assert "NVIDIA_TF32_OVERRIDE" not in check_of("slow-gpu-memory", other).message


# --- figures ------------------------------------------------------------------------------------------------------
@cases("found", memory_copy(), memory_read(1e12), memory_copy(9e12), gemm(), to_gpu())
def test_the_check_of_a_figure_has_it_as_numbers(found: Measurement) -> None:
    """Whatever the verdict: what the words say can be read without them."""
    check = speed(found)
    told = check.figure
    assert told
    assert (told.name, told.value, told.unit, told.gpu) == (measurement_key(found), found.value, found.unit, 0)
    assert told.ceiling
    assert told.share == pytest.approx(told.value / told.ceiling)
    assert f"{told.share:.0%} of the ceiling" in f"{check.title} {check.message}"
    expected = next(evidence.value for evidence in check.evidence if evidence.what == "expected")
    assert expected.startswith(f"{told.expected_low:.0%} to {told.expected_high:.0%} of ")


def test_a_figure_that_is_not_judged_has_no_ceiling() -> None:
    (check,) = [check for check in judge(measured(memory_copy(), gpu=h200(mig=Mig(enabled=True)))) if check.figure]
    assert check.status == "skipped"
    assert check.figure
    assert (check.figure.value, check.figure.ceiling) == (memory_copy().value, None)


def test_a_figure_beside_a_baseline_has_both() -> None:
    (check,) = checks_of("slower-than-baseline", measured(memory_copy(), baseline=(memory_copy(8e12),)))
    assert check.figure
    assert (check.figure.value, check.figure.baseline, check.figure.ceiling) == (memory_copy().value, 8e12, None)
