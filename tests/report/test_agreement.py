"""Nothing that is shown is better than its worst check, and the exit status is what the headline says.

Over every machine of the tests of rules, recorded and constructed, and over combinations of what is wrong.
"""

import itertools
import random
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import msgspec
import pytest

from envcheck.model.checks import Check, Layer, Report, Status
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.request import Request
from envcheck.pipeline.session import judge
from envcheck.report import Options, render
from envcheck.report.page.findings import Outline
from envcheck.report.page.pen import WORDS, Pen
from envcheck.report.page.stack import StackRow, stack_rows
from envcheck.report.page.subject import group_text, groups, severity, worst
from envcheck.tui.screens.pages import stack_lines
from tests.rules.engine.test_finding_sources import every_machine
from tests.thorough import examples, sample

MACHINES = Path(__file__).parents[1] / "machines"
LAYERS_OF: dict[str, tuple[Layer, ...]] = {
    "GPU": ("gpu", "fabric"), "Driver": ("driver", "kernel"), "Toolkit": ("toolkit",), "Container": ("container",),
    "Required": ("request",),
}  # fmt: skip
VERDICTS = {"fail": "FAIL", "warn": "WARN", "pass": "PASS", "unknown": "UNKNOWN"}
GOOD = ("pass", "note")
BAD = ("fail", "warn")


class _Recorded(msgspec.Struct):
    snapshot: Snapshot


def recorded() -> Iterator[Snapshot]:
    for path in sorted((*MACHINES.glob("*.json"), *MACHINES.glob("constructed/*.json"))):
        yield msgspec.json.decode(path.read_bytes(), type=_Recorded).snapshot


def combined(count: int) -> Iterator[Snapshot]:
    """Sections of two machines in one snapshot: the hardware of one under the software and the errors of another."""
    chance = random.Random(13)
    sections = (("environments",), ("observed_errors",), ("driver", "kernel"), ("environments", "platform"))
    known = list(every_machine())
    for _ in range(count):
        first, second = chance.choice(known), chance.choice(known)
        yield msgspec.structs.replace(first, **{name: getattr(second, name) for name in chance.choice(sections)})


def reports() -> Iterator[Report]:
    snapshots = itertools.chain(recorded(), sample(list(every_machine()), 6), combined(examples(80)))
    for number, snapshot in enumerate(snapshots):
        yield judge(snapshot, Request(fail_on="warn" if number % 3 == 0 else "fail", tried=True))


@pytest.fixture(scope="module")
def judged() -> list[Report]:
    return list(reports())


def open_checks(report: Report) -> list[Check]:
    return [check for check in report.checks if not check.ignored]


def no_better(shown: Status, checks: list[Check]) -> bool:
    """A part may say more than its checks, never less."""
    return severity(shown) <= severity(worst(checks)) or (shown == "skipped" and worst(checks) in GOOD)


def test_the_corpus_holds_what_it_is_for(judged: list[Report]) -> None:
    assert len(judged) > 500
    assert {report.verdict for report in judged} == {"pass", "warn", "fail", "unknown"}
    assert sum(any(check.explained_by for check in report.checks) for report in judged) > 15


def test_the_verdict_its_headline_and_the_exit_status_agree(judged: list[Report]) -> None:
    for report in judged:
        statuses = {check.status for check in open_checks(report)}
        assert (report.verdict == "fail") == ("fail" in statuses)
        assert report.verdict != "pass" or not statuses & set(BAD)
        lead = report.check(report.primary_check)
        assert (lead is not None) == bool(statuses & set(BAD)), report.headline
        if lead is not None and report.verdict != "unknown":
            assert lead.status == report.verdict, f"{report.headline} is no milder than the verdict"
        assert report.exit_code == {"fail": 1, "warn": report.exit_code, "unknown": 3, "pass": 0}[report.verdict]
    for report in sample(judged):
        first = render(report, "text", Options()).splitlines()[0]
        assert first.startswith(VERDICTS[report.verdict]), first


def test_a_cause_is_no_milder_than_its_consequences(judged: list[Report]) -> None:
    for report in judged:
        for check in open_checks(report):
            cause = report.check(check.explained_by)
            assert cause is None or check.status == "unknown" or severity(cause.status) <= severity(check.status), (
                check.id
            )


