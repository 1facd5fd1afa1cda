"""What a data sheet says of a GPU in figures: operations by precision, and its links to other GPUs."""

from typing import Literal, TypeAlias

import msgspec

Precision: TypeAlias = Literal["fp64", "fp64_tensor", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"]


class ByPrecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A count of operations for each precision, a fused multiply-add being two. Dense: never with sparsity.

    ``fp32`` and ``fp64`` are those of the vector units. ``fp16``, ``bf16`` and ``fp8`` go through tensor cores and
    accumulate in FP32; without tensor cores ``fp16`` is that of the vector units, and ``int8`` that of DP4A.
    """

    fp64: float | None = None
    fp64_tensor: float | None = None
    fp32: float | None = None
    tf32: float | None = None
    fp16: float | None = None
    bf16: float | None = None
    fp8: float | None = None
    int8: float | None = None
    fp4: float | None = None

    def of(self, precision: Precision) -> float | None:
        """The count for one precision."""
        value: float | None = getattr(self, precision)
        return value


class NvLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """NVLink of a GPU, all links together."""

    version: int
    links: int
    bandwidth: float
    """Bytes per second in one direction; data sheets print the sum of both."""
