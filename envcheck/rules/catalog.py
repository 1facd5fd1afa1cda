"""All rules: those with a function, found by listing the folders of this package, and rows of the matrix."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from envcheck import rules
from envcheck.errors import UsageError
from envcheck.model.checks import LAYERS
from envcheck.rules.api import Rule
from envcheck.rules.problems import rules_without_function
from envcheck.text.wrap import did_you_mean


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, from the layer at the bottom up; within a layer by module, and by place in it; then the rows."""
    names = sorted(module.name for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."))
    modules = [importlib.import_module(name) for name in names]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    found += rules_without_function()
    return tuple(sorted(dict.fromkeys(found), key=lambda rule: LAYERS.index(rule.layer)))


def find_rule(name: str) -> Rule | None:
    """The rule of this name."""
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
