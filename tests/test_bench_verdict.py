"""What a report on measurements concludes, and figures kept for later comparison."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.collect.plan import BenchRequest
from envcheck.errors import UsageError
from envcheck.model.checks import Report
from envcheck.model.events import Interrupted, Judged, OnEvent
from envcheck.model.snapshot import Measurement, ProbeRun, Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.session import Request, judge
from envcheck.redact import redact
from envcheck.report import saved
from envcheck.rules.catalog import measured_rules
from tests.every import cases, every
from tests.known import fields, likened
from tests.rules.machines import but, h200, machine
from tests.rules.speed.measurements import conditions, figure, gemm, memory_copy, right, to_gpu, wrong

MEASURES = Request(only=measured_rules(), bench=BenchRequest())
BUSY = conditions(utilisation_before=97.0)


def run(status: Any = "ok", detail: str = "", name: str = "bench.gemm", **more: Any) -> ProbeRun:
    return ProbeRun(name=name, title="Matrix products", status=status, detail=detail, gpu=h200().uuid, **more)


def concluded(*figures: Measurement, gpus: int = 1, runs: tuple[ProbeRun, ...] = (run(),)) -> Report:
    here = [h200(number, sm_count=132) for number in range(gpus)]
    return session.judge(machine(*here, measurements=figures, runs=runs), MEASURES)


RIGHT_BUT_BUSY = gemm(conditions=BUSY, verification=right())
SKIPPED = run("skipped", "GPU 0 is busy (a kernel ran 97% of the time); --force measures it anyway")
DIED = run("timed-out", "timed out after 45 s while gemm fp32")
ABSENT = ("absent", "the binding cannot work with this driver")
REASONS = (run("absent", "measured with --full", "bench.chip"), run(*ABSENT), run(*ABSENT, "bench.memory"))


@cases("about, figures, runs, verdict, code, headline",
    ("as expected", [gemm(), memory_copy(verification=right()), to_gpu()], (run(),), "pass", 0,
     "1 GPU measured, all figures as expected"),
    ("of two GPUs", [gemm(), gemm(gpu=h200(1).uuid)], (run(),), "pass", 0, "2 GPUs measured, all figures as expected"),
    ("not all judged", [gemm(), memory_copy(), but(to_gpu(), conditions=None)], (run(),), "pass", 0,
     "1 GPU measured, 2 figures as expected, 1 not judged"),
    ("far too low", [gemm(value=300e12)], (run(),), "fail", 1, "…"),
    ("too low", [gemm(value=650e12), memory_copy()], (run(),), "warn", 0, "…"),
    ("wrong", [gemm(verification=wrong())], (run(),), "fail", 1, "…"),
    ("right, and nothing judged", [RIGHT_BUT_BUSY], (run(),), "unknown", 3, "…another program used the GPU…"),
    ("too high", [memory_copy(5.5e12), gemm()], (run(),), "unknown", 3, "…"),
    ("far too high", [figure("l2-read", 9e12, method="kernel", verification=right())], (run(),), "unknown", 3, "…"),
    ("missing", [but(gemm(), value=None, samples=(), verification=None, missing="no cuBLASLt was found")], (run(),),
     "unknown", 3, "…"),
    ("none", [], (run(),), "unknown", 3, "…"),
    ("none, for a reason", [], (SKIPPED,), "unknown", 3, "no verdict: GPU 0 is busy…"),
    ("none, for the reason of most probes", [], REASONS, "unknown", 3,
     "no verdict: the binding cannot work with this driver"),
    ("a measurement died", [memory_copy()], (DIED,), "unknown", 3, "…timed out after 45 s…"),
)  # fmt: skip
def test_what_figures_conclude(
    about: str, figures: list[Measurement], runs: tuple[ProbeRun, ...], verdict: str, code: int, headline: str
) -> None:
    report = concluded(*figures, gpus=len({figure.gpu for figure in figures}) or 1, runs=runs)
    expected = {"verdict": verdict, "exit_code": code, "headline": headline}
    assert likened(fields(report, expected), expected) == expected


def interrupted(figures: tuple[Measurement, ...]) -> Any:
    def gather(request: Request, on_event: OnEvent, _stop: object) -> Snapshot:
        on_event(Interrupted())
        return machine(
            h200(sm_count=132),
            measurements=figures,
            runs=(run("failed", "interrupted while gemm bf16", cut_short=True),),
        )

    return gather


def test_an_interrupted_run_is_judged_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "gather_here", interrupted((memory_copy(),)))
    told: list[object] = []
    report = session.check(MEASURES, told.append)
    assert (report.exit_code, report.verdict) == (130, "unknown")
    assert "interrupted while gemm bf16" in report.headline
    assert [check.status for check in report.checks if check.rule == "slow-gpu-memory"] == ["pass"]
    assert isinstance(told[0], Interrupted)
    assert isinstance(told[-1], Judged)
    assert told[-1].report.exit_code == 130


def test_a_failure_is_told_also_when_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "gather_here", interrupted((memory_copy(1e12),)))
    report = session.check(MEASURES)
    assert (report.verdict, report.exit_code) == ("fail", 130)


def test_measurements_beside_the_whole_check() -> None:
    found = machine(h200(sm_count=132), measurements=(gemm(), memory_copy()), runs=(run(),))
    plain = session.judge(found, Request(bench=BenchRequest()))
    assert plain.verdict == "pass"
    assert "measured" not in plain.headline
    slow = session.judge(but(found, measurements=(gemm(value=300e12),)), Request(bench=BenchRequest()))
    assert (slow.verdict, slow.primary) == ("fail", "slow-gemm")


# --- Figures kept for later comparison ------------------------------------------------------------------------------
def reported(*figures: Measurement) -> Report:
    return judge(machine(h200(sm_count=132), measurements=figures), Request())


def read(path: Path) -> tuple[Measurement, ...]:
    return saved.read_baseline(path.read_bytes(), str(path)).measurements


def test_round_trip(tmp_path: Path) -> None:
    figures = (memory_copy(), gemm(), to_gpu())
    saved.save_baseline(reported(*figures), str(tmp_path / "base.json"))
    assert read(tmp_path / "base.json") == tuple(but(each, conditions=None, verification=None) for each in figures)
    assert list(tmp_path.iterdir()) == [tmp_path / "base.json"]


def test_it_says_when_and_where_it_was_written(tmp_path: Path) -> None:
    report = reported(gemm())
    saved.save_baseline(report, str(tmp_path / "base.json"))
    document = json.loads((tmp_path / "base.json").read_text())
    assert (document["baseline_version"], document["created"]) == ("1.0", report.created)
    assert document["tool"] == report.tool.version


@cases("left_out",
    but(gemm(), value=None, samples=(), missing="no cuBLASLt was found"), gemm(verification=wrong()),
    gemm(conditions=conditions(utilisation_before=90.0)), gemm(conditions=conditions(memory_before=100 << 30)),
)  # fmt: skip
def test_what_nothing_can_be_held_to_is_left_out(left_out: Measurement, tmp_path: Path) -> None:
    saved.save_baseline(reported(left_out, memory_copy()), str(tmp_path / "base.json"))
    assert [each.name for each in read(tmp_path / "base.json")] == ["device-memory-copy"]
    with pytest.raises(UsageError, match="no figure to compare with later"):
        saved.save_baseline(reported(left_out), str(tmp_path / "other.json"))
    assert not (tmp_path / "other.json").exists()


@every(
    "", "{}", "[]", "null", "{" * 100000, '{"measurements": []}', '{"measurements": [{"value": 1.0}]}',
    '{"measurements": [{"source": "bench", "name": "gemm", "value": "fast"}]}',
    '{"baseline_version": "2.0", "measurements": [{"source": "bench", "name": "gemm"}]}', "\x00\xff",
)  # fmt: skip
def test_bad_files_are_refused_by_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"^old\.json is not a baseline"):
        saved.read_baseline(text.encode("utf-8", "surrogateescape"), "old.json")


def test_a_report_is_a_baseline_with_the_same_figures(tmp_path: Path) -> None:
    report = reported(memory_copy(), gemm(), gemm("fp8", verification=wrong()))
    saved.save_baseline(report, str(tmp_path / "base.json"))
    found = saved.read_baseline(msgspec.json.encode(report), "report.json")
    assert found == saved.read_baseline((tmp_path / "base.json").read_bytes(), "base.json")
    assert [(each.name, each.precision) for each in found.measurements] == [
        ("device-memory-copy", None),
        ("gemm", "bf16"),
    ]


def test_a_report_that_compares_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="old is not a baseline: it holds no figure"):
        saved.read_baseline(msgspec.json.encode(reported()), "old")
    with pytest.raises(UsageError, match="old is redacted, so its GPUs cannot be recognized"):
        saved.read_baseline(msgspec.json.encode(redact(reported(gemm()))), "old")
    with pytest.raises(UsageError, match=r"old is not a baseline: the saved report has schema 99\.0"):
        saved.read_baseline(b'{"schema_version": "99.0"}', "old")


def test_of_many_runs_the_newest_count() -> None:
    runs = [
        saved.Baseline(created=f"2026-{number:02}-01T00:00:00Z", measurements=(memory_copy(number * 1e12),))
        for number in (12, 3, *range(4, 12), 1, 2, *range(13, 20))
    ]
    kept = saved.newest(runs)
    assert [each.value for each in kept] == [number * 1e12 for number in range(4, 20)]
