"""What ``envcheck node --look`` found a while ago, told within a tenth of a second: nothing is imported that can wait.

The folder and the file are private: what somebody else owns or can write does not count. The age is that of the clock
that starts with the machine, so that setting the time makes nothing younger, and nothing outlives a restart.
"""

# ruff: noqa: PTH123

from __future__ import annotations

import os
import stat
import time

from envcheck.errors import NoVerdictError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FORMATS = ("text", "slurm-reason", "node-problem-detector")
KEPT = "node.json"
DEFAULT_AGE = "10m"
_ROOT = "/run/envcheck"
_MOST = 1 << 20
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BOOT = "/proc/sys/kernel/random/boot_id"
_HARMLESS = ("ENVCHECK_SECONDS", "ENVCHECK_SYS", "ENVCHECK_DEBUG")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def exit_status_of(words: Sequence[str]) -> int | None:
    """The exit status of ``envcheck node`` with these words; None where the parser has to read them, or a variable."""
    given = {"--max-age": DEFAULT_AGE, "--format": FORMATS[0], "--runtime-dir": ""}
    left = iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        given[name] = value if equals else next(left, "")
        if not given[name] or given[name].startswith("-"):
            return None
    variables = (name for name in os.environ if name.startswith("ENVCHECK_") and name not in _HARMLESS)
    if len(given) != len(("age", "format", "place")) or given["--format"] not in FORMATS or any(variables):
        return None
    return tell(given["--runtime-dir"], given["--max-age"], given["--format"])


def tell(folder: str, most: str, form: str) -> int:
    """Print what is kept in ``folder`` as ``form`` and return its exit status; raise NoVerdictError where it is older
    than ``most``, or nothing is kept.
    """
    from envcheck.text.streams import print_text

    limit, place = _seconds(most), place_of(folder)
    try:
        found = _read(place)
        status, text = found["said"][form]
        age = since_start() - float(found["at"])
        same = found["boot"] == boot()
        status = int(status)
    except FileNotFoundError:
        raise NoVerdictError(f"no verdict: {place} keeps nothing; envcheck node --look writes it") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = getattr(error, "strerror", None) or error
        raise NoVerdictError(f"no verdict: {place}/{KEPT} cannot be used: {why}") from None
    if not same or not 0 <= age <= limit:
        old = f"is {_age_text(age)} old, more than {most}" if same else "was found before the machine started"
        raise NoVerdictError(f"no verdict: what {place} keeps {old}; envcheck node --look looks again")
    print_text(f"{text.rstrip()} ({_age_text(age)} ago)\n" if form == FORMATS[0] else text)
    return status


def place_of(folder: str) -> str:
    """The private folder: ``folder``, or that of this user where it is empty; raise UsageError where there is none."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    if not folder and os.geteuid() and not own:
        raise UsageError("XDG_RUNTIME_DIR is not set: name a private folder with --runtime-dir")
    return folder or (f"{own}/envcheck" if os.geteuid() else _ROOT)


def open_private(place: str, folder: int | None = None) -> int:
    """A descriptor of a folder, or of a file in one; raise OSError where another user owns it or can write it."""
    kind = os.O_DIRECTORY if folder is None else os.O_NONBLOCK
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind, dir_fd=folder)
    found = os.fstat(descriptor)
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & _OTHERS:
        os.close(descriptor)
        raise OSError(f"{place} belongs to or can be written by another user")
    return descriptor


def _read(place: str) -> Any:
    from json import loads

    folder = open_private(place)
    try:
        with open(open_private(KEPT, folder), "rb") as file:
            return loads(file.read(_MOST))
    finally:
        os.close(folder)


def since_start() -> float:
    """Seconds since the machine started, those that it slept among them."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def boot() -> str:
    """Names this start of the machine."""
    with open(_BOOT, encoding="ascii") as file:
        return file.read().strip()


def _seconds(text: str) -> float:
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    if not (number.isascii() and number.isdecimal() and len(number) < len("1000000000")):
        raise UsageError(f"--max-age {text}: write a number of seconds, or 90s, 10m, 2h, 1d")
    return float(int(number) * unit)


def _age_text(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 2 * 60 else f"{seconds:.0f} s"
