"""How much is tried: the gate's time is bounded, the lab's is not."""

from __future__ import annotations

import os

_PART = 1 if os.environ.get("ENVCHECK_THOROUGH") else 3


def examples(most: int) -> int:
    """Examples that a property is tried with: a third of them in the gate."""
    return most // _PART
