"""The stages of a run in its report, and the longest of them on the page."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from envcheck.model.runs import Stage
from envcheck.pipeline import timing
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.report import Options, render
from tests.cli.calling import envcheck
from tests.every import cases
from tests.test_machines import load

ASSUMED = ("check", "--json")


@cases("more", ("--assume", "gpu==H100,driver==550.54.14"), ("--target", "a100.toml", "--target", "l4.toml"))
def test_a_report_has_each_stage_once(tmp_path: Path, more: tuple[str, ...]) -> None:
    for name in ("A100", "L4"):
        (tmp_path / f"{name.lower()}.toml").write_text(f'gpu = "{name}"\ndriver = "550.54.14"\n')
    document = json.loads(envcheck(*ASSUMED, *more, cwd=tmp_path).out)
    names = [stage["name"] for stage in document["timing"]]
    assert names == [*(["start"] if sys.platform == "linux" else []), "gather", "enrich", "judge"]
    assert sum(stage["seconds"] for stage in document["timing"][-3:]) <= document["duration_s"] + 0.01
    assert all(stage["processor"] >= 0 for stage in document["timing"])


def test_a_stage_that_comes_again_is_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, work = iter((0.0, 1.0, 3.0, 7.0)), iter((0.0, 0.5, 0.5, 2.0))
    monkeypatch.setattr(timing, "time", SimpleNamespace(monotonic=clock.__next__, process_time=work.__next__))
    run = timing.Timing()
    for name in ("judge", "enrich", "judge"):
        run.end(name)
    assert run.stages == (
        Stage(name="enrich", seconds=2.0, processor=0.0),
        Stage(name="judge", seconds=5.0, processor=2.0),
    )


def test_a_page_with_everything_names_what_took_longest() -> None:
    report = judge(load("h200x4").snapshot, Request())
    stages = (Stage(name="gather", seconds=9.0), Stage(name="judge", seconds=0.25, processor=0.1))
    took = {"nvml": (0.75, 0.5), "cuda": (0.5, None)}
    probes = tuple(
        msgspec.structs.replace(run, seconds=seconds, processor=processor)
        for run in report.probes
        for seconds, processor in [took.get(run.name, (0.01, 0.01))]
    )
    report = msgspec.structs.replace(report, timing=stages, probes=probes)
    page = " ".join(render(report, "text", Options(verbose=True)).split())
    longest = page.partition("; longest: ")[2].partition(" envcheck ")[0]
    assert longest.count(", ") == 4
    assert "judge 0.25 s (processor 0.10 s)" in longest
    assert "nvml 0.75 s (processor 0.50 s)" in longest
    assert "cuda 0.50 s," in longest
    assert "gather" not in longest
    timeless = msgspec.structs.replace(report, timing=())
    assert "longest:" not in render(timeless, "text", Options(verbose=True))
