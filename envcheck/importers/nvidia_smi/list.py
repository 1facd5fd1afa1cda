"""``nvidia-smi -L``: ``GPU 0: NVIDIA A10 (UUID: GPU-…)`` and the MIG devices below each."""

from __future__ import annotations

from envcheck.importers.kit import gpu_lines
from envcheck.importers.kit.paste import Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.snapshot import Snapshot

NAME = "nvidia-smi -L"
RANK = Rank.OUTPUT


def read(paste: Paste) -> Snapshot:
    return Snapshot(gpus=gpu_lines.listing(line for line in paste.lines if gpu_lines.is_gpu_line(line)))
