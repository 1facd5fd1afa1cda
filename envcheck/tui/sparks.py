"""Traces of GPUs as lines of small bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.text import Text

from envcheck.tui.paint import Paint
from envcheck.tui.telemetry import Trace

_BARS, _ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-:=+*#"
_HOTTEST = 100.0
"""Degrees Celsius at the top of the scale."""


def spark(values: Iterable[float | None], columns: int, top: float | None, *, ascii_only: bool) -> str:
    """The newest ``columns`` values as bars from 0 to ``top`` (the greatest of them when None)."""
    shown = list(values)[-columns:]
    known = [value for value in shown if value is not None]
    scale = top or max(known, default=0.0) or 1.0
    bars = _ASCII_BARS if ascii_only else _BARS
    marks = (
        " " if value is None else bars[min(len(bars) - 1, int(max(value, 0.0) / scale * len(bars)))] for value in shown
    )
    return "".join(marks).rjust(columns)


def trace_lines(traces: Sequence[Trace], columns: int, paint: Paint) -> Text:
    """A line for each GPU: SM clock, power, temperature and use, now and lately, and what holds its clocks down."""
    wide = max(4, min(24, (columns - 70) // 4))
    return Text("\n").join([_line(trace, wide, paint) for trace in traces])


def _line(trace: Trace, wide: int, paint: Paint) -> Text:
    text = Text(f"GPU {trace.index:<2}", paint.colour("title"))
    parts = (
        (trace.clock, "MHz", trace.top_clock),
        (trace.power, "W", trace.top_power),
        (trace.heat, "C", _HOTTEST),
        (trace.use, "%", _HOTTEST),
    )
    for values, unit, top in parts:
        now = values[-1] if values else None
        text.append(f" {'-' if now is None else f'{now:.0f}':>5} {unit} ")
        text.append(spark(values, wide, top, ascii_only=paint.ascii), paint.colour("note"))
    if trace.held:
        text.append(f"  held: {', '.join(trace.held)}", paint.colour("warn"))
    return text
