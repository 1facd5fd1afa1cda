"""The verdict over a fleet: from its nodes' own verdicts, differences from the majority, and slow figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from envcheck.checks import Report, Verdict
from envcheck.errors import UsageError
from envcheck.fleet.compare import Compared
from envcheck.fleet.examine import Examined
from envcheck.fleet.overall import Circumstances, counted
from envcheck.fleet.record import Fleet, Head
from envcheck.pipeline.request import Request

UNANSWERED = "unanswered"


def judged(request: Request, report: Report) -> Report:
    """``report``, whose facts were not judged, with a verdict; secrets are masked as in every saved report."""
    from envcheck.pipeline import session  # noqa: PLC0415  most reports come judged
    from envcheck.redact import mask_secrets  # noqa: PLC0415

    if report.snapshot is None:
        raise UsageError("it contains no snapshot")
    facts = msgspec.structs.replace(report.snapshot, runs=report.probes, measurements=report.measurements)
    found = session.judge(facts, request)
    return mask_secrets(msgspec.structs.replace(found, created=report.created, host=found.host or report.host))


def conclude(
    compared: Compared, nodes: Sequence[Examined], how: Circumstances, *, superseded: int = 0, since: str | None = None
) -> Fleet:
    """The whole fleet report; ``since`` is when the earlier one was made."""
    counts = Counter(UNANSWERED if node.problem else node.verdict for node in nodes)
    verdict = _verdict(compared, counts)
    head = Head(
        tool=how.tool,
        created=how.created,
        duration_s=how.duration_s,
        engine=how.engine,
        headline=_headline(compared, counts, len(nodes)),
        verdict=verdict,
        exit_code=how.exit_code(verdict, lacking=bool(counts["unknown"] or counts[UNANSWERED])),
        nodes=len(nodes),
        gpus=sum(len(node.gpus) for node in nodes),
        verdicts={word: counts[word] for word in ("fail", "warn", "unknown", "pass", UNANSWERED)},
        superseded=superseded,
        since=since,
    )
    parts = {name: getattr(compared, name) for name in compared.__struct_fields__}
    return Fleet(head=head, **parts)


def _verdict(compared: Compared, counts: Counter[str]) -> Verdict:
    if counts["fail"] or any(figure.status == "fail" for figure in compared.slow):
        return "fail"
    moved = compared.drifts or compared.slowed or (compared.came_or_went and compared.came_or_went.went)
    if counts["warn"] or compared.differences or compared.splits or compared.slow or moved:
        return "warn"
    return "pass" if counts["pass"] and not counts["unknown"] and not counts[UNANSWERED] else "unknown"


def _headline(compared: Compared, counts: Counter[str], nodes: int) -> str:
    """What stands out, worst first."""
    different = {place.node for difference in compared.differences for place in difference.places}
    slow = {(figure.node, figure.subject) for figure in compared.slow}
    told = [
        counted(counts["fail"], "node fails", "nodes fail"),
        counted(counts[UNANSWERED], "node did not answer", "nodes did not answer"),
        counted(counts["unknown"], "node has no verdict", "nodes have no verdict"),
        counted(len(different), "node differs from the majority", "nodes differ from the majority"),
        counted(len(slow), "slow GPU or link", "slow GPUs or links"),
        counted(counts["warn"], "node warns", "nodes warn"),
        counted(len(compared.splits), "fact without a majority", "facts without a majority"),
    ]
    return ", ".join(filter(None, told)) or (f"{nodes:,} nodes agree, and all pass" if nodes else "no node")
