"""A fleet on one page, however many nodes it has: what stands out first, names folded, long lists cut with a count.

Rows and sections serve the other pages about many nodes too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from envcheck.fleet.names import folded
from envcheck.fleet.record import Decline, Difference, Drift, Fleet, Place, Slow, Slowed, Split, counted
from envcheck.model.checks import Status
from envcheck.report import Options
from envcheck.report.page.pen import WORDS, Line, Pen, StyledSpan
from envcheck.rules.facts.measurements import quantity

_ROWS = 8  # Rows of a section; ``verbose`` shows all
_GROUPS = 4
_OFTEN = 3  # Times that a finding began within two weeks from which on it comes and goes
_AGREE = "Nodes that agree"
_GONE: dict[Status, str] = {
    "fail": "expected, and nothing came of them",
    "unknown": "nothing came of them, unless a report that could not be read is theirs",
}
_Figure = TypeVar("_Figure", Slow, Slowed)
MOST_NAMES = 12  # Names, or runs of names, after a row
MOST_LINES = 3  # Lines of a text
_SHORT = 32  # Characters of names that may stand before a text


def render(fleet: Fleet, options: Options) -> str:
    pen = Pen(options)
    return pen.show(page_lines(fleet, pen, options))


def page_lines(fleet: Fleet, pen: Pen, options: Options) -> Iterator[Line]:
    head = fleet.head
    yield from pen.hang((StyledSpan(f"{head.verdict.upper()}  ", head.verdict),), head.headline, "title", MOST_LINES)
    yield from pen.hang("  ", counts(fleet), most=MOST_LINES)
    if options.quiet:
        return
    found = [*sections(fleet, whole=options.verbose)]
    apart = [row for each in found if each.title != _AGREE for row in each.rows]
    if 0 < len(apart) <= _ROWS and not options.verbose:  # few, which need no titles
        yield ()
        yield from (line for row in apart for line in row.lines(pen, is_brief=True))
        found = [each for each in found if each.title == _AGREE and len(each.rows) > 1]
    most = len(fleet.nodes) + len(fleet.differences) + len(fleet.slow) + 1 if options.verbose else _ROWS
    for each in found:
        groups = each.title == _AGREE and not options.verbose
        yield from section(pen, each.title, each.rows, _GROUPS if groups else most)
    if head.superseded:
        yield from pen.hang("", f"{left_out(head.superseded)}.", "dim", MOST_LINES)


@dataclass(frozen=True)
class FleetSection:
    title: str
    heads: Sequence[str]
    """Above the cells of its rows: that of the status is empty, that of the nodes is last where rows name any."""
    rows: Sequence[NodeRow]


def sections(fleet: Fleet, *, whole: bool) -> Iterator[FleetSection]:
    """What stands out, then the nodes that agree; ``whole``: all slow figures of a node."""
    unless_lost = f"only the report of {fleet.head.since} has them"
    vanished = ((each, _GONE.get(each.status, unless_lost)) for each in fleet.vanished)
    rows = [NodeRow(each.status, why, each.nodes, cells=(why,), whole=True) for each, why in vanished]
    yield FleetSection("Vanished", ("", "Reason", "Nodes"), rows)
    gone = by_reason((node.name, node.problem) for node in fleet.nodes if node.problem)
    reasons = [NodeRow("unknown", why, names, cells=(why,)) for why, names in gone]
    yield FleetSection("No report", ("Reason", "Nodes"), reasons)
    yield FleetSection("Findings of the nodes", ("", "Rule", "Problem", "Nodes"), [*_findings(fleet)])
    yield from _of_time(fleet)
    rows = []
    # Few nodes first: one that departs alone is more likely to be the fault than a part of the fleet.
    for each in sorted(fleet.differences, key=lambda each: (len(each.places), each.aspect, each.what)):
        fact, value, common = fact_text(each), value_text(each.value), value_text(each.common)
        share = f"{each.share:,} of {each.known:,}"
        text = f"{fact}: {value}, not {common} ({share})"
        rows.append(_placed("warn", text, each.places, (fact, value, common, share)))
    heads: tuple[str, ...] = ("Fact", "Value", "Most have", "Share", "Where")
    yield FleetSection("Different from the majority", heads, rows)
    rows = []
    for split in fleet.splits:
        values = [f"{value_text(value)} ({count:,})" for value, count in zip(split.values, split.counts, strict=False)]
        more = f", {len(split.values) - 4:,} others" if len(split.values) > len(values[:4]) else ""
        fact = fact_text(split)
        rows.append(NodeRow("note", f"{fact}: {', '.join(values[:4])}{more}", cells=(fact, ", ".join(values))))
    yield FleetSection("No majority", ("Fact", "Values"), rows)
    heads = ("", "Node", "GPU or link", "Serial", "Quantity", "Value", "Median", "Of median")
    gpus = {node.name: len(node.gpus) for node in fleet.nodes} if fleet.slow or fleet.slowed else {}
    yield FleetSection("Slow compared with the same GPU model", heads, [*_slow(fleet.slow, gpus, whole=whole)])
    rows = []
    for drift in sorted(fleet.drifts, key=lambda each: (-len(each.places), each.aspect, each.what)):
        fact, before, after = fact_text(drift), value_text(drift.before), value_text(drift.after)
        rows.append(_placed("note", f"{fact}: {before}, now {after}", drift.places, (fact, before, after)))
    moved = fleet.came_or_went
    if moved and moved.came:
        rows.append(NodeRow("note", "without an earlier report", moved.came, cells=("report", "absent", "present")))
    yield FleetSection(f"Changed since {fleet.head.since}", ("Fact", "Before", "Now", "Where"), rows)
    rows = []
    for figure, rest in _worst(fleet.slowed, gpus, whole=whole):
        title, unit, share = figure.quantity.title, figure.quantity.unit, f"({figure.ratio:.0%})"
        where = " ".join(filter(None, (figure.node, figure.subject)))
        before, after = quantity(figure.before, unit), quantity(figure.after, unit)
        text = f"{where}: {title} {after}, was {before} {share}{rest}"
        rows.append(NodeRow("warn", text, cells=(figure.node, figure.subject, title, before, f"{after} {share}")))
    heads = ("", "Node", "GPU or link", "Quantity", "Before", "Now")
    yield FleetSection("Slower than before", heads, rows)
    rows = []
    for group in (each for each in fleet.groups if whole or len(each.nodes) > 1):
        facts = ", ".join(filter(None, (group.gpus, f"driver {group.driver}" if group.driver else "", group.kernel)))
        differs = ", ".join(group.differs_in)
        cells = (str(group.number), group.gpus, group.driver, group.kernel, differs)
        text = f"{facts}; differs in {differs}" if differs else facts
        rows.append(NodeRow("pass", text, group.nodes, sign=f"{group.number}.", cells=cells))
    heads = ("Group", "GPUs", "Driver", "Kernel", "Differs in", "Nodes")
    yield FleetSection(_AGREE, heads, rows)


def _findings(fleet: Fleet) -> Iterator[NodeRow]:
    since = {(spell.what, spell.node): spell.since for spell in fleet.spells}
    for problem in fleet.problems:
        first = min((day for node in problem.nodes if (day := since.get((problem.rule, node)))), default="")
        text = f"{problem.rule}: {problem.title}" + (f" (since {first})" if first else "")
        yield NodeRow(problem.status, text, problem.nodes, cells=(problem.rule, problem.title))


def _of_time(fleet: Fleet) -> Iterator[FleetSection]:
    """What the store knows: who became slower, and what comes and goes."""
    slower = ((each, decline_text(each)) for each in fleet.declines)
    rows = [NodeRow("warn", text, cells=(each.node, text.partition(": ")[2])) for each, text in slower]
    yield FleetSection("Became slower", ("", "Node", "What"), rows)
    often: dict[tuple[str, int], dict[str, None]] = defaultdict(dict)
    for spell in fleet.spells:
        if spell.times >= _OFTEN:
            often[spell.what, spell.times][spell.node] = None
    rows = [
        NodeRow("warn", f"{what}: began {times} times in two weeks", [*names], cells=(what, f"{times}"))
        for (what, times), names in often.items()
    ]
    yield FleetSection("Comes and goes", ("", "What", "Times", "Nodes"), rows)


def counts(fleet: Fleet) -> str:
    """How many nodes there are, with how many GPUs, and how many have which verdict."""
    head = fleet.head
    verdicts = ", ".join(f"{count:,} {name}" for name, count in head.verdicts.items() if count)
    gpus = counted(head.gpus, "GPU", "GPUs") or "no GPU"
    return f"{counted(head.nodes, 'node', 'nodes')}, {gpus}: {verdicts}" if verdicts else "no reports"


def _slow(figures: Sequence[Slow], gpus: Mapping[str, int], *, whole: bool) -> Iterator[NodeRow]:
    for figure, rest in _worst(figures, gpus, whole=whole):
        title, unit, share = figure.quantity.title, figure.quantity.unit, f"{figure.ratio:.0%}"
        value, median = quantity(figure.value, unit), quantity(figure.median, unit)
        where = " ".join(filter(None, (figure.node, figure.subject or "processor")))
        serial = f" (serial {figure.serial})" if figure.serial else ""
        text = f"{where}{serial}: {title} {value}, {share} of the median {median}{rest}"
        model = f"{title} ({figure.quantity.model})"
        yield NodeRow(
            figure.status, text, cells=(figure.node, figure.subject, figure.serial, model, value, median, share)
        )


def _worst(figures: Sequence[_Figure], gpus: Mapping[str, int], *, whole: bool) -> Iterator[tuple[_Figure, str]]:
    """The figures, slowest first; of a node only its slowest, with what else is slow, unless all are asked for."""
    of_node: dict[str, list[_Figure]] = defaultdict(list)
    for figure in sorted(figures, key=lambda each: (each.ratio, each.node)):
        of_node["" if whole else figure.node].append(figure)
    for first, *others in of_node.values():
        if whole:
            yield from ((figure, "") for figure in (first, *others))
            continue
        subjects = {figure.subject for figure in (first, *others)}
        of = f" of {_parts(subjects, gpus.get(first.node, 0))}" if len(subjects) > 1 else ""
        yield first, f"; {counted(len(others), 'other figure', 'other figures')}{of} too" if others else ""


def decline_text(each: Decline) -> str:
    """Which GPUs of a node became slower, by how much and since when."""
    more = f" and {counted(len(each.titles) - 1, 'other', 'others')}" if len(each.titles) > 1 else ""
    which = _parts(each.subjects, each.gpus)
    return f"{each.node}: {which} {1 - each.ratio:.0%} slower since {each.since}: {each.titles[0]}{more}"


def _parts(subjects: Iterable[str], gpus: int) -> str:
    """``all 8 GPUs``, ``GPU 1, GPU 3``; a link counts as both of its GPUs where all GPUs are slow, else as itself."""
    alone = {subject for subject in subjects if " to " not in subject}
    if len(alone) >= gpus > 1:
        return f"all {gpus} GPUs"
    links = len({*subjects} - alone)
    named = sorted(subject or "the processor" for subject in alone) or sorted(subjects)[:1]
    shown = ", ".join(named[:MOST_LINES]) + (f" and {len(named) - MOST_LINES} more" if len(named) > MOST_LINES else "")
    return shown + (f" and {counted(links, 'link', 'links')}" if links and alone else "")


def _placed(status: Status, text: str, places: Sequence[Place], cells: Sequence[str]) -> NodeRow:
    parts = ["+".join(each.subjects) for each in places]
    return NodeRow(status, text, [each.node for each in places], parts, cells=cells)


def left_out(count: int) -> str:
    """That older reports were not compared."""
    return counted(count, "older report of the same node was left out", "older reports of the same nodes were left out")


def fact_text(found: Difference | Split | Drift) -> str:
    """A fact's name after its aspect, unless they are the same word."""
    return found.what if found.what == found.aspect else f"{found.aspect}, {found.what}"


