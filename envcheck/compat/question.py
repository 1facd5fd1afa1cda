"""A question about compatibility in the types that the relations take, how several Fits make one, and the Answer: the
JSON contract of ``envcheck matrix check``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import WEAKEST_FIRST, Fit, FitVerdict, conclude
from envcheck.knowledge.specifier import Version
from envcheck.knowledge.tables import Machine, Os, Row
from envcheck.knowledge.tables.hardware import GpuRow
from envcheck.knowledge.tables.software import ImageRow, ReleaseRow
from envcheck.model.components import Bound, Component
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease, Flavour
from envcheck.sources import Source

_FEW = 2

_NO_LIMIT = 10**9


def overall(fits: Iterable[Fit]) -> FitVerdict:
    """Incompatible if any is, else unknown if any is or there is none, else compatible."""
    verdicts = {fit.verdict for fit in fits}
    if "incompatible" in verdicts:
        return "incompatible"
    return "compatible" if verdicts == {"compatible"} else "unknown"


def agree(members: Sequence[tuple[str, Fit]], what: str) -> Fit:
    """One answer for all members of a family: theirs where they agree, else unknown with those that fit.

    ``what`` is the family as it was written: ``cuda==12``.
    """
    fits = [fit for _, fit in members]
    if len({fit.verdict for fit in fits}) == 1:
        return fits[-1]
    parts = []
    for word, verdict in (("yes for", "compatible"), ("no for", "incompatible"), ("not known for", "unknown")):
        ends = []
        for run_verdict, run in groupby(members, lambda item: item[1].verdict):
            labels = [label for label, _ in run if run_verdict == verdict]
            ends += [f"{labels[0]} to {labels[-1]}"] if len(labels) > _FEW else labels  # of a run, the ends
        parts += [f"{word} {', '.join(ends)}"] if ends else []
    return summary("unknown", f"{what} is ambiguous: {'; '.join(parts)}", fits)


def summary(verdict: FitVerdict, reason: str, fits: Iterable[Fit]) -> Fit:
    """One answer that rests on several, and cites what they cite."""
    resting = list(fits)
    rows = tuple(dict.fromkeys(row for fit in resting for row in fit.rows))
    sources = tuple(dict.fromkeys(source for fit in resting for source in fit.sources))
    return Fit(verdict=verdict, reason=reason, rows=rows, sources=sources)


def soften(fit: Fit) -> Fit:
    """A weak source decides nothing."""
    if fit.confidence != "weak" or fit.verdict == "unknown":
        return fit
    reason = f"only a weak source says so, which decides nothing: {fit.reason}"
    return msgspec.structs.replace(fit, verdict="unknown", reason=reason)


def reworded(matrix: Matrix, fit: Fit, reason: str, *rows: Row | None) -> Fit:
    """``fit`` in other words: as sure as it and as ``rows``, and citing both."""
    own = conclude(matrix, fit.verdict, reason, *rows, change=fit.nearest_change)
    both = tuple(dict.fromkeys((*own.rows, *fit.rows)))
    sources = tuple(dict.fromkeys((*own.sources, *fit.sources)))
    confidence = min(own.confidence, fit.confidence, key=WEAKEST_FIRST.index)
    return msgspec.structs.replace(own, rows=both, sources=sources, confidence=confidence)


def exactly(name: str, version: str) -> Component:
    """One release of a component."""
    return Component(name, (Bound("==", version),))


# A question about compatibility: everything that was named, in the types that the relations take.


class AskedGpu(msgspec.Struct, frozen=True):
    """A GPU as it was named, and what is known of it."""

    label: str
    capability: ComputeCapability
    model: GpuRow | None
    suffix: str = ""  # The suffix of the target that was named in its place: ``a``, ``f``


class BranchHead(DriverRelease):
    """The newest release of a driver branch, whatever its further numbers are."""

    @classmethod
    def of(cls, branch: int) -> BranchHead:
        return cls(branch, _NO_LIMIT, _NO_LIMIT)

    def __str__(self) -> str:
        return f"R{self.branch} (newest)"


class AnyPatch(DriverRelease):
    """The last release of two numbers, whatever its third is: 550.54 stands for 550.54.14 too."""

    @classmethod
    def of(cls, release: DriverRelease) -> AnyPatch:
        return cls(release.branch, release.minor, _NO_LIMIT)

    def __str__(self) -> str:
        return f"{self.branch}.{self.minor:02d}.x"


class Implied(msgspec.Struct, frozen=True):
    """A component that comes with a named one."""

    by: str  # Canonical name of the one that was named
    label: str
    version: Version
    row: Row


class System(msgspec.Struct, frozen=True):
    """System software of a Jetson that was named."""

    by: str  # Its canonical name
    label: str
    row: ReleaseRow


CONTAINER = "nvcr"  # How a container is asked for


class Container(NamedTuple):
    """A container of NVIDIA that was named, and what was named of its contents."""

    label: str  # As in ``pytorch:24.10``
    row: ImageRow
    holds: Mapping[str, str]  # Versions by canonical name
    named: Mapping[str, tuple[Version, ...]]  # The parts that were named beside it


class LibraryWheel(msgspec.Struct, frozen=True):
    """A distribution of NVIDIA that was named, and stands for the library in it."""

    name: str  # Name of the distribution: ``nvidia-cudnn-cu12``
    part: str  # What stands between ``nvidia-`` and the CUDA major
    major: int | None  # The CUDA major that it is built for


class Question(NamedTuple):
    """Everything that was named. A component that stands for several versions has several members, ascending."""

    matrix: Matrix
    labels: Mapping[str, str]  # By canonical name, the component as it was written; in the order of writing
    os: Os = "linux"
    machine: Machine = "x86_64"
    drivers: tuple[DriverRelease, ...] = ()
    cuda: tuple[CudaVersion, ...] = ()  # What software is built with or runs on
    nvcc: tuple[CudaVersion, ...] = ()  # The toolkit that compiles
    compat: CudaVersion | None = None  # The package of forward compatibility
    gpus: tuple[AskedGpu, ...] = ()
    flavour: Flavour | None = None
    free_threaded: bool = False  # Whether the Python is a build without the global interpreter lock
    mig: str = ""  # The profile of the MIG instance: ``1g.10gb``
    fabric_manager: DriverRelease | None = None
    container: Container | None = None
    versions: Mapping[str, tuple[Version, ...]] = MappingProxyType({})
    """Everything that rows of releases may name, by canonical name; CUDA and nvcc too."""
    systems: tuple[System, ...] = ()  # The rows of Jetson system software that was named
    implied: Mapping[str, Implied] = MappingProxyType({})
    """What comes with what was named, where it is not named itself."""
    libraries: Mapping[str, LibraryWheel] = MappingProxyType({})
    """The libraries that NVIDIA's wheels were named for, by canonical name, where they are not named themselves."""
    torch_cuda: Implied | None = None
    """The CUDA of PyTorch's build, where PyTorch is named and only one is meant."""
    problems: tuple[Fit, ...] = ()  # What was named and is not known
    assumed: Mapping[str, str] = MappingProxyType({})

    @property
    def windows_driver(self) -> bool:
        """Whether the driver is Windows', with its numbers."""
        return self.os in ("windows", "wsl")


