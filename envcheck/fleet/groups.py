"""Which nodes are alike: the kind with which a node is compared, and the groups that agree in every compared fact."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence

from envcheck.fleet.examine import Examined, Facts
from envcheck.fleet.record import Group


def grouped(nodes: Sequence[Examined], facts: Facts) -> tuple[tuple[Group, ...], dict[str, int]]:
    """The groups, the largest first, and the number of each node's."""
    members: dict[bytes, list[Examined]] = defaultdict(list)
    for node in nodes:
        if not node.problem:
            fingerprint = hashlib.blake2b(digest_size=16)
            for aspect, subject, digest, _ in sorted(node.aspects):
                fingerprint.update(f"{aspect}\0{subject}\0".encode("utf-8", "surrogatepass") + digest)
            members[fingerprint.digest()].append(node)
    ordered = sorted(members.values(), key=lambda group: (-len(group), group[0].node))
    references: dict[str, Examined] = {}
    groups = []
    for number, group in enumerate(ordered, 1):
        first = group[0]
        reference = references.setdefault(first.models, first)
        counts = Counter(gpu.model or "GPU of an unknown model" for gpu in first.gpus)
        gpus = ", ".join(f"{count} x {model}" for model, count in sorted(counts.items()))
        own, others = ({told[:3] for told in each.aspects} for each in (first, reference))
        groups.append(
            Group(
                number=number,
                nodes=tuple(node.node for node in group),
                gpus=gpus or ("no GPU" if first.models == "none" else "GPUs not known"),
                driver=_fact(first, facts, "driver", "release"),
                kernel=_fact(first, facts, "kernel", "kernel"),
                differs_in=tuple(sorted({aspect for aspect, _, _ in own ^ others})),
            )
        )
    return tuple(groups), {name: group.number for group in groups for name in group.nodes}


def _fact(node: Examined, facts: Facts, aspect: str, what: str) -> str | None:
    digest = next((digest for name, _, digest, _ in node.aspects if name == aspect), None)
    return facts[digest].get(what) if digest is not None else None


ALL = 0
"""The basis of all nodes."""
_FEWEST = 3
_SHARE = 0.05
"""Nodes with the same number of GPUs of a model are a kind if there are this many, and this share of the fleet.
Rarer ones are compared with the most frequent kind of that model, so that a node that lost a GPU stands out."""
_NO_GPU = "no GPU"


class Kinds:
    """The kinds of ``nodes``; each is a basis, numbered from 1, the most frequent first."""

    def __init__(self, nodes: Sequence[Examined]) -> None:
        counts = Counter(_kind_of(node) for node in nodes if node.models)
        least = max(_FEWEST, _SHARE * sum(counts.values()))
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        frequent = [kind for kind, count in ordered if count >= least]
        found = [kind for kind in frequent if kind != _NO_GPU] or frequent  # without a GPU only where no node has one
        self._kinds = {kind: number for number, kind in enumerate(found, 1)}
        self._of_models: dict[str, int] = {}
        for node in nodes:
            if number := self._kinds.get(_kind_of(node)):
                self._of_models[node.models] = min(number, self._of_models.get(node.models, number))
        self._rare: dict[str, int] = {}

    def basis(self, node: Examined) -> int:
        """The kind that ``node`` is compared with; ``ALL`` where none has its GPU models."""
        return self._kinds.get(_kind_of(node)) or self._of_models.get(node.models, ALL)

    def rare(self, node: Examined) -> int:
        """The basis for the hardware of a node without a kind: the nodes with the same GPU models."""
        return self._rare.setdefault(node.models, len(self._kinds) + len(self._rare) + 1)

    def named(self, basis: int) -> str:
        """The GPU models of a basis; empty for all nodes."""
        every = {number: models for kinds in (self._kinds, self._rare) for models, number in kinds.items()}
        return every.get(basis, "")


def _kind_of(node: Examined) -> str:
    return _NO_GPU if node.models == "none" else f"{len(node.gpus)} x {node.models}"
