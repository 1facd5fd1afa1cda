"""Requirement lines of installed distributions: which are relevant, what they pin, which libraries they provide."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...common.library_names import FAMILIES
from ...common.paths import without_prefix
from ..python.distributions import normalised

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_PIN = re.compile(r"\s*(?:\[[^\]]*\]\s*)?(?:\(\s*)?==\s*([0-9][0-9A-Za-z.+!]*)\s*(?:\)\s*)?(?:;|$)")
_LEAST = re.compile(r">=\s*(\d{1,4})\.(\d{1,4})(?:\.0)*(?![\d.])")
_BELOW = re.compile(r"(?<![<>=!~])<\s*(\d{1,4})\.(\d{1,4})(?:\.0)*(?![\d.])")
_MATTERS = re.compile(
    r"nvidia-(?!ml-py|pytriton)|cuda-|cupy|cudatoolkit|torch(?!metrics|diffeq|-geometric)|pytorch|triton|jax|tensorrt|"
    r"tensorflow(?!-(?:io|estimator|datasets|metadata|hub|probability))|numba|xformers|flash-attn|flashinfer|onnxruntime|"
    r"numpy$|llvmlite$|xgrammar|tilelang"
)

_LIBRARIES = {family.wheel: family.sonames for family in FAMILIES if family.sonames}
"""The libraries of NVIDIA's wheels, by the wheel's name without ``nvidia-`` and ``-cuNN``. The major version of such a
wheel is that of its library's soname (looked at in wheels for CUDA 11, 12 and 13; cudart's of CUDA 11 ends in
``.11.0``)."""


def requirement_name(line: str) -> str:
    """The normalised name of the distribution that a line requires."""
    match = _NAME.match(line)
    return normalised(match[1]) if match else ""


def relevant_lines(lines: Iterable[str] | None) -> list[str]:
    """The lines for NVIDIA's wheels, frameworks, or dependencies of compiled parts, with their markers."""
    return [line for line in lines or () if _MATTERS.match(requirement_name(line))]


def extra_of(line: str) -> str | None:
    """The extra that the line belongs to; None if there is none."""
    match = re.search(r"""\bextra\s*==\s*["']([A-Za-z0-9._-]+)["']""", line)
    return normalised(match[1]) if match else None


def pinned(lines: Iterable[str], name: str) -> str | None:
    """The only version of a distribution that unconditional lines allow: ``2.5.1`` of ``torch==2.5.1``.

    Bounds that leave one minor release count as that release: ``2.14`` of ``torch<2.15.0,>=2.14.0``. A ``name`` that
    ends in ``-`` is a prefix.
    """
    found: set[str] = set()
    for line in lines:
        asked = requirement_name(line)
        if (asked == name or (name.endswith("-") and asked.startswith(name))) and extra_of(line) is None:
            rest = _after_name(line)
            pin = _PIN.match(rest)
            least, below = _LEAST.search(rest), _BELOW.search(rest)
            same = least and below and least[1] == below[1] and int(below[2]) == int(least[2]) + 1
            found.add(pin[1] if pin else f"{least[1]}.{least[2]}" if least and same else "")
    found.discard("")
    return found.pop() if len(found) == 1 else None


def libraries_of(lines: Iterable[str]) -> list[tuple[str, ...]]:
    """The sonames in NVIDIA's wheels of these lines, each with alternative names.

    ``("libcudart.so.12", "libcudart.so.12.0")`` of ``nvidia-cuda-runtime-cu12>=12.1.105; extra == "with-cuda"``.
    """
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        name = without_prefix(requirement_name(line), "nvidia-")
        bound = re.search(r"(?:==|>=|~=)\s*(\d{1,4})(?:\.(\d{1,4}))?", _after_name(line))
        for library in _LIBRARIES.get(re.sub(r"-cu\d{2}$", "", name), ()) if bound else ():
            found.setdefault(library, sonames(library, bound[1]) if bound else ())
    return list(found.values())


def sonames(library: str, major: str, minor: str = "0") -> tuple[str, ...]:
    """Possible sonames of a library of this version: before CUDA 12 some have two numbers, and the NVRTC of CUDA 11.2
    to 11.8 is ``libnvrtc.so.11.2``.
    """
    two = dict.fromkeys((minor, "2")) if library == "nvrtc" and major == "11" else (minor,)
    return (f"lib{library}.so.{major}", *(f"lib{library}.so.{major}.{second}" for second in two))


def cuda_major(lines: Iterable[str]) -> str | None:
    """The CUDA major version in the names (``-cuNN``) of required NVIDIA wheels; None if mixed."""
    suffixes = {match[1] for line in lines if (match := re.search(r"^nvidia-.*-cu(\d{2})$", requirement_name(line)))}
    return suffixes.pop() if len(suffixes) == 1 else None


def _after_name(line: str) -> str:
    match = _NAME.match(line)
    return line[match.end() :] if match else ""