# Versions and specifiers in words.


def readable(name: str, spec: str) -> str:
    """A specifier in words: ``torch 2.5.1``, ``CUDA >=12.1, <13``, ``driver R470 or R535``."""
    alternatives = []
    for text in map(str.strip, spec.split("|")):
        branch, plain = re.fullmatch(r">=([0-9]{1,9}),<([0-9]{1,9})", text), text.replace(".*", "")
        if name.startswith("driver") and branch and int(branch[2]) == int(branch[1]) + 1:
            alternatives.append(f"R{branch[1]}")
        elif plain.startswith("==") and "," not in plain:
            alternatives.append(plain.removeprefix("=="))
        else:
            alternatives.append(plain.replace(",", ", "))
    return f"{name} {listed(alternatives, 'or')}"


def unknown_release(question: Question, name: str, version: Version) -> str:
    """That the matrix does not know a release, as it was written."""
    written = question.labels.get(name) if len(question.versions[name]) == 1 else None
    written = written or f"{name} {version}"
    return f"the matrix does not know {written}" + ("; it knows releases, no pre-releases" if version.pre else "")


def listed(words: Sequence[str], last: str = "and") -> str:
    """``a, b and c``."""
    return "".join(words) if len(words) < 2 else f"{', '.join(words[:-1])} {last} {words[-1]}"


# The answer to a question about compatibility: the JSON contract of ``envcheck matrix check``.


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """What one relation between the named components says."""

    verdict: FitVerdict
    """What this relation says."""
    message: str
    """The reason, in a sentence."""
    sources: tuple[Source, ...] = ()
    """The data that decided it."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the named components fit together."""

    verdict: FitVerdict
    """Whether all named components fit; one pair that does not decides."""
    reasons: tuple[Reason, ...] = ()
    """What each relation says; what decided comes first."""
    suggestions: tuple[str, ...] = ()
    """Changes of one component with which the answer is ``compatible``, and what is known to work instead."""
    assumed: dict[str, str] = {}
    """What was assumed because it was not named: ``{"os": "linux"}``."""
