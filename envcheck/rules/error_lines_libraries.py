"""Error lines about CUDA's libraries: the loader, cuDNN, cuBLAS, NCCL, TensorRT, the compilers."""

from __future__ import annotations

from envcheck.rules.error_line import ErrorLine

LIBRARIES: tuple[ErrorLine, ...] = ()
