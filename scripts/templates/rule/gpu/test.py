"""The rule ``example-thing``: it fires, it passes, it does not arise, and a fact is missing."""

from envcheck.model.snapshot import Snapshot
from tests.every import every
from tests.rules.machines import check_of, h200, machine, statuses, without_gpu


def with_fan(share: float | None) -> Snapshot:
    """A machine with one GPU. ``machine()`` takes several, ``gpus()`` lists them, ``geforce()`` is a card."""
    return machine(h200(fan=share))


CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("example-thing", "it fires", with_fan(1.0), ("note",)),
    ("example-thing", "it passes", with_fan(0.4), ("pass",)),
    ("example-thing", "it does not arise", without_gpu(), ()),
    ("example-thing", "a fact is missing", with_fan(None), ("skipped",)),
]
"""Rule, case, machine, expected statuses. Other tests take the machines from here."""


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, case


def test_the_finding_shows_what_was_seen_and_a_way_out() -> None:
    found = check_of("example-thing", with_fan(1.0))
    assert found.evidence[0].value == "1.0"
    assert found.fixes
