"""``envcheck tui``: the terminal application, and the report that it prints when it ends."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from types import FrameType

from envcheck.cli.deliver import supports_unicode
from envcheck.cli.request import read_input, request_of, saved_report
from envcheck.errors import ExitCode, UsageError
from envcheck.report import Options, render
from envcheck.text.clean import clean
from envcheck.text.streams import print_text, say


def why_not() -> str:
    """Why the application cannot be loaded; empty if it can."""
    try:
        import envcheck.tui.app  # noqa: F401 - only to see whether it can be imported
    except ImportError as error:
        return str(error)
    return ""


def run(options: Namespace) -> int:
    """Show the application until the user quits; raise UsageError if it cannot be loaded."""
    if reason := why_not():
        raise UsageError(f"the terminal application cannot be loaded ({reason}); use envcheck check")
    if not (sys.stdin.isatty() and sys.stdout.isatty()) and not os.environ.get("TEXTUAL_DRIVER"):
        raise UsageError("envcheck tui needs a terminal; use envcheck check")
    from envcheck.fleet.saved import MOST_BYTES, is_fleet, placed, read
    from envcheck.tui.app import EnvcheckApp

    shown = Options(
        color=sys.stdout.isatty() and not os.environ.get("NO_COLOR"),  # Textual takes the variable away
        ascii=options.ascii or not supports_unicode(),
        home=os.environ.get("HOME", ""),
    )
    saved = fleet = None
    if options.saved and options.saved != "-":
        content = read_input(options.saved, MOST_BYTES)
        fleet = placed(read(content), options.saved) if is_fleet(content) else None
    if options.saved and fleet is None:
        saved = saved_report(options.saved)
    application = EnvcheckApp(request_of(options), shown, saved=saved, fleet=fleet)
    _end_with_the_terminal()
    try:
        report = application.run()
    finally:
        application.end_session()
    if application.problem:
        say(clean(f"envcheck: {application.problem}"))
        return ExitCode.UNKNOWN
    if report is not None:
        print_text(render(report, "text", shown))
    return ExitCode.OK


def _end_with_the_terminal() -> None:
    """End at once when the terminal is gone: there is nothing to restore, and its input never ends.

    The worker processes end when their pipes close.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        if os.isatty(0):
            signal.raise_signal(signal.SIGTERM)  # a request to stop, and the terminal is still there
        else:
            os._exit(ExitCode.INTERRUPTED)

    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
        signal.signal(signal.SIGHUP, end)
