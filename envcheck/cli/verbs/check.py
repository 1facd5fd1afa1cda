"""``envcheck check``: examine this machine, or a saved report, and judge it."""

from __future__ import annotations

import sys
from argparse import Namespace
from contextlib import suppress

from envcheck.cli.deliver import deliver, page
from envcheck.cli.request import judged_again, judging_request
from envcheck.errors import ExitCode, UsageError
from envcheck.model.checks import Report
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
        report = judged_again(options.saved, request)
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
    if options.fix_plan:
        if request.targets:
            raise UsageError("--fix-plan changes the files of one plan: name them instead of @NAME")
        return _fix_plan(report)
    edits = ""
    if any(FORMATS[form].edits for form in (options.format, *(target.format for target in targets))):
        from envcheck.pipeline.planned.repair import repair

        with suppress(UsageError):  # a lock file, which its tool writes
            found = repair(report)
            edits = found.diff if found and not found.by_hand else ""
    return deliver(report, options, targets, edits)


def _fix_plan(report: Report) -> int:
    """Print the diff of ``--fix-plan`` on stdout, and what it does on stderr; 0 where it makes the plan fit."""
    from envcheck.pipeline.planned.repair import repair
    from envcheck.rules.fixes.frameworks import INDEX
    from envcheck.text.clean import clean
    from envcheck.text.streams import print_text, say

    if report.exit_code != ExitCode.FOUND:
        say(f"envcheck: nothing of the plan fails ({report.verdict}), so nothing is to be changed")
        return report.exit_code
    found = repair(report)
    if found is None:
        say("envcheck: the plan fits with none of the releases that were tried")
        return ExitCode.FOUND
    pins = " ".join(filter(None, (found.image, *(f"{name}=={version}" for name, version in found.moved.items()))))
    index = f"--index-url {INDEX}{found.tag}" if found.tag and ("torch" in found.moved or not pins) else ""
    say(clean(f"envcheck: it fits with {' '.join(filter(None, (pins, index)))}"))
    for file in found.by_hand:
        say(clean(f"envcheck: {file} is not changed: write these releases by hand, and a page of files for them"))
    print_text(found.diff)
    return ExitCode.FOUND if found.by_hand else ExitCode.OK
