"""Signs beside the words for a status, so that a screen is read at a glance and never by colour alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from envcheck.checks import STATUSES, Check, Layer, Report, Status
from envcheck.report.page.pen import Line, Pen, Span
from envcheck.report.page.stack import Row, stack_rows, worst
from envcheck.report.page.subject import frameworks_in, judged_environment, listed

_MARKS: dict[Status, str] = {
    "fail": "✗ FAIL",
    "warn": "! WARN",
    "unknown": "? open",
    "note": "i note",
    "pass": "✓ ok",
    "skipped": "-",
}
_ASCII = {"✗": "x", "✓": "+"}


def mark(status: Status, *, ascii_only: bool) -> str:
    """Sign and word of a status, at most six columns."""
    told = _MARKS[status]
    return _ASCII.get(told[0], told[0]) + told[1:] if ascii_only else told


# The stack as a tower: a brick for each layer, with its state, what it is, and where that was read.


_LABEL, _MARK = 12, 8
_GPUS = 3
"""Bricks about GPUs at most."""
_OPEN = "looking"
_FAMILIES = {"cudnn": "cuDNN", "nccl": "NCCL", "cublas": "cuBLAS", "nvrtc": "NVRTC"}
"""The libraries that people ask about first, as they are called."""
_ABOUT: dict[str, tuple[tuple[str, ...], tuple[Layer, ...]]] = {
    "GPU": (("gpus", "fabric"), ("gpu", "fabric")),
    "Driver": (("driver", "kernel"), ("driver", "kernel")),
    "Toolkit": (("toolkits",), ("toolkit",)),
    "Python": (("environments",), ()),
    "Libraries": (("libraries", "environments"), ("library",)),
    "Frameworks": (("environments",), ("framework",)),
    "Container": (("platform",), ("container",)),
    "Required": ((), ("request",)),
}
"""For each brick: the parts of the Snapshot that it shows, and the layers of the checks about it."""


def tower(report: Report, pen: Pen, *, final: bool, roomy: bool) -> list[Line]:
    """A line for each layer; ``roomy``: a second one that says where it was read and how many checks stand behind it.

    Until all is known (not ``final``), layers that nobody told of yet are still looked at, and none is left open.
    """
    lines: list[Line] = []
    for row in _rows(report):
        shown = row if final else _still_open(row)
        lines.append(_first(shown, pen))
        note = _note(row.label, report) if roomy and row.label else ""
        if roomy:
            lines.append(_second(shown, note, pen))
    return lines


def _rows(report: Report) -> list[Row]:
    """The rows of the page, with the libraries on a floor of their own."""
    rows = stack_rows(report, _GPUS)
    libraries = _libraries(report)
    if libraries is None:
        return rows
    at = next((number for number, row in enumerate(rows) if row.label == "Frameworks"), len(rows))
    rows[at:at] = [libraries]
    return [_without_libraries(row, report) for row in rows]


def _libraries(report: Report) -> Row | None:
    """The floor between CUDA and the frameworks; None where nobody looked."""
    checks = _in(report, ("library",))
    versions = _versions(report)
    if not versions and worst(checks) in ("skipped", "pass"):
        return None
    broken = min(checks, key=lambda check: STATUSES.index(check.status), default=None)
    return Row("Libraries", worst(checks), listed(versions, 4) if versions else broken.title if broken else "")


def _versions(report: Report) -> list[str]:
    """What the frameworks of the judged environment would load: ``cuDNN 9.19.0``."""
    found: dict[str, dict[str, None]] = {}
    for framework in frameworks_in(judged_environment(report)):
        for load in framework.loads or ():
            family = _FAMILIES.get(load.name.removeprefix("lib").partition(".so")[0])
            if family and load.version:
                found.setdefault(family, {})[load.version] = None
    return [f"{family} {' and '.join(found[family])}" for family in _FAMILIES.values() if family in found]


def _without_libraries(row: Row, report: Report) -> Row:
    """The frameworks' own state: that of their libraries stands one floor below."""
    if row.label != "Frameworks" or row.status not in [check.status for check in _in(report, ("library",))]:
        return row
    return Row(row.label, worst(_in(report, ("framework",))), row.text)


def _still_open(row: Row) -> Row:
    status: Status = "skipped" if row.status == "unknown" else row.status
    return Row(row.label, status, _OPEN if row.text == "not looked at" else row.text)


def _first(row: Row, pen: Pen) -> Line:
    told = mark(row.status, ascii_only=pen.ascii) if row.label or row.status != "skipped" else ""
    text = pen.clip(re.sub(r"\(-v\)", "(g)", row.text), pen.width - 2 - _LABEL - _MARK)
    return (*_edge(row, pen), Span(row.label.ljust(_LABEL), "title"), Span(told.ljust(_MARK), row.status), Span(text))


def _second(row: Row, note: str, pen: Pen) -> Line:
    room = pen.width - 2 - _LABEL - _MARK
    return (*_edge(row, pen), Span(" " * (_LABEL + _MARK)), Span(pen.clip(note, room), "dim"))


def _edge(row: Row, pen: Pen) -> tuple[Span, Span]:
    """The side of the brick, in the colour of its state; the word behind it says the same."""
    return Span("|" if pen.ascii else "▌", row.status), Span(" ")


def _note(label: str, report: Report) -> str:
    """``read from nvml, cuda; 11 checks: 1 fails, 10 ok``."""
    sections, layers = _ABOUT.get(label, ((), ()))
    read = listed(list(dict.fromkeys(_sources(report, sections))), 4)
    counts = _counts(_in(report, layers))
    return "; ".join(filter(None, (f"read from {read}" if read else "", counts)))


def _counts(checks: Sequence[Check]) -> str:
    judged = [check for check in checks if check.status != "skipped"]
    if not judged:
        return ""
    words = {"fail": "failed", "warn": "warned", "unknown": "open", "note": "noted", "pass": "ok"}
    numbers = {word: sum(check.status == status for check in judged) for status, word in words.items()}
    told = ", ".join(f"{number} {word}" for word, number in numbers.items() if number)
    return f"{len(judged)} {'check' if len(judged) == 1 else 'checks'}: {told}"


def _in(report: Report, layers: Iterable[Layer]) -> list[Check]:
    wanted = frozenset(layers)
    return [check for check in report.checks if check.layer in wanted]


def _sources(report: Report, sections: Sequence[str]) -> Iterator[str]:
    """The kinds of places that parts of the Snapshot were read from: ``nvml``, ``file``."""
    for section in sections:
        record: Any = getattr(report.snapshot, section, None)
        for found in getattr(record, "items", (record,)):
            for source in (getattr(found, "source", None), *(getattr(found, "read", None) or {}).values()):
                if source:
                    yield source.partition(" ")[0]
