"""How a page looks where it is printed; ``envcheck matrix`` needs no more, and starts faster without the rest."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from envcheck.report import Options


def page(options: Namespace) -> Options:
    """How ``options`` and the terminal want a page to look; options that a verb does not have count as not given."""
    return Options(
        color=_color(options),
        verbose=getattr(options, "verbose", False),
        quiet=getattr(options, "quiet", False),
        ascii=options.ascii or not supports_unicode(),
        home=os.environ.get("HOME", ""),
        redact=getattr(options, "redact", None),
        homes=home_folders(),
    )


def supports_unicode() -> bool:
    """Whether stdout can carry every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def home_folders() -> tuple[str, ...]:
    """The home folder whose owner is to be hidden by redaction."""
    return tuple(filter(None, (os.environ.get("HOME"),)))


def _color(options: Namespace) -> bool:
    if options.color != "auto":
        return bool(options.color == "always")
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0", "false"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
