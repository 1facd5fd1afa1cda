"""``envcheck rule``: a rule's page, those that a word matches, or the list of all."""

from __future__ import annotations

import os
from argparse import Namespace

from envcheck.collect.request import working_folder
from envcheck.config.describe import documentation_address
from envcheck.errors import ExitCode
from envcheck.report.answers.rule import address_line, rule_json, rule_list, rule_markdown, rule_page
from envcheck.rules.catalog import all_rules, find_rule, matching_rules, no_rule
from envcheck.text.streams import print_text


def run(options: Namespace) -> int:
    """Print the page, or the list of those that match; raise UsageError where none does."""
    rule = find_rule(options.name) if options.name else None
    found = (rule,) if rule else matching_rules(options.name or "")
    if not found:
        raise no_rule(options.name)
    if options.format == "markdown":
        print_text("\n".join(map(rule_markdown, found)))
        return ExitCode.OK
    base = documentation_address(os.environ, working_folder())
    if options.format == "json":
        print_text(rule_json(found, base), syntax="json")
    elif rule:
        print_text(rule_page(rule) + address_line(rule.name, base))
    else:
        print_text(rule_list(found if options.name else all_rules()))
    return ExitCode.OK
