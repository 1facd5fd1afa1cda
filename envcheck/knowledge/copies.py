"""The copies of the rows: what came with envcheck, the distribution ``gpu-envcheck-matrix`` beside it, and what
``envcheck matrix update`` brought into the user's folder for data. The newest counts
(docs/decisions/064-rows-of-their-own.md).
"""

# ruff: noqa: PTH112, PTH117, PTH118, PTH120, PTH123, PTH208, PLC0415  --version has no use for pathlib
from __future__ import annotations

import os

from envcheck.bundle import COMPILED, DATE, PACKAGE, place

FORMAT = 1
"""What compiled rows look like. An envcheck leaves out rows with a field or a value that it does not know. Raise this
with what it would misread, or with a field that takes another's place in many rows: it then leaves newer rows alone.
``tests/matrix/test_matrix_compiled.py`` asks when tables change.
"""
ROWS_PACKAGE = "gpu_envcheck_matrix"  # The folder that the distribution of the rows installs beside the package


def date_of_rows() -> str:
    """The newest day on which a source of the rows that count was read, and the minute; empty in a checkout."""
    try:
        return _counting()[0]
    except FileNotFoundError:
        return ""


def rows_folder() -> str:
    """The folder of the rows that count: the newest copy that nobody else may have written.

    Raises FileNotFoundError where the installation has no rows.
    """
    return _counting()[1]


def _counting() -> tuple[str, str, str]:
    return max((copy for copy in copies() if not copy[2]), key=lambda copy: copy[0])


_copies: list[tuple[str, str, str]] = []


def copies() -> list[tuple[str, str, str]]:
    """Day, folder, and the reason why it cannot count, of each copy of the rows in this format.

    That of the installation comes first, then the distribution's, then those that ``envcheck matrix update`` brought. A
    checkout has its own alone.

    A process looks once, until it calls ``look_again``.
    """
    if not _copies:
        _copies.extend(_look())
    return _copies


def look_again() -> None:
    _copies.clear()


def _look() -> list[tuple[str, str, str]]:
    own = place("matrix")
    found = [(_date_in(own), own, "")]
    if not found[0][0]:
        return found
    beside = os.path.join(os.path.dirname(PACKAGE), ROWS_PACKAGE, str(FORMAT))
    if os.path.isdir(beside):
        found.append((_date_in(beside), beside, ""))
    below = updates_folder()
    try:
        names = sorted(os.listdir(below)) if below else []
    except (FileNotFoundError, NotADirectoryError):
        names = []
    except OSError as error:
        return [*found, ("", below, f"it cannot be read: {error.strerror or error}")]
    for name in names:
        if len(name) >= len("2026-11-29") and name.replace("-", "").replace(".", "", 1).isdecimal():
            from envcheck.bounded import doubt_about

            folder = os.path.join(below, name)
            found.append((name, folder, doubt_about(os.path.join(folder, COMPILED))))
    return found


def updates_folder() -> str:
    """Where ``envcheck matrix update`` writes, below the user's folder for data; empty where there is none."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.join(os.environ.get("HOME", ""), ".local", "share")
    # One that is relative is to be ignored, by the XDG Base Directory Specification.
    return os.path.join(base, "envcheck", "matrix", str(FORMAT)) if os.path.isabs(base) else ""


def _date_in(folder: str) -> str:
    try:
        with open(os.path.join(folder, DATE), encoding="ascii") as file:
            return file.read(99).strip()
    except (OSError, ValueError):
        return ""
