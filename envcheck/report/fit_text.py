"""The answer of ``envcheck matrix check`` as a page for people: the verdict, why, what would fit, what was assumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envcheck.compat.overlay import decided, is_from
from envcheck.compat.question.question import Answer, Reason
from envcheck.compat.relations.fit import FitVerdict
from envcheck.report import Options
from envcheck.report.pen import Line, Pen, Span, Style
from envcheck.sources import Source
from envcheck.text.clean import clean

_INDENT = " " * 2
_COLUMN = 6
"""Columns of the word before a reason."""

_WORDS: dict[FitVerdict, tuple[str, Style]] = {
    "compatible": ("ok", "pass"),
    "incompatible": ("NO", "fail"),
    "unknown": ("?", "unknown"),
}
_MOST_SOURCES = 2
"""Sources shown for a reason, by address; JSON has all, with their titles."""


def render(answer: Answer, options: Options, overlays: Sequence[str] = ()) -> str:
    """``answer`` as text, ending in a newline; it says which of the ``overlays`` of the matrix decided."""
    pen = Pen(options)
    return pen.show(answer_lines(answer, pen, overlays))


def answer_lines(answer: Answer, pen: Pen, overlays: Sequence[str] = ()) -> list[Line]:
    """The same as lines."""
    style = _WORDS[answer.verdict][1]
    lines: list[Line] = [(Span(answer.verdict.upper(), style),)]
    for reason in answer.reasons:
        lines += [(), *_reason(pen, reason, overlays)]
    if answer.suggestions:
        lines += [(), (Span("What would fit:", "title"),)]
        lines += [line for text in answer.suggestions for line in _filled(pen, text, _INDENT)]
    if answer.assumed:
        assumed = ", ".join(f"{name}: {value}" for name, value in answer.assumed.items())
        lines += [(), *_filled(pen, f"Taken for granted: {assumed}", "")]
    if overlays:
        cited = [source for reason in answer.reasons for source in reason.sources]
        lines += [(), *overlay_lines(overlays, cited)]
    return lines


def overlay_lines(overlays: Sequence[str], cited: Sequence[Source]) -> Iterator[Line]:
    """The folders of rows laid over the matrix, and whether what is shown rests on them."""
    for place in overlays:
        role = "cited above" if decided(cited, place) else "not cited here"
        yield (Span(f"Rows laid over the matrix: {clean(place)} ({role})"),)


def _reason(pen: Pen, reason: Reason, overlays: Sequence[str]) -> Iterator[Line]:
    word, style = _WORDS[reason.verdict]
    margin = _INDENT + " " * _COLUMN
    first, *rest = pen.fill(reason.message, pen.width - len(margin)) or [""]
    yield Span(_INDENT), Span(f"{word:<{_COLUMN}}", style), Span(first)
    for line in rest:
        yield Span(margin), Span(line)
    for source in reason.sources[:_MOST_SOURCES]:
        origin = "".join(f", from {place}" for place in overlays if is_from(source, place))
        yield Span(margin), Span(f"{clean(source.address)}  (read {clean(source.read)}{clean(origin)})", "dim")
    left = len(reason.sources) - _MOST_SOURCES
    if left > 0:
        yield Span(margin), Span(f"and {left} more sources (--json)", "dim")


def _filled(pen: Pen, text: str, margin: str) -> Iterator[Line]:
    for line in pen.fill(text, pen.width - len(margin)):
        yield Span(margin), Span(line)
