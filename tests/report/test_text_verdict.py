"""The headline and the rows of the page for people: nothing is called well that nobody looked at."""

import html
import json
import re
from typing import Any

import msgspec

from envcheck.importers import read_text
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Listing, Platform, ProbeRun
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.report import Options, render
from envcheck.report.page.stack import stack_rows
from tests.every import cases
from tests.report.examples import EXAMPLES, PLAIN, check, healthy, page, report
from tests.report.examples import machine as build_machine


def test_status_is_told_by_words() -> None:
    text = render(EXAMPLES["warned"](), "text", Options(color=False))
    rows = [line for line in text.splitlines() if line[:12].strip() == "GPU" or line.startswith(" " * 12)]
    assert [row[12:18].strip() for row in rows[:2]] == ["WARN", "ok"]


def test_pass_says_that_it_is_on_paper() -> None:
    assert "look compatible (static checks only)" in render(healthy(), "text", PLAIN).splitlines()[0]
    reworded = msgspec.structs.replace(healthy(), headline="Everything fits")
    assert "(static checks only)" in render(reworded, "text", PLAIN).splitlines()[0]
    ran = msgspec.structs.replace(reworded, checks=(check("gpu-code-missing", decided_by="framework-ran"),))
    assert render(ran, "text", PLAIN).splitlines()[0] == "PASS  Everything fits"


def test_what_cannot_be_tried_is_not_offered() -> None:
    text = render(msgspec.structs.replace(healthy(), probes=(), headline="Everything fits"), "text", PLAIN)
    assert "Not tested" not in text
    assert text.splitlines()[0] == "PASS  Everything fits (static checks only)"
    assert "Not tested" not in render(EXAMPLES["assumed"](), "text", PLAIN)


@cases("assumed, what",
    ("gpu==H100,driver==580.65.06,os==linux", "machine; performance (--bench): likewise"),
    ("torch==2.5.1", "environment"),
)  # fmt: skip
def test_what_an_assumption_left_untried_is_told_with_the_reason(assumed: str, what: str) -> None:
    """By real runs: the pages go by the reason that the probes' rows have."""
    found = session.check(
        Request(assume=parse_components(assumed), deep=True, probes=("platform", "deep.torch", "bench.gemm"))
    )
    told = f"Not tested: framework import (--deep): not run, --assume describes another {what}"
    text = render(found, "text", PLAIN)
    assert " ".join(text.split()).partition("Not tested")[2].startswith(f"{told.removeprefix('Not tested')}.")
    assert told in html.unescape(render(found, "html", PLAIN))
    assert told in render(found, "markdown", PLAIN).replace("\\", "")
    rows = json.loads(render(found, "json", PLAIN))["probes"]
    assert {row["detail"] for row in rows if row["name"].startswith("deep.")} == {
        f"not assumed (--assume describes another {what.partition(';')[0]})"
    }


def test_unknown_names_the_fact_and_the_probe() -> None:
    first = render(EXAMPLES["unknown-nvml"](), "text", PLAIN).splitlines()[0]
    assert first.startswith("UNKNOWN  Driver version unknown: probe nvml timed out")


@cases("text", "torch 2.5.1\n", "NVIDIA L4\n")
def test_an_unknown_headline_does_not_state_the_problem_that_nobody_looked_for(text: str) -> None:
    judged = session.judge(read_text(text), Request(), lambda _event: None)
    problems = [each.title for each in judged.checks if each.status == "skipped"]
    first = render(judged, "text", PLAIN).splitlines()[0]
    assert first.startswith("UNKNOWN  ")
    assert not any(problem in first for problem in problems)


PERSISTENCE = "persistence mode is not enabled on GPU 00000000:0F:00.0 (nvidia-smi)\n"


def test_what_a_text_names_stands_above_what_was_not_looked_at() -> None:
    judged = session.judge(read_text(PERSISTENCE), Request(), lambda _event: None)
    lines = render(judged, "text", PLAIN).splitlines()
    assert re.fullmatch(r"UNKNOWN  Persistence mode is off +\[persistence-mode-off\]", lines[0])
    assert lines[1] == "  why   no verdict: List of GPUs was not checked"
    assert "error line: persistence mode is not enabled" in lines[2]
    assert sum("Persistence mode is off" in line for line in lines) == 1


