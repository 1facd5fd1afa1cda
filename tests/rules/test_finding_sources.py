"""Every finding cites a page that documents it, on every machine of these tests."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.snapshot import Snapshot
from tests.rules import (
    test_rules_container,
    test_rules_hardware,
    test_rules_libraries,
    test_rules_node,
    test_rules_packages,
    test_rules_platforms,
    test_rules_platforms_gpus,
    test_rules_platforms_systems,
    test_rules_software,
    test_rules_trial,
)
from tests.rules.machines import error, judge
from tests.rules.test_error_lines import EXAMPLES
from tests.rules.test_rule_catalog import NAMES
from tests.rules.test_whole_machines import BROKEN, HEALTHY

MODULES = (
    test_rules_container,
    test_rules_hardware,
    test_rules_libraries,
    test_rules_node,
    test_rules_packages,
    test_rules_platforms,
    test_rules_platforms_gpus,
    test_rules_platforms_systems,
    test_rules_software,
    test_rules_trial,
)
FINDINGS = ("fail", "warn", "note")


def every_machine() -> Iterator[Snapshot]:
    yield from HEALTHY.values()
    yield from (snapshot for snapshot, _ in BROKEN.values())
    for module in MODULES:
        yield from (snapshot for _, _, snapshot, _ in module.CASES)
    yield from (error(line) for lines in EXAMPLES.values() for line in lines)


def test_every_finding_cites_a_page_that_documents_it() -> None:
    found = [check for snapshot in every_machine() for check in judge(snapshot) if check.status in FINDINGS]
    without = {
        check.rule for check in found if not any(source.address.startswith("https://") for source in check.sources)
    }
    assert without == set()
    assert all(source.title for check in found for source in check.sources)
    assert {check.rule for check in found} == NAMES, "a rule without a finding in these tests would go unseen"
