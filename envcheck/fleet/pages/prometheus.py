"""A fleet as metrics of Prometheus: what each node would tell of itself, with the label ``node``, and what only a
fleet shows.
"""

from __future__ import annotations

from envcheck.fleet.record import Fleet
from envcheck.report import Options
from envcheck.report.prometheus import VERDICTS, made, metric


def render(fleet: Fleet, _options: Options) -> str:
    """``fleet`` in the text format of Prometheus, version 0.0.4."""
    tool, answered = fleet.head.tool, [node for node in fleet.nodes if not node.problem]
    found = [{"node": name, "rule": each.rule, "status": each.status} for each in fleet.problems for name in each.nodes]
    slow = [
        ({"node": each.node, "subject": each.subject, "figure": each.quantity.title}, each.ratio) for each in fleet.slow
    ]
    gone = [({"node": name}, 1) for each in fleet.vanished if each.status != "unknown" for name in each.nodes]
    parts = [
        metric("info", "Version of envcheck and the newest day of its matrix.",
               [({"node": node.name, "version": tool.version, "matrix": tool.matrix}, 1) for node in answered]),
        metric("verdict", "1 for the verdict of a node, 0 for the others.",
               [({"node": node.name, "verdict": each}, int(each == node.verdict))
                for node in answered for each in VERDICTS]),
        metric("finding", "1 for each rule by which a node fails or warns.", [(labels, 1) for labels in found]),
        metric("run_timestamp_seconds", "When the facts of a node were gathered.",
               [sample for node in answered for sample in made({"node": node.name}, node.created)]),
        metric("fleet_nodes", "Number of nodes by the verdict of their own reports.",
               [({"verdict": verdict}, count) for verdict, count in fleet.head.verdicts.items()]),
        metric("fleet_vanished", "1 for each node, expected or there before, of which nothing came.", gone),
        metric("fleet_differences", "Number of facts in which a node differs from the majority.",
               [({"node": node.name}, node.differences) for node in answered if node.differences]),
        metric("fleet_speed_ratio", "Speed of what is slow as a share of the median of the fleet.", slow),
        metric("fleet_declined_ratio", "Speed of a node that became slower as a share of what it was.",
               [({"node": each.node, "since": each.since}, each.ratio) for each in fleet.declines]),
        metric("fleet_duration_seconds", "Time that the last look took.", [({}, fleet.head.duration_s)]),
    ]  # fmt: skip
    return "".join(parts)
