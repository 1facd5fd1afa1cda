"""Rows and sections of the pages about many nodes, and names as Slurm writes them (``gpu[001-003,007]``)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from envcheck.model.checks import Status
from envcheck.report.page.pen import WORDS, Line, Pen, StyledSpan
from envcheck.text.wrap import consecutive

MOST_NAMES = 12
"""Names, or runs of names, after a row."""
MOST_LINES = 3
"""Lines of a text."""
VERDICTS: dict[str, str] = {"pass": "PASS", "warn": "WARN", "fail": "FAIL", "unknown": "UNKNOWN"}


@dataclass(frozen=True)
class NodeRow:
    """A sentence about nodes, and the same as cells of a table."""

    status: Status
    text: str
    nodes: Sequence[str] = ()
    parts: Sequence[str] = ()
    """Of each node, which part of it; empty where it is the whole."""
    sign: str = ""
    """Stands in place of the word for the status."""
    cells: Sequence[str | None] = ()
    """Without the status and the nodes."""

    def lines(self, pen: Pen) -> list[Line]:
        """The sentence, and the nodes: with their parts where they are few."""
        word = StyledSpan(f"  {self.sign or WORDS[self.status]:<5}", "" if self.sign else self.status)
        lines = pen.hang((word,), self.text, most=MOST_LINES)
        if self.nodes:
            runs = folded(self.nodes)
            if any(self.parts) and len(self.nodes) <= MOST_NAMES:
                pairs = zip(self.nodes, self.parts, strict=True)
                runs = [" ".join([*folded([name]), *filter(None, [part])]) for name, part in pairs]
            shown = ", ".join(runs[:MOST_NAMES]) + (", …" if len(runs) > MOST_NAMES else "")
            count = f"{len(set(self.nodes)):,} nodes: " if len(set(self.nodes)) > 1 else ""
            lines += pen.hang("       ", count + shown, "dim", 2)
        return lines


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


_UNUSUAL = re.compile(r"[\[\],\s\"]")
_NUMBERED = re.compile(r"(.*?)([0-9]{1,9})(\D*)", re.DOTALL)


def folded(names: Iterable[str]) -> list[str]:
    """``names`` in order, runs of numbered ones joined: ``gpu[001-003]``; quoted where they could be taken for such."""
    families: dict[tuple[str, str, int], list[int]] = {}
    plain: list[str] = []
    for name in sorted(set(names)):
        found = _NUMBERED.fullmatch(name)
        if _UNUSUAL.search(name) or not name:
            plain.append(f'"{name}"')
        elif found:
            padded = len(found[2]) if found[2].startswith("0") and found[2] != "0" else 0
            families.setdefault((found[1], found[3], padded), []).append(int(found[2]))
        else:
            plain.append(name)
    for (head, tail, padded), numbers in families.items():
        runs = consecutive(sorted(numbers))
        parts = [f"{run[0]:0{padded}d}" + (f"-{run[-1]:0{padded}d}" if len(run) > 1 else "") for run in runs]
        plain.append(f"{head}{parts[0]}{tail}" if len(numbers) == 1 else f"{head}[{','.join(parts)}]{tail}")
    return sorted(plain)


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
