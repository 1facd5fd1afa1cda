"""Environment variables as ``env`` or vLLM's report lists them: ``NAME=value``, one a line."""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank
from envcheck.redact.secrets import masked_value
from envcheck.snapshot import Snapshot, Variables

NAME = "environment variables"
RANK = Rank.OUTPUT

_LINE = re.compile(
    r"(?:export |set |\$ ?)?"
    r"(LD_LIBRARY_PATH|LD_PRELOAD|OMP_NUM_THREADS|(?:CUDA|NVIDIA|NCCL|NVSHMEM|CUDNN|CUBLAS|CUBLASLT|CUPY|NUMBA|TORCH|"
    r"PYTORCH|TORCHDYNAMO|TORCHINDUCTOR|TRITON|XLA|TF|JAX|VLLM)_[A-Z0-9_]{1,60})"
    r"=(\"[^\"]*\"|'[^']*'|\S*)$"
)
_MOST = 500


def recognise(paste: Paste) -> bool:
    return any(_LINE.match(line.strip()) for line in paste.lines)


def read(paste: Paste) -> Snapshot:
    values: dict[str, str] = {}
    for line in paste.lines:
        found = _LINE.match(line.strip())
        if found and len(values) < _MOST:
            values.setdefault(found[1], masked_value(found[1], found[2].strip("\"'")))
    return Snapshot(variables=Variables(source=SOURCE, values=values)) if values else Snapshot()
