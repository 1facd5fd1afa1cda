"""Choose the lines of a long text to read: its ends, and what speaks of GPUs or of a failure between them.

Each importer looks at each line, so that the time for a text grows with their number. A long log has few lines of
different shape; the rest repeats them with other numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

WHOLE = 6_000
"""Most lines of a text that is read without a choice."""
_END = 1_000
_MIDDLE = 2_000
_ALIKE = 3
"""Lines that are kept of those that differ in numbers only."""

_DIGITS = str.maketrans(dict.fromkeys("0123456789", "#"))
_WORDS = (
    "error", "fail", "cuda", "nvidia", "gpu", "torch", "tensor", "driver", "xid", "nvrm", "symbol", "cannot",
    "could", "unable", "not ", "no such", "exception", "warn", ".so", "version", "==", "memory", "nccl",
    "cudnn", "signal", "mig", "segmentation", "denied", "mismatch", "unsupported", "too old", "incompatible",
    "hang", "stuck", "deadlock", "assert", "abort", "crash", "throttl", "slowdown", "fallen", "lost", "numpy",
    "jax", "onnx", "triton", "python", "kernel", "rtx", "gtx", "geforce", "tesla", "sm_", "capability",
    "installed", "l4t", "jetpack", "windows", "ubuntu", "wsl", "vllm", "blas", "shm", "docker", "insufficient",
    "timeout", "timed out", "jetson", " orin", "agx ", "dgx",
)  # fmt: skip
"""In lower case: every line that an importer reads by itself contains one of these."""


def telling_places(lines: Sequence[str]) -> tuple[Sequence[int], int]:
    """The places of the lines to read, in order, and how many of those that tell something were left out."""
    if len(lines) <= WHOLE:
        return range(len(lines)), 0
    stop = len(lines) - _END
    alike: dict[str, int] = {}
    chosen: list[int] = []
    lowered = "\n".join(lines[_END:stop]).lower()
    for place, (line, shape) in enumerate(zip(lowered.split("\n"), _shapes(lowered), strict=True), _END):
        met = alike.get(shape)
        if met is None:
            met = 0 if any(map(line.__contains__, _WORDS)) else _ALIKE
        alike[shape] = met + 1
        if met < _ALIKE:
            chosen.append(place)
    omitted = max(len(chosen) - _MIDDLE, 0)
    if omitted:
        half = _MIDDLE // 2
        chosen = [*chosen[:half], *chosen[-half:]]
    return (*range(_END), *chosen, *range(stop, len(lines))), omitted


def _shapes(text: str) -> list[str]:
    """The lines with one mark for each number; of the whole text at once, which is faster than line by line."""
    text = text.translate(_DIGITS)
    while "##" in text:
        text = text.replace("##", "#")
    return text.split("\n")
