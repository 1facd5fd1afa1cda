"""What releases of Python packages need of each other: by the matrix, and by the requirements that they declare."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from envcheck.compat.candidates import named_by, release_candidates, runs_here
from envcheck.compat.question import Question
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical, scheme
from envcheck.knowledge.relations.fit import VERDICTS, Fit, conclude
from envcheck.knowledge.relations.torch import python_runs_torch, tag_of, torch_row
from envcheck.knowledge.specifier import Cover, Version, parse_specifier, parse_version
from envcheck.knowledge.tables import Machine, Os
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.text.lazy import lazy_pattern

if TYPE_CHECKING:
    from packaging.markers import Marker
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

NOT_TO_RUN = frozenset({"setuptools", "pip", "wheel"})
"""Requirements that most programs do not need at run time."""

_NAME = lazy_pattern(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_SEPARATORS = lazy_pattern(r"[-_.]+")
_NAMES_EXTRA = lazy_pattern(r";.*\bextra\b")
_MARKER_PARTS = lazy_pattern(
    r"""[()]|\b(?:and|or)\b|(?:"[^"]*"|'[^']*'|\w+)\s*(?:[<>=!~]+|\bnot\s+in\b|\bin\b)\s*(?:"[^"]*"|'[^']*'|\w+)"""
)
"""Parentheses, words that join, and the comparisons of a marker as ``packaging`` writes it."""
_WILD = lazy_pattern(r"((?:>=|<=|>|<)\s*[0-9][0-9.]*)\.\*")
_NO_PACKAGES = frozenset(
    {"cuda", "python", "tensorrt", "ubuntu", "jetpack", "glibc", "l4t", "gcc", "clang", "msvc", "nvcc"}
)
"""Components that no installer of Python packages brings."""


def names_extra(line: str) -> bool:
    return _NAMES_EXTRA.search(line) is not None


@lru_cache(maxsize=1 << 13)  # of every distribution, again after each fix that is simulated
def release_rows(
    matrix: Matrix, name: str, version: str, os: Os = "linux", machine: Machine = "x86_64"
) -> tuple[ReleaseRow, ...]:
    """The rows that hold for this release of a package (for its build, where the version has a local tag)."""
    parsed = parse_version(version, scheme(canonical(name)))
    if parsed is None:
        return ()
    question = Question(matrix, {}, os=os, machine=machine)
    found = release_candidates(question, canonical(name), parsed)
    if not found and parsed.local:
        found = release_candidates(question, canonical(name), parsed._replace(local=""))
    return found[0].rows if found else ()


@lru_cache(maxsize=1 << 16)  # of each pair of distributions, again after each fix that is simulated
def release_fits(
    matrix: Matrix, name: str, version: str, other: str, there: str, os: Os = "linux", machine: Machine = "x86_64"
) -> Fit | None:
    """Whether a release of ``name`` works with release ``there`` of ``other``; None where no row relates the two.

    A pre-release is taken for the release that it leads to: builds of a vendor are numbered so. Rows that contradict
    each other (two documents) leave it open. What it can do without stops nothing in another version.
    """
    if other not in named_by(canonical(name), matrix):
        return None  # as for nearly all that are installed: no version need be read
    release = parse_version(there, scheme(canonical(other)))
    known = release_rows(matrix, name, version, os, machine)
    rows = [row for row in known if other in row.needs and other not in row.optional]
    if release is None or not rows:
        return None
    covers = {_cover(row.needs[other], release) for row in rows}
    if any(other in row.disputed and _cover(row.disputed[other], release) != "none" for row in rows):
        covers.add("some")
    cover: Cover = covers.pop() if len(covers) == 1 else "some"
    wanted = " or ".join(dict.fromkeys(row.needs[other] for row in rows))
    reason = f"{name} {version} needs {other}{wanted}, and this is {there}"
    return conclude(matrix, VERDICTS[cover], reason, *rows, change=f"{other}{wanted}")


def _cover(spec: str, version: Version) -> Cover:
    parsed = parse_specifier(spec)
    found = parsed.cover(version)
    return parsed.cover(version._replace(pre="")) if version.pre and found == "none" else found


@lru_cache(maxsize=1 << 13)  # of every distribution, for each package that is asked about
def requirement_name(line: str) -> str:
    match = _NAME.match(line)
    return normalised(match[1]) if match else ""


@lru_cache(maxsize=1 << 14)
def normalised(name: str) -> str:
    """A distribution's name as PyPI compares it."""
    return _SEPARATORS.sub("-", name).lower()


