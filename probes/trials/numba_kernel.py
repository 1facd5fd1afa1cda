"""A kernel of numba's CUDA target; importing this imports it."""

from __future__ import annotations

from typing import Any

from numba import cuda

BLOCKS, THREADS = 256, 128  # Enough blocks that Numba does not warn of an idle GPU


@cuda.jit  # type: ignore[untyped-decorator,unused-ignore]
def _double(numbers, result):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
    place = cuda.grid(1)
    if place < numbers.size:
        result[place] = 2 * numbers[place] + 1


def doubled(numbers: Any) -> Any:
    """``2 x + 1`` of each, in the GPU's memory."""
    ours = cuda.to_device(numbers)
    result = cuda.device_array_like(ours)
    _double[BLOCKS, THREADS](ours, result)
    cuda.synchronize()
    return result
