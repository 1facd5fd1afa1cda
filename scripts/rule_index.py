"""Write ``docs/rules.md``: every rule with its title, layer, scope, subject and needs, by family.

python scripts/rule_index.py
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from envcheck.rules.api import Rule, elsewhere, never  # noqa: E402 - of the checkout that this file belongs to
from envcheck.rules.catalog import all_rules  # noqa: E402

INDEX = Path("docs/rules.md")
HEAD = """# Rules

`scripts/rule_index.py` writes this page, and a test fails where it differs from the rules. Each name leads to the page
of the rule, which `envcheck rule NAME` prints: what it checks, why it matters, how to fix it, an example. A family
is a folder of `envcheck/rules/`; rows of `matrix/errors.toml` are problems that error lines alone reveal, and those
under *request* are said of a plan, an option or a configuration (`envcheck/rules/catalog.py` makes both). *Needs* are
the facts without which a rule answers "unknown" or "skipped". A rule marked \\* is required: without its answer there
is no verdict.
"""


def write_index(root: Path) -> Path:
    """Write the page of the rules that can be imported now."""
    path = root / INDEX
    path.write_text(index(), encoding="utf-8")
    return path


def index() -> str:
    """The page, of all rules."""
    rules = sorted(all_rules(), key=lambda rule: (_family(rule), rule.name))
    lines = [HEAD]
    for family, members in groupby(rules, _family):
        lines += [f"## {family}", "", "| rule | problem | layer | scope | per | needs |", "|---|---|---|---|---|---|"]
        lines += [_row(rule) for rule in members]
        lines.append("")
    return "\n".join(lines)


def _family(rule: Rule) -> str:
    if rule.arises is never:
        return "rows of error lines"
    return "request" if rule.arises is elsewhere else rule.function.__module__.split(".")[2]


def _row(rule: Rule) -> str:
    name = f"[`{rule.name}`](rules/{rule.name}.md)" + (" \\*" if rule.required else "")
    needs = ", ".join(f"`{need}`" for need in rule.needs) or "-"
    return f"| {name} | {rule.title.replace('|', '/')} | {rule.layer} | {rule.scope} | {rule.per} | {needs} |"


if __name__ == "__main__":
    print(write_index(ROOT).relative_to(ROOT))
