"""The rules ``program-at-fault`` and ``host-memory-exhausted``, which error lines alone reveal."""

import msgspec
import pytest

from envcheck.model.snapshot import Snapshot
from tests.every import every
from tests.rules.machines import check_of, error, machine, statuses

ASSERTED = "RuntimeError: CUDA error: device-side assert triggered"
KILLED = "torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL"
LINES = {"program-at-fault": ASSERTED, "host-memory-exhausted": KILLED}
CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    *((rule, "its line is named", error(line), ("warn",)) for rule, line in LINES.items()),
    *((rule, "it does not arise without a line", machine(), ()) for rule in LINES),
]
"""Rule, case, machine, expected statuses. Other tests take the machines from here."""


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, case


@pytest.mark.parametrize("rule", LINES)
def test_the_finding_shows_the_line_and_a_way_out(rule: str) -> None:
    found = check_of(rule, error(LINES[rule]))
    assert LINES[rule] in found.evidence[0].value
    assert found.fixes


def test_a_kernel_s_event_in_the_log_outranks_it() -> None:
    event = error("NVRM: Xid (PCI:0000:2b:00): 31, pid=1, name=python").observed_errors
    both = msgspec.structs.replace(error(ASSERTED), observed_errors=(*error(ASSERTED).observed_errors, *event))
    assert statuses("program-at-fault", both) == ()
