"""One report for each node, the newest; machines that share a name are distinguished by their GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta, timezone

import msgspec

from envcheck.fleet.examine import Examined

_AHEAD = timedelta(days=1)
"""By how much the clock of a node may be ahead; a report from a later time is older than any other."""
_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def newest(nodes: Iterable[Examined]) -> tuple[list[Examined], int]:
    """One report for each node, in the order of the names; and how many were left out.

    Reports of one name that share no GPU are of different machines, as where many are called ``localhost``: each of
    these is named with its file.
    """
    named: dict[str, list[Examined]] = defaultdict(list)
    for node in nodes:
        named[node.node].append(node)
    kept = [node for name in sorted(named) for node in _latest(named[name])]
    return kept, sum(map(len, named.values())) - len(kept)


def _latest(nodes: list[Examined]) -> Iterator[Examined]:
    """The newest report of each machine among ``nodes``, which share a name."""
    if len(nodes) == 1:
        yield nodes[0]
        return
    until = datetime.now(timezone.utc) + _AHEAD
    machines = _machines(nodes)
    for reports in machines:
        # Of reports of the same time, the last.
        node = max(reversed(reports), key=lambda each: (not each.problem, _created(each, until)))
        yield node if len(machines) == 1 else msgspec.structs.replace(node, node=f"{node.node} ({node.path})")


def _machines(nodes: Iterable[Examined]) -> list[list[Examined]]:
    machines: list[list[Examined]] = []
    nameless: list[Examined] = []
    owners: dict[str, list[Examined]] = {}
    for node in nodes:
        gpus = [gpu.uuid for gpu in node.gpus if gpu.uuid]
        if not gpus:
            nameless.append(node)
            continue
        machine = next((owners[gpu] for gpu in gpus if gpu in owners), None)
        if machine is None:
            machine = []
            machines.append(machine)
        machine.append(node)
        owners.update(dict.fromkeys(gpus, machine))
    if not machines:
        return [nameless]
    machines[0] += nameless  # nothing says that it is another machine
    return machines


def _created(node: Examined, until: datetime) -> datetime:
    """When its report was made; long ago where it does not say, or says a time to come."""
    try:
        found = msgspec.convert(node.created, datetime)
    except msgspec.ValidationError:
        return _NEVER
    if found.tzinfo is None:
        found = found.replace(tzinfo=timezone.utc)
    return found if found <= until else _NEVER