@lru_cache(maxsize=30_000)  # asked of every distribution for each framework
def package_filled_by(name: str) -> str:
    """The package that a distribution fills: those of one project stand in for each other."""
    return next(iter(load_matrix().projects(name, "shares-its-folder")), name)


def same_package(one: str, other: str) -> bool:
    """Whether both fill one package: then either meets what asks for the other."""
    return one == other or package_filled_by(one) == package_filled_by(other)


def by_name(lines: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(requirement_name(line), []).append(line)
    return found


def bounds_on(lines: Iterable[str], name: str, marks: Mapping[str, str]) -> str | None:
    """The bounds that the lines set on ``name`` here (extras left out); None where they do not ask for it.

    ``marks`` are the environment markers of PEP 508 that are known; a line whose marker needs another is left out.
    """
    found = [line for line in lines if requirement_name(line) == name]
    holding = [asked for line in found if (asked := read_requirement(line)) and holds(asked, marks)]
    return ",".join(filter(None, (str(asked.specifier) for asked in holding))) if holding else None


@cache  # the same pairs are asked for again after each fix that is simulated
def satisfies(bounds: str, there: str) -> bool | None:
    """Whether an installed version is within bounds of PEP 440, as pip judges; None where either cannot be read."""
    from packaging import version as pep440  # noqa: PLC0415 - few environments need it

    try:
        return specifiers(bounds).contains(pep440.Version(there), prereleases=True)
    except ValueError:  # no version, or one of more digits than Python reads
        return None


@cache  # dozens of releases are compared with the same bounds
def specifiers(bounds: str) -> SpecifierSet:
    """Bounds of PEP 440; raises ValueError for what is none."""
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415 - few environments need it

    return SpecifierSet(bounds)


@cache
def admits(bounds: str, there: str) -> bool | None:
    """The same, but a pre-release is taken for the release that it leads to as well: vendors number builds so."""
    found = satisfies(bounds, there)
    version = parse_version(there) if found is False else None
    return satisfies(bounds, version._replace(pre="").public) if version is not None and version.pre else found


def same_minor(bounds: str, there: str) -> bool:
    """Whether a version differs from one that the bounds pin only behind its second number."""
    version = parse_version(there)
    pins = [parse_version(pin) for pin in re.findall(r"==\s*([0-9][\w.]*)", bounds)]
    return version is not None and any(pin is not None and pin.numbers[:2] == version.numbers[:2] for pin in pins)


@cache
def read_requirement(line: str) -> Requirement | None:
    """A requirement line of metadata, in today's form or the old one: ``name (==1.2) ; marker``. None for what is none.

    Every line is read here: what old releases wrote (``>=1.8.*``) is no longer PEP 440, and means ``>=1.8``.
    """
    from packaging.requirements import Requirement  # noqa: PLC0415 - few environments need it

    if len(line) > 1000:
        return None
    for text in (line, _WILD.sub(r"\1", line)):
        try:
            return Requirement(text)
        except (ValueError, RecursionError):
            continue
    return None


def pinned_by(line: str) -> str | None:
    """The one version that a requirement line admits; None where it admits several, or holds for an extra alone."""
    asked = read_requirement(line)
    return exact(asked.specifier) if asked and not of_an_extra(line) else None


def exact(bounds: SpecifierSet) -> str | None:
    """The one version that bounds accept; None where they accept several."""
    pins = {each.version for each in bounds if each.operator in ("==", "===") and "*" not in each.version}
    if len(pins) != 1:
        return None
    pin = pins.pop()
    if [each.operator for each in bounds] == ["=="]:
        return pin  # as of nearly every line
    try:
        return pin if bounds.contains(pin, prereleases=True) else None
    except ValueError:  # === with a text that is no version
        return None


def of_an_extra(line: str) -> bool:
    """Whether a requirement line only holds for an extra."""
    asked = read_requirement(line)
    return asked is not None and asked.marker is not None and "extra" in marker_names(str(asked.marker))


def extra_of(line: str) -> str | None:
    """The extra that the marker of a requirement line names: ``and-cuda``."""
    match = re.search(r"""\bextra\s*==\s*["']([a-z0-9][a-z0-9._-]{0,40})["']""", line)
    return match[1] if match else None


def active_requirements(
    lines: Iterable[str], marks: Mapping[str, str], extras: tuple[str, ...] = ("",)
) -> Iterator[Requirement]:
    """The requirements among the lines that hold here, for any of these extras (without one: the empty name)."""
    known = frozenset(marks.items())
    for line in lines:
        asked = _active(line, known, extras)
        if asked is not None:
            yield asked


@cache  # each fix that is simulated asks for all lines of an environment again
def _active(line: str, marks: frozenset[tuple[str, str]], extras: tuple[str, ...]) -> Requirement | None:
    if extras == ("",) and re.search(r";.*\bextra\s*==\s*[\"']", line) and " or " not in line:
        return None  # as most lines; parsing one takes a tenth of a millisecond
    asked = read_requirement(line)
    return asked if asked is not None and any(holds(asked, dict(marks), extra) for extra in extras) else None


def holds(asked: Requirement, marks: Mapping[str, str], extra: str = "") -> bool:
    """Whether the marker of a requirement holds here, for this extra."""
    if asked.marker is None:
        return not extra
    return applies(asked.marker, marks, (normalised(extra),) if extra else ()) is True


def applies(marker: Marker, marks: Mapping[str, str], extras: Collection[str] = ()) -> bool | None:
    """Whether a marker holds where these extras, by their normalized names, are asked for; None where that depends on
    something that is not known, such as the Python version.
    """

    def holds_part(part: str) -> bool | None:
        if found := re.fullmatch(r"""extra\s*(?P<operator>==|!=)\s*["'](?P<name>[^"']*)["']""", part):
            return (normalised(found["name"]) in extras) == (found["operator"] == "==")
        return _holds_part(part, tuple((name, marks.get(name)) for name in marker_names(part)))

    return decided(str(marker), holds_part)


@cache
def _holds_part(part: str, known: tuple[tuple[str, str | None], ...]) -> bool | None:
    from packaging.markers import Marker  # noqa: PLC0415 - few questions meet one

    if any(value is None for _, value in known):
        return None
    try:
        return Marker(part).evaluate({name: value or "" for name, value in known})
    except ValueError:  # a version of more digits than Python reads
        return None


def decided(marker: str, holds_part: Callable[[str], bool | None]) -> bool | None:
    """Whether a marker holds, by what ``holds_part`` says of each comparison in it; None where these leave it open."""
    # By depth of parentheses: what stands before the last "or", and what is joined by "and" since then.
    open_parts: list[tuple[bool | None, bool | None]] = [(False, True)]
    for part in _MARKER_PARTS.findall(marker):
        before, joined = open_parts[-1]
        if part == "(":
            open_parts.append((False, True))
        elif part == "or":
            open_parts[-1] = (_any(before, joined), True)
        elif part == ")":
            open_parts.pop()
            outside, beside = open_parts[-1]
            open_parts[-1] = (outside, _all(beside, _any(before, joined)))
        elif part != "and":
            open_parts[-1] = (before, _all(joined, None if joined is False else holds_part(part)))
    return _any(*open_parts[-1])


def _any(*truths: bool | None) -> bool | None:
    return True if True in truths else None if None in truths else False


def _all(*truths: bool | None) -> bool | None:
    return False if False in truths else None if None in truths else True


@cache
def marker_names(text: str) -> frozenset[str]:
    """The variables of an environment marker (PEP 508)."""
    bare = re.sub(r"\"[^\"]*\"|'[^']*'", "", text)
    return frozenset(re.findall(r"[a-z_]+", bare)) - {"and", "or", "in", "not"}


_MARKERS: dict[str, tuple[str, str, str, Mapping[str, str]]] = {  # and Python's words for processors
    "linux": ("linux", "Linux", "posix", {}),
    "windows": ("win32", "Windows", "nt", {"x86_64": "AMD64", "aarch64": "ARM64"}),
    "macos": ("darwin", "Darwin", "posix", {"aarch64": "arm64"}),
}


@lru_cache(maxsize=64)  # asked for each requirement
def marks_of(python: str | None, os: str, machine: str | None) -> Mapping[str, str]:
    """The markers that follow from a Python and its system."""
    platform, system, name, machines = _MARKERS.get(os, _MARKERS["linux"])
    found = {"sys_platform": platform, "platform_system": system, "os_name": name}
    found |= {"implementation_name": "cpython", "platform_python_implementation": "CPython"}
    if machine:
        found["platform_machine"] = machines.get(machine, machine)
    if python and (parsed := parse_version(python)) and len(parsed.numbers) > 1:
        found |= {"python_version": ".".join(map(str, parsed.numbers[:2])), "python_full_version": python}
    return found


@lru_cache(maxsize=1 << 12)  # again after each fix that is simulated
def release_for(
    matrix: Matrix,
    name: str,
    other: str,
    there: str,
    os: Os = "linux",
    machine: Machine = "x86_64",
    *,
    python: str | None = None,
) -> str | None:
    """The newest releases of ``name`` that are tied to release ``there`` of ``other``, as bounds: ``==0.20.1``.

    With ``python``, those for that Python alone.
    """
    version = parse_version(there, scheme(canonical(other)))
    if version is None:
        return None
    found = [
        row.versions
        for row in matrix.rows_of(canonical(name))
        if not row.build
        and other in row.needs
        and _cover(row.needs[other], version) == "all"
        and runs_here(row, os, machine)
        and "|" not in row.versions
        and runs_on(row, python)
    ]
    return max(found, key=lambda versions: parse_specifier(versions).bounds[0].numbers, default=None)


def later_release_for_python(
    matrix: Matrix, name: str, version: str, python: str, os: Os = "linux", machine: Machine = "x86_64"
) -> str | None:
    """Bounds from the first release later than ``version`` that has wheels for a Python: ``>=2.10.0``.

    None where no such release is known.
    """
    there, asked = parse_version(version, scheme(canonical(name))), parse_version(python, scheme("python"))
    if there is None or asked is None:
        return None
    if name == "torch":
        fits = [row.version for row in matrix.torch if python_runs_torch(matrix, row.version, python, os, machine).ok]
        starts = [parsed.numbers for each in fits if (parsed := parse_version(each))]
    else:
        rows = [row for row in matrix.rows_of(canonical(name)) if "python" in row.needs and not row.build]
        rows = [row for row in rows if runs_here(row, os, machine) and runs_on(row, python)]
        starts = [parse_specifier(row.versions).bounds[0].numbers for row in rows]
    first = min((numbers for numbers in starts if numbers > there.numbers), default=None)
    return f">={'.'.join(map(str, first))}" if first else None


def runs_on(row: ReleaseRow, python: str | None) -> bool:
    """Whether a release has wheels for a Python, as far as both are known."""
    version = parse_version(python or "", scheme("python"))
    return version is None or "python" not in row.needs or parse_specifier(row.needs["python"]).cover(version) != "none"


@lru_cache(maxsize=1 << 13)  # of every distribution, again after each fix that is simulated
def needed_of(
    matrix: Matrix, name: str, version: str, os: Os = "linux", machine: Machine = "x86_64", *, extras: bool = False
) -> tuple[str, ...]:
    """What a release requires by the matrix, as requirement lines; empty where no row tells. With ``extras`` also what
    some extra of it requires: rows do not tell which.
    """
    if name == "torch":
        # The default build's, on Linux; builds for another CUDA pin the same Triton, but other wheels of NVIDIA.
        torch, local = torch_row(matrix, version), version.partition("+")[2]
        cuda = (torch.default_cuda or "") if torch else ""
        if torch is None or not cuda or os == "windows" or (local and not local.startswith("cu")):
            return ()
        pins = [("triton", torch.triton)]
        if local in ("", tag_of(cuda)):
            wheels, major = matrix.wheels_of_libraries, cuda.partition(".")[0]
            pins[:0] = [(wheels[key].format(major), getattr(torch, key)) for key in ("cudnn", "nccl")]
        return tuple(f"{wheel}{pin if pin.startswith('~') else f'=={pin}'}" for wheel, pin in pins if pin)
    lines: dict[str, None] = {}
    for row in release_rows(matrix, name, version, os, machine):
        major = (row.cuda or "").partition(".")[0]
        left_out = {*row.optional, *row.alternatives} if not extras else frozenset[str]()
        for component, spec in row.needs.items():
            wheel = matrix.wheels_of_libraries.get(component)
            no_package = component in left_out | _NO_PACKAGES or component.startswith("driver-")
            if no_package or (wheel and not major) or "|" in spec:
                continue
            asked = wheel.format(major) if wheel else component
            bounds = []
            for text in spec.split(","):  # the matrix compares by leading numbers, PEP 440 does not
                bare = text if text[:1] in "=<>!~" else f"=={text}"
                short = bare.startswith("==") and bare.count(".") < 2 and not bare.endswith(".*")
                bounds.append(f"{bare}.*" if short else bare)
            lines[f"{asked}{','.join(bounds)}"] = None
    return tuple(lines)
