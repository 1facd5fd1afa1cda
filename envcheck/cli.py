"""The command line: parse, call the verb, and end with an exit status whatever happened."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from envcheck.errors import EnvcheckError
from envcheck.exitcode import ExitCode


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``envcheck`` with ``argv`` (default: the process's own) and return its exit status."""
    try:
        _end_children_on_termination()
        return _run(sys.argv[1:] if argv is None else argv)
    except EnvcheckError as error:
        print(f"envcheck: {error}", file=sys.stderr)
        return ExitCode.USAGE
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`envcheck | head`): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:
        if os.environ.get("ENVCHECK_DEBUG"):
            raise
        print(f"envcheck broke: {type(error).__name__}: {error} (ENVCHECK_DEBUG=1 shows where)", file=sys.stderr)
        return ExitCode.BROKEN


def _end_children_on_termination() -> None:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _run(argv: Sequence[str]) -> int:
    from envcheck.options import parse
    from envcheck.verbs import run_verb

    options = parse(argv or ["tui" if _application_here() else "check"], os.environ)
    if options.version:
        return _version()
    return run_verb(f"matrix_{options.matrix_verb}" if options.verb == "matrix" else options.verb or "check", options)


def _version() -> int:
    from envcheck.compat.load import matrix_date
    from envcheck.options import versions

    print(versions(matrix_date()))
    return ExitCode.OK


def _application_here() -> bool:
    """Whether a person sits in front of a terminal that can show more than lines, and there is an application."""
    plain = os.environ.get("TERM", "dumb") == "dumb" or bool(os.environ.get("CI"))
    if plain or not sys.stdin.isatty() or not sys.stdout.isatty():
        return False
    from envcheck.verbs.tui import why_not

    return not why_not()