def test_a_probe_that_died_stands_above_what_a_text_names() -> None:
    judged = session.judge(read_text(PERSISTENCE), Request(), lambda _event: None)
    dead = ProbeRun(name="nvml", title="NVML", status="timed-out", seconds=10, fills=("gpus",))
    assert "Persistence" not in render(msgspec.structs.replace(judged, probes=(dead,)), "text", PLAIN).splitlines()[0]


def test_nobody_looked_is_not_none() -> None:
    empty = msgspec.structs.replace(build_machine((), None), gpus=None, toolkits=None, driver=None, environments=None)
    text = render(report([], empty, verdict="unknown", headline="no verdict"), "text", PLAIN)
    assert not {"none", "ok"} & set(text.split())
    whole = render(report([], empty, verdict="unknown", headline="no verdict"), "text", Options(verbose=True))
    rows = {line[:12].strip(): line[12:] for line in whole.splitlines()}
    assert {rows[label] for label in ("GPU", "Driver", "Toolkit", "Frameworks")} == {"-     not checked"}
    assert text.splitlines()[-1] == "no check ran"


def test_an_incomplete_list_is_not_none() -> None:
    open_lists = msgspec.structs.replace(build_machine((), None), gpus=Listing(), toolkits=Listing())
    assert page(snapshot=open_lists).count("none seen, but the list is not complete") == 2


@cases("verbose, rows", (False, 0), (True, 1))
def test_a_row_that_says_nothing_is_left_to_the_whole_page(*, verbose: bool, rows: int) -> None:
    judged = session.judge(read_text("CUDA out of memory\n"), Request(), lambda _event: None)
    text = render(judged, "text", Options(verbose=verbose))
    assert (len(re.findall(r"(?m)^Toolkit +- +not checked$", text)), text.count(" skipped\n")) == (rows, rows)


def test_health_is_claimed_only_for_gpus_that_were_checked() -> None:
    found = healthy()
    unchecked = tuple(told for told in found.checks if told.subject.kind != "gpu")
    text = render(msgspec.structs.replace(found, checks=unchecked), "text", PLAIN)
    assert "no errors" in render(found, "text", PLAIN)
    assert "no errors" not in text


def test_dead_probes_are_told() -> None:
    runs = (
        ProbeRun(name="nvml", status="timed-out", seconds=10.4, detail="timed out: no answer"),
        ProbeRun(name="cuda", status="crashed", detail="crashed: SIGSEGV while loading libcuda.so.1"),
        ProbeRun(name="kernel", status="failed"),
        ProbeRun(name="bench", status="skipped", detail="not asked for"),
    )
    lines = render(msgspec.structs.replace(healthy(), probes=runs), "text", PLAIN).splitlines()
    assert "Probe nvml timed out after 10 s: no answer" in lines
    assert "Probe cuda crashed: SIGSEGV while loading libcuda.so.1" in lines
    assert "Probe kernel failed" in lines
    assert not any("bench timed" in line or line.startswith("Probe bench") for line in lines)


@cases("container", None, "none", "docker")
def test_a_container_s_failure_stands_in_a_row_of_its_own(container: Any) -> None:
    """It once read "GPU FAIL not looked at"."""
    found = check("container-toolkit-missing", "fail", "The toolkit is missing", layer="container")
    system = Platform(container=container) if container else None
    machine = msgspec.structs.replace(build_machine((), None), gpus=None, platform=system)
    rows = {row.label: row for row in stack_rows(report([found], machine), gpus=8)}
    assert (rows["GPU"].status, rows["GPU"].text, rows["Container"].status) == ("skipped", "not checked", "fail")
    assert rows["Container"].text in ("docker", "The toolkit is missing")


def test_another_environment_with_a_framework_is_named() -> None:
    text = render(EXAMPLES["no-gpu"](), "text", PLAIN)
    assert "not judged: torch 2.5.1 in /opt/conda (CONDA_PREFIX; --python judges it)" in " ".join(text.split())
