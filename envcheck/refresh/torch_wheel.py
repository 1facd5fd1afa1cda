"""The build of a PyTorch wheel, from its files."""

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
    """As ``12.4``; an empty string for a CPU build, None if the wheel does not tell."""
    targets: tuple[str, ...] = ()
    """The output of ``torch.cuda.get_arch_list()``; empty if the wheel does not tell (before 1.6)."""


def read_build(wheel: Wheel) -> TorchBuildFacts:
    """Read the two files with the build's facts. Raises UsageError if they cannot be read."""
    text = wheel.read(lambda name: name == _VERSION_FILE, _MOST_TEXT)
    cuda = cuda_of(text.decode("utf-8", "replace")) if text else None
    if not cuda:
        return TorchBuildFacts(cuda)
    library = wheel.read(lambda name: name == _LIBRARY, _MOST_LIBRARY)
    return TorchBuildFacts(cuda, targets_of(library or b""))


def cuda_of(text: str) -> str | None:
    """The CUDA version in ``torch/version.py``."""
    match = _CUDA.search(text)
    if match is None:
        return None
    stated = match[1] or match[2]
    if not stated:
        return ""
    version = CudaVersion.parse(stated)
    return str(version) if version else None


def targets_of(library: bytes) -> tuple[str, ...]:
    """The architectures in the library's build flags, oldest first, native code before PTX."""
    found = max(_TARGETS.findall(library), key=len, default=b"")
    named = set(re.split("[ ;]", found.decode("ascii"))) - {""}
    return tuple(sorted(named, key=lambda name: (name.startswith("compute"), int(re.sub(r"\D", "", name)), name)))
