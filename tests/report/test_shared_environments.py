"""What most reports of a fleet share is read once, and each report is the one that it would be alone."""

from typing import Any

import msgspec
import pytest

from envcheck.errors import UsageError
from envcheck.fleet.facts import _KNOWN, _MOST_KNOWN, aspects
from envcheck.report.saved import SharedEnvironments, read_report
from tests.every import cases
from tests.fleet.made import healthy
from tests.known import known


def encoded(report: dict[str, Any]) -> bytes:
    return msgspec.json.encode(report)


def test_reports_are_the_same_and_equal_environments_one_object() -> None:
    shared = SharedEnvironments()
    made = healthy(3)
    made[2]["snapshot"]["environments"]["items"][0]["distributions"][0]["version"] = "0.0.1"
    reports = [read_report(encoded(report), shared) for report in made]
    assert reports == [read_report(encoded(report)) for report in made]
    held = [report.snapshot.environments for report in reports if report.snapshot]
    assert held[0] is held[1]
    assert held[0] != held[2]


def test_what_is_compared_is_the_same_as_of_a_report_alone() -> None:
    """More environments than are kept; each may lie where another one was."""
    shared = SharedEnvironments()
    (report,) = healthy(1)
    items = report["snapshot"]["environments"]["items"]
    for number in range(2 * _MOST_KNOWN):
        next(each for each in items if each["judged"])["distributions"][0]["version"] = f"0.0.{number}"
        found, alone = read_report(encoded(report), shared), read_report(encoded(report))
        assert [each.digest for each in aspects(found)] == [each.digest for each in aspects(alone)]
    assert len(_KNOWN) <= _MOST_KNOWN
    assert len(shared._known) <= shared._MOST + 1


@cases("change", {"snapshot": {"environments": 3}}, {"snapshot": {"environments": {"items": 3}}}, {"verdict": 3},
    {"schema_version": "9.0"}, {"schema_version": "x"}, {"grounds": [], "verdict": "pass", "exit_code": 0},
)  # fmt: skip
def test_what_is_wrong_is_told_as_of_a_report_alone(change: dict[str, Any]) -> None:
    text = encoded({**healthy(1)[0], **change})
    found: list[object] = []
    for shared in (None, SharedEnvironments()):
        try:
            found.append(read_report(text, shared))
        except UsageError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_a_report_of_a_newer_minor_is_read_too() -> None:
    (report,) = healthy(1)
    report |= {"schema_version": "1.9", "new": True}
    report["checks"][0]["status"] = "strange"
    assert read_report(encoded(report), SharedEnvironments()) == read_report(encoded(report))


def test_a_report_without_facts_is_read() -> None:
    (report,) = healthy(1)
    assert read_report(encoded({**report, "snapshot": None}), SharedEnvironments()).snapshot is None
    report["snapshot"].pop("environments")
    found = read_report(encoded(report), SharedEnvironments()).snapshot
    assert known(found).environments is None
    with pytest.raises(UsageError, match="empty"):
        read_report(b" ", SharedEnvironments())
