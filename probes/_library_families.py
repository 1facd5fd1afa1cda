"""Which files are libraries of CUDA's families, by their names alone.

The names of the families, and the folders in which NVIDIA's wheels put them (``_library_places.py``), were held against
the catalogue of NVIDIA's cuda-pathfinder; file names of auditwheel carry eight hexadecimal digits of a hash
(``libcudart-d0da41ae.so.11.0``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(
    r"""lib(?P<family>
        cuda | nvidia-ml | cudart | nvrtc(?:-builtins)?(?:\.alt)? | nvJitLink | nvfatbin | nvvm | nvblas
      | cublas\w* | cusparse\w* | cusolver\w* | cufft\w* | curand | cufile\w* | cupti | cudss\w* | nvToolsExt
      | cudnn\w* | nccl | nvshmem\w* | nvinfer\w* | nvonnxparser\w* | nvparsers | nvcaffe_parser
      | cutensor\w* | magma\w* | nvjpeg\w* | npp\w+ | nvds\w+
    )(?:[-.][0-9a-f]{8})?\.so(?P<version>(?:\.\d{1,6}){0,6})""",
    re.VERBOSE | re.ASCII,
)

MAYBE = re.compile(rb"/lib(?:cu|nv|nccl|npp|magma)[^/\n]*\.so")
"""What stands in a list of files before any path that ``family_of`` could know."""

NAMED_FOR_CUDA = frozenset(
    {"cudart", "nvrtc", "nvrtc-builtins", "nvJitLink", "nvfatbin", "cublas", "cublasLt", "nvblas"}
)
"""The first number of their soname is CUDA's own major version; other families count for themselves."""

NUMBERED_APART = frozenset({"cupti", "nvToolsExt", "nvvm"})
"""Families whose files are numbered in a way of their own (``libcupti.so.2022.3.0`` of CUDA 11.8)."""

GPU_CODE_LISTED = (
    "nccl",
    "cudnn_ops",
    "cudnn_ops_infer",
    "cudnn",
    "cudnn_cnn",
    "cudnn_cnn_infer",
    "curand",
    "nvshmem_host",
    "cufft",
    "cusparse",
)
"""Families whose GPU code is listed, those first that are known to leave GPUs out and are quickly listed."""


class LibraryName(NamedTuple):
    """What the name of a file says."""

    family: str
    """``cudnn_ops`` of ``libcudnn_ops.so.9``."""
    numbers: str
    """What follows ``.so.``: ``9.1.0``, ``9`` or nothing."""


def family_of(name: str) -> LibraryName | None:
    """The family and version in the name of a file (no folder), or None for any other file."""
    match = _NAME.fullmatch(name)
    return LibraryName(match["family"], match["version"].lstrip(".")) if match else None
