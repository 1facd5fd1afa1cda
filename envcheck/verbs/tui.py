"""``envcheck tui``: the terminal application, and the page that it leaves behind."""

from __future__ import annotations

import os
import sys
from argparse import Namespace

from envcheck.errors import UsageError
from envcheck.exitcode import ExitCode
from envcheck.report import Options, render
from envcheck.request import Request
from envcheck.streams import tell
from envcheck.verbs._asking import overlays, working_folder
from envcheck.verbs._page import speaks_unicode
from envcheck.verbs._reading import baseline, saved_report


def why_not() -> str:
    """Why there is no application here; empty where there is one."""
    try:
        import envcheck.tui.app  # noqa: F401 - only whether it can be had is asked
    except ImportError as error:
        return str(error)
    return ""


def run(options: Namespace) -> int:
    """Show the application until it is left; raise UsageError where there is none."""
    if reason := why_not():
        raise UsageError(f"the terminal application cannot be loaded ({reason}); envcheck check needs none")
    from envcheck.tui.app import EnvcheckApp

    shown = Options(
        color=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),  # Textual takes the variable away
        ascii=options.ascii or not speaks_unicode(),
        home=os.environ.get("HOME", ""),
    )
    saved = saved_report(options.saved) if options.saved else None
    application = EnvcheckApp(_request(options), shown, saved=saved)
    try:
        report = application.run()
    finally:
        application.end_session()
    if report is not None:
        tell(render(report, "text", shown))
    return ExitCode.OK


def _request(options: Namespace) -> Request:
    return Request(
        python=tuple(options.python or ()),
        baseline=baseline(options),
        overlays=overlays(options),
        cwd=working_folder(),
        variables=dict(os.environ),
    )
