"""A Triton kernel in a file of its own: Triton reads its source, and importing this imports Triton."""

from typing import Any

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator,unused-ignore]
def add(x_pointer, y_pointer, result_pointer, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN201, N803
    """``result[i] = x[i] + y[i]`` for i below ``count``."""
    places = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    inside = places < count
    x = tl.load(x_pointer + places, mask=inside)
    y = tl.load(y_pointer + places, mask=inside)
    tl.store(result_pointer + places, x + y, mask=inside)


def launch(x: Any, y: Any, result: Any) -> None:
    """Add two arrays into a third."""
    count, block = x.numel(), 128
    add[(triton.cdiv(count, block),)](x, y, result, count, BLOCK=block)
