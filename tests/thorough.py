"""How much is tried: the gate's time is bounded, the lab's is not."""

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")

_THOROUGH = bool(os.environ.get("ENVCHECK_THOROUGH"))


def examples(most: int) -> int:
    """Examples that a property is tried with: a tenth of them in the gate, which draws others each time."""
    return most if _THOROUGH else max(1, most // 10)


def sample(items: Sequence[Item], step: int = 3) -> Sequence[Item]:
    """Every third of ``items`` in the gate (or fewer), all in the lab: for sweeps whose neighbours are alike."""
    return items if _THOROUGH else items[::step]


def of_each_kind(items: Iterable[Item], kind: Callable[[Item], Hashable]) -> Sequence[Item]:
    """One of each ``kind`` in the gate, all in the lab: for sweeps where no more than that decides the answer."""
    found = list(items)
    return found if _THOROUGH else list({kind(item): item for item in reversed(found)}.values())
