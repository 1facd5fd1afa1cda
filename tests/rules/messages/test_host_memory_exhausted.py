"""The rule ``host-memory-exhausted``, which error lines alone reveal."""

from envcheck.model.snapshot import Snapshot
from tests.every import every
from tests.rules.machines import check_of, error, machine, statuses

LINE = "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL"

CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("host-memory-exhausted", "its line is named", error(LINE), ("warn",)),
    ("host-memory-exhausted", "it does not arise without a line", machine(), ()),
]
"""Rule, case, machine, expected statuses. Other tests take the machines from here."""


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, case


def test_the_finding_shows_the_line_and_a_way_out() -> None:
    found = check_of("host-memory-exhausted", error(LINE))
    assert LINE in found.evidence[0].value
    assert found.fixes
