"""Renderers: one file per format over one Report. A format's module is imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from envcheck.errors import UsageError
from envcheck.report.inert import Syntax

if TYPE_CHECKING:
    from envcheck.checks import Report

FORMATS: Mapping[str, str] = {
    "text": "a page for people: the cause, the fix, the stack",
    "json": "the whole report",
    "speed": "the measured figures, each beside what was to be expected",
    "summary": "one line of JSON under 8 kB, without the snapshot",
    "markdown": "for an issue or a chat: verdict, cause, fix, stack, findings, versions",
    "html": "a page in one file that loads nothing: the stack, findings, figures as bars",
    "junit": "XML for continuous integration: a test case for each check",
}
"""Formats and what each is; the format NAME is rendered by ``envcheck.report.NAME.render``."""

SYNTAXES: Mapping[str, Syntax] = {
    **dict.fromkeys(("text", "speed"), "text"),
    **dict.fromkeys(("json", "private", "summary"), "json"),
    **dict.fromkeys(("html", "junit", "svg"), "markup"),
    "markdown": "markdown",
}
"""How each format is written, those of the application included."""

SHARED = frozenset({"markdown", "html", "svg"})
"""Formats that are meant for others: names of users and machines are left out of them unless asked for."""


class Options(msgspec.Struct, frozen=True):
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
    redact: bool | None = None
    """Whether names and identifiers give way to pseudonyms; None: in the formats that are meant to be shared."""
    homes: tuple[str, ...] = ()
    """Home folders whose owners are to be hidden by it."""


def render(report: Report, form: str, options: Options | None = None) -> str:
    """``report`` in the format ``form``, ending in a newline; raise UsageError when there is no such format.

    Values that look secret are masked in every format.
    """
    if form not in FORMATS:
        raise UsageError(f"there is no format {form!r}; choose from {', '.join(FORMATS)}")
    module = importlib.import_module(f"{__name__}.{form}")
    chosen = options or Options()
    text: str = module.render(_fit_to_show(report, form, chosen), chosen)
    return text


def get_ready(form: str) -> None:
    """Import what rendering in the format ``form`` needs."""
    importlib.import_module(f"{__name__}.{form}")
    importlib.import_module("envcheck.redact.secrets")


def _fit_to_show(report: Report, form: str, options: Options) -> Report:
    from envcheck.redact import mask_secrets, redact

    if form in SHARED if options.redact is None else options.redact:
        return redact(report, options.homes)
    return mask_secrets(report)
