"""Rows that an index has, as wheels of ``gpu-envcheck-matrix``."""

from __future__ import annotations

from datetime import date

from envcheck.errors import UsageError
from envcheck.knowledge.copies import FORMAT
from envcheck.knowledge.updates import DISTRIBUTION, MOST_BYTES, NewRows, checked
from envcheck.refresh.index import IndexFile, PackageIndex
from envcheck.refresh.wheel_files import releases


def newer_than(day: str, index: PackageIndex) -> tuple[str, IndexFile] | None:
    """The newest wheel whose rows this envcheck can read, with their day, where that is after ``day``."""
    for release in reversed(releases(index.files(DISTRIBUTION), DISTRIBUTION)):
        form, *numbers = release.version.release  # 1.2026.11.29.870: the format, the day, and the minute of it
        try:
            found = date(*numbers[:3]).isoformat() + "".join(f".{minute:04}" for minute in numbers[3:])
        except (TypeError, ValueError):
            continue
        if form == FORMAT:
            return (found, release.wheels[0].file) if found > day else None
    return None


def rows_of(day: str, file: IndexFile, index: PackageIndex) -> NewRows:
    """What a wheel holds, which must be of ``day``. Raises UsageError with what is wrong with it."""
    doubt = "" if file.sha256 else "the index does not tell its sha256"
    if not index.is_private:
        doubt = "the index was asked without TLS, so anybody between may have told its sha256"
    if doubt:
        raise UsageError(f"{file.name} was refused: {doubt}; nothing changed")
    rows = checked(index.whole(file, MOST_BYTES), file.name, file.sha256)
    if rows.read != day:
        raise UsageError(f"{file.name} was refused: its rows are of {rows.read}; nothing changed")
    return rows
