"""Groups of nodes of a configuration: the GPUs that each node has to have, and what counts how there."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from envcheck.errors import ExitCode
from envcheck.fleet.names import host_of
from envcheck.knowledge.load import load_matrix
from envcheck.model.checks import Ground, Report, Summary, Verdict, ignored
from envcheck.model.components import Component
from envcheck.model.snapshot import Snapshot
from envcheck.pipeline.policy import decide
from envcheck.pipeline.request import Policy
from envcheck.pipeline.require import require
from envcheck.pipeline.verdict import verdict
from envcheck.rules.engine.cause import primary

_EXITS: dict[Verdict, ExitCode] = {
    "fail": ExitCode.FOUND,
    "warn": ExitCode.OK,
    "pass": ExitCode.OK,
    "unknown": ExitCode.UNKNOWN,
}


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the nodes of a group."""

    require: tuple[Component, ...] = ()
    policy: Policy | None = None


def decided(report: Report, node: str, groups: Mapping[str, NodeGroup]) -> Report:
    """``report`` of the ``node`` as its group sees it: ``groups`` by the name of each node."""
    host = host_of(node or report.host or "")
    group = groups.get(host) or groups.get(host.partition(".")[0])
    if group is None:
        return report
    snapshot, matrix = report.snapshot or Snapshot(), load_matrix(())
    asked = require(snapshot, matrix, group.require)
    found = decide((*report.checks, *asked), group.policy or Policy(), (), snapshot, matrix)
    open_ = [check for check in asked if check.status == "unknown"]
    unread = (Ground(what=check.subject.key, status="not-read", detail=check.message) for check in open_)
    grounds = (*report.grounds, *unread)
    judged = any(ground.status == "judged" for ground in grounds)
    cause, decision = primary(found), verdict(found, grounds)
    status: Verdict = decision if judged or decision == "fail" else "unknown"
    if cause is not None and status in ("fail", "warn"):
        headline = cause.title if (cause.id, status) != (report.primary_check, report.verdict) else report.headline
    elif status == report.verdict:
        headline = report.headline
    else:
        headline = f"no verdict: {open_[0].message}" if status == "unknown" and open_ else "Nothing else was found"
    aside = ignored(found)
    return msgspec.structs.replace(
        report,
        verdict=status,
        exit_code=_EXITS[status],
        headline=f"{headline} ({aside})" if aside and aside not in headline else headline,
        primary=cause.rule if cause else None,
        primary_check=cause.id if cause else None,
        checks=found,
        summary=Summary.of(found),
        grounds=grounds,
    )
