"""How much is tried: the gate's time is bounded, the lab's is not."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")

_PART = 1 if os.environ.get("ENVCHECK_THOROUGH") else 3


def examples(most: int) -> int:
    """Examples that a property is tried with: a third of them in the gate."""
    return most // _PART


def sample(items: Sequence[Item]) -> Sequence[Item]:
    """Every third of ``items`` in the gate, all in the lab: for sweeps whose neighbours are alike."""
    return items[::_PART]
