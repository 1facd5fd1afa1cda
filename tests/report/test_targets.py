"""The table of targets: its width, its order, and foreign names in it."""

import json
from xml.etree import ElementTree as ET

import msgspec
import pytest

from envcheck.errors import UsageError
from envcheck.model.checks import Report
from envcheck.model.components import parse_components
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.request import Machine, Request
from envcheck.pipeline.session import judge
from envcheck.report import FORMATS, Options, render
from envcheck.report.page.targets import finding_rows

FITS = parse_components("gpu==H100,driver==550.54.14,os==linux,torch==2.5.1+cu124")
TOO_OLD = parse_components("gpu==A100,driver==440.33.01,os==linux,torch==2.5.1+cu124")
UNKNOWN = parse_components("gpu==Frobnicator 9000,driver==550.54.14,os==linux")
HOSTILE = "a|b\x1b[31m`</td>\n# x ::error::@all [x](https://evil.test)"


def judged(*machines: Machine) -> Report:
    return judge(Snapshot(), Request(targets=machines))


def test_the_worst_is_the_first_failure_and_no_verdict_is_worse_than_a_pass() -> None:
    fits, old, unknown = (
        Machine(name=name, assume=words) for name, words in (("fits", FITS), ("old", TOO_OLD), ("unknown", UNKNOWN))
    )
    for machines, worst, status in (
        ((fits, unknown, old), "old", 1),
        ((fits, unknown), "unknown", 3),
        ((fits,), "fits", 0),
    ):
        report = judged(*machines)
        assert report.worst is not None
        assert (report.worst.name, report.exit_code) == (worst, status)
        assert report.for_target(report.worst) == msgspec.structs.replace(report, targets=())
    rows = finding_rows(judged(fits, old, unknown).targets)
    assert [row.rule for row in rows][:2] == ["gpu-unsupported-by-driver", "driver-too-old"]
    assert all(row.statuses[0] in ("pass", "note", None) for row in rows[:2])


def test_forty_targets_fit_the_page() -> None:
    report = judged(*(Machine(name=f"machine-{number}", assume=TOO_OLD) for number in range(40)))
    lines = render(report, "text", Options(width=80)).splitlines()
    assert max(map(len, lines)) <= 80
    numbers = [int(word) for line in lines if line.strip() and set(line) <= set("0123456789 ") for word in line.split()]
    assert numbers == list(range(1, 41))
    assert len(render(report, "markdown")) < 60_000


def test_a_foreign_name_makes_nothing_but_text() -> None:
    report = judged(Machine(name=HOSTILE, assume=FITS), Machine(name="b", assume=TOO_OLD))
    text = render(report, "text")
    assert "\x1b" not in text
    assert "\n# x" not in text
    markdown = render(report, "markdown")
    assert "\x1b" not in markdown
    (row,) = [line for line in markdown.splitlines() if line.startswith("| ``a")]
    assert row.count("|") == 5
    (head,) = [line for line in markdown.splitlines() if line.startswith("| finding")]
    assert head.count("|") == 4


def test_every_format_tells_of_each_target_or_is_refused() -> None:
    several = judged(Machine(name="first", assume=TOO_OLD), Machine(name="second", assume=TOO_OLD))
    one = judged(Machine(name="old", assume=TOO_OLD))
    for form, about in FORMATS.items():
        assert render(one, form)
        if about.targets:
            shown = render(several, form)
            assert "first" in shown, form
            assert "second" in shown, form
        else:
            with pytest.raises(UsageError, match=rf"^{form} is about one machine, and there are 2 targets: give one"):
                render(several, form)


def test_machine_formats_keep_targets_apart() -> None:
    names = ("fits", "old", "unknown")
    report = judged(
        *(Machine(name=name, assume=words) for name, words in zip(names, (FITS, TOO_OLD, UNKNOWN), strict=True))
    )
    runs = json.loads(render(report, "sarif"))["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == ["envcheck/fits/", "envcheck/old/", "envcheck/unknown/"]
    assert [run["invocations"][0]["exitCode"] for run in runs] == [0, 1, 3]
    assert [bool([each for each in run["results"] if each["level"] == "error"]) for run in runs] == [False, True, False]
    entries = json.loads(render(report, "gitlab"))
    assert {entry["description"].partition(":")[0] for entry in entries} <= set(names)
    prints = [entry["fingerprint"] for entry in entries]
    assert len(set(prints)) == len(prints)
    suites = ET.fromstring(render(report, "junit"))
    red = {
        suite.get("name", "").split(".")[1]
        for suite in suites
        if suite.get("failures") != "0" or suite.get("errors") != "0"
    }
    assert red == {"old", "unknown"}
    assert sum(int(suite.get("tests", 0)) for suite in suites) == int(suites.get("tests", 0))
    lines = render(report, "github").splitlines()
    assert {line.partition("title=envcheck%3A ")[2].partition("%3A ")[0] for line in lines} == set(names)
    summary = json.loads(render(report, "summary"))
    assert [(target["name"], target["verdict"]) for target in summary["targets"]] == [
        ("fits", "pass"), ("old", "fail"), ("unknown", "unknown"),
    ]  # fmt: skip
