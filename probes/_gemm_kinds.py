"""The precisions of matrix products: their types in cuBLASLt and in ``kernels/gemm.cu``, and their rounding."""

from __future__ import annotations

from dataclasses import dataclass

from ._cublaslt import Kind


@dataclass(frozen=True)
class Precision:
    """One precision and what rounding it allows; the epsilons are units in the last place, relative to one."""

    kind: Kind
    code: int
    """``KIND`` of the kernels."""
    result_code: int
    """``RESULT`` of the kernels."""
    size: int
    """Bytes of an operand's element."""
    result_size: int
    input_epsilon: float
    """Rounding of the operands inside the tensor core."""
    sum_epsilon: float
    """Rounding of the accumulator."""
    result_epsilon: float
    least: tuple[int, int]
    """First compute capability that has it."""
    layouts: tuple[str, ...] = ("TN",)
    """Ways in which the operands may lie, of which the fastest is taken (``_cublaslt.Product``)."""


BOTH = ("TN", "NN")
"""On an H200 cuBLASLt is up to 3 % faster with NN in FP64 and TF32, and nowhere else."""

PRECISIONS = {
    "fp64": Precision(Kind("fp64", "fp64", "64f", "fp64"), 0, 0, 8, 8, 0, 2**-53, 2**-53, (5, 0), BOTH),
    "fp32": Precision(Kind("fp32", "fp32", "32f", "fp32"), 1, 1, 4, 4, 0, 2**-24, 2**-24, (5, 0)),
    "tf32": Precision(Kind("fp32", "fp32", "32f_tf32", "fp32"), 1, 1, 4, 4, 2**-10, 2**-22, 2**-24, (8, 0), BOTH),
    "fp16": Precision(Kind("fp16", "fp16", "32f", "fp32"), 2, 2, 2, 2, 0, 2**-22, 2**-11, (5, 3)),
    "bf16": Precision(Kind("bf16", "bf16", "32f", "fp32"), 3, 3, 2, 2, 0, 2**-22, 2**-8, (8, 0)),
    "fp8": Precision(Kind("fp8", "bf16", "32f", "fp32", fast=True), 4, 3, 1, 2, 0, 2**-13, 2**-8, (8, 9)),
    "int8": Precision(Kind("int8", "int32", "32i", "int32"), 5, 5, 1, 4, 0, 0, 0, (6, 1)),
}
"""By the matrix's names. Tensor cores keep a few bits fewer than FP32 while they add, Hopper's FP8 ones about 14."""
