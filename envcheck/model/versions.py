"""One type for each kind of version on a GPU machine.

They look alike ("12.4", "550.54.14", "9.0") and mean different things; a type for each keeps a driver release
from being compared with a CUDA version. Every ``parse`` returns ``None`` for text that is not such a version:
what a machine prints is not to be trusted, and an unreadable version is an unknown one, never an error.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from envcheck.text.lazy import lazy_pattern

Flavour: TypeAlias = Literal["open", "proprietary"]  # Which of NVIDIA's kernel modules: a driver has both

_NUMBERS = lazy_pattern(r"[0-9]{1,6}(?:\.[0-9]{1,6}){0,4}")

_NEWEST = 10**6  # The minor number of a branch's newest release, whatever it is
_CUDNN_WIDE_SCHEME = 90000  # From here on cuDNN numbers its releases with two digits a part
_NO_RELEASE = lazy_pattern(r"[0-9](?:\.?dev|a|b|rc)[0-9]|\+(?:.{0,60}\.)?(?:git|nv[0-9]|g?[0-9a-f]{7})")


@lru_cache(maxsize=4096)
def _numbers(text: str | None, least: int, most: int) -> tuple[int, ...] | None:
    """So many numbers with dots between them."""
    match = _NUMBERS.fullmatch(text.strip()) if text else None
    numbers = tuple(int(part) for part in match.group().split(".")) if match else ()
    return numbers if least <= len(numbers) <= most else None


class DriverRelease(NamedTuple):
    """Release of the NVIDIA driver, as in ``550.54.14`` (``Driver Version`` in nvidia-smi).

    Linux and Windows number their releases differently: compare only within one system.
    """

    branch: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str | None) -> DriverRelease | None:
        numbers = _numbers(text, 1, 3)
        return cls(*(*numbers, 0, 0)[:3]) if numbers else None

    @classmethod
    def stated(cls, text: str | None) -> DriverRelease | None:
        """As people state it: a branch alone (``535``) stands for its newest release."""
        found = cls.parse(text)
        return cls(found.branch, _NEWEST) if found and text and "." not in text else found

    def __str__(self) -> str:
        if self.minor == _NEWEST:
            return str(self.branch)
        return f"{self.branch}.{self.minor:02d}.{self.patch:02d}" if self.patch else f"{self.branch}.{self.minor:02d}"


class _TwoNumbers(NamedTuple):
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class CudaVersion(_TwoNumbers):
    """Version of CUDA, as in ``12.4`` (a toolkit's, a build's, what a driver supports); the patch level is dropped."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str | None) -> CudaVersion | None:
        numbers = _numbers(text, 1, 4)
        return cls(*(*numbers, 0)[:2]) if numbers else None

    @classmethod
    def decode(cls, number: int) -> CudaVersion:
        """Decode what ``cuDriverGetVersion`` and ``cudaRuntimeGetVersion`` return: 12040 is 12.4."""
        return cls(number // 1000, number % 1000 // 10)

    @classmethod
    def from_tag(cls, tag: str | None) -> CudaVersion | None:
        """Read the tag of a wheel or package: ``cu124`` is 12.4, ``cu92`` is 9.2, ``cu118`` is 11.8."""
        match = re.fullmatch(r"(?:cu|cuda)?([0-9]{1,2})([0-9])", tag or "")
        return cls(int(match[1]), int(match[2])) if match else None


class CondaBuild(NamedTuple):
    """What the build string of a conda package says: ``py3.12_cuda12.4_cudnn9.1.0_0``, ``cuda129_generic_py311h…``."""

    cuda: CudaVersion | None
    cudnn: str | None
    cpu: bool

    @classmethod
    def parse(cls, text: str) -> CondaBuild:
        cuda = re.search(r"cuda_?([0-9]{1,2})\.?([0-9])(?![0-9])", text)
        cudnn = re.search(r"cudnn([0-9][0-9.]{0,12})", text)
        return cls(
            cuda=CudaVersion(int(cuda[1]), int(cuda[2])) if cuda else None,
            cudnn=cudnn[1].rstrip(".") if cudnn else None,
            cpu=bool(re.search(r"(?:^|_)cpu(?:$|[_0-9p])", text)),
        )


class PtxVersion(_TwoNumbers):
    """Version of the PTX instruction set, as in ``8.4`` (the ``.version`` line of a PTX file)."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str | None) -> PtxVersion | None:
        numbers = _numbers(text, 2, 2)
        return cls(*numbers) if numbers else None


class CudnnVersion(NamedTuple):
    """Version of cuDNN, as in ``9.10.2``."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str | None) -> CudnnVersion | None:
        numbers = _numbers(text, 2, 4)
        return cls(*(*numbers, 0)[:3]) if numbers else None

    @classmethod
    def decode(cls, number: int) -> CudnnVersion:
        """Decode ``cudnnGetVersion``: 8902 is 8.9.2, and from cuDNN 9 on 91002 is 9.10.2."""
        if number >= _CUDNN_WIDE_SCHEME:
            return cls(number // 10000, number % 10000 // 100, number % 100)
        return cls(number // 1000, number % 1000 // 100, number % 100)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class ComputeCapability(_TwoNumbers):
    """Compute capability of a GPU, as in ``9.0``; ``sm_90`` names the code compiled for it."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str | None) -> ComputeCapability | None:
        """Read ``9.0``, ``sm_90``, ``compute_90`` or ``90``; the suffix of ``sm_90a`` is not part of it."""
        match = re.fullmatch(
            r"([0-9]{1,2})\.([0-9])|(?:(?:sm|compute)_?)?([0-9]{1,2})([0-9])[af]?", (text or "").strip()
        )
        return None if match is None else cls(int(match[1] or match[3]), int(match[2] or match[4]))

    @property
    def sm(self) -> str:
        """The name of the code for it: ``sm_90``."""
        return f"sm_{self.major}{self.minor}"


def is_release(version: str) -> bool:
    """Whether a version can be a release: it is no pre-release, and its local part names no state of sources."""
    return _NO_RELEASE.search(version) is None


class CodeTarget(NamedTuple):
    """What a piece of GPU code was compiled for: ``sm_90a`` (a cubin) or ``compute_120`` (PTX)."""

    capability: ComputeCapability
    ptx: bool = False
    suffix: str = ""

    @classmethod
    def parse(cls, text: str | None) -> CodeTarget | None:
        match = re.fullmatch(r"(sm|compute)_([0-9]{1,2}[0-9])([af]?)", (text or "").strip())
        capability = ComputeCapability.parse(match[2]) if match else None
        return cls(capability, match[1] == "compute", match[3]) if match and capability else None

    def __str__(self) -> str:
        kind = "compute" if self.ptx else "sm"
        return f"{kind}_{self.capability.major}{self.capability.minor}{self.suffix}"
