"""What the program says of itself: the help of every verb, and the page of every rule."""

import argparse
import os
import re
from collections.abc import Iterator
from unittest.mock import patch

from envcheck.cli.parser import grammar
from envcheck.report.answers.rule import rule_list, rule_page
from envcheck.rules.catalog import all_rules
from tests.golden.corpus import index, joined

_UNWRAPPED = {"COLUMNS": "10000", "PYTHON_COLORS": "0"}
_GAP = re.compile(r"(?<=\S)(?: {2,}|\n {10,})(?=\S)")
"""Before a help text, which has a line of its own where its option is long."""
_TWICE = re.compile(r"(?m)^( +-\w) (.+?), (--[\w-]+ \2)")
"""A short option with its value; from Python 3.13 on argparse names the value once."""


def help_pages() -> dict[str, str]:
    """``--help`` of the program and each verb, a line for each option: releases of Python break lines differently."""
    with patch.dict(os.environ, _UNWRAPPED):
        pages = {parser.prog: parser.format_help() for parser in _parsers(grammar())}
    return {"help.txt": joined({verb: _TWICE.sub(r"\1, \3", _GAP.sub("  ", page)) for verb, page in pages.items()})}


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from _parsers(verb)


def rule_pages() -> dict[str, str]:
    """The list of the rules open, each page compressed; most of its text lies open in ``docs/rules``."""
    rules = sorted(all_rules(), key=lambda rule: rule.name)
    pages = {rule.name: rule_page(rule) for rule in rules}
    return {"rules.txt": joined({"all": rule_list(rules), "pages": index(pages)}), "rules.xz": joined(pages)}
