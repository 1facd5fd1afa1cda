"""Which of the libraries that a framework asks for are told of, and what their names say."""

from __future__ import annotations

import re

_FAMILIES = re.compile(
    r"""lib(?:
        cuda | cudart | nvidia-\w+ | nvrtc(?:-builtins)? | nvJitLink | nvfatbin | nvvm
      | cublas\w* | cusparse\w* | cusolver\w* | cufft\w* | curand | cufile\w* | cupti | cudss\w* | nvToolsExt
      | cudnn\w* | nccl\w* | nvshmem\w* | nvinfer\w* | nvonnxparser | nvparsers | cutensor\w* | magma\w*
      | nvjpeg\w* | npp\w+
      | stdc\+\+ | c | gomp | iomp5
    )(?:[-.][0-9a-f]{8})?\.so(?:\.|$)""",
    re.VERBOSE,
)
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")


def told_of(name: str) -> bool:
    """Whether a library of that name is listed even where all is well with it."""
    return _FAMILIES.match(name.rpartition("/")[2]) is not None


def version_in(path: str) -> str | None:
    """The version that a file's name ends with, of at least two numbers: ``libcudart.so.12.4.127``."""
    match = _VERSION.search(path)
    return match[1] if match else None