def value_text(value: str | None) -> str:
    """A fact's value as people read it."""
    return "absent" if value is None else value or "(empty)"


@dataclass(frozen=True)
class NodeRow:
    """A sentence about nodes, and the same as cells of a table."""

    status: Status
    text: str
    nodes: Sequence[str] = ()
    parts: Sequence[str] = ()  # Of each node, which part of it; empty where it is the whole
    sign: str = ""  # Stands in place of the word for the status
    cells: Sequence[str | None] = ()  # Without the status and the nodes
    whole: bool = False  # Whether every node is named, however many there are

    def lines(self, pen: Pen, *, is_brief: bool = False) -> list[Line]:
        """The sentence, and the nodes: with their parts where they are few; before it if it ``is_brief``."""
        word = StyledSpan(f"  {self.sign or WORDS[self.status]:<5}", "" if self.sign else self.status)
        runs = folded(self.nodes)
        if any(self.parts) and len(self.nodes) <= MOST_NAMES:
            pairs = zip(self.nodes, self.parts, strict=True)
            runs = [" ".join([*folded([name]), *filter(None, [part])]) for name, part in pairs]
        most = len(runs) if self.whole else MOST_NAMES
        shown = ", ".join(runs[:most]) + (", …" if len(runs) > most else "")
        if is_brief and 0 < len(shown) <= _SHORT:
            return pen.hang((word,), f"{shown}: {self.text}", most=MOST_LINES)
        lines = pen.hang((word,), self.text, most=MOST_LINES)
        count = f"{len(set(self.nodes)):,} nodes: " if len(set(self.nodes)) > 1 else ""
        return [*lines, *(pen.hang("       ", count + shown, "dim", None if self.whole else 2) if shown else ())]


