"""What ``envcheck rule`` prints: the documentation of one rule, or the list of all."""

from __future__ import annotations

import json
from collections.abc import Iterable

from envcheck.rules.api import Rule
from envcheck.rules.documentation import page_of
from envcheck.text.wrap import clip, width

_COLUMNS = 80
_SCOPES = {
    "node": "Node: GPU, driver, kernel, fabric",
    "container": "Container",
    "env": "Environment: Python and its libraries",
}


def rule_page(rule: Rule) -> str:
    """The page of ``rule``, as a terminal shows it."""
    return rule.documentation + "\n"


def rule_place(name: str) -> str:
    """Where the page of a rule is within the documentation; it stays there."""
    return f"rules/{name}.html"


def address_line(name: str, base: str | None) -> str:
    """What ``envcheck rule NAME`` ends with; ``base`` is the address of the documentation's index."""
    if base:
        return f"\nThis page: {base}{rule_place(name)}\n"
    return f"\nThis page in the documentation: {rule_place(name)} (ENVCHECK_DOCS_URL says where yours is hosted)\n"


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


def rule_json(rules: Iterable[Rule], base: str | None) -> str:
    """``rules`` as a JSON array of objects: name, title, layer, scope, subject, release, needs, page, sources.

    ``base`` is the address of the documentation's index; without it ``address`` is null.
    """
    described = [
        {
            "name": rule.name,
            "title": rule.title,
            "layer": rule.layer,
            "scope": rule.scope,
            "per": rule.per,
            "required": rule.required,
            "since": rule.since,
            "needs": list(rule.needs),
            "explains": list(rule.explains),
            "documentation": rule_page(rule),
            "page": rule_place(rule.name),
            "address": f"{base}{rule_place(rule.name)}" if base else None,
            "sources": [{"title": source.title, "address": source.address} for source in rule.sources],
        }
        for rule in rules
    ]
    return json.dumps(described, indent=2) + "\n"


def rule_markdown(rule: Rule) -> str:
    """The page of ``rule`` in Markdown."""
    return page_of(rule.name)
