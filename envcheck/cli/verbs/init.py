"""``envcheck init``: write a configuration that requires what this machine has."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from envcheck.cli.request import request_of, saved_report
from envcheck.collect.request import working_folder
from envcheck.config.describe import configuration_for
from envcheck.config.find import OWN, in_folder
from envcheck.errors import ExitCode, UsageError
from envcheck.pipeline import session
from envcheck.report.progress import progress
from envcheck.text.output import writable, write_whole
from envcheck.text.streams import print_text, say


def run(options: Namespace) -> int:
    """Write it to a new file, or to stdout; raise UsageError where the file exists or cannot be written."""
    name = options.output or OWN
    if name != "-" and os.path.lexists(name):
        raise UsageError(f"{name} exists and was not changed; name another file with -o, or - for stdout")
    counting = in_folder(os.path.realpath(working_folder())) if name == OWN else None
    if counting is not None:
        raise UsageError(f"{counting.path} has a configuration already; -o - prints another one to copy from")
    path = None if name == "-" else writable(name, f"-o {name}")
    if options.saved:
        report = saved_report(options.saved)
    else:
        with progress(sys.stderr, quiet=False, lines=False) as on_event:
            report = session.check(request_of(options), on_event)
    text = configuration_for(report)
    if path is None:
        print_text(text, syntax="text")
    else:
        write_whole(Path(path), text)
        say(f"envcheck: wrote {path}; envcheck check uses it from now on")
    return ExitCode.OK
