"""Among which nodes one is compared: those with as many GPUs of the same model; where there are few, all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from envcheck.fleet.examine import Examined

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
        self._kinds = _frequent(nodes)
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


def _frequent(nodes: Sequence[Examined]) -> dict[str, int]:
    counts = Counter(_kind_of(node) for node in nodes if node.models)
    least = max(_FEWEST, _SHARE * sum(counts.values()))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    frequent = [kind for kind, count in ordered if count >= least]
    found = [kind for kind in frequent if kind != _NO_GPU] or frequent  # without a GPU only where no node has one
    return {kind: number for number, kind in enumerate(found, 1)}


def _kind_of(node: Examined) -> str:
    return _NO_GPU if node.models == "none" else f"{len(node.gpus)} x {node.models}"
