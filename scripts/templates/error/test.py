"""The rule ``example-thing``, which error lines alone reveal."""

from envcheck.model.snapshot import Snapshot
from tests.every import every
from tests.rules.machines import check_of, error, machine, statuses

LINE = "example_thing: error: this is a line of the program"

CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("example-thing", "its line is named", error(LINE), ("fail",)),
    ("example-thing", "it does not arise without a line", machine(), ()),
]
"""Rule, case, machine, expected statuses. Other tests take the machines from here."""


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, case


def test_the_finding_shows_the_line_and_a_way_out() -> None:
    found = check_of("example-thing", error(LINE))
    assert LINE in found.evidence[0].value
    assert found.fixes
