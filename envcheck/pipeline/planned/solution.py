"""What ``envcheck plan`` answers: a set of releases and what goes with it, or why nothing fits."""

from __future__ import annotations

import msgspec

from envcheck.compat.question import Reason
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.sources import Source


class ChosenRelease(msgspec.Struct, frozen=True, kw_only=True):
    """A package of the set."""

    name: str  # Normalized name of the distribution
    version: str
    """With the local tag of the build, where an index serves others: ``2.14.0+cu128``; empty: no release is known."""
    extras: tuple[str, ...] = ()  # Normalized names of the extras to ask for
    compiled: bool = False  # Whether it is compiled where it is installed, and needs the CUDA toolkit
    wheel: str = ""
    """Address of its wheel for this PyTorch, CUDA and Python, where the project publishes some apart from PyPI; not
    every combination has one."""
    given_up: str = ""  # Why it is not the newest release that was asked for


class Constraint(msgspec.Struct, frozen=True, kw_only=True):
    """Within which releases an installer keeps what comes with the set."""

    requirement: str  # As uv reads it; of an override, what is left out has a marker that never holds
    reason: str  # Why, in words that follow the requirement
    sources: tuple[Source, ...] = ()  # Where that is written


class Override(Constraint, frozen=True, kw_only=True):
    """What is installed in the place of whatever packages require: ``nvidia-cudnn-cu12==9.15.0.57``."""

    pip: tuple[tuple[str, ...], ...] = ()
    """What pip, which has no overrides, is told after the set, each without its name; none: it cannot do the same."""


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """What to install, or why nothing fits."""

    verdict: FitVerdict  # Whether the set fits; ``incompatible``: none does
    machine: dict[str, str]  # What it is for, by component
    as_of: str = ""  # The last day of which releases were chosen from; empty: all that are known
    packages: tuple[ChosenRelease, ...] = ()  # PyTorch first, then in the order of the wishes
    tag: str = ""  # Local tag of the build of PyTorch that its own index serves; empty: PyPI's, or no PyTorch
    overrides: tuple[Override, ...] = ()
    """Where the set does not keep to a requirement: by a row, or as ``tool.uv`` of a pyproject.toml says."""
    constraints: tuple[Constraint, ...] = ()
    """Without which an installer takes what does not run here; and those of ``tool.uv``."""
    reasons: tuple[Reason, ...] = ()  # What was judged of the set; where nothing fits, of the best one
    nearest: tuple[str, ...] = ()  # Changes with which there would be a set
    described: tuple[str, ...] = ()
    """The machine in the words of conda's virtual packages, and of NVIDIA's provider of wheel variants, which is a
    preview: ``__cuda=12.4``, ``nvidia :: sm_arch :: 90_real``.
    """
    steps: tuple[tuple[str, ...], ...] = ()
    """The commands that change the installed environment so, in order, where one is repaired."""
    opened_by_path: tuple[str, ...] = ()
    """Python packages whose folder ``lib`` the loader's path must name: ``nvidia.cublas``."""
    compiling: str = ""  # What compiling needs, and whether it is here; empty: nothing is compiled
    python: str = ""
    """Its minor version: that which was asked for, else the newest that PyPI has files of all for; empty: any."""
    image: str = ""  # The image to start from: with the toolkit where something is compiled, else with that Python
    resolved: tuple[str, ...] = ()  # All that uv would install, pinned, where it was asked
    resolved_s: float = 0.0  # How long uv took, in seconds
    download: int = 0
    """Bytes that uv would download of these, without those of ``unsized`` packages, whose size no index tells."""
    unsized: int = 0  # How many of them no index tells the size of
