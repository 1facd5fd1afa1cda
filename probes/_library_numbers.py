"""Versions that libraries give as one number, in the one place where probes decode them."""

from __future__ import annotations

WIDE = 10_000
NARROW = 1_000
"""Factor of the major version. Releases up to cuDNN 8, NCCL 2.8 and TensorRT 8 use the narrow one, newer ones the wide
one; cuFFT, cuRAND, cuSOLVER and cuSPARSE stayed with the narrow one."""
_MOST_OF_NARROW = 2_100
"""No release that counts with the narrow factor came to a minor version of 21."""


def release(number: int, major: int | None = None) -> str | None:
    """``8902`` is 8.9.2, ``91002`` is 9.10.2, ``22105`` is 2.21.5; None for no such number.

    ``major`` (of the library's soname) settles which factor was used. Without it the size of the number does, which
    holds for cuDNN, NCCL, TensorRT and cuTENSOR.
    """
    wide = number >= WIDE if major is None else number // WIDE == major
    first = number // (WIDE if wide else NARROW) if major is None else major
    rest = number - first * (WIDE if wide else NARROW)
    if first < 1 or not 0 <= rest < (WIDE if wide else _MOST_OF_NARROW):
        return None
    return f"{first}.{rest // 100}.{rest % 100}"


def cuda(number: int) -> str | None:
    """``12040`` is 12.4, as ``cudaRuntimeGetVersion`` and ``cudnnGetCudartVersion`` count."""
    if number < 2 * NARROW or number % 10:
        return None
    return f"{number // NARROW}.{number % NARROW // 10}"


def packed(number: int) -> str | None:
    """``0x090100`` is 9.1.0: a byte for each part, as cuDNN's parts export it."""
    first, second, third = number >> 16, number >> 8 & 0xFF, number & 0xFF
    return f"{first}.{second}.{third}" if 1 <= first <= 0xFF else None
