"""What was left out of a measurement is said: in the headline, and by the verdict where it was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.checks import Report
from envcheck.collect.bench_plan import Bench
from envcheck.pipeline import session
from envcheck.pipeline.session import Request
from envcheck.report import Options, render
from envcheck.rules.facts.measurements import coverage, numbers
from envcheck.rules.speed.ceilings import MEASURED
from envcheck.snapshot import Gpu, Measurement, ProbeRun
from tests.rules.machines import but, h200, machine
from tests.rules.speed.measurements import figure, gemm, memory_copy, right, to_gpu

WHY = "GPU 0 is busy (a kernel ran 97% of the time); --force measures it anyway"


def run(gpu: int, status: Any = "ok", detail: str = "", name: str = "bench.gemm") -> ProbeRun:
    return ProbeRun(name=name, title="Matrix products", status=status, detail=detail, gpu=h200(gpu).uuid)


def here(count: int, **changes: Any) -> list[Gpu]:
    return [h200(number, sm_count=132, cuda_ordinal=number, **changes) for number in range(count)]


def reported(gpus: list[Gpu], *figures: Measurement, runs: tuple[ProbeRun, ...], whole: bool = False) -> Report:
    request = Request(bench=Bench()) if whole else Request(only=MEASURED, bench=Bench())
    return session.judge(machine(*gpus, measurements=figures, runs=runs), request)


def on(number: int, *, copies: bool = True) -> list[Measurement]:
    uuid = h200(number).uuid
    return [gemm(gpu=uuid), *([memory_copy(gpu=uuid, verification=right()), to_gpu(gpu=uuid)] if copies else [])]


def test_a_gpu_in_use_leaves_no_verdict() -> None:
    report = reported(here(2), *on(1), runs=(run(0, "skipped", WHY), run(1)))
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert report.headline == "no verdict: 1 of 2 GPUs measured, GPU 0 in use"
    (check,) = [check for check in report.checks if check.rule == "gpu-not-measured"]
    assert (check.status, check.title) == ("unknown", "GPU 0 not measured")
    assert [item.value for item in check.evidence] == [WHY]


def test_it_leaves_none_of_the_whole_check_either() -> None:
    report = reported(here(2), *on(1), runs=(run(0, "skipped", WHY), run(1)), whole=True)
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert "GPU 0 in use" in report.headline


def test_a_fault_is_not_hidden_by_it() -> None:
    report = reported(here(2), gemm(value=300e12, gpu=h200(1).uuid), runs=(run(0, "skipped", WHY), run(1)))
    assert (report.verdict, report.exit_code) == ("fail", 1)


def test_gpus_that_were_not_asked_for_are_said_and_pass() -> None:
    report = reported(here(4), *on(2), runs=(run(2),))
    assert (report.verdict, report.exit_code) == ("pass", 0)
    assert report.headline == "1 of 4 GPUs measured, GPUs 0-1, 3 not asked for, 3 figures as expected"
    assert "Not measured: GPUs 0-1, 3, not asked for" in render(report, "speed", Options())


def test_a_gpu_that_cuda_does_not_show_is_hidden() -> None:
    gpus = [h200(0, sm_count=132, cuda_ordinal=0), h200(1, cuda_ordinal=None)]
    report = reported(gpus, *on(0), runs=(run(0),))
    assert report.verdict == "pass"
    assert report.headline == "1 of 2 GPUs measured, GPU 1 hidden from CUDA, 3 figures as expected"
    assert "Not measured: GPU 1, hidden from CUDA" in render(report, "speed", Options())


def test_a_figure_that_could_not_be_taken_is_counted() -> None:
    missing = but(gemm("fp8"), value=None, samples=(), verification=None, missing="no cuBLASLt was found")
    report = reported(here(1), *on(0), missing, runs=(run(0),))
    assert report.headline == "1 GPU measured, 3 figures as expected, 1 not measured"


def test_also_one_of_a_quantity_that_no_rule_judges() -> None:
    missing = figure("all-reduce", 0.0)
    missing = but(missing, value=None, samples=(), missing="no NCCL was found")
    report = reported(here(2), *on(0), *on(1), missing, runs=(run(0), run(1)))
    assert report.headline == "2 GPUs measured, 6 figures as expected, 1 not measured"
    assert report.verdict == "pass"


def test_work_that_was_verified_and_not_timed_is_no_missing_figure() -> None:
    shown = but(figure("cudnn-pooling", 0.0), value=None, samples=(), verification=right())
    assert coverage(here(1), [shown], ()).missing == ()


def test_only_what_is_whole_is_called_all() -> None:
    report = reported(here(2), *on(0), *on(1), runs=(run(0), run(1)))
    assert report.headline == "2 GPUs measured, all figures as expected"


def test_a_gpu_whose_probes_found_nothing_to_ask_is_not_measured() -> None:
    shown = "CUDA does not show GPU-1 to this process"
    report = reported(here(2), *on(0), runs=(run(0), run(1, "absent", shown)))
    assert (report.verdict, report.headline) == ("unknown", "no verdict: 1 of 2 GPUs measured, GPU 1 without a figure")


@pytest.mark.parametrize("status", ["timed-out", "crashed", "failed"])
def test_an_idle_gpu_whose_measurement_died_is_no_pass(status: Any) -> None:
    """It was not found healthy, though the others were; its own rule tells it, and no second one."""
    report = reported(here(2), *on(0), runs=(run(0), run(1, status, "died while gemm fp8")))
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert "died while gemm fp8" in report.headline
    assert [check.rule for check in report.checks if check.rule == "gpu-not-measured"] == []


@pytest.mark.parametrize("status", ["timed-out", "crashed", "failed"])
def test_a_measurement_that_died_is_a_warning_and_leaves_no_verdict(status: Any) -> None:
    report = reported(here(2), *on(0), *on(1), runs=(run(0), run(1, status, "died while gemm fp8")))
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert "died while gemm fp8" in report.headline
    assert [check.rule for check in report.checks if check.status == "warn"] == ["measurement-unfinished"]


def test_a_gpu_on_which_nothing_could_be_measured_says_why() -> None:
    missing = but(gemm(), value=None, samples=(), verification=None, missing="1,500 MiB are free, 4,608 are needed")
    report = reported(here(1), missing, runs=(run(0),))
    assert (report.verdict, report.headline) == ("unknown", "no verdict: 1,500 MiB are free, 4,608 are needed")


def test_a_deep_check_measures_nothing_and_leaves_out_nothing() -> None:
    detail = "GPU 0 is busy (a kernel ran 97% of the time); --force measures it anyway"
    runs = (run(0, "skipped", detail, name="bench.cudnn"), run(1, "skipped", detail, name="bench.cudnn"))
    report = session.judge(machine(*here(2), runs=runs), Request(deep=True))
    assert not [check for check in report.checks if check.rule == "gpu-not-measured"]


@pytest.mark.parametrize(
    ("indices", "words"),
    [((0,), "GPU 0"), ((0, 1), "GPUs 0-1"), ((5, 0, 1, 2), "GPUs 0-2, 5"), ((1, 3, 5), "GPUs 1, 3, 5")],
)
def test_numbers_in_words(indices: tuple[int, ...], words: str) -> None:
    assert numbers([h200(index) for index in indices]) == words


def test_a_gpu_without_a_number_is_named_by_its_place() -> None:
    assert numbers([h200(0), but(h200(1), index=None)]) == f"GPUs 0, {h200(1).key}"


def test_the_headline_has_room_for_a_machine_of_eight() -> None:
    runs = tuple(run(number, "skipped", WHY) for number in range(7))
    report = reported(here(8), *on(7), runs=(*runs, run(7)))
    assert report.headline == "no verdict: 1 of 8 GPUs measured, GPUs 0-6 in use"
