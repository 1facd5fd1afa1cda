"""Which release a fix installs: one that this driver, these GPUs and this Python run.

All fixes that name a version choose it here: among the rows of the matrix, and among what the installed metadata asks
for. Where neither says enough, the requirement has no bounds and the installer chooses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from envcheck.compat.package_needs import runs_on
from envcheck.knowledge.relations.torch import builds_that_fit, tag_of
from envcheck.knowledge.specifier import parse_specifier, parse_version
from envcheck.knowledge.tables import ReleaseRow
from envcheck.model.snapshot import Framework
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import distributions_in, machine, rows_of_release
from envcheck.rules.facts.machine import gpus_with_capability, runs_builds_for, supports_natively

_LOCAL_TAG = re.compile(r"\+.*")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.]{0,40}")
_BOUNDS = re.compile(r"[=<>!~0-9.,*]+")
_MOST_NEWER = 4
"""Newer releases that are considered."""


class TorchChoice(msgspec.Struct, frozen=True):
    """A build of PyTorch to install."""

    version: str
    tag: str
    """Name of PyTorch's index for the build's CUDA: ``cuNNN``."""


def same_version(framework: Framework) -> str:
    """``==`` and the installed release, without its local tag; empty where that is not a plain version."""
    version = _LOCAL_TAG.sub("", framework.version or "")
    return f"=={version}" if _VERSION.fullmatch(version) else ""


def torch_build(facts: Facts, framework: Framework | None = None) -> TorchChoice | None:
    """The build of PyTorch with native code for all GPUs that the driver runs; None when the matrix knows none.

    The installed release is kept where it has such a build, else the newest release that has one is chosen. Of its
    builds, the newest that the driver supports without minor-version compatibility comes first.
    """
    if framework is not None and framework.name != "torch":
        return None
    environment = facts.environment
    gpus = list(dict.fromkeys(capability for _, capability in gpus_with_capability(facts)))
    python = environment.python if environment else None
    for version in dict.fromkeys((framework.version if framework else None, None)):
        # ``runs`` knows more of the driver than its release, which is why the relation is not given one.
        fitting = builds_that_fit(facts.matrix, version, gpus, None, facts.driver_os, python, machine(facts))
        runnable = [
            (row, cuda)
            for row, build in fitting
            if (cuda := CudaVersion.parse(build.cuda)) and runs_builds_for(facts, cuda)
        ]
        if runnable:
            row = runnable[0][0]
            versions = [cuda for other, cuda in runnable if other is row]
            best = next((cuda for cuda in versions if supports_natively(facts, cuda)), versions[0])
            return TorchChoice(row.version, tag_of(str(best)))
    return None


def newest_extra(extra: re.Pattern[str], lines: Iterable[str], facts: Facts) -> str | None:
    """The newest CUDA major version that has an extra in these requirement lines and that the driver runs."""
    majors = sorted({match[1] for line in lines if (match := extra.search(line))}, reverse=True)
    return next((major for major in majors if runs_builds_for(facts, CudaVersion(int(major), 0))), None)


def newest_release(facts: Facts, name: str, extras: str) -> str:
    """The requirement of the newest releases whose CUDA the driver runs; without bounds where those are the newest."""
    rows = _default_builds(facts, name)
    fitting = [row for row in rows if row.cuda and _may_run(row, facts)]
    if not fitting or fitting[-1] is rows[-1] or "|" in fitting[-1].versions:
        return f"{name}[{extras}]"
    return f"{name}[{extras}]{fitting[-1].versions}"


def installed_release(facts: Facts, name: str) -> str | None:
    """The installed release of a package, pinned; None where it is not there, or the driver cannot run its CUDA."""
    for each in distributions_in(facts.environment):
        if each.name == name and _VERSION.fullmatch(each.version):
            rows = rows_of_release(facts, name, each.version)
            return f"{name}=={each.version}" if all(_may_run(row, facts) for row in rows) else None
    return None


def newer_releases(framework: Framework, facts: Facts) -> list[str]:
    """Bounds of PEP 440 on releases newer than the installed one that this driver and Python run, newest first."""
    there = parse_version(framework.version or "")
    if there is None:
        return []
    plain = [row for row in reversed(_default_builds(facts, framework.name)) if _BOUNDS.fullmatch(row.versions)]
    newer = [row for row in plain if parse_specifier(row.versions).bounds[0].numbers > there.numbers]
    python = facts.environment.python if facts.environment else None
    fitting = (row.versions for row in newer[:_MOST_NEWER] if _may_run(row, facts) and runs_on(row, python))
    return [bounds if bounds[0] in "=<>!~" else f"=={bounds}" for bounds in fitting]


def _default_builds(facts: Facts, name: str) -> list[ReleaseRow]:
    """The rows of a package's releases, oldest first, for the build without a local tag.

    One that only tells of what a release does without chooses none.
    """
    rows = [row for row in facts.matrix.rows_of(name) if row.name == name and not row.build]
    choosing = [row for row in rows if not row.optional or not row.needs.keys() <= {*row.optional}]
    return sorted(choosing, key=lambda row: parse_specifier(row.versions).bounds[0].numbers)


def _may_run(row: ReleaseRow, facts: Facts) -> bool:
    """Whether the driver runs the CUDA of a release; true where its row names none."""
    cuda = CudaVersion.parse(row.cuda)
    return cuda is None or runs_builds_for(facts, cuda)
