"""Standard streams that can be relied on: they are open, take any text, and what cannot be written is said.

A closed descriptor would be given to the next file or pipe that is opened, and whatever prints would write into that.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress

from envcheck.errors import ExitCode, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from envcheck.text.inert import Syntax

_SPELLED = "envcheck.spelled"


def prepare() -> None:
    """Open what is closed, and have characters that a stream cannot encode spelled out rather than refused."""
    sys.stdin = sys.stdin if _is_open(0) and sys.stdin else io.TextIOWrapper(_dev_null(0, "rb"))
    sys.stdout = sys.stdout if _is_open(1) and sys.stdout else io.TextIOWrapper(_dev_null(1, "wb"))
    sys.stderr = sys.stderr if _is_open(2) and sys.stderr else io.TextIOWrapper(_dev_null(2, "wb"))
    codecs.register_error(_SPELLED, _spelled)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_SPELLED)


def print_text(text: str | Iterable[str], syntax: Syntax = "text") -> None:
    """Print ``text`` on stdout at once; raise UsageError where that fails. A reader that went away is no failure.

    A document (JSON, HTML …) is UTF-8 wherever it goes: it says so, or its readers take it to be.
    """
    from envcheck.text.inert import inert  # noqa: PLC0415 - the children are started before it is needed

    try:
        if syntax != "text" and isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
        sys.stdout.writelines(inert(part, syntax) for part in ([text] if isinstance(text, str) else text))
        sys.stdout.flush()
    except BrokenPipeError:
        _mute(1)
    except OSError as error:
        _mute(1)
        raise UsageError(f"cannot write to stdout: {error.strerror or error}") from None


def say(text: str) -> None:
    """Print a line on stderr, where somebody may read it."""
    from envcheck.text.inert import inert  # noqa: PLC0415 - most runs say nothing

    with suppress(OSError, ValueError):
        print(inert(text), file=sys.stderr, flush=True)  # noqa: T201 - it is what this function is for


def finish(status: int) -> int:
    """The exit status once all is written: the interpreter's own last flush must find nothing left to fail with."""
    try:
        print_text("")
    except UsageError as error:
        say(f"envcheck: {error}")
        status = ExitCode.USAGE
    try:
        sys.stderr.flush()
    except (OSError, ValueError):
        _mute(2)
    return status


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _dev_null(descriptor: int, mode: str) -> io.BufferedReader | io.BufferedWriter:
    """/dev/null under ``descriptor`` (a closed one, or one of a stream that Python gave up)."""
    opened = os.open(os.devnull, os.O_RDWR)
    if opened != descriptor and not _is_open(descriptor):
        os.dup2(opened, descriptor)
        os.close(opened)
        opened = descriptor
    os.set_inheritable(opened, True)
    return io.open(opened, mode, closefd=False)  # type: ignore[return-value]  # noqa: UP020


def _mute(descriptor: int) -> None:
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)


def _spelled(error: UnicodeError) -> tuple[str, int]:
    r"""``…`` as ``...``, other characters as ``\u2713``."""
    from envcheck.text.clean import spelled  # noqa: PLC0415 - streams that carry everything need none of it

    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(spelled, error.object[error.start : error.end])), error.end
