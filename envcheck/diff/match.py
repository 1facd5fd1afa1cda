"""Match the GPUs and environments of two reports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from envcheck.checks import Report
from envcheck.redact import HOST
from envcheck.snapshot import Environment, Gpu


@dataclass(frozen=True)
class Match:
    """The pairs, with the first report's member first, and the unmatched rest of both sides."""

    gpus: tuple[tuple[Gpu, Gpu], ...]
    gpus_left: tuple[tuple[Gpu, ...], tuple[Gpu, ...]]
    environments: tuple[tuple[Environment, Environment], ...]
    environments_left: tuple[tuple[Environment, ...], tuple[Environment, ...]]
    one_machine: bool
    """Whether both reports are about the same machine, by its GPUs and its name."""

    def as_first(self, text: str) -> str:
        """A key or name of the second report, translated to the first."""
        if self._words is None:
            return text
        return self._words.sub(lambda found: self._names[found[0]], text)

    @cached_property
    def _names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for ours, theirs in self.gpus:
            if ours.uuid and theirs.uuid:
                names[theirs.uuid] = ours.uuid
            if ours.pci_bus_id and theirs.pci_bus_id:
                names[theirs.pci_bus_id] = ours.pci_bus_id
        for mine, other in self.environments:
            names[other.key] = mine.key
        return {theirs: ours for theirs, ours in names.items() if theirs != ours}

    @cached_property
    def _words(self) -> re.Pattern[str] | None:
        ordered = sorted(self._names, key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, ordered))})(?![\w-])") if ordered else None


def match(first: Report, second: Report) -> Match:
    """Pair what is the same."""
    gpus, gpus_left = _gpus(first, second)
    environments, environments_left = _environments(first, second)
    known = {gpu.uuid for gpu in first.gpus if gpu.uuid}
    return Match(
        gpus=gpus,
        gpus_left=gpus_left,
        environments=environments,
        environments_left=environments_left,
        one_machine=any(gpu.uuid in known for gpu in second.gpus)
        or (first.host is not None and first.host == second.host != HOST),
    )


def _gpus(first: Report, second: Report) -> tuple[tuple[tuple[Gpu, Gpu], ...], tuple[tuple[Gpu, ...], tuple[Gpu, ...]]]:
    """Match by UUID, then by bus id, then by another identity (of an assumed or pasted GPU)."""
    ours, theirs = list(first.gpus), list(second.gpus)
    pairs: list[tuple[Gpu, Gpu]] = []
    for identity in ("uuid", "pci_bus_id", "label"):
        by_identity = {value: gpu for gpu in theirs if (value := getattr(gpu, identity))}
        for gpu in list(ours):
            other = by_identity.pop(getattr(gpu, identity), None)
            if other is not None:
                pairs.append((gpu, other))
                ours.remove(gpu)
                theirs.remove(other)
    order = {id(gpu): place for place, gpu in enumerate(first.gpus)}
    pairs.sort(key=lambda pair: order[id(pair[0])])
    return tuple(pairs), (tuple(ours), tuple(theirs))


def _environments(
    first: Report, second: Report
) -> tuple[tuple[tuple[Environment, Environment], ...], tuple[tuple[Environment, ...], tuple[Environment, ...]]]:
    """Match the judged environments, and the others by folder."""
    ours, theirs = list(first.environments), list(second.environments)
    pairs = []
    mine = next((found for found in ours if found.judged), None)
    other = next((found for found in theirs if found.judged), None)
    if mine and other:
        pairs.append((mine, other))
        ours.remove(mine)
        theirs.remove(other)
    by_key = {found.key: found for found in theirs}
    for found in list(ours):
        same = by_key.pop(found.key, None)
        if same is not None:
            pairs.append((found, same))
            ours.remove(found)
            theirs.remove(same)
    return tuple(pairs), (tuple(ours), tuple(theirs))