def section(pen: Pen, title: str, rows: Sequence[NodeRow], most: int, whole: str = "--format jsonl") -> Iterator[Line]:
    """A title and ``most`` of ``rows``; nothing where there are none."""
    if not rows:
        return
    yield ()
    yield (StyledSpan(title, "title"),)
    for row in rows[:most]:
        yield from row.lines(pen)
    if len(rows) > most:
        left = f"… and {len(rows) - most:,} more (-v shows them, {whole} has all)"
        yield (StyledSpan(pen.text(f"  {left}"), "dim"),)


def by_reason(problems: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """Reasons, that of most nodes first, and their nodes; ``problems`` has the reason of each node.

    A node's own name in its reason makes no reason of its own: ``connect to host <node> port 22: Connection refused``.
    """
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for node, reason in problems:
        host, shared = node.rpartition("@")[2], reason
        for name in (host, host.partition(".")[0]):
            if name and name in shared:
                shared = re.sub(rf"(?<![A-Za-z0-9_.]){re.escape(name)}(?![A-Za-z0-9_-])", "<node>", shared)
        found[shared].append((node, reason))
    reasons = [
        (shared if len({reason for _, reason in each}) > 1 else each[0][1], [node for node, _ in each])
        for shared, each in found.items()
    ]
    return sorted(reasons, key=lambda item: (-len(item[1]), item[0]))
