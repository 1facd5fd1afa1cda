"""The page of measured figures: as recorded, within 80 columns, and honest about what is missing."""

import json
import os
import re
from pathlib import Path

import pytest

from envcheck.collect.plan import BenchRequest
from envcheck.model.checks import Report
from envcheck.model.snapshot import Measurement, ProbeRun
from envcheck.pipeline import session
from envcheck.pipeline.session import Request
from envcheck.report import Options, render
from envcheck.rules.catalog import measured_rules
from tests.every import cases
from tests.rules.machines import but, h200, machine
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

GOLDEN = Path(__file__).parent / "golden"
REWRITE = bool(os.environ.get("ENVCHECK_REWRITE_GOLDEN"))
WIDTH = 80


def run(status: str = "ok", detail: str = "", **more: str) -> ProbeRun:
    name = more.pop("name", "bench.gemm")
    return ProbeRun(name=name, title="Matrix products (cuBLASLt)", status=status, detail=detail, **more)  # type: ignore[arg-type]


def reported(*figures: Measurement, gpus: int = 1, runs: tuple[ProbeRun, ...] = (run(),)) -> Report:
    here = [h200(number, sm_count=132) for number in range(gpus)]
    return session.judge(
        machine(*here, measurements=figures, runs=runs), Request(only=measured_rules(), bench=BenchRequest())
    )


def quick(gpu: int = 0) -> list[Measurement]:
    uuid = h200(gpu).uuid
    return [
        gemm("fp32", 51.1e12, gpu=uuid), gemm(gpu=uuid), gemm("fp8", 1580e12, gpu=uuid), to_gpu(gpu=uuid),
        memory_copy(gpu=uuid, verification=right()), memory_read(gpu=uuid),
    ]  # fmt: skip


def healthy() -> Report:
    return reported(*quick())


def two_gpus() -> Report:
    return reported(*quick(), to_peer(), *quick(1), gpus=2)


def one_slow() -> Report:
    hot = conditions(throttle={"sw_thermal_slowdown": 0.8})
    slow = gemm(value=400e12, conditions=hot, samples=(300e12, 400e12, 420e12))
    return reported(*quick()[:1], slow, *quick()[3:])


def wrong_result() -> Report:
    return reported(gemm(verification=wrong(3)), memory_copy())


def partly() -> Report:
    missing = but(gemm("fp8"), value=None, samples=(), verification=None, missing="no cuBLASLt was found " + "x" * 90)
    odd = figure("latency-l2", 1.45e-7, "s", method="kernel", verification=right())
    return reported(missing, odd, memory_copy(), runs=(run("timed-out", "timed out after 45 s while gemm fp32"),))


def busy() -> Report:
    detail = "GPU 0 is busy (a kernel ran 97% of the time); --force measures it anyway"
    return reported(runs=(run("skipped", detail, gpu=h200().uuid or ""),))


def forced() -> Report:
    return reported(*(but(each, conditions=conditions(utilisation_before=97.0)) for each in quick()))


def straggler() -> Report:
    """GPU 1 of the two is held down by heat, and slower than GPU 0 in what it computes."""
    hot = conditions(throttle={"sw_thermal_slowdown": 0.8}, temperature=span(60.0, 80.0, 86.0))
    slow = [
        but(each, value=0.7 * (each.value or 0), samples=(), conditions=hot) if each.name == "gemm" else each
        for each in quick(1)
    ]
    return reported(*quick(), to_peer(), *slow, gpus=2)


def one_in_use() -> Report:
    detail = "GPU 0 is busy (a kernel ran 97% of the time); --force measures it anyway"
    runs = (run("skipped", detail, gpu=h200().uuid or ""), run(gpu=h200(1).uuid or ""))
    return reported(*quick(1), gpus=2, runs=runs)


PAGES = {
    page.__name__.replace("_", "-"): page
    for page in (healthy, two_gpus, straggler, one_slow, one_in_use, wrong_result, partly, busy, forced)
}


