"""The labels that GPU feature discovery gives a node, as ``kubectl describe node`` or ``get node -o yaml`` shows them.

The GPU's product is read as any mention of a model; here are the parts of the driver's release, which older releases of
the operator label one by one.
"""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Driver, Snapshot

NAME = "Kubernetes node"
RANK = Rank.OUTPUT

_LABEL = re.compile(
    r"nvidia\.com/cuda\.driver(?:-version)?\.(?P<part>full|major|minor|rev(?:ision)?)[\"']?[=:]\s?[\"']?(?P<value>[0-9][0-9.]{0,14})"
)
_NUMBERED = ("major", "minor", "rev")
_LONGEST = 1 << 20


def read(paste: Paste) -> Snapshot:
    release = _release(paste) if "nvidia.com/cuda.driver" in paste.text else None
    return Snapshot(driver=Driver(source=SOURCE, release=release) if release is not None else None)


def _release(paste: Paste) -> str | None:
    """The release of the nodes' driver; None where the labels differ from node to node, or are incomplete."""
    values: dict[str, set[str]] = {}
    for label in _LABEL.finditer(paste.text[:_LONGEST]):
        values.setdefault(label["part"].removesuffix("ision"), set()).add(label["value"])
    if any(len(said) > 1 for said in values.values()):
        return None
    said = {part: next(iter(value)) for part, value in values.items()}
    numbers = [said[part] for part in _NUMBERED if part in said]
    return said.get("full") or (".".join(numbers) if "minor" in said and "major" in said else None)
