"""Nodes that agree in every compared fact."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from envcheck.fleet.examine import Examined, Facts
from envcheck.fleet.record import Group


def grouped(nodes: Sequence[Examined], facts: Facts) -> tuple[tuple[Group, ...], dict[str, int]]:
    """The groups, the largest first, and the number of each node's."""
    members: dict[bytes, list[Examined]] = defaultdict(list)
    for node in nodes:
        if not node.problem:
            members[_fingerprint(node)].append(node)
    ordered = sorted(members.values(), key=lambda group: (-len(group), group[0].node))
    references: dict[str, Examined] = {}
    groups = []
    for number, group in enumerate(ordered, 1):
        first = group[0]
        reference = references.setdefault(first.models, first)
        groups.append(
            Group(
                number=number,
                nodes=tuple(node.node for node in group),
                gpus=_gpus(first),
                driver=_fact(first, facts, "driver", "release"),
                kernel=_fact(first, facts, "kernel", "kernel"),
                differs_in=_differing(first, reference),
            )
        )
    return tuple(groups), {name: group.number for group in groups for name in group.nodes}


def _fingerprint(node: Examined) -> bytes:
    told = hashlib.blake2b(digest_size=16)
    for aspect, subject, digest, _ in sorted(node.aspects):
        told.update(f"{aspect}\0{subject}\0".encode("utf-8", "surrogatepass") + digest)
    return told.digest()


def _gpus(node: Examined) -> str:
    counts: dict[str, int] = defaultdict(int)
    for gpu in node.gpus:
        counts[gpu.model or "GPU of an unknown model"] += 1
    return ", ".join(f"{count} x {model}" for model, count in sorted(counts.items())) or (
        "no GPU" if node.models == "none" else "GPUs not known"
    )


def _fact(node: Examined, facts: Facts, aspect: str, what: str) -> str | None:
    for name, _, digest, _ in node.aspects:
        if name == aspect:
            return facts[digest].get(what)
    return None


def _differing(node: Examined, reference: Examined) -> tuple[str, ...]:
    own, others = (
        {(aspect, subject, digest) for aspect, subject, digest, _ in each.aspects} for each in (node, reference)
    )
    return tuple(sorted({aspect for aspect, _, _ in own ^ others}))
