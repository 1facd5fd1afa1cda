"""``ollama ps``: whether the loaded models run on the GPU."""

from __future__ import annotations

import re
from itertools import pairwise

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, environment, with_environment
from envcheck.snapshot import Framework, Snapshot

NAME = "ollama ps"
RANK = Rank.OUTPUT

_HEAD = re.compile(r"NAME\s+ID\s+SIZE\s+PROCESSOR\b")
_ROW = re.compile(
    r"\S{1,100}\s+[0-9a-f]{8,16}\s+[0-9.]{1,8} [KMGT]B\s+(?P<share>[0-9%/]{2,9}) (?P<where>CPU/GPU|GPU|CPU)\b"
)


def read(paste: Paste) -> Snapshot:
    on_gpu = _on_gpu(paste)
    if on_gpu is None:
        return Snapshot()
    ollama = Framework(source=SOURCE, name="ollama", gpu_available=on_gpu)
    return with_environment(environment(frameworks=(ollama,)))


def _on_gpu(paste: Paste) -> bool | None:
    """Whether the first model has any layer on the GPU; None where the text has no such list."""
    for head, below in pairwise(paste.lines):
        row = _ROW.match(below.strip()) if _HEAD.match(head.strip()) else None
        if row:
            return "GPU" in row["where"]
    return None
