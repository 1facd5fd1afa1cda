"""A whole ``envcheck bench --full`` as two H200 gave it: what goes with every figure, and how all of it is judged."""

from pathlib import Path
from typing import Any

import msgspec

from envcheck.collect.plan import BenchRequest
from envcheck.diff.reports import diff
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.expected import Expectation, expectation
from envcheck.model.snapshot import Measurement, Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.session import Request
from envcheck.rules.catalog import measured_rules
from envcheck.rules.facts.measurements import measurement_key
from tests.every import cases, every
from tests.rules.machines import but, machine

FOLDER = Path(__file__).parents[1] / "recorded"


class Recorded(msgspec.Struct):
    recorded: str
    gpus: Any
    measurements: list[Measurement]

    @property
    def snapshot(self) -> Snapshot:
        gpus = msgspec.convert({"gpus": self.gpus}, Snapshot).gpus
        return but(machine(), gpus=gpus, measurements=tuple(self.measurements))


def load(name: str) -> Recorded:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Recorded)


RECORDED = load("h200x2-bench-full")
FIGURES = [measured for measured in RECORDED.measurements if measured.value is not None]
UNVERIFIED = {"kernel-launch", "launch-and-sync"}
"""What has no result."""
CONDITIONS = (
    "sm_clock", "memory_clock", "power", "temperature", "utilisation", "power_limit", "power_limit_default",
    "pcie_generation", "pcie_width", "ecc", "utilisation_before", "memory_before", "temperature_before",
    "temperature_after",
)  # fmt: skip
SNAPSHOT = RECORDED.snapshot
GPUS = SNAPSHOT.gpus


@every(FIGURES)
def test_conditions_go_with_every_figure(measured: Measurement) -> None:
    conditions = measured.conditions
    assert conditions is not None
    assert conditions.samples > 0
    assert [name for name in CONDITIONS if getattr(conditions, name) is None] == []


@every(FIGURES)
def test_every_result_was_verified(measured: Measurement) -> None:
    if measured.name in UNVERIFIED:
        assert measured.verification is None
        return
    assert measured.verification is not None
    assert (measured.verification.right, measured.verification.wrong) == (True, 0)
    assert measured.verification.checked > 0


def test_what_was_not_measured_says_why() -> None:
    missing = {(measured.name, measured.missing) for measured in RECORDED.measurements if measured.value is None}
    assert missing == {
        ("host-to-device", "not measured: sysfs shows no second NUMA node"),
        ("device-to-host", "not measured: sysfs shows no second NUMA node"),
        ("all-reduce", "collectives (NCCL) are not measured; the copies between GPUs are"),
    }


def test_both_directions_at_once_were_verified_word_by_word() -> None:
    words = {
        measured.name: measured.verification.checked
        for measured in FIGURES
        if measured.verification and (measured.name == "both-directions" or "both" in (measured.variant or ""))
    }
    assert words == {"both-directions": 2 * (256 << 20) // 8, "peer-to-peer": 2 * (512 << 20) // 8}


@cases("name", "h200x2-bench-full", "h100x2-bench-full")
def test_nothing_is_wrong_with_sound_gpus(name: str) -> None:
    report = session.judge(load(name).snapshot, Request(only=measured_rules(), bench=BenchRequest(full=True)))
    assert report.verdict == "pass", report.headline
    assert {check.status for check in report.checks} == {"pass", "skipped"}


def test_a_gpu_that_was_throttled_for_heat_is_the_cause_of_its_low_figures() -> None:
    report = session.judge(load("h100x2-bench-hot").snapshot, Request(only=measured_rules(), bench=BenchRequest()))
    assert (report.verdict, report.primary) == ("fail", "gpu-held-back")
    (found,) = [check for check in report.checks if check.rule == "gpu-held-back" and check.status == "fail"]
    assert found.subject.index == 0
    (evidence,) = found.evidence
    assert evidence.value.startswith("in up to 100% of the samples of ")
    assert evidence.value.endswith(", at up to 92 °C")
    assert found.fixes
    low = [check for check in report.checks if check.status in ("fail", "warn") and check is not found]
    assert {check.rule for check in low} == {"slow-gemm", "slow-gpu-memory", "gpu-straggler"}
    assert {check.explained_by for check in low} == {found.id}


@every([each for each in FIGURES if each.burst is False])
def test_sustained_products_have_bands_of_their_own(measured: Measurement) -> None:
    assert GPUS is not None
    gpu = next(gpu for gpu in GPUS.items if gpu.uuid == measured.gpu)
    found = expectation(load_matrix(), gpu, measured)
    assert isinstance(found, Expectation)
    assert found.judgement == "pass"
    assert not found.wide
    assert found.clock_share is not None
    assert found.clock_share < 1  # at the power limit


def test_a_run_that_was_slowed_differs_in_nothing_else() -> None:
    """The recorded run, and the same with the products of GPU 1 a fifth slower at a lower power limit."""
    assert GPUS is not None
    slow = GPUS.items[1].uuid

    def slowed(each: Measurement) -> Measurement:
        if each.name != "gemm" or each.gpu != slow or not each.value:
            return each
        return but(each, value=0.8 * each.value, samples=(), conditions__power_limit=500.0)

    later = but(SNAPSHOT, measurements=tuple(map(slowed, RECORDED.measurements)))
    request = Request(only=measured_rules(), bench=BenchRequest(full=True))
    before, after = (session.judge(snapshot, request) for snapshot in (SNAPSHOT, later))
    (found,) = diff([("before", before), ("after", after)]).comparisons
    assert len(found.figures) == len(FIGURES)
    changed = [figure for figure in found.figures if figure.changed]
    products = [each for each in FIGURES if each.name == "gemm" and each.gpu == slow]
    noisy = {"gemm-fp8-1024x1024x16384"}  # its samples lie 40 % apart
    assert (
        {figure.name for figure in changed} | noisy
        >= {measurement_key(each) for each in products}
        >= {figure.name for figure in changed}
    )
    assert {figure.subject.partition(" at ")[0] for figure in changed} == {"GPU 1"}
    told = [change for change in found.changes if change.section == "measurements"]
    assert {change.why for change in told} == {("power limit 500 W, before 700 W",)}


def test_what_a_busy_gpu_took_part_in_is_laid_to_the_other_program() -> None:
    report = session.judge(load("h200x4-one-busy").snapshot, Request(only=measured_rules(), bench=BenchRequest()))
    found = [check for check in report.checks if check.status in ("warn", "fail")]
    assert [(check.rule, check.subject.index, check.fixes[0].text) for check in found] == [
        ("gpu-straggler", 2, "Let process 4508 end, and measure again")
    ]
    assert report.headline == "GPU 2 (NVIDIA H200): 61% slower while another program used it"
    (collective,) = [check for check in report.checks if check.rule == "slow-collective"]
    assert collective.status == "skipped"
    assert "another program used GPU 2" in collective.message
