"""``nvidia-smi topo -m``: how many GPUs there are. How they are linked tells of no fault by itself."""

from __future__ import annotations

import re

from envcheck.importers.kit.gpu_lines import MOST_GPUS, by_index, label
from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Gpu, Snapshot

NAME = "nvidia-smi topo"
RANK = Rank.OUTPUT

_LINK = r"(?:X|SYS|NODE|PHB|PXB|PIX|NV[0-9]{1,2}|OK|NS|CNS|GNS|TNS|DR)"
_ROW = re.compile(rf"GPU(?P<index>[0-9]{{1,3}})(?=(?:\s{{1,8}}{_LINK}(?:\s|$)))(?:.{{0,400}}?\bX\b)")


def read(paste: Paste) -> Snapshot:
    rows = filter(None, (_ROW.match(line.strip()) for line in paste.statements))
    indices = sorted({int(row["index"]) for row in rows})[:MOST_GPUS]
    return Snapshot(gpus=by_index({index: Gpu(source=SOURCE, label=label(index), index=index) for index in indices}))
