"""Linux distributions, and what of NVIDIA's can be had otherwise than from PyPI: the CUDA toolkit and its libraries.

An archive can be unpacked anywhere, and what packages bring of CUDA is chosen by glibc; so a distribution that NVIDIA's
images or wheels are not for refuses nothing, but it is not said to fit either.
"""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.matrix import Matrix
from envcheck.compat.names import COMPILERS, scheme
from envcheck.compat.question.question import Question, readable
from envcheck.compat.question.wheels import libcs
from envcheck.compat.relations.fit import Fit, conclude
from envcheck.compat.specifier import Version, covered, parse_version

_BESIDE = frozenset({"cuda", "nvcc", "glibc", "python", *COMPILERS})
"""What a question about the toolkit alone names besides a distribution; beside a package, CUDA means what that one is
built with.
"""


def distribution_fits(question: Question) -> Iterator[Fit]:
    """Whether NVIDIA provides the toolkit, or the library, that was named for the distribution that was."""
    for name in question.labels:
        yield from _by_glibc(question, name, _wheels(question.matrix, name))
    distributions = question.matrix.distribution_names
    if question.container or question.versions.keys() - _BESIDE - distributions:
        return
    tool = "nvcc" if "nvcc" in question.versions else "cuda"
    for name in sorted(distributions & question.versions.keys()):
        by = "os" if "os" in question.labels else name
        for release in question.versions[name]:
            for toolkit in question.versions.get(tool, ()):
                yield _provided(question, name, release, toolkit).concerning(tool, by)


def _provided(question: Question, name: str, release: Version, toolkit: Version) -> Fit:
    row = next((row for row in question.matrix.rows_for(name, release) if row.toolkits), None)
    if row is None:
        reason = f"whether NVIDIA provides CUDA {toolkit} for {name} {release} is not known"
        return conclude(question.matrix, "unknown", reason)
    toolkits = readable("CUDA", row.toolkits)
    reason = f"NVIDIA provides images of {toolkits} with {name} {release}"
    if covered(row.toolkits, toolkit) == "all":
        return conclude(question.matrix, "compatible", reason, row)
    reason = f"{reason}; whether CUDA {toolkit} can be installed there is not documented"
    return conclude(question.matrix, "unknown", reason, row, change=toolkits)


def _wheels(matrix: Matrix, name: str) -> list[str]:
    """The wheels of a library, for each major of CUDA or for that in its name (``tensorrt-cu12``)."""
    library, _, cuda = name.partition("-cu")
    wheel = matrix.wheels_of_libraries.get(library)
    majors = [cuda] if cuda else sorted({toolkit.major for toolkit in matrix.toolkits})
    return [wheel.format(major) for major in majors] if wheel else []


def _by_glibc(question: Question, name: str, wheels: list[str]) -> Iterator[Fit]:
    """What the wheels of a library tell of the glibc that it was linked against."""
    for version in question.versions.get(name, ()) if question.os in ("linux", "wsl") else ():
        needs = [
            (needed, row)
            for wheel in wheels
            for row in question.matrix.wheels_by_name.get(wheel, ())
            if covered(row.versions, version) != "none"
            if (needed := parse_version(row.glibc.get(question.machine, ""), scheme("glibc")))
        ]
        needs.sort(key=lambda need: need[0].numbers)
        for there, by, implied in libcs(question) if needs else ():
            (least, _), (greatest, row) = needs[0], needs[-1]
            libc = str(least) if least == greatest else f"{least} to {greatest}"
            told = f" (it comes with {implied.label})" if implied else ""
            reason = f"NVIDIA's wheels of {name} {version} need glibc {libc} or newer, this is {there}{told}"
            cited = (row, implied.row) if implied else (row,)
            if covered(f">={greatest}", there) == "all":
                fit = conclude(question.matrix, "compatible", reason, *cited)
            else:
                reason = f"{reason}; whether another package of it serves there is not documented"
                fit = conclude(question.matrix, "unknown", reason, *cited, change=f"glibc >= {greatest}")
            yield fit.concerning(name, by)
