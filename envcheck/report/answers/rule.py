"""What ``envcheck rule`` prints: the documentation of one rule, or the list of all."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable

from envcheck.rules.api import Rule
from envcheck.text.wrap import clip, width

_COLUMNS = 80
_HEADING = re.compile(r"\n(?=\S)")
"""Before a line that is not indented."""
_SCOPES = {
    "node": "Node: GPU, driver, kernel, fabric",
    "container": "Container",
    "env": "Environment: Python and its libraries",
}


def rule_page(rule: Rule) -> str:
    """The documentation of ``rule``, as its author wrote it."""
    return rule.documentation.rstrip("\n") + "\n"


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
    """The documentation of ``rule`` in Markdown, its sections as headings and its sources as links."""
    title, _, below = rule_page(rule).partition("\n")
    parts = [f"# `{rule.name}`", title]
    for section in filter(None, (text.strip("\n") for text in _HEADING.split(below))):
        heading, _, body = section.partition("\n")
        if heading == "Sources":
            body = "\n".join(f"- [{source.title}]({source.address})" for source in rule.sources)
        parts += [f"## {heading}", textwrap.dedent(body).strip("\n")]
    return "\n\n".join(parts) + "\n"
