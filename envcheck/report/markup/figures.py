"""The measured figures as bars: how much of its ceiling each reached, and where healthy GPUs lie."""

from __future__ import annotations

from envcheck.model.checks import Figure, Report
from envcheck.report.markup.html import Markup, chip, tag
from envcheck.report.page.figures import FigurePart, FigureRow, figure_parts
from envcheck.report.page.pen import Style
from envcheck.rules.facts.measurements import percent

_FULL = 105.0
"""Percent of the ceiling at the right end of a bar: a little more than what can be."""
_LEGEND = (
    "A bar is the share of the ceiling that was reached; the lighter part is the range of healthy GPUs of the same "
    "model; the mark is the ceiling. Figures without a bar have no known ceiling or range: use a baseline for them."
)
_WORDS = {"WARN": ("!", "LOW"), "FAIL": ("✕", "TOO LOW"), "WRONG": ("✕", "WRONG RESULT")}


def figures(report: Report) -> list[Markup]:
    """A card for each GPU that was measured, for the processor, and for GPUs beside each other; empty for none."""
    cards = [_card(part) for part in figure_parts(report)]
    return [*cards, tag("p", _LEGEND, class_="legend")] if cards else []


def _card(part: FigurePart) -> Markup:
    hottest = f"at most {part.hottest:.0f} °C" if part.hottest is not None else ""
    about = ", ".join(filter(None, (*part.conditions, hottest))) or part.shares
    bars = [
        tag(
            "div",
            tag("span", row.whole_name or row.name),
            tag("span", row.value, class_="value"),
            _bar(row.figure, row.status),
            _beside(row),
            class_="figure",
        )
        for row in part.rows
        if row.figure
    ]
    plain = [
        tag(
            "div",
            tag("span", row.whole_name or row.name),
            tag("span", tag("span", row.value, class_="value"), _beside(row)),
        )
        for row in part.rows
        if row.figure is None
    ]
    return tag(
        "div",
        tag("h3", part.title),
        tag("p", about, class_="meta"),
        *([tag("div", *bars, class_="figures")] if bars else []),
        *([tag("div", *plain, class_="plain")] if plain else []),
        *([tag("p", part.note, class_="meta")] if part.note else []),
        class_="card",
    )


def _beside(row: FigureRow) -> Markup:
    """The share, a word for a low one, and the remark."""
    words = _WORDS.get(row.word) if row.value else ("!", "SLOWER") if row.status == "warn" else None
    mark = [chip(row.status, *words), " "] if words else []
    return tag("span", f" {row.share}{' ✓' if row.status == 'pass' else ''} ", *mark, row.remark, class_="share")


def _bar(figure: Figure, status: Style) -> Markup:
    """Drawn 105 units wide: one for each percent of the ceiling."""
    shares = figure.share or 0.0, figure.expected_low or 0.0, figure.expected_high or 0.0
    reached, low, high = (min(max(share * 100, 0.0), _FULL) for share in shares)
    words = "{} of the ceiling; healthy GPUs reach {} to {}".format(*map(percent, shares))
    boxes = (
        ("all", 0, _FULL, 3, 9),
        ("band", low, high, 0, 15),
        ("got", 0, reached, 3, 9),
        ("edge", 99.6, 100.4, 0, 15),
    )
    return tag(
        "svg",
        tag("title", words),
        *(
            tag(
                "rect",
                class_=kind,
                x=f"{left:.2f}",
                y=f"{top:g}",
                width=f"{max(right - left, 0):.2f}",
                height=f"{height:g}",
            )
            for kind, left, right, top, height in boxes
        ),
        class_=f"bar {status}",
        viewBox=f"0 0 {_FULL:g} 15",
        preserveAspectRatio="none",
        role="img",
    )
