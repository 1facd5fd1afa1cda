"""The rule ``example-thing``: it fires, it passes, it does not arise, and a fact is missing."""

from envcheck.model.snapshot import Platform, Snapshot
from tests.every import every
from tests.rules.machines import but, check_of, machine, statuses, without_gpu


def running(release: str | None) -> Snapshot:
    """A machine with one GPU. ``tests/rules/machines.py`` has GPUs, drivers, environments and frameworks too."""
    return but(machine(), platform=Platform(source="procfs", os="linux", kernel_release=release))


CASES: list[tuple[str, str, Snapshot, tuple[str, ...]]] = [
    ("example-thing", "it fires", running("6.1.0-example"), ("warn",)),
    ("example-thing", "it passes", running("6.1.0-18-amd64"), ("pass",)),
    ("example-thing", "it does not arise", but(without_gpu(), platform=running("6.1.0-example").platform), ()),
    ("example-thing", "a fact is missing", running(None), ("skipped",)),
]
"""Rule, case, machine, expected statuses. Other tests take the machines from here."""


@every(CASES)
def test_rule(rule: str, case: str, snapshot: Snapshot, expected: tuple[str, ...]) -> None:
    assert statuses(rule, snapshot) == expected, case


def test_the_finding_shows_what_was_seen_and_a_way_out() -> None:
    found = check_of("example-thing", running("6.1.0-example"))
    assert found.evidence[0].value == "6.1.0-example"
    assert found.fixes
