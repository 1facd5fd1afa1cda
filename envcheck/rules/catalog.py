"""All rules, found by listing the folders of this package: adding a rule touches one file."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from envcheck import rules
from envcheck.rules.api import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of the modules' names and of the definitions in them."""
    names = sorted(module.name for module in pkgutil.walk_packages(rules.__path__, f"{rules.__name__}."))
    modules = [importlib.import_module(name) for name in names]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Rule)]
    return tuple(dict.fromkeys(found))


def find_rule(name: str) -> Rule | None:
    """The rule of this name."""
    return next((rule for rule in all_rules() if rule.name == name), None)
