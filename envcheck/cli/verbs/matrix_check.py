"""``envcheck matrix check``: whether named components fit together, without a machine.

Scripts call it in loops, so it imports only the renderer that it needs.
"""

from __future__ import annotations

from argparse import Namespace

from envcheck.cli.deliver import page
from envcheck.cli.request import overlays
from envcheck.compat.answer import ask
from envcheck.errors import ExitCode
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.model.components import parse_components
from envcheck.text.streams import print_text

_STATUS: dict[FitVerdict, ExitCode] = {
    "compatible": ExitCode.OK,
    "incompatible": ExitCode.FOUND,
    "unknown": ExitCode.UNKNOWN,
}


def run(options: Namespace) -> int:
    """Print the answer; the exit status is its verdict. Raises UsageError for an invalid question."""
    folders = overlays(options)
    components = [component for text in options.components for component in parse_components(text)]
    answer = ask(load_matrix(folders), components)
    if options.format == "json":
        from envcheck.report import json

        print_text(json.render(answer), syntax="json")
    else:
        from envcheck.report.answers.matrix import render_answer

        print_text(render_answer(answer, page(options), folders))
    return _STATUS[answer.verdict]
