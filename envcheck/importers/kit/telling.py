"""Choose the lines of a long text to read: its ends, and what speaks of GPUs or of a failure between them.

Each importer looks at each line, so that the time for a text grows with their number and their length. A long log has
few lines of different shape; the rest repeats them with other numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

WHOLE = 3_000
"""Most lines of a text that is read without a choice."""
WHOLE_LENGTH = 1 << 19
"""Most characters of a text that is read without a choice."""
_END = 500
_MIDDLE = 400
_LENGTH = WHOLE_LENGTH // 4
"""Most characters that are read of each end, and of each half of what tells something between them."""
_ALIKE = 3
"""Lines that are kept of those that differ in numbers only."""

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
    if len(lines) <= WHOLE and sum(map(len, lines)) <= WHOLE_LENGTH:
        return range(len(lines)), 0
    start = _within(map(len, lines), _END)
    stop = max(len(lines) - _within(map(len, reversed(lines)), _END), start)
    alike: dict[str, int] = {}
    chosen: list[int] = []
    # The words and the digits are ASCII, and one other character in a text makes each search in it ten times slower.
    lowered = "\n".join(lines[start:stop]).lower().encode("ascii", "replace").decode("ascii")
    shapes = lowered  # the lines with one mark for each number; of the whole text at once, which is faster
    for digit in "0123456789":  # `translate` takes longer
        shapes = shapes.replace(digit, "#")
    while "##" in shapes:
        shapes = shapes.replace("##", "#")
    for place, (line, shape) in enumerate(zip(lowered.split("\n"), shapes.split("\n"), strict=True), start):
        met = alike.get(shape)
        if met is None:
            met = 0 if any(map(line.__contains__, _WORDS)) else _ALIKE
        alike[shape] = met + 1
        if met < _ALIKE and place < stop:
            chosen.append(place)
    first = _within((len(lines[place]) for place in chosen), _MIDDLE // 2)
    rest = chosen[first:]
    last = _within((len(lines[place]) for place in reversed(rest)), _MIDDLE // 2)
    kept = chosen[:first] + rest[len(rest) - last :]
    return (*range(start), *kept, *range(stop, len(lines))), len(chosen) - len(kept)


def _within(lengths: Iterable[int], most: int) -> int:
    """How many of the first lines stay within the limits; at least one, if there is one."""
    sums = enumerate(accumulate(lengths), 1)
    return max((count for count, length in sums if count == 1 or (count <= most and length <= _LENGTH)), default=0)
