"""Groups of nodes of a configuration: GPUs that must be there, what is ignored, and how bad a finding is."""

import json
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.config.meaning import fleet_groups
from envcheck.config.read import Configuration, in_file
from envcheck.errors import UsageError
from envcheck.fleet.compare import judged
from envcheck.fleet.record import Fleet
from envcheck.model.checks import Check, Report
from envcheck.pipeline.request import Request
from envcheck.report.saved import read_report
from tests.cli.calling import ROOT, envcheck
from tests.every import cases
from tests.fleet.made import healthy
from tests.fleet.test_fleet import fleet_of, write
from tests.test_machines import report_on


def configuration(text: str) -> Configuration:
    found = in_file("envcheck.toml", text.encode())
    assert found is not None
    return found


def seen(report: Report, text: str, node: str) -> Report:
    return judged(Request(), fleet_groups(configuration(text)), report, node)


def fleet(folder: Path, text: str) -> Fleet:
    return fleet_of(folder, judge=partial(judged, Request(), fleet_groups(configuration(text))))


EIGHT = '[[fleet.group]]\nnodes = ["node[00000-00002]"]\ngpus = { count = %s, models = ["%s"] }\n'


def test_a_node_of_a_group_must_have_its_gpus(tmp_path: Path) -> None:
    made = healthy(5)
    for lost in (made[1], made[4]):  # of which only the first is in the group
        lost["snapshot"]["gpus"]["items"].pop()
    found = fleet(write(tmp_path, made), EIGHT % (4, "H200"))
    assert [(each.rule, each.title, each.nodes) for each in found.problems] == [
        ("requirement-not-met", "Not as required: gpus==4", ("node00001",))
    ]
    assert (found.head.verdict, found.head.verdicts["fail"]) == ("fail", 1)
    assert next(node.headline for node in found.nodes if node.name == "node00001") == "Not as required: gpus==4"


def test_gpus_that_were_not_read_are_no_verdict(tmp_path: Path) -> None:
    made = healthy(4)
    made[0]["snapshot"]["gpus"] = None
    found = fleet(write(tmp_path, made), EIGHT % (4, "H200"))
    assert [node.verdict for node in found.nodes] == ["unknown", "pass", "pass", "pass"]
    assert not found.problems


def test_another_model_is_not_as_required(tmp_path: Path) -> None:
    found = fleet(write(tmp_path, healthy(4)), EIGHT % (4, "B200"))
    assert [(each.title, each.nodes) for each in found.problems] == [
        ("Not as required: gpu==B200", ("node00000", "node00001", "node00002"))
    ]


IGNORED = """
[[fleet.group]]
nodes = ["a[1-9]"]
severity = { %s = "note" }
[[fleet.group]]
nodes = ["b[1-9]"]
[[fleet.group.ignore]]
problem = "%s"
reason = "known"
until = %s
"""


@pytest.fixture(scope="module")
def failing() -> Report:
    report = report_on("constructed/fabric-manager")
    assert report.verdict == "fail"
    return report


def open_failures(report: Report) -> list[Check]:
    return [check for check in report.checks if check.status == "fail" and not check.ignored]


def test_what_a_group_ignores_or_calls_a_note_is_no_failure_there(failing: Report) -> None:
    rules = {check.rule for check in open_failures(failing)}
    assert len(rules) == 1
    text = IGNORED % (*rules, *rules, datetime.now(timezone.utc).date() + timedelta(days=1))
    for node in ("a1", "b2.example.org", "root@b3"):
        found = seen(failing, text, node)
        assert found.verdict != "fail", node
        assert found.exit_code != 1
        assert not open_failures(found)
    assert "1 failure ignored" in seen(failing, text, "b1").headline
    assert seen(failing, text, "c1") is failing
    read_report(msgspec.json.encode(seen(failing, text, "b1")))  # it is a whole report still


def test_what_was_to_be_gone_by_now_fails_again(failing: Report) -> None:
    (rule,) = {check.rule for check in open_failures(failing)}
    found = seen(failing, IGNORED % (rule, rule, "2020-01-31"), "b1")
    assert (found.verdict, found.primary) == ("fail", failing.primary)


@cases("text, told",
    ('[[fleet.group]]\nnodes = ["a[1-3]"]\n[[fleet.group]]\nnodes = ["a3"]\n', "envcheck.toml:4: nodes: a3 is in"),
    ('[[fleet.group]]\nnodes = ["a[1-"]\n', "envcheck.toml:2: nodes: "),
    ('[[fleet.group]]\nnodes = ["a"]\nseverity = { gpu-losst = "note" }\n', "envcheck.toml:3: severity: "),
    ('[[fleet.group]]\nnodes = ["a"]\ngpus = { count = "many" }\n', "envcheck.toml:3: gpus: "),
    ('[[fleet.group]]\nnode = ["a"]\n', "envcheck.toml:2: there is no key"),
    ('[[fleet.group]]\nnodes = ["a"]\nseverity = { gpu-lost = "bad" }\n', "envcheck.toml:3: fleet.group"),
    ("[fleet]\nnodes = 3\n", "envcheck.toml:2: "),
)  # fmt: skip
def test_a_wrong_group_is_refused_with_its_line(text: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        fleet_groups(configuration(text))
    assert str(refused.value).startswith(told)


def test_the_configuration_of_the_folder_counts(tmp_path: Path) -> None:
    made: list[dict[str, Any]] = healthy(210)  # read in other processes too
    for report in made:
        report["measurements"] = []
        (tmp_path / f"{report['host']}.json").write_text(json.dumps(report))
    (tmp_path / "envcheck.toml").write_text(EIGHT % (8, "H200"))
    told = envcheck("fleet", "--reports", ".", cwd=tmp_path)
    assert "FAIL node[00000-00002]: requirement-not-met: Not as required: gpus==8" in told.out
    assert envcheck("fleet", "--reports", ".", "--no-config", cwd=tmp_path).status == 0
    shown = envcheck("config", cwd=tmp_path).out
    assert "[[fleet.group]]" in shown
    assert "[fleet.group.gpus]" in shown


def test_the_example_of_the_page_is_a_configuration() -> None:
    text = (ROOT / "docs/fleet/README.md").read_text().partition("```toml\n")[2].partition("```")[0]
    groups = fleet_groups(configuration(text))
    assert (len(groups), [str(each) for each in groups["gpu-128"].require]) == (128, ["gpus==8", "gpu==H200"])
