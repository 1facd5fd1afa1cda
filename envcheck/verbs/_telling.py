"""How a verb prints its page, and where else its report goes."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from envcheck.checks import Report
from envcheck.output import Target, write_whole
from envcheck.report import Options, render


def deliver(report: Report, options: Namespace, targets: Sequence[Target]) -> int:
    """Write ``report`` to ``targets``, print it, and return its exit status."""
    shown = Options(verbose=options.verbose, redact=options.redact, homes=homes())
    for target in targets:
        write_whole(target.path, render(report, target.format, shown))
    tell(render(report, options.format or "text", page(options)))
    return report.exit_code


def tell(text: str) -> None:
    """Print ``text`` at once, so that what cannot be written is met here."""
    print(text, end="")
    sys.stdout.flush()


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
