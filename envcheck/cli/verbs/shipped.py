"""Verbs that print what envcheck brings along: the collector, completions, the pages of rules, JSON Schemas."""

from __future__ import annotations

import importlib
import json
import os
from argparse import Namespace

from envcheck.errors import ExitCode
from envcheck.text.streams import print_text

_OF_FLEETS = {
    "fleet": ("record", "Record", ": a line"),
    "fleet-bench": ("collective.report", "FleetBench", ""),
    "fleet-history": ("store", "History", ""),
}
"""Outputs of modules of ``envcheck.fleet``: the module, what it writes, and what the title says besides."""


def collect(_options: Namespace) -> int:
    """Print the collector for machines where nothing can be installed."""
    from envcheck.collect.script import collector

    print_text(collector())
    return ExitCode.OK


def completion(options: Namespace) -> int:
    """Print what a shell reads to complete envcheck's command line."""
    from envcheck.cli import completion as scripts
    from envcheck.rules.catalog import all_rules

    write = {"bash": scripts.bash, "zsh": scripts.zsh, "fish": scripts.fish}[options.shell]
    print_text(write({rule.name: rule.title for rule in sorted(all_rules(), key=lambda rule: rule.name)}))
    return ExitCode.OK


def rule(options: Namespace) -> int:
    """Print a rule's page, or the list of those that a word matches; raise UsageError where none does."""
    from envcheck.collect.starting import working_folder
    from envcheck.config.describe import documentation_address
    from envcheck.report.answers.rule import address_line, rule_json, rule_list, rule_markdown, rule_page
    from envcheck.rules.catalog import all_rules, find_rule, matching_rules, no_rule

    named = find_rule(options.name) if options.name else None
    found = (named,) if named else matching_rules(options.name or "")
    if not found:
        raise no_rule(options.name)
    if options.format == "markdown":
        print_text("\n".join(map(rule_markdown, found)))
        return ExitCode.OK
    base = documentation_address(os.environ, working_folder())
    if options.format == "json":
        print_text(rule_json(found, base), syntax="json")
    elif named:
        print_text(rule_page(named) + address_line(named.name, base))
    else:
        print_text(rule_list(found if options.name else all_rules()))
    return ExitCode.OK


def schema(options: Namespace) -> int:
    """Print the JSON Schema of an output, or of the configuration."""
    from envcheck.config.read import schema as of_configuration
    from envcheck.report import schema as schemas

    if options.name in _OF_FLEETS:
        name, root, more = _OF_FLEETS[options.name]
        module = importlib.import_module(f"envcheck.fleet.{name}")
        found = schemas.described(getattr(module, root), options.name, module.SCHEMA_VERSION, more)
    else:
        found = of_configuration() if options.name == "config" else schemas.schema(options.name)
    print_text(json.dumps(found, indent=2) + "\n", syntax="json")
    return ExitCode.OK
