"""The XML report of ``nvidia-smi -q -x``, in every version of its format; renamed elements are read under their old
names, too.

nvidia-smi prints "N/A" for what the GPU does not support; such fields go to ``Gpu.not_supported``.
"""

from __future__ import annotations

from envcheck.importers.kit.paste import Paste
from envcheck.importers.kit.protocol import Rank, Unreadable
from envcheck.importers.kit.smi.report import snapshot_of
from envcheck.importers.kit.smi.xml import parse
from envcheck.snapshot import Snapshot

NAME = "nvidia-smi -q -x"
RANK = Rank.OUTPUT

_ROOT = "nvidia_smi_log"


def recognise(paste: Paste) -> bool:
    return f"<{_ROOT}" in paste.text


def read(paste: Paste) -> Snapshot:
    root, problem = parse(paste.text, _ROOT)
    snapshot = snapshot_of(root) if root else Snapshot()
    if problem:
        raise Unreadable(problem, snapshot)
    return snapshot
