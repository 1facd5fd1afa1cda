"""``envcheck diff``: what changed between saved reports."""

from __future__ import annotations

import gc
from argparse import Namespace
from collections.abc import Iterator, Sequence
from functools import cache

import msgspec

from envcheck.cli.deliver import home_folders, page
from envcheck.cli.request import files_of, unmasked_report
from envcheck.diff.reports import Diff, Named, diff
from envcheck.errors import ExitCode, UsageError
from envcheck.model.checks import Report
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
    gc.disable()  # decoding and comparing make no cycles; looking for them takes longer than both
    found = diff(_Saved(options.files, redacted=options.redact), [*_Saved(runs, redacted=options.redact)])
    gc.freeze()
    gc.enable()
    found = without_secrets(found)
    if options.format == "json":
        print_text(json.render(found), "json")
    else:
        print_text(render_diff(found, page(options)))
    return ExitCode.OK if found.result == "same" else ExitCode.FOUND


class _Saved:
    """The saved reports of these names, each read when its turn comes."""

    def __init__(self, names: Sequence[str], *, redacted: bool) -> None:
        self._names, self._redacted = names, redacted
        self._from_stdin: Report | None = None

    def __iter__(self) -> Iterator[Named]:
        for name in self._names:
            report = self._from_stdin if name == "-" else None
            if report is None:
                report = unmasked_report(name)
                report = redact(report, home_folders()) if self._redacted else report
            if name == "-":
                self._from_stdin = report  # which can be read once
            yield name, report


def without_secrets(found: Diff) -> Diff:
    """``found`` with secrets masked; what differs in a secret alone is no difference.

    Masking the little that differs takes a tenth of the time that masking whole reports takes, and many reports repeat
    the same texts.
    """
    masking = Rewriting(cache(masked), masked_value, everywhere=True)
    comparisons = []
    for comparison in found.comparisons:
        changes = []
        for change in comparison.changes:
            shown = rewritten(change, masking)
            if change.section == "variables":
                values = {name: masked_value(change.what, getattr(change, name) or "") for name in ("before", "after")}
                shown = msgspec.structs.replace(shown, **{name: value for name, value in values.items() if value})
            if shown == change or shown.before != shown.after:
                changes.append(shown)
        figures = tuple(rewritten(figure, masking) for figure in comparison.figures)
        notes = tuple(rewritten(note, masking) for note in comparison.not_compared)
        comparisons.append(
            msgspec.structs.replace(comparison, changes=tuple(changes), figures=figures, not_compared=notes)
        )
    return msgspec.structs.replace(
        found,
        result="different" if any(comparison.changes for comparison in comparisons) else "same",
        reports=tuple(rewritten(report, masking) for report in found.reports),
        comparisons=tuple(comparisons),
    )
