"""``envcheck diff``: what changed between saved reports."""

from __future__ import annotations

import gc
from argparse import Namespace

import msgspec

from envcheck.cli.asking import files_of, unmasked_report
from envcheck.cli.page import home_folders, page
from envcheck.diff import Comparison, Diff, diff
from envcheck.errors import UsageError
from envcheck.exitcode import ExitCode
from envcheck.redact import redact
from envcheck.redact.secrets import masked, masked_value
from envcheck.redact.walk import Rewriting, rewritten
from envcheck.report import json
from envcheck.report.answers.diff import render_diff
from envcheck.text.streams import print_text

_MOST_RUNS = 50


def run(options: Namespace) -> int:
    """Print the differences; the exit status says whether there are any."""
    named = options.base or ()
    if [*options.files, *named].count("-") > 1:
        raise UsageError("only one report can be read from stdin")
    runs = [file for name in named for file in files_of(name)]
    if len(runs) > _MOST_RUNS:
        raise UsageError(f"--base names {len(runs)} reports; at most {_MOST_RUNS} are compared with")
    gc.disable()  # decoding makes no cycles; looking for them takes longer than reading a thousand reports
    reports, base = ([(name, unmasked_report(name)) for name in names] for names in (options.files, runs))
    gc.freeze()
    gc.enable()
    if options.redact:
        reports, base = ([(name, redact(report, home_folders())) for name, report in side] for side in (reports, base))
    found = without_secrets(diff(reports, base))
    if options.format == "json":
        print_text(json.render(found), "json")
    else:
        print_text(render_diff(found, page(options)))
    return ExitCode.OK if found.result == "same" else ExitCode.FOUND


def without_secrets(found: Diff) -> Diff:
    """``found`` with secrets masked; what differs in a secret alone is no difference.

    Masking the little that differs takes a tenth of the time that masking whole reports takes.
    """
    comparisons = tuple(_without_secrets(comparison) for comparison in found.comparisons)
    differs = any(comparison.changes for comparison in comparisons)
    masking = Rewriting(masked, masked_value)
    return msgspec.structs.replace(
        found,
        result="different" if differs else "same",
        reports=tuple(rewritten(report, masking) for report in found.reports),
        comparisons=comparisons,
    )


def _without_secrets(comparison: Comparison) -> Comparison:
    changes = []
    for change in comparison.changes:
        shown = rewritten(change, Rewriting(masked, masked_value))
        if change.section == "variables":
            values = {name: masked_value(change.what, getattr(change, name) or "") for name in ("before", "after")}
            shown = msgspec.structs.replace(shown, **{name: value for name, value in values.items() if value})
        if shown == change or shown.before != shown.after:
            changes.append(shown)
    figures = tuple(rewritten(figure, Rewriting(masked, masked_value)) for figure in comparison.figures)
    notes = tuple(rewritten(note, Rewriting(masked, masked_value)) for note in comparison.not_compared)
    return msgspec.structs.replace(comparison, changes=tuple(changes), figures=figures, not_compared=notes)
