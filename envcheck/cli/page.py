"""How a page looks where it is printed; ``envcheck matrix`` needs no more, and starts faster without the rest."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from envcheck.errors import UsageError
from envcheck.report import FORMATS, Options, render
from envcheck.text.output import Target, write_whole
from envcheck.text.streams import tell

if TYPE_CHECKING:
    from envcheck.checks import Report


def page(options: Namespace) -> Options:
    """How ``options`` and the terminal want a page to look; options that a verb does not have count as not given."""
    return Options(
        color=_color(options),
        verbose=getattr(options, "verbose", False),
        quiet=getattr(options, "quiet", False),
        ascii=options.ascii or not speaks_unicode(),
        home=os.environ.get("HOME", ""),
        redact=getattr(options, "redact", None),
        homes=homes(),
    )


def speaks_unicode() -> bool:
    """Whether stdout can carry every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def homes() -> tuple[str, ...]:
    """The home folder whose owner is to be hidden by redaction."""
    return tuple(filter(None, (os.environ.get("HOME"),)))


def _color(options: Namespace) -> bool:
    if options.color != "auto":
        return bool(options.color == "always")
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# Where the report of a verb goes.


def deliver(report: Report, options: Namespace, targets: Sequence[Target]) -> int:
    """Write ``report`` to ``targets``, print it, and return its exit status; raise UsageError for what failed."""
    shown = Options(verbose=options.verbose, redact=options.redact, homes=homes())
    failures = [problem for target in targets if (problem := _not_written(report, target, shown))]
    form = options.format or "text"
    tell(render(report, form, page(options)), syntax=FORMATS[form].syntax)
    if failures:
        raise UsageError("; ".join(failures))
    return report.exit_code


def _not_written(report: Report, target: Target, shown: Options) -> str:
    """Why ``target`` could not be written; the report is worth printing all the same."""
    try:
        write_whole(target.path, render(report, target.format, shown), FORMATS[target.format].syntax)
    except UsageError as error:
        return str(error)
    return ""
