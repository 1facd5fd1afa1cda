"""The rule ``program-at-fault``, which error lines alone reveal."""

import msgspec

from envcheck.model.snapshot import Snapshot
from tests.every import every
from tests.rules.machines import check_of, error, machine, statuses

LINE = "RuntimeError: CUDA error: device-side assert triggered"

CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("program-at-fault", "its line is named", error(LINE), ("warn",)),
    ("program-at-fault", "it does not arise without a line", machine(), ()),
]
"""Rule, case, machine, expected statuses. Other tests take the machines from here."""


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, case


def test_the_finding_shows_the_line_and_a_way_out() -> None:
    found = check_of("program-at-fault", error(LINE))
    assert LINE in found.evidence[0].value
    assert found.fixes


def test_a_kernel_s_event_in_the_log_outranks_it() -> None:
    event = error("NVRM: Xid (PCI:0000:2b:00): 31, pid=1, name=python").observed_errors
    both = msgspec.structs.replace(error(LINE), observed_errors=(*error(LINE).observed_errors, *event))
    assert statuses("program-at-fault", both) == ()
