"""``envcheck collect``: the collector for machines where nothing can be installed."""

from __future__ import annotations

from argparse import Namespace

from envcheck.collect.script import collector
from envcheck.errors import ExitCode
from envcheck.text.streams import print_text


def run(_options: Namespace) -> int:
    print_text(collector())
    return ExitCode.OK
