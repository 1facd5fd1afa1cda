"""What ``envcheck rule`` prints: the documentation of one rule, or the list of all."""

from __future__ import annotations

from collections.abc import Iterable

from envcheck.rules.api import Rule
from envcheck.text.wrap import clip, width

_COLUMNS = 80
_SCOPES = {
    "node": "Node: GPU, driver, kernel, fabric",
    "container": "Container",
    "env": "Environment: Python and its libraries",
}


def rule_page(rule: Rule) -> str:
    """The documentation of ``rule``, as its author wrote it."""
    return rule.documentation.rstrip("\n") + "\n"


def rule_list(rules: Iterable[Rule]) -> str:
    """The names and titles of ``rules`` by scope, in the order of their names."""
    ordered = sorted(rules, key=lambda rule: rule.name)
    column = max((width(rule.name) for rule in ordered), default=0) + 2
    parts = []
    for scope, heading in _SCOPES.items():
        lines = [
            f"  {rule.name:<{column}}{clip(rule.title, _COLUMNS - column - 2)}"
            for rule in ordered
            if rule.scope == scope
        ]
        if lines:
            parts.append("\n".join([heading, *lines]) + "\n")
    return "\n".join(parts)
