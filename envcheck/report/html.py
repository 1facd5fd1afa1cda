"""The report as a page in one file: no script, nothing loaded from anywhere, light and dark.

The stack is drawn as layers below the GPU; every status has a sign and a word beside its colour.
"""

from __future__ import annotations

from envcheck.model.checks import Figure, Report
from envcheck.report import Format, Options
from envcheck.report.charts import heat_table, link_matrix, roofline
from envcheck.report.document import Node, Tag, chip, section, tag, whole_page
from envcheck.report.page.contents import Contents, Extent
from envcheck.report.page.figures import FigureRow, figure_parts
from envcheck.report.page.pen import Style
from envcheck.rules.facts.measurements import percent

FORMAT = Format(
    shows="a page in one file that loads nothing: the stack, findings, figures as bars",
    suffix="html",
    syntax="markup",
    shared=True,
)

_EXTENT = Extent(targets=1000, gpus=64, findings=300, evidence=300, ways=300, rows=1000, whole=True)


def render(report: Report, _options: Options) -> str:
    found = Contents(report, _EXTENT)
    body = [
        *section("Targets", *found.targets()),
        tag("div", *found.verdict(), *found.cause(), class_=f"card hero {report.verdict}"),
        *section("The stack", *found.stack()),
        *section("Findings", *found.findings()),
        *section("Links", *link_matrix(report)),
        *section("Performance", *heat_table(report), *roofline(report), *figures(report)),
        *section("Details", *found.details()),
        found.footer(),
    ]
    return whole_page(f"envcheck: {report.headline}", body)


_FULL = 105.0  # Percent of the ceiling at the right end of a bar: a little more than what can be
_LEGEND = (
    "A bar is the share of the ceiling that was reached; the lighter part is the range of healthy GPUs of the same "
    "model; the mark is the ceiling. Figures without a bar have no known ceiling or range: use a baseline for them."
)
_WORDS = {"WARN": "LOW", "FAIL": "TOO LOW", "WRONG": "WRONG RESULT"}


def figures(report: Report) -> list[Tag]:
    """A card for each GPU that was measured, for the processor, and for GPUs beside each other; empty for none."""
    cards = []
    for part in figure_parts(report):
        hottest = f"at most {part.hottest:.0f} °C" if part.hottest is not None else ""
        about = ", ".join(filter(None, (*part.conditions, hottest))) or part.shares
        bars, plain = [], []
        for row in part.rows:
            name, value = tag("span", row.whole_name or row.name), tag("span", row.value, class_="value")
            if row.figure:
                bars.append(tag("div", name, value, _bar(row.figure, row.status), _share(row), class_="figure"))
            else:
                plain.append(tag("div", name, tag("span", value, _share(row))))
        content = [tag("h3", part.title), tag("p", about, class_="meta")]
        content += [tag("div", *bars, class_="figures")] if bars else []
        content += [tag("div", *plain, class_="plain")] if plain else []
        content += [tag("p", part.note, class_="meta")] if part.note else []
        cards.append(tag("div", *content, class_="card"))
    return [*cards, tag("p", _LEGEND, class_="legend")] if cards else []


def _share(row: FigureRow) -> Tag:
    """The share, a word for a low one, and the remark."""
    word = _WORDS.get(row.word) if row.value else "SLOWER" if row.status == "warn" else ""
    mark: list[Node] = [chip(row.status, word), " "] if word else []
    return tag("span", f" {row.share}{' ✓' if row.status == 'pass' else ''} ", *mark, row.remark, class_="share")


def _bar(figure: Figure, status: Style) -> Tag:
    """Drawn 105 units wide: one for each percent of the ceiling."""
    shares = figure.share or 0.0, figure.expected_low or 0.0, figure.expected_high or 0.0
    reached, low, high = (min(max(share * 100, 0.0), _FULL) for share in shares)
    words = "{} of the ceiling; healthy GPUs reach {} to {}".format(*map(percent, shares))
    boxes = (
        ("all", 0, _FULL, 3, 9), ("band", low, high, 0, 15), ("got", 0, reached, 3, 9), ("edge", 99.6, 100.4, 0, 15),
    )  # fmt: skip
    drawn = []
    for kind, left, right, top, height in boxes:
        place = {"x": f"{left:.2f}", "y": f"{top:g}", "width": f"{max(right - left, 0):.2f}", "height": f"{height:g}"}
        drawn.append(tag("rect", class_=kind, **place))
    frame = {"viewBox": f"0 0 {_FULL:g} 15", "preserveAspectRatio": "none", "role": "img"}
    return tag("svg", tag("title", words), *drawn, class_=f"bar {status}", **frame)
