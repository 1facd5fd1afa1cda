"""``envcheck tui``: the terminal application, and the report that it prints when it ends; ``serve``, in a browser."""

from __future__ import annotations

import os
import signal
import sys
from argparse import Namespace
from types import FrameType

from envcheck.cli.deliver import supports_unicode
from envcheck.cli.request import judged_again, read_input, request_of, saved_report
from envcheck.config.options import options_of
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
    from envcheck.fleet.record import MOST_BYTES, is_fleet, placed, read
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
    request = request_of(options)
    if options.saved and fleet is None:
        saved = judged_again(options.saved, request) if request.baseline else saved_report(options.saved)
    application = EnvcheckApp(request, shown, saved=saved, fleet=fleet)
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


def serve(options: Namespace) -> int:
    """Serve the application in a browser on this machine until Ctrl+C.

    Raises UsageError for a host that others could reach, or where the extra is missing.
    """
    import asyncio
    import ipaddress

    try:
        address = ipaddress.ip_address("127.0.0.1" if options.host == "localhost" else options.host.strip("[]"))
    except ValueError:
        raise UsageError(f"--host {options.host}: use 127.0.0.1, ::1 or localhost") from None
    if not address.is_loopback:
        raise UsageError(
            f"--host {options.host}: the application has your permissions, so it is served to this machine only "
            "(from elsewhere: ssh -L 8000:127.0.0.1:8000 HOST)"
        )
    if options.saved == "-":
        raise UsageError("every visit reads the report again, and stdin can be read only once: name a file")
    try:
        from envcheck.tui.serve.server import Served
    except ModuleNotFoundError as error:
        needed = "serve needs the extra 'serve': pip install 'gpu-envcheck[serve]'"
        raise UsageError(f"{needed} ({error.name} is missing)") from None
    given: list[str] = []
    for option in options_of("tui"):  # each visit starts envcheck tui with them
        flag, value = option.flags[-1], getattr(options, option.dest)
        values = [value] if isinstance(value, str) else value or []
        given += [flag] if value is True else [part for each in values for part in (flag, each)]
    asyncio.run(
        Served(given, str(address), options.port).run(
            lambda page: print_text(
                f"envcheck is at {page}, for browsers on this machine; Ctrl+C stops it\n"
                "Anyone on this machine with this address can use the application: keep it secret.\n"
            )
        )
    )
    return ExitCode.OK
