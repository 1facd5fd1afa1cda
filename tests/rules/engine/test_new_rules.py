"""A rule that a minor release brings warns until the next, and the changelog names it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from envcheck import __version__
from envcheck.compat.load import load_matrix
from envcheck.rules.api import FIRST_RELEASE, Rule
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.rules.engine import evaluate as engine
from envcheck.rules.engine.evaluate import evaluate
from tests.every import cases
from tests.rules.machines import h200, machine

CHANGELOG = (Path(__file__).parents[3] / "CHANGELOG.md").read_text()


def unnamed(changelog: str, rules: Iterable[Rule]) -> list[str]:
    """The rules that are not in the section of the release that brought them."""
    sections = {
        found[1]: found[0]
        for found in re.finditer(r"^## (\d+\.\d+)\.\d+.*?(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    }
    return [rule.name for rule in rules if f"`{rule.name}`" not in sections.get(rule.since, "")]


def test_the_changelog_names_the_rules_that_a_release_brought() -> None:
    assert unnamed(CHANGELOG, (rule for rule in all_rules() if rule.since != FIRST_RELEASE)) == []
    rule = msgspec.structs.replace(all_rules()[0], since="0.2")
    assert unnamed(CHANGELOG, [rule]) == [rule.name]
    text = f"# Changelog\n\n## 0.2.0\n\n- New rule: `{rule.name}`.\n\n## 0.1.0\n\n- First.\n"
    assert unnamed(text, [rule]) == []
    assert unnamed(text.replace("0.2.0", "0.3.0"), [rule]) == [rule.name]


def test_no_rule_comes_from_a_later_release() -> None:
    current = tuple(map(int, __version__.split(".")[:2]))
    assert [rule.name for rule in all_rules() if tuple(map(int, rule.since.split("."))) > current] == []


@cases(
    "since, version, status, judged",
    ("0.2", "0.2.1", "warn", "fail"),
    ("0.2", "0.3.0", "fail", None),
    ("0.1", "0.1.0", "fail", None),
)
def test_a_new_rule_warns(
    since: str, version: str, status: str, judged: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "__version__", version)
    known = find_rule("uncorrected-ecc")
    assert known is not None
    rule = msgspec.structs.replace(known, since=since)
    broken = machine(h200(0, ecc__volatile_uncorrected=2))
    (check,) = (found for found in evaluate(broken, load_matrix(), [rule], frozenset({"node"})))
    assert (check.status, check.judged) == (status, judged)
