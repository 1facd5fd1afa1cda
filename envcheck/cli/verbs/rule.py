"""``envcheck rule``: a rule's page, or the list of them."""

from __future__ import annotations

from argparse import Namespace

from envcheck.errors import UsageError
from envcheck.exitcode import ExitCode
from envcheck.report.answers.rule import rule_list, rule_page
from envcheck.rules.catalog import all_rules, find_rule
from envcheck.text.streams import tell


def run(options: Namespace) -> int:
    """Print the page or the list; raise UsageError for an unknown rule."""
    if options.name is None:
        tell(rule_list(all_rules()))
        return ExitCode.OK
    rule = find_rule(options.name)
    if rule is None:
        raise UsageError(f"there is no rule {options.name!r}; envcheck rule lists them")
    tell(rule_page(rule))
    return ExitCode.OK
