"""Which of the libraries that a framework asks for are told of, and what their names say."""

from __future__ import annotations

import re

from ._library_families import FAMILIES, FILES

_TOLD = re.compile(rf"lib(?:{FILES}|nvidia-\w+|nccl\w+|stdc\+\+|c|gomp|iomp5)(?:[-.][0-9a-f]{{8}})?\.so(?:\.|$)")
_HASH = re.compile(r"[-.][0-9a-f]{8}(?=\.so(?:\.|$))")
"""What auditwheel and builds of PyTorch put into a file's name: ``libcudart-e409450e.so.11.0``."""
_VERSION = re.compile(r"\.so\.(\d+(?:\.\d+)+)$")
_NUMBERED_APART = re.compile(
    r"lib(?:nvshmem_\w+|{})\.so".format("|".join(each.files for each in FAMILIES if each.numbered == "apart"))
)
"""Files with numbers of their own: ``libcupti.so.2022.3.0`` of CUDA 11.8, ``libnvvm.so.4.0.0`` of every CUDA 12."""


def told_of(name: str) -> bool:
    """Whether a library of that name is listed even where all is well with it."""
    return _TOLD.match(name.rpartition("/")[2]) is not None


def version_in(path: str, soname: str | None) -> str | None:
    """The release that a file's name ends with, of at least two numbers: ``libcublas.so.12.4.5.8``.

    Two numbers stand for an interface and not for a release, unless the soname has one alone: ``libcudart.so.11.0`` is
    that of every CUDA 11, ``libnvrtc.so.11.2`` that of 11.2 to 11.8. A hash in the name of either changes nothing of
    that. Only the builtins of NVRTC are named for their release.
    """
    name = _HASH.sub("", path.rpartition("/")[2])
    match = _VERSION.search(name)
    if match is None or _NUMBERED_APART.match(name):
        return None
    if match[1].count(".") > 1 or name.startswith("libnvrtc-builtins"):
        return match[1]
    return match[1] if re.search(r"\.so\.\d+$", soname or "") else None
