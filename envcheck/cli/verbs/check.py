"""``envcheck check``: examine this machine, or a saved report, and judge it."""

from __future__ import annotations

import sys
from argparse import Namespace

import msgspec

from envcheck.cli.deliver import deliver, page
from envcheck.cli.request import judging_request, saved_report
from envcheck.errors import UsageError
from envcheck.pipeline import session
from envcheck.pipeline.timing import Timing
from envcheck.report import FORMATS, get_ready, refuse_targets, render
from envcheck.report.progress import progress
from envcheck.text.output import parse_targets


def run(options: Namespace) -> int:
    targets = parse_targets(options.output, FORMATS)
    request = judging_request(options)
    for form in (options.format, *(target.format for target in targets)):
        refuse_targets(form, len(request.targets))
    if options.saved:
        saved = saved_report(options.saved)
        if saved.snapshot is None:
            raise UsageError(f"{options.saved} contains no snapshot; save the report with --format json")
        judged = session.judge(
            msgspec.structs.replace(saved.snapshot, runs=saved.probes, measurements=saved.measurements), request
        )
        report = msgspec.structs.replace(judged, created=saved.created)  # the age of its facts
    else:
        lasting = bool(options.verify or options.deep or options.bench)
        with progress(sys.stderr, quiet=options.quiet, lines=lasting) as on_event:
            report = session.check(
                request,
                on_event,
                meanwhile=lambda: get_ready(options.format),
                show=lambda early: render(early, options.format, page(options)),
                timing=Timing.since_start(),
            )
    return deliver(report, options, targets)