def test_no_row_of_the_stack_is_better_than_its_worst_check(judged: list[Report]) -> None:
    for report in judged:
        rows = stack_rows(report, 100)
        agree(rows, report)
        shown = {word for row in rows for word in (row.status,)}
        software = [check for check in report.checks if check.layer in ("framework", "library")]
        if worst(software) in BAD:
            assert any(row.label in ("Frameworks", "Extensions") and row.status in BAD for row in rows), report.headline
        assert report.verdict != "fail" or "fail" in shown, report.headline


def agree(rows: list[StackRow], report: Report) -> None:
    labels = {row.label for row in rows}
    for label, layers in LAYERS_OF.items():
        checks = [check for check in report.checks if check.layer in layers]
        if label == "GPU":
            checks = [check for check in checks if check.subject.kind in ("gpu", "machine")]
        own = [row for row in rows if row.label == label or (label == "GPU" and row.label == "")]
        if label not in labels:
            assert worst(checks) not in BAD, f"{label} is not shown, and {worst(checks)}"
            continue
        shown = min((row.status for row in own if row.status), key=severity)
        assert no_better(shown, checks), f"{label} {shown}: {own[0].text}, and {worst(checks)}"
        for row in own:
            away = re.search(r"\bnone installed\b|\bmodule not loaded\b|\bnot checked\b", row.text)
            assert not (away and row.status in GOOD), f"{label} {row.status}: {row.text}"
            assert not (row.text == "not checked" and row.status in BAD), f"{label} {row.status} without a word"


def test_no_errors_is_said_of_no_gpu_with_a_finding(judged: list[Report]) -> None:
    for report in judged:
        machine = [
            check for check in report.checks if check.layer in ("gpu", "fabric") and check.subject.kind == "machine"
        ]
        for group in groups(report, machine):
            names = {name for gpu in group.gpus for name in gpu.identities()}
            bad = [
                check
                for check in open_checks(report)
                if check.status in BAD and names & {check.subject.key, check.subject.uuid, check.subject.pci_bus_id}
            ]
            assert not (bad and "no errors" in group_text(group, report)), bad[0].id
            assert not bad or group.status in BAD


def test_a_remark_does_not_deny_a_failure(judged: list[Report]) -> None:
    for report in judged:
        failing = {(check.rule, check.subject.key) for check in report.checks if check.status == "fail"}
        for check in report.checks:
            if "which works" in check.title:
                assert ("driver-too-old", check.subject.key) not in failing
                assert ("driver-too-old", "machine") not in failing


def test_every_finding_is_told_once_and_none_is_lost(judged: list[Report]) -> None:
    for report in judged:
        outline = Outline(report)
        told = [check.id for finding in outline.findings for check in finding.checks]
        told += [check.id for f in outline.findings for g in outline.consequences(f) for check in g.checks]
        bad = [check.id for check in open_checks(report) if check.status in BAD]
        assert sorted(found for found in told if found in bad) == sorted(bad)
        if outline.findings and report.verdict != "unknown":
            assert outline.findings[0].status == report.verdict


def test_the_application_and_the_shared_formats_agree(judged: list[Report]) -> None:
    for report in sample(judged, 9):
        stack = ["".join(span.text for span in line) for line in stack_lines(report, Pen(Options()), final=True)]
        assert report.verdict != "fail" or any(WORDS["fail"] in line for line in stack), stack
        markdown, page = (render(report, form, Options()) for form in ("markdown", "html"))
        word = VERDICTS[report.verdict]
        assert word in markdown.splitlines()[0] + markdown.splitlines()[2], markdown[:300]
        assert word in unescape(page)
        xml = render(report, "junit", Options())
        red = re.search(r'failures="(\d+)" errors="(\d+)"', xml)
        assert red is not None
        assert (int(red[1]) + int(red[2]) > 0) == (report.exit_code != 0), xml[:300]
        summary = msgspec.json.decode(render(report, "summary", Options()))
        assert (summary["verdict"], summary["exit_code"]) == (report.verdict, report.exit_code)
