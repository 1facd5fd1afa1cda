"""A fleet as one HTML document: what stands out, distributions, and a table of all nodes that can be sorted.

`Foreign text is escaped. The page loads nothing; of scripts, only ``sort.js`` may run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from envcheck.fleet.names import folded
from envcheck.fleet.pages.text import NodeRow, counts, left_out, sections
from envcheck.fleet.record import Fleet, Spread
from envcheck.report import Options
from envcheck.report.document import Node, Tag, chip, headed, more, section, table, tag, whole_page
from envcheck.rules.facts.measurements import quantity
from envcheck.text.wrap import clip

_FOLDER = Path(__file__).parent
_ROWS = 500  # Rows of a section; the table of nodes has all
_NAMES = 40
_LONGEST_RUN = 400  # Characters of a run of names; the table of nodes has each


def render(fleet: Fleet, _options: Options) -> str:
    head = fleet.head
    older = f"; {left_out(head.superseded)}" if head.superseded else ""
    parts: list[Tag] = []
    for each in sections(fleet, whole=True):
        rows: list[Sequence[Node]] = []
        for row in each.rows:
            named = [_nodes(row)] if row.nodes else []
            cells = (*(cell or "" for cell in row.cells), *named)
            rows.append(cells if each.heads[0] else (chip(row.status), *cells))
        parts += _part(each.title, each.heads, rows)
    heads: Sequence[str] = (
        "Model", "Quantity", "Figures", "Lowest", "Median", "Highest", "Slow from", "From lowest to highest",
    )  # fmt: skip
    parts += _part("Distributions", heads, [_spread(spread) for spread in fleet.spreads if spread.count])
    nodes = [
        (
            node.name,
            chip(node.verdict),
            "" if node.problem else str(len(node.gpus)),
            str(node.differences or ""),
            str(node.slow or ""),
            "" if node.group is None else str(node.group),
            node.problem or node.headline,
        )
        for node in fleet.nodes
    ]
    find = tag("input", id="find", placeholder="find a node, a verdict or a reason", aria_label="find")
    heads = ("Node", "Verdict", "GPUs", "Differences", "Slow", "Group", "What it says")
    content = [
        tag("div", *headed(head.verdict, head.headline, f"{counts(fleet)}{older}"), class_=f"card hero {head.verdict}"),
        *parts,
        *section("Nodes", find, *table(nodes, heads, "nodes")),
        tag("footer", f"{head.tool.name} {head.tool.version}, {head.created}"),
    ]
    style, script = (f"\n{(_FOLDER / name).read_text(encoding='utf-8')}" for name in ("style.css", "sort.js"))
    return whole_page(f"envcheck fleet: {head.headline}", content, style, script)


def _part(title: str, heads: Sequence[str], rows: Sequence[Sequence[Node]]) -> list[Tag]:
    left = more(len(rows) - _ROWS, "more rows are in the JSON lines")
    return section(title, *table(rows[:_ROWS], heads, ""), *left)


def _spread(each: Spread) -> Sequence[Node]:
    unit = each.quantity.unit
    most = max(each.bins, default=0)
    bars = [tag("i", style=f"height:{100 * count / most:.0f}%") for count in each.bins] if most else []
    return (
        each.quantity.model,
        each.quantity.title,
        f"{each.count:,}",
        *(quantity(value, unit) for value in (each.low, each.median, each.high)),
        quantity(each.limit, unit) if each.limit is not None else "too few to tell",
        tag("div", *bars, class_="bars"),
    )


def _nodes(row: NodeRow) -> str:
    """The nodes of a row, with their parts where they are few."""
    if any(row.parts) and len(row.nodes) <= _NAMES:
        return ", ".join(" ".join(filter(None, pair)) for pair in zip(row.nodes, row.parts, strict=True))
    runs = folded(row.nodes)
    if len(row.nodes) == 1:
        return row.nodes[0]
    if row.whole:
        return f"{len(set(row.nodes)):,}: {', '.join(runs)}"
    more = f", … ({len(runs) - _NAMES:,} more)" if len(runs) > _NAMES else ""
    return f"{len(set(row.nodes)):,}: {', '.join(clip(run, _LONGEST_RUN) for run in runs[:_NAMES])}{more}"