def page_of(report: Report, **options: bool) -> str:
    return render(report, "speed", Options(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PAGES)
def test_page_is_as_recorded(name: str) -> None:
    text = page_of(PAGES[name]())
    file = GOLDEN / f"speed-{name}.txt"
    if REWRITE:
        file.write_text(text)
    assert text == file.read_text(), f"ENVCHECK_REWRITE_GOLDEN=1 writes {file.name} anew"


@pytest.mark.parametrize("name", PAGES)
@cases("ascii_only", False, True)
def test_no_line_is_wider_than_the_page(name: str, *, ascii_only: bool) -> None:
    text = page_of(PAGES[name](), ascii=ascii_only)
    assert max(map(len, text.splitlines())) <= WIDTH
    assert not ascii_only or text.isascii()


def test_nothing_is_said_of_frameworks() -> None:
    assert "static checks" not in page_of(healthy())
    assert "nothing was run" not in page_of(healthy())
    assert " ".join(page_of(healthy()).splitlines()[0].split()) == "PASS 1 GPU measured, all figures as expected"


def test_a_wrong_result_is_shouted() -> None:
    text = page_of(wrong_result())
    (row,) = [line for line in text.splitlines() if line.startswith("  BF16")]
    assert "WRONG" in row
    assert text.startswith("FAIL")


def test_a_missing_value_is_no_number() -> None:
    (row,) = [line for line in page_of(partly()).splitlines() if line.startswith("  FP8")]
    assert " -  " in row
    assert "no cuBLASLt was found" in row


def test_what_was_not_judged_is_not_called_ok() -> None:
    rows = [line for line in page_of(forced()).splitlines() if line.startswith("  ")]
    assert not any(" ok " in row for row in rows if "B/s" in row or "FLOP/s" in row)


def test_a_wide_spread_is_shown() -> None:
    assert "spread 9%" in page_of(reported(memory_copy(4.3e12, samples=(4.0e12, 4.3e12, 4.4e12))))
    assert "spread" not in page_of(healthy())


def test_peers_are_named() -> None:
    assert "to GPU 1" in page_of(two_gpus())


def test_quiet_is_the_verdict_alone() -> None:
    assert "TFLOP/s" not in page_of(healthy(), quiet=True)


def test_colour_only_where_asked() -> None:
    assert "\x1b[" not in page_of(one_slow())
    assert "\x1b[" in page_of(one_slow(), color=True)


def test_hostile_names_do_nothing_to_a_terminal() -> None:
    figures = [but(memory_copy(), variant="\x1b[31m\n", detail="\x07", missing="\x1b]0;x\x07")]
    assert "\x1b" not in page_of(reported(*figures))


def test_how_far_gpus_lie_apart_is_on_every_page() -> None:
    report = straggler()
    (check,) = [check for check in report.checks if check.rule == "gpu-straggler" and check.status == "warn"]
    assert "GPU 1" in check.title
    assert "thermal throttling by the driver in 80% of the samples" in check.message
    (found,) = [found for found in report.across_gpus if found.name.startswith("gemm-bf16")]
    assert [(gpu.gpu, gpu.straggles) for gpu in found.gpus] == [(0, False), (1, True)]
    _, _, across = render(report, "html", Options()).partition("Across GPUs")
    assert re.search(r"BF16 matrix product 8192\^3</span>.{1,120}SLOWER</span> 30%  GPU 1: 576 of 823 TFLOP/s", across)
    assert "30% slower than the other GPU" in render(report, "text", Options(verbose=True))


def test_the_speed_stands_beside_that_of_earlier_runs() -> None:
    report = session.judge(
        machine(h200(sm_count=132), measurements=(memory_copy(4.1e12), to_gpu()), runs=(run(),)),
        Request(
            only=measured_rules(),
            bench=BenchRequest(),
            baseline=(memory_copy(4.3e12), memory_copy(4.28e12), memory_copy(4.29e12)),
        ),
    )
    rows = page_of(report).splitlines()
    assert next(row for row in rows if row.startswith("  Device memory copy")).endswith("85%  96% of base")
    assert "base" not in next(row for row in rows if row.startswith("  Copy from host"))
    assert "4% slower than the baseline" in " ".join(rows[:2])
    assert max(map(len, rows)) <= WIDTH


def test_no_uuid_is_left_after_redaction() -> None:
    report = straggler()
    uuids = [h200(number).uuid or "" for number in range(2)]
    plain = render(report, "json", Options())
    hidden = render(report, "json", Options(redact=True))
    assert all(uuid in plain and uuid not in hidden for uuid in uuids)
    assert json.loads(hidden)["across_gpus"][0]["gpus"][0]["gpu"] == 0
