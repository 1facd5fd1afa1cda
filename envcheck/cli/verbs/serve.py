"""``envcheck serve``: the terminal application in a browser on this machine."""

from __future__ import annotations

import asyncio
import ipaddress
from argparse import Namespace

from envcheck.config.options import options_of
from envcheck.errors import ExitCode, UsageError
from envcheck.text import streams


def run(options: Namespace) -> int:
    """Serve until Ctrl+C; raise UsageError for a host that others could reach, or where the extra is missing."""
    host = _loopback(options.host)
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
        Served(given, host, options.port).run(
            lambda address: streams.print_text(
                f"envcheck is at {address}, for browsers on this machine; Ctrl+C stops it\n"
                "Anyone on this machine with this address can use the application: keep it secret.\n"
            )
        )
    )
    return ExitCode.OK


def _loopback(host: str) -> str:
    """The address of ``host``, if only this machine can reach it."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError:
        raise UsageError(f"--host {host}: use 127.0.0.1, ::1 or localhost") from None
    if not address.is_loopback:
        raise UsageError(
            f"--host {host}: the application has your permissions, so it is served to this machine only "
            "(from elsewhere: ssh -L 8000:127.0.0.1:8000 HOST)"
        )
    return str(address)
