"""``--target``: facts that were gathered once, judged once for each machine."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from envcheck.checks import Report, Target
from envcheck.pipeline.assume import together
from envcheck.pipeline.request import Request


def judge_targets(request: Request, judge: Callable[[Request], Report]) -> Report:
    """The report for the worst target, the first of equals, with the judgement for each in ``targets``."""
    reports: list[Report] = []
    for machine in request.targets:
        assumed = together(request.assume, machine.assume)
        reports.append(judge(msgspec.structs.replace(request, assume=assumed, targets=())))
    targets = tuple(_target(machine.name, report) for machine, report in zip(request.targets, reports, strict=True))
    worst = msgspec.structs.replace(reports[0], targets=targets).worst
    report = next(report for target, report in zip(targets, reports, strict=True) if target is worst)
    return msgspec.structs.replace(report, targets=targets, duration_s=reports[-1].duration_s)


def _target(name: str, report: Report) -> Target:
    fields = {field: getattr(report, field) for field in Target.__struct_fields__ if field != "name"}
    return Target(name=name, **fields)
