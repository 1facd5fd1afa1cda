"""The day on which each release of a package came to the index, as one short text: the first as 20261130, each other as
the number of days since the one before it, and ``-`` where it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta


def spelled(days: Iterable[date | None]) -> str:
    """The text; empty where no day is known."""
    words, last = list[str](), None
    for day in days:
        words.append("-" if day is None else str((day - last).days) if last else f"{day:%Y%m%d}")
        last = day or last
    return " ".join(words) if last else ""


def days_in(text: str) -> Iterator[date | None]:
    """The days; what cannot be read ends them."""
    last = None
    for word in text.split():
        try:
            if word != "-":
                last = last + timedelta(int(word)) if last else day_of(word)
        except (ValueError, OverflowError):
            return
        yield last if word != "-" else None


def day_of(text: str) -> date:
    """The day of ``20261130`` or ``2026-11-30``; raises ValueError."""
    digits = text.replace("-", "")
    return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
