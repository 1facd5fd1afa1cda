"""``envcheck matrix check``: whether named components fit together, without a machine.

It is called in loops, and should not cost more than it must: the renderer that is not wanted is not imported.
"""

from __future__ import annotations

from argparse import Namespace

from envcheck.cli.asking import overlays
from envcheck.cli.page import page
from envcheck.compat.load import tables
from envcheck.compat.question.asking import ask
from envcheck.compat.relations.fit import FitVerdict
from envcheck.components import parse_components
from envcheck.exitcode import ExitCode
from envcheck.text.streams import tell

_STATUS: dict[FitVerdict, ExitCode] = {
    "compatible": ExitCode.OK,
    "incompatible": ExitCode.FOUND,
    "unknown": ExitCode.UNKNOWN,
}


def run(options: Namespace) -> int:
    """Print the answer; the exit status is its verdict. Raises UsageError for what is no question."""
    folders = overlays(options)
    components = [component for text in options.components for component in parse_components(text)]
    answer = ask(tables(folders), components)
    if options.format == "json":
        from envcheck.report import json

        tell(json.render(answer), syntax="json")
    else:
        from envcheck.report.answers.matrix import render_answer

        tell(render_answer(answer, page(options), folders))
    return _STATUS[answer.verdict]
