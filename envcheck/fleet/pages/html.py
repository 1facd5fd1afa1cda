"""A fleet as one HTML document: what stands out, distributions, and a table of all nodes that can be sorted.

``tag`` escapes foreign text. The page loads nothing; of scripts, only the one below may run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envcheck.fleet.pages.rows import folded
from envcheck.fleet.pages.text import counts, fact_text, left_out, unanswered, value_text
from envcheck.fleet.record import Fleet, Node, Place, Slow, Spread
from envcheck.model.checks import Status
from envcheck.report import Options
from envcheck.report.markup.html import Markup, chip, document, join, tag
from envcheck.report.page.pen import WORDS
from envcheck.rules.facts.measurements import quantity
from envcheck.text.wrap import clip

_ROWS = 500
"""Rows of a section; the table of nodes has all."""
_NAMES = 40
_LONGEST_RUN = 400
"""Characters of a run of names; the table of nodes has each."""
_SIGNS: dict[str, str] = {"pass": "✓", "warn": "!", "fail": "✗", "unknown": "?", "note": "i", "skipped": "-"}
_SCRIPT = """
for (const head of document.querySelectorAll("th[data-column]")) head.addEventListener("click", () => {
  const table = head.closest("table"), body = table.tBodies[0], column = Number(head.dataset.column);
  const down = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const order = new Intl.Collator("en", {numeric: true}).compare;
  const key = (row) => row.cells[column].textContent.replace(/(\\d),(?=\\d{3})/g, "$1");
  const rows = [...body.rows].sort((a, b) => order(key(a), key(b)));
  body.append(...(down ? rows.reverse() : rows));
});
document.getElementById("find").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase();
  for (const row of document.querySelector("#nodes").tBodies[0].rows)
    row.hidden = !row.textContent.toLowerCase().includes(words);
});
"""
_OWN_STYLE = """
main { max-width: 1240px; }
table { width: 100%; border-collapse: collapse; font-size: 13.5px; }
th { text-align: left; cursor: pointer; position: sticky; top: 0; background: var(--card); padding: 4px 8px; }
td { padding: 3px 8px; border-top: 1px solid var(--line); vertical-align: top; }
th, td { overflow-wrap: break-word; } td:last-child { overflow-wrap: anywhere; min-width: 180px; }
th[aria-sort=ascending]::after { content: " ▲"; } th[aria-sort=descending]::after { content: " ▼"; }
.bars { display: flex; align-items: flex-end; gap: 1px; height: 34px; min-width: 180px; }
.bars i { flex: 1; background: var(--note); min-height: 0; }
input { font: inherit; padding: 6px 10px; width: 320px; margin-bottom: 10px; background: var(--well);
  color: var(--ink); border: 1px solid var(--line); border-radius: 8px; }
