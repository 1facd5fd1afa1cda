"""``envcheck completion``: what a shell reads to complete envcheck's command line."""

from __future__ import annotations

from argparse import Namespace

from envcheck.cli import completion
from envcheck.errors import ExitCode
from envcheck.rules.catalog import all_rules
from envcheck.text.streams import print_text


def run(options: Namespace) -> int:
    write = {"bash": completion.bash, "zsh": completion.zsh, "fish": completion.fish}[options.shell]
    print_text(write({rule.name: rule.title for rule in sorted(all_rules(), key=lambda rule: rule.name)}))
    return ExitCode.OK
