"""What files of an index said, kept by their sha256: such a file never changes, so a refresh reads it once.

It is kept as it is read, one file after the other, so that a refresh that was ended goes on where it was.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from envcheck.bounded import doubt_about
from envcheck.errors import UsageError


class Kept:
    """Texts by the sha256 of a file and by what was read from it. Without a place, nothing is kept."""

    def __init__(self, place: Path | None) -> None:
        self._lock = Lock()
        self._database: sqlite3.Connection | None = None
        if place is None:
            return
        if doubt := doubt_about(str(place)):
            raise UsageError(f"{place}: {doubt}; remove it")
        try:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            place.touch(0o600)
            self._database = sqlite3.connect(place, 30.0, isolation_level=None, check_same_thread=False)
            self._database.execute("PRAGMA synchronous = OFF")  # what a crash loses is read again
            self._database.execute("CREATE TABLE IF NOT EXISTS said (sha256 TEXT, what TEXT, text TEXT)")
            self._database.execute("CREATE UNIQUE INDEX IF NOT EXISTS by_file ON said (sha256, what)")
        except (OSError, sqlite3.Error) as error:
            raise UsageError(f"{place}: what was read cannot be kept: {error}; remove it") from None

    def close(self) -> None:
        if self._database is not None:
            self._database.close()

    def get(self, sha256: str, what: str) -> str | None:
        """What was kept; None where nothing was, or the file has no ``sha256``."""
        if self._database is None or not sha256:
            return None
        with self._lock:
            row = self._database.execute(
                "SELECT text FROM said WHERE sha256 = ? AND what = ?", (sha256, what)
            ).fetchone()
        return str(row[0]) if row else None

    def put(self, sha256: str, what: str, text: str) -> None:
        """Keep ``text``, unless the file has no ``sha256``."""
        if self._database is not None and sha256:
            with self._lock:
                self._database.execute("REPLACE INTO said VALUES (?, ?, ?)", (sha256, what, text))


def default_place(variables: Mapping[str, str]) -> Path | None:
    """The file in the user's folder for caches; None where there is none."""
    base = variables.get("XDG_CACHE_HOME") or os.path.join(variables.get("HOME", ""), ".cache")  # noqa: PTH118
    return Path(base, "envcheck", "refresh.sqlite") if base.startswith("/") else None
