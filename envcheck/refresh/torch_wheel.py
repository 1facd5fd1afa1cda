"""What the files in a PyTorch wheel say of its build."""

from __future__ import annotations

import re
from typing import NamedTuple

from envcheck.refresh.remote_wheel import Wheel
from envcheck.versions import CudaVersion

_CUDA = re.compile(r"^cuda\s*(?::[^=\n]*)?=\s*(?:None|'([^'\n]*)'|\"([^\"\n]*)\")\s*$", re.MULTILINE)
_TARGETS = re.compile(rb"sm_[0-9]{2,3}[af]?(?:[ ;](?:sm|compute)_[0-9]{2,3}[af]?){1,40}(?=\x00)")

_VERSION_FILE = "torch/version.py"
_LIBRARY = "torch/lib/libtorch_python.so"
_MOST_TEXT = 1 << 16
_MOST_LIBRARY = 1 << 28


class TorchBuildFacts(NamedTuple):
    """The build in a wheel."""

    cuda: str | None
    """As ``12.4``; empty text for a CPU build, None when the wheel does not say."""
    targets: tuple[str, ...] = ()
    """What ``torch.cuda.get_arch_list()`` lists; empty where the wheel does not say (before 1.6)."""


def read_build(wheel: Wheel) -> TorchBuildFacts:
    """Read the two files that tell. Raises UsageError when they cannot be read."""
    text = wheel.read(lambda name: name == _VERSION_FILE, _MOST_TEXT)
    cuda = cuda_of(text.decode("utf-8", "replace")) if text else None
    if not cuda:
        return TorchBuildFacts(cuda)
    library = wheel.read(lambda name: name == _LIBRARY, _MOST_LIBRARY)
    return TorchBuildFacts(cuda, targets_of(library or b""))


def cuda_of(text: str) -> str | None:
    """CUDA as ``torch/version.py`` states it."""
    match = _CUDA.search(text)
    if match is None:
        return None
    stated = match[1] or match[2]
    if not stated:
        return ""
    version = CudaVersion.parse(stated)
    return str(version) if version else None


def targets_of(library: bytes) -> tuple[str, ...]:
    """The architectures in the flags that the library was built with, oldest first, native code before PTX."""
    found = max(_TARGETS.findall(library), key=len, default=b"")
    named = set(re.split("[ ;]", found.decode("ascii"))) - {""}
    return tuple(sorted(named, key=lambda name: (name.startswith("compute"), int(re.sub(r"\D", "", name)), name)))