"""


def render(fleet: Fleet, _options: Options) -> str:
    """``fleet`` as an HTML document."""
    content = join(_sections(fleet))
    return document(f"envcheck fleet: {fleet.head.headline}", content, _OWN_STYLE, _SCRIPT)


def _sections(fleet: Fleet) -> list[Markup]:
    return [
        _hero(fleet),
        *_section("No report", ("Reason", "Nodes"), [_row(why, _several(names)) for why, names in unanswered(fleet)]),
        *_section("Findings of the nodes", ("", "Rule", "Problem", "Nodes"), _problems(fleet)),
        *_section("Different from the majority", ("Fact", "Value", "Most have", "Share", "Where"), _differences(fleet)),
        *_section("No majority", ("Fact", "Values"), _splits(fleet)),
        *_section(
            "Slow compared with the same GPU model",
            ("", "Node", "GPU or link", "Serial", "Quantity", "Value", "Median", "Of median"),
            [_slow(figure) for figure in sorted(fleet.slow, key=lambda each: each.ratio)],
        ),
        *_section("Changed since the earlier report", ("Fact", "Before", "Now", "Where"), _drifts(fleet)),
        *_section("Slower than before", ("Node", "GPU or link", "Quantity", "Before", "Now"), _slowed(fleet)),
        *_section(
            "Distributions",
            ("Model", "Quantity", "Figures", "Lowest", "Median", "Highest", "Slow from", "From lowest to highest"),
            [_spread(spread) for spread in fleet.spreads if spread.count],
        ),
        *_section("Nodes that agree", ("Group", "GPUs", "Driver", "Kernel", "Differs in", "Nodes"), _groups(fleet)),
        tag(
            "section",
            tag("h2", "Nodes"),
            tag("input", id="find", placeholder="find a node, a verdict or a reason", aria_label="find"),
            _nodes(fleet),
        ),
        tag("footer", f"{fleet.head.tool.name} {fleet.head.tool.version}, {fleet.head.created}"),
    ]


def _hero(fleet: Fleet) -> Markup:
    head = fleet.head
    older = f"; {left_out(head.superseded)}" if head.superseded else ""
    return tag(
        "div",
        chip(head.verdict, _SIGNS[head.verdict], head.verdict.upper()),
        tag("h1", head.headline),
        tag("p", f"{counts(fleet)}{older}", class_="meta"),
        class_=f"card hero {head.verdict}",
    )


def _section(title: str, heads: Sequence[str], rows: Sequence[Markup]) -> list[Markup]:
    if not rows:
        return []
    left = (
        tag("p", f"{len(rows) - _ROWS:,} more rows are in the JSON lines", class_="meta") if len(rows) > _ROWS else ""
    )
    return [tag("section", tag("h2", title), _table(heads, rows[:_ROWS]), left)]


def _table(heads: Sequence[str], rows: Iterable[Markup], name: str = "") -> Markup:
    titles = [tag("th", head, data_column=str(column)) for column, head in enumerate(heads)]
    return tag("table", tag("thead", tag("tr", *titles)), tag("tbody", *rows), id=name)


def _row(*cells: str | Markup | None) -> Markup:
    return tag("tr", *(tag("td", "" if cell is None else cell) for cell in cells))


def _status(status: Status) -> Markup:
    return chip(status, _SIGNS[status], WORDS[status])


def _problems(fleet: Fleet) -> list[Markup]:
    return [
        _row(_status(each.status), tag("code", each.rule), each.title, _several(each.nodes)) for each in fleet.problems
    ]


def _differences(fleet: Fleet) -> list[Markup]:
    return [
        _row(
            fact_text(each),
            value_text(each.value),
            value_text(each.common),
            f"{each.share:,} of {each.known:,}",
            _where(each.places),
        )
        for each in sorted(fleet.differences, key=lambda each: len(each.places))
    ]


def _splits(fleet: Fleet) -> list[Markup]:
    return [
        _row(
            fact_text(each),
            ", ".join(
                f"{value_text(value)} ({count:,})" for value, count in zip(each.values, each.counts, strict=False)
            ),
        )
        for each in fleet.splits
    ]


def _slow(each: Slow) -> Markup:
    unit = each.quantity.unit
    return _row(
        _status(each.status),
        each.node,
        each.subject,
        each.serial,
        f"{each.quantity.title} ({each.quantity.model})",
        quantity(each.value, unit),
        quantity(each.median, unit),
        f"{each.ratio:.0%}",
    )


def _drifts(fleet: Fleet) -> list[Markup]:
    return [
        _row(fact_text(each), value_text(each.before), value_text(each.after), _where(each.places))
        for each in fleet.drifts
    ]


def _slowed(fleet: Fleet) -> list[Markup]:
    return [
        _row(
            each.node,
            each.subject,
            each.quantity.title,
            quantity(each.before, each.quantity.unit),
            f"{quantity(each.after, each.quantity.unit)} ({each.ratio:.0%})",
        )
        for each in fleet.slowed
    ]


def _spread(each: Spread) -> Markup:
    unit = each.quantity.unit
    most = max(each.bins, default=0)
    bars = [Markup(f'<i style="height:{100 * count / most:.0f}%"></i>') for count in each.bins] if most else []
    return _row(
        each.quantity.model,
        each.quantity.title,
        f"{each.count:,}",
        *(quantity(value, unit) for value in (each.low, each.median, each.high)),
        quantity(each.limit, unit) if each.limit is not None else "too few to tell",
        tag("div", *bars, class_="bars"),
    )


def _groups(fleet: Fleet) -> list[Markup]:
    return [
        _row(str(each.number), each.gpus, each.driver, each.kernel, ", ".join(each.differs_in), _several(each.nodes))
        for each in fleet.groups
    ]


def _nodes(fleet: Fleet) -> Markup:
    heads = ("Node", "Verdict", "GPUs", "Differences", "Slow", "Group", "What it says")
    return _table(heads, map(_node, fleet.nodes), "nodes")


def _node(node: Node) -> Markup:
    return _row(
        node.name,
        _status(node.verdict),
        "" if node.problem else str(len(node.gpus)),
        str(node.differences or ""),
        str(node.slow or ""),
        "" if node.group is None else str(node.group),
        node.problem or node.headline,
    )


def _several(names: Sequence[str]) -> str:
    runs = folded(names)
    more = f", … ({len(runs) - _NAMES:,} more)" if len(runs) > _NAMES else ""
    shown = ", ".join(clip(run, _LONGEST_RUN) for run in runs[:_NAMES])
    return f"{len(set(names)):,}: {shown}{more}" if len(runs) > 1 or len(names) > 1 else names[0]


def _where(places: Sequence[Place]) -> Markup | str:
    if len(places) > _NAMES:
        return _several([place.node for place in places])
    return join([", ".join(" ".join(filter(None, (each.node, "+".join(each.subjects)))) for each in places)])
