"""What ``envcheck rule`` prints: the documentation of one rule, or the list of all."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterable

from envcheck.knowledge.load import load_matrix
from envcheck.report.document import code
from envcheck.rules.api import EVERYTHING, Per, Rule
from envcheck.rules.catalog import all_rules
from envcheck.rules.documentation import RELATED, lines_of, named_on, page_of, title_and_sections
from envcheck.text.clean import clean
from envcheck.text.wrap import clip, width

_COLUMNS = 80
_WIDEST = 100  # Columns of a page
_MARGIN = "    "
_MOST_LINES = 8
_ASKED: dict[Per, str] = {
    "machine": "",
    "gpu": " Asked for each GPU.",
    "environment": " Asked for the environment.",
    "framework": " Asked for each framework.",
    "measurement": " Asked for each measured figure.",
}
_SCOPES = {
    "node": "Node: GPU, driver, kernel, fabric",
    "container": "Container",
    "env": "Environment: Python and its libraries",
}


def rule_page(rule: Rule) -> str:
    """The page of ``rule`` as a terminal shows it: indented below each heading what stands there."""
    title, *parts = (
        f"{heading}\n{textwrap.indent(body, _MARGIN)}" if heading else body
        for heading, body in rule_sections(rule).items()
    )
    return "\n\n".join([title, *parts]) + "\n"


def rule_sections(rule: Rule) -> dict[str, str]:
    """The text below each heading, for a terminal; before the first, whose heading is empty, title and facts."""
    lines = []
    for source in rule.sources:
        one = f"{source.title}: {source.address}"
        lines.append(one if len(_MARGIN + one) <= _WIDEST else f"{source.title}:\n  {source.address}")
    return {**_sections(rule, str), "Sources": "\n".join(lines)}


def rule_markdown(rule: Rule, named: Callable[[str], str] = code) -> str:
    """The page of ``rule`` in Markdown; ``named`` writes the name of another rule."""
    parts = [f"## {heading}\n\n{body}" if heading else body for heading, body in _sections(rule, named).items()]
    return "\n\n".join([f"# `{rule.name}`", *parts]) + "\n"


def _sections(rule: Rule, named: Callable[[str], str]) -> dict[str, str]:
    """What the author wrote, and what rules and rows tell."""
    page = page_of(rule.name)
    title, sections = title_and_sections(page)
    sources = sections.pop("Sources", "")
    sections.pop(RELATED, None)
    # Lines by which a text, a log or a trial names the problem, and statuses of the driver's libraries.
    found = [f"{_MARGIN}{clip(clean(line), _WIDEST - 2 * len(_MARGIN))}" for line in lines_of(rule.name)]
    more = len(found) - _MOST_LINES
    rest = f", and of {more} more kinds" if more > 0 else ""
    rows = [row for row in load_matrix().answers if row.problem == rule.name]
    answers = ", ".join(f"{row.api.upper()} {row.code} ({row.meaning})" for row in rows)
    errors = ["\n".join([f"Lines like these lead to it{rest}:\n", *found[:_MOST_LINES]])] if found else []
    errors += [_filled(f"Status of the driver's libraries: {answers}.")] if answers else []
    # The rules whose findings it accounts for or that account for its own, and those that its page names.
    rules = all_rules()
    explained = {*rule.explains, *rule.explains_failing, *(each.name for each in rules if rule.name in each.told_by)}
    causes = {*rule.told_by, *(each.name for each in rules if rule.name in (*each.explains, *each.explains_failing))}
    lists = {
        "Its finding explains": sorted(explained - {*EVERYTHING}),
        "Its finding is explained by": sorted(causes),
        "It gives way to": sorted({*rule.yields_to} - {*EVERYTHING}),
        "See also": [*named_on(page)],
    }
    related = ["Its finding explains every other one about its environment."] if rule.explains == EVERYTHING else []
    related += ["It gives way to every other finding."] if rule.yields_to == EVERYTHING else []
    related += [_filled(f"{head}: {', '.join(map(named, names))}.") for head, names in lists.items() if names]
    made = {"Error lines": "\n\n".join(errors), RELATED: "\n\n".join(related), "Sources": sources}
    facts = f"Layer: {rule.layer}. Scope: {rule.scope}.{_ASKED[rule.per]} Since envcheck {rule.since}.0."
    return {"": f"{title}\n\n{facts}", **sections, **{heading: body for heading, body in made.items() if body}}


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDEST - len(_MARGIN), break_long_words=False, break_on_hyphens=False)


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
        own = (rule for rule in ordered if rule.scope == scope)
        lines = [f"  {rule.name:<{column}}{clip(rule.title, _COLUMNS - column - 2)}" for rule in own]
        if lines:
            parts.append("\n".join([heading, *lines]) + "\n")
    return "\n".join(parts)


_FIELDS_SHOWN = ("name", "title", "layer", "scope", "per", "required", "since", "needs", "explains")
"""Attributes of a rule that programs read under their own names."""


def rule_json(rules: Iterable[Rule], base: str | None) -> str:
    """``rules`` as a JSON array of objects: name, title, layer, scope, subject, release, needs, page, sources.

    ``base`` is the address of the documentation's index; without it ``address`` is null.
    """
    described = [
        {
            **{name: getattr(rule, name) for name in _FIELDS_SHOWN},
            "documentation": rule_page(rule),
            "page": rule_place(rule.name),
            "address": f"{base}{rule_place(rule.name)}" if base else None,
            "sources": [{"title": source.title, "address": source.address} for source in rule.sources],
        }
        for rule in rules
    ]
    return json.dumps(described, indent=2) + "\n"
