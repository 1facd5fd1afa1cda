"""All rules: those with a function, found by listing the folders of this package, and problems without one.

What follows from a rule's finding, and fixes that are the same on every machine, are rows of ``matrix/rules.toml``.

Some problems error lines alone reveal: they are rows of ``matrix/errors.toml``, and where their fixes depend on the
machine, rows of ``matrix/remedies.toml``. Others are findings that ``envcheck/pipeline`` makes.
"""

from __future__ import annotations

import importlib
from functools import cache

import msgspec

from envcheck import rules
from envcheck.bundle import modules_below
from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables.messages import RuleRow
from envcheck.model.checks import ASSUMPTION, BELOW_MINIMUM, EXPIRED, FORBIDDEN, LAYERS, PLAN, Fix, Layer, Scope
from envcheck.rules.api import Rule, elsewhere, never
from envcheck.rules.facts.frameworks import TRIAL_RULES
from envcheck.text.wrap import did_you_mean

_REQUIRED = "requirement-not-met"
_ASKED: tuple[tuple[str, Layer, Scope, str], ...] = (
    (PLAN, "framework", "env", "What a plan would install does not fit the machine, or that is open"),
    (ASSUMPTION, "driver", "node", "It is not known whether the assumed driver supports the assumed GPU"),
    (_REQUIRED, "request", "node", "Something that was required is not there, or not in the required version"),
    (FORBIDDEN, "request", "node", "A problem that the configuration forbids was found, or was not looked for"),
    (EXPIRED, "request", "node", "The day until which the configuration ignores a finding has passed"),
    (BELOW_MINIMUM, "request", "node", "A measured figure is below the share of its ceiling that is required"),
)
"""What is said of plans, assumptions, requirements and a configuration: name, layer, scope, title."""


def _with_row(rule: Rule, row: RuleRow) -> Rule:
    """The rule with what its row says, besides what its function and others share."""
    return msgspec.structs.replace(
        rule,
        explains=(*rule.explains, *row.explains),
        explains_failing=(*rule.explains_failing, *row.explains_failing),
        told_by=(*rule.told_by, *row.told_by),
        yields_to=(*rule.yields_to, *row.yields_to),
        remedy=rule.remedy or tuple(Fix(**msgspec.structs.asdict(fix)) for fix in row.fixes),
    )


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, from the layer at the bottom up; within a layer by module, and by place in it; then the rows."""
    modules = [importlib.import_module(name) for name in modules_below(rules.__name__, rules.__path__)]
    judging = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    rows = {row.name: row for row in load_matrix().rules}
    found = [_with_row(rule, rows[rule.name]) if rule.name in rows else rule for rule in judging]
    for row in load_matrix().problems:
        bare = Rule(name=row.name, title=row.title, layer=row.layer, scope=row.scope, since=row.since, arises=never)
        found.append(_with_row(bare, row))
    found += (
        Rule(name=name, title=title, layer=on, scope=scope, arises=elsewhere) for name, on, scope, title in _ASKED
    )
    return tuple(sorted(dict.fromkeys(found), key=lambda rule: LAYERS.index(rule.layer)))


def find_rule(name: str) -> Rule | None:
    return next((rule for rule in all_rules() if rule.name == name), None)


def matching_rules(word: str) -> tuple[Rule, ...]:
    """The rules whose name or title contains ``word``, in any case; by name."""
    wanted = word.lower()
    found = (rule for rule in all_rules() if wanted in rule.name or wanted in rule.title.lower())
    return tuple(sorted(found, key=lambda rule: rule.name))


def no_rule(name: str) -> UsageError:
    """The error for a name that no rule has; it offers the one that is spelled most nearly so."""
    near = did_you_mean(name, (rule.name for rule in all_rules()))
    return UsageError(f"there is no rule {name!r}{near or '; envcheck rule lists them'}")


def refuse_unselectable(name: str) -> None:
    """Raise UsageError for a name by which options and configurations can select no findings."""
    rule = find_rule(name)
    if rule is None:
        raise no_rule(name)
    if rule.layer == "request":
        raise UsageError(f"{name} only repeats what was asked for, and cannot be selected")


def measured_rules() -> tuple[str, ...]:
    """Names of the rules that ``envcheck bench`` runs: about measurements, and frameworks, which are tried first."""
    of_speed = (rule.name for rule in all_rules() if rule.function.__module__.startswith(f"{rules.__name__}.speed."))
    return (*of_speed, *TRIAL_RULES)
