"""Every name that a finding carries has a page, whoever makes the finding: formats print ``envcheck rule NAME``."""

import ast
from pathlib import Path

import pytest

import envcheck
from envcheck.config.meaning import policy
from envcheck.config.read import read
from envcheck.errors import UsageError
from envcheck.model import checks
from envcheck.model.checks import ASSUMPTION, PLAN
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.request import Request
from envcheck.pipeline.require import RULE
from envcheck.pipeline.session import judge
from envcheck.rules.api import elsewhere
from envcheck.rules.catalog import all_rules, find_rule
from tests.every import every
from tests.syntax import calls

ELSEWHERE = sorted(rule.name for rule in all_rules() if rule.arises is elsewhere)
PACKAGE = Path(str(envcheck.__file__)).parent


def made_outside_rules() -> set[str]:
    """The first arguments and ``rule=`` of what makes a Check outside ``envcheck/rules``, by the value of the name."""
    names = set()
    for path, call in calls(PACKAGE, "Check", "_decided"):
        if PACKAGE / "rules" not in path.parents and path.name != "checks.py":
            values = [word.value for word in call.keywords if word.arg == "rule"] or call.args[:1]
            names |= {value.id for value in values if isinstance(value, ast.Name)}
    return names


def test_each_name_that_is_made_elsewhere_has_a_page() -> None:
    constants = made_outside_rules() - {"rule"}
    assert constants >= {"PLAN", "ASSUMPTION", "RULE", "FORBIDDEN", "EXPIRED", "BELOW_MINIMUM"}
    assert {RULE if name == "RULE" else getattr(checks, name) for name in constants} == set(ELSEWHERE)


@every(ELSEWHERE)
def test_it_is_not_said_to_have_run_where_nothing_was_asked(name: str) -> None:
    found = judge(Snapshot(), Request())
    assert name not in {check.rule for check in found.checks}


@pytest.mark.parametrize("name", [name for name in ELSEWHERE if name not in (PLAN, ASSUMPTION)])
def test_what_repeats_a_demand_cannot_be_selected(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{name} only repeats what was asked for"):
        judge(Snapshot(), Request(skip=(name,)))
    file = tmp_path / "envcheck.toml"
    file.write_text(f'fail-on = "warn"\nskip = ["{name}"]\n')
    with pytest.raises(UsageError, match=f"envcheck.toml:2: skip: {name} only repeats"):
        policy(read(str(file)))
    assert find_rule(name) is not None
