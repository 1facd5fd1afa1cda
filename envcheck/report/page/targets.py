"""Several machines judged at once: one line for each, and a table of what was found for which."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.model.checks import STATUSES, Report, Status, Target
from envcheck.report.page.pen import WORDS, Line, Pen, StyledSpan

_CELL, _LEAST_NAME = 6, 24
_FOUND: tuple[Status, ...] = ("fail", "warn", "unknown")


class TargetRow(msgspec.Struct, frozen=True):
    """A finding, and its status for each target; None where the question did not arise or was not judged."""

    rule: str
    statuses: tuple[Status | None, ...]


def finding_rows(targets: Sequence[Target]) -> list[TargetRow]:
    """What failed, warned or is unknown for a target; the most pressing first, then what concerns most targets.

    What is unknown counts for a target without a verdict only.
    """
    named: list[dict[str, Status]] = []
    for target in targets:
        worst: dict[str, Status] = {}
        for check in target.checks:
            status: Status = "note" if check.ignored else check.status
            if check.rule not in worst or STATUSES.index(status) < STATUSES.index(worst[check.rule]):
                worst[check.rule] = status
        named.append({rule: status for rule, status in worst.items() if status != "skipped"})
    rules = dict.fromkeys(
        rule
        for target, statuses in zip(targets, named, strict=True)
        for rule, status in statuses.items()
        if status in ("fail", "warn") or (status == "unknown" and target.verdict == "unknown")
    )
    rows = [TargetRow(rule, tuple(statuses.get(rule) for statuses in named)) for rule in rules]

    def order(row: TargetRow) -> tuple[int, int]:
        pressing = [status for status in row.statuses if status in _FOUND]
        return min(map(_FOUND.index, pressing)), -len(pressing)

    return sorted(rows, key=order)


def stated(judged: Target | Report) -> str:
    """What is assumed of a machine, in words."""
    return ", ".join(f"{name} {value}".rstrip() for name, value in judged.assumed.items())


def target_lines(report: Report, pen: Pen) -> list[Line]:
    """The targets by number, and the table; nothing for a report about one machine."""
    targets = report.targets
    if not targets:
        return []
    number = len(str(len(targets)))
    name = min(max(len(pen.clip(target.name, _LEAST_NAME)) for target in targets), _LEAST_NAME)
    lines: list[Line] = [(StyledSpan(f"Judged for {len(targets)} target{'s' if len(targets) > 1 else ''}", "title"),)]
    for place, target in enumerate(targets, start=1):
        start = f"{place:>{number}}  {pen.clip(target.name, name):<{name}}  "
        word = WORDS[target.verdict]
        room = pen.width - len(start) - _CELL
        shown = StyledSpan(f"{word:<{_CELL}}", target.verdict), StyledSpan(pen.clip(target.headline, room))
        lines.append((StyledSpan(start), *shown))
        indent = " " * (number + 2)
        lines += [(StyledSpan(indent + text, "dim"),) for text in pen.fill(stated(target), pen.width - len(indent), 2)]
    # The findings by target, in as many blocks of columns as the page needs.
    rows = finding_rows(targets) if len(targets) > 1 else []
    label = min(max((len(row.rule) for row in rows), default=0), pen.width - 2 * _CELL)
    most = max(1, (pen.width - label) // _CELL)
    for begin in range(0, len(targets) if rows else 0, most):
        numbers = range(begin, min(begin + most, len(targets)))
        heads = "".join(f"{number + 1:>{_CELL}}" for number in numbers)
        lines += [(StyledSpan(""),), (StyledSpan(" " * label + heads),)]
        for row in rows:
            cells = [row.statuses[number] for number in numbers]
            spans = [StyledSpan(f"{WORDS[cell] if cell else '-':>{_CELL}}", cell or "skipped") for cell in cells]
            lines.append((StyledSpan(f"{pen.clip(row.rule, label):<{label}}"), *spans))
    worst = report.worst
    if len(targets) > 1 and worst is not None:
        lines += [(StyledSpan(""),), (StyledSpan(pen.clip(f"The worst: {worst.name}", pen.width), "title"),)]
    return lines
