"""Renderers: one file per format over one Report. A format's module is imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from envcheck.errors import UsageError

if TYPE_CHECKING:
    from envcheck.checks import Report

FORMATS: Mapping[str, str] = {
    "text": "a page for people: the cause, the fix, the stack",
    "json": "the whole report",
    "speed": "the measured figures, each beside what was to be expected",
    "summary": "one line of JSON under 8 kB, without the snapshot",
}
"""Formats and what each is; the format NAME is rendered by ``envcheck.report.NAME.render``."""


@dataclass(frozen=True)
class Options:
    """How a report is to be shown. Machine formats look at none of it."""

    width: int = 80
    """Columns of the page."""
    color: bool = False
    verbose: bool = False
    """Every check with all that is known of it, without any limit."""
    quiet: bool = False
    """Only the verdict and its cause."""
    ascii: bool = False
    """Print ASCII characters only."""
    home: str = ""
    """Folder that is shown as ``~``; empty for none."""


def render(report: Report, form: str, options: Options | None = None) -> str:
    """``report`` in the format ``form``, ending in a newline; raise UsageError when there is no such format."""
    if form not in FORMATS:
        raise UsageError(f"there is no format {form!r}; choose from {', '.join(FORMATS)}")
    module = importlib.import_module(f"{__name__}.{form}")
    text: str = module.render(report, options or Options())
    return text
