"""``envcheck explain``: diagnose pasted text."""

from __future__ import annotations

import sys
from argparse import Namespace

from envcheck.cli.deliver import deliver
from envcheck.cli.request import judging_request, pasted_text
from envcheck.errors import UsageError
from envcheck.importers import read_text
from envcheck.model.merge import merge
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.judging import judge
from envcheck.report import FORMATS
from envcheck.text.output import parse_targets


def run(options: Namespace) -> int:
    targets = parse_targets(options.output, FORMATS)
    request = judging_request(options)
    if options.file == "-" and sys.stdin.isatty():
        raise UsageError(
            "nothing to explain: name a file, or pipe the text to envcheck (envcheck explain < output.txt)"
        )
    pasted = read_text(pasted_text(options.file))
    if options.here:  # whose facts outrank what the text states beside error lines
        from envcheck.pipeline.session import gather_here

        lines = Snapshot(observed_errors=pasted.observed_errors, told=pasted.told, runs=pasted.runs)
        pasted = merge([gather_here(request), lines])
    return deliver(judge(pasted, request), options, targets)
