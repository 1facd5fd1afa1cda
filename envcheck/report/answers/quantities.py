"""What ``envcheck bench --list`` prints."""

from __future__ import annotations

from collections.abc import Iterable

from envcheck.knowledge.performance.quantities import BenchQuantity, framework_tested
from envcheck.text.wrap import clip, width

_COLUMNS = 80


def quantity_list(quantities: Iterable[BenchQuantity]) -> str:
    """A line for each quantity: its name, what it is, the library that it needs, and the seconds that it takes."""
    rows = [
        (
            each.name,
            each.title,
            each.needs or "-",
            "quick" if each.quick else "asked" if framework_tested(each.name) else "full",
            f"{each.seconds:g} s" if each.seconds else "-",
        )
        for each in quantities
    ]
    head = ("NAME", "QUANTITY", "LIBRARY", "RUN", "TIME")
    room = [max(width(row[column]) for row in (head, *rows)) for column in range(len(head))]
    table = ("  ".join(f"{text:<{space}}" for text, space in zip(row, room, strict=True)) for row in (head, *rows))
    notes = (
        "RUN quick: measured with and without --full; asked: with --frameworks.",
        "TIME: with --full, on an H200.",
    )
    return "\n".join(clip(line, _COLUMNS) for line in (*map(str.rstrip, table), "", *notes)) + "\n"
