"""What a named version may be: the rows that cover it, a candidate for each build that it could mean, and what comes
with it, such as JetPack's CUDA.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import msgspec

from envcheck.compat.question import CONTAINER, Implied, Question, System, unknown_release
from envcheck.compat.wheels import is_published, pythons_here, releases_covering, requirements_covering, wheels_of
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import CUDA_PARTS, HARDWARE, SYSTEMS, scheme
from envcheck.knowledge.relations.driver import may_exist
from envcheck.knowledge.relations.fit import WEAKEST_FIRST, Fit, FitVerdict, conclude
from envcheck.knowledge.relations.gpu_code import cuda_targets
from envcheck.knowledge.relations.torch import builds, cuda_of_label, pythons_with_wheels, tag_of, torch_of_label
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables import Machine, Os
from envcheck.knowledge.tables.software import ReleaseRow, RequirementRow, TorchBuild, TorchRow, WheelRow
from envcheck.model.versions import CudaVersion

TORCH = "torch"
_LIBRARIES = ("cudnn", "nccl", "cusparselt")  # What builds come with, by the fields of their rows
_CPU = "cpu"  # Tag of builds without GPU support
_DRIVERS = frozenset({"driver-linux", "driver-windows"})  # Needs of the driver, by its numbers


class Candidate(NamedTuple):
    """One build that a named component may be."""

    name: str
    label: str  # As in ``torch 2.5.1+cu124``
    rows: tuple[ReleaseRow, ...]  # Rows that hold for all that the version stands for: each constrains it
    partial: tuple[ReleaseRow, ...] = ()
    """Rows of some of the releases that the version, a family, stands for: each is one way to read it."""
    cuda: CudaVersion | None = None  # CUDA of the build by its local tag, where no row tells
    wheels: tuple[WheelRow, ...] = ()  # The wheels on PyPI, where that is the build that is meant
    requirements: tuple[RequirementRow, ...] = ()  # What these wheels require
    partly: frozenset[str] = frozenset()
    """The ``versions`` of those of them that hold for a part of the releases that the version stands for."""

    @property
    def built_with(self) -> str:
        """CUDA of the build; empty where there is none, or it is not known."""
        return str(self.cuda) if self.cuda else next((row.cuda for row in self.rows if row.cuda), "")


def release_candidates(question: Question, name: str, version: Version) -> list[Candidate]:
    """The candidates of a component with rows of releases; none when no row covers the version.

    A version without local tag means the build without one, which is the one on PyPI; where CUDA is named beside it,
    or there is no such build, any build is meant.
    """
    known = releases_covering(question.matrix, name, version)
    by_build: dict[str, list[ReleaseRow]] = defaultdict(list)
    for row in known:
        by_build[row.build].append(row)
    shared = by_build.get("", [])
    if version.local:
        rows = by_build.get(version.local)
        if rows:
            named = {key for row in rows for key in row.needs}
            general = [_of_every_build(row, named) for row in shared]
            return [_candidate(name, version, version.local, [*general, *rows], question)]
        # A build that no row knows: what holds for the release holds for it, but not what holds for the build on PyPI.
        if version.local == _CPU and any(name in row.packages for row in question.matrix.indexes):
            shared = [msgspec.structs.replace(_of_every_build(row), cuda="") for row in shared]
            return [_candidate(name, version, version.local, shared, question)] if shared else []
        return _of_tag(name, version, shared, question)
    tags = [tag for tag in by_build if tag and not by_build[tag][0].index]
    if shared and not question.cuda:
        tags = []
    wheels = wheels_of(question.matrix, name, version, known)
    if not version.family:  # of several builds of one release, those for the system in question are meant
        wheels = tuple(row for row in wheels if pythons_here(question, row)) or wheels
    own = _on_pypi(question.matrix, _candidate(name, version, "", shared, question), version, wheels)
    found = [own] if shared or wheels or own.requirements else []
    return found + [_candidate(name, version, tag, by_build[tag], question) for tag in sorted(tags, reverse=True)]


def elsewhere(question: Question, candidates: Sequence[Candidate], version: Version) -> Iterator[Candidate]:
    """The builds that other indexes carry under the same version as PyPI does its own, which is of the ``candidates``.

    What their rows do not say is as in PyPI's build, except for its GPU code and what it brings.
    """
    own = next((one for one in candidates if not any(row.build for row in one.rows)), candidates[0]._replace(rows=()))
    for row in releases_covering(question.matrix, own.name, version):
        if row.index and not version.local:
            rows = [
                msgspec.structs.replace(
                    one,
                    cuda=None,
                    needs={key: spec for key, spec in one.needs.items() if key not in row.needs},
                    bundles={},
                    targets=(),
                    os=row.os or one.os,
                )
                for one in own.rows
            ]
            other = Candidate(own.name, f"{own.name} {version}+{row.build}", (*rows, row))
            yield other._replace(requirements=own.requirements, partly=own.partly)


def _of_tag(name: str, version: Version, rows: Sequence[ReleaseRow], question: Question) -> list[Candidate]:
    """The build of a tag that no row knows: ``cu124``, or ``cu12torch2.6cxx11abiFALSE``, for any CUDA 12 and
    one minor release of PyTorch. Whether a major serves GPUs that its first release does not, nobody knows.
    """
    cuda, matrix = cuda_of_label(version.local), question.matrix
    if cuda is not None and not may_exist(matrix, cuda):
        cuda = CudaVersion(10 * cuda.major + cuda.minor, 0)  # of cu12 it has read 1.2
        gpus = (cuda_targets(matrix, gpu.capability, cuda) for gpu in question.gpus)
        cuda = cuda if cuda in matrix.toolkits and all(fit.ok for fit in gpus) else None
    torch = torch_of_label(version.local)
    if not rows or (cuda is None and (torch is None or re.search("cpu|cu[0-9]", version.local))):
        return []
    if torch:
        compiled = [{key: spec for key, spec in row.needs.items() if key not in (TORCH, "nvcc")} for row in rows]
        needs = [kept | {TORCH: torch} for kept in compiled]
        rows = [msgspec.structs.replace(row, needs=own) for row, own in zip(rows, needs, strict=True)]
    return [_candidate(name, version, version.local, rows, question)._replace(cuda=cuda)]


def _of_every_build(row: ReleaseRow, named: Collection[str] = ()) -> ReleaseRow:
    """What a row of PyPI's build tells of every build: nothing of GPUs, nor what rows of the build itself name."""
    other = HARDWARE | CUDA_PARTS | _DRIVERS | set(named)
    needs = {key: spec for key, spec in row.needs.items() if key not in other}
    own: dict[str, Any] = {key: getattr(row, key) for key in ("name", "versions", "source", "confidence", "note")}
    return ReleaseRow(needs=needs, **own)


def _on_pypi(matrix: Matrix, candidate: Candidate, version: Version, wheels: tuple[WheelRow, ...]) -> Candidate:
    """The candidate with what is known of its files on PyPI."""
    # Rows of its own may be those of another index, unless PyPI lists it.
    listed_there = wheels or not candidate.rows or version.pre or is_published(matrix, candidate.name, version)
    rows = requirements_covering(matrix, candidate.name, version) if listed_there else ()
    partly = frozenset(row.versions for row in rows if speaks_of(row.versions, version) != "all")
    return candidate._replace(wheels=wheels, requirements=rows, partly=partly)


def _candidate(name: str, version: Version, tag: str, rows: Sequence[ReleaseRow], question: Question) -> Candidate:
    here = [row for row in rows if runs_here(row, question.os, question.machine)]
    if any(row.os or row.machine for row in here):  # some are said to be of this system: leave out those of others
        rows = here
    whole = [row for row in rows if speaks_of(row.versions, version) == "all"]
    part = [row for row in rows if row not in whole]
    label = f"{name} {version}+{tag}" if tag else f"{name} {version}"
    return Candidate(name, label, tuple(whole), tuple(part))


@lru_cache(maxsize=1 << 14)  # asked of every package of a plan or an environment
def named_by(name: str, matrix: Matrix) -> frozenset[str]:
    """The packages that rows of ``name`` name."""
    needs = [row.needs for row in matrix.rows_of(name)]
    needs += [row.needs for row in matrix.requirements_by_name.get(name, ())]
    needs += [row.needs for row in matrix.extra_requirements_by_name.get(name, ())]
    return frozenset(chain.from_iterable(needs))


def runs_here(row: ReleaseRow | RequirementRow, os: Os, machine: Machine) -> bool:
    return of_os(row, os) and (not row.machine or machine in row.machine)


def of_os(row: ReleaseRow | RequirementRow, os: Os) -> bool:
    """Programs in WSL are Linux programs."""
    return not row.os or os in row.os or (os == "wsl" and "linux" in row.os)


# PyTorch's releases as candidates: which build a version means here.


class TorchReading(NamedTuple):
    """One release that a version stands for."""

    label: str
    candidates: list[Candidate]
    problem: Fit | None = None  # Why no build, or not the one that was written, is known


def torch_readings(question: Question, version: Version) -> list[TorchReading]:
    """The releases that ``version`` stands for, each with the builds that are meant.

    That is the build of its local tag, those for the CUDA that is named, or the one on PyPI. A pre-release, or somebody
    else's build, is no release; of such a one, and of one newer than the data, the tag may still tell the CUDA.
    """
    start = list(map(str, version.numbers if any(version.numbers[3:]) else version.numbers[:3]))  # 2.5.1.0 is 2.5.1
    released = not version.pre and version.post is None
    rows = [row for row in question.matrix.torch if released and row.version.split(".")[: len(start)] == start]
    if rows:
        find = _tagged if version.local else _for_cuda if question.cuda else _default
        return [_reading(question, row, *find(question, row, version.local)) for row in rows]
    label = question.labels[TORCH].replace("==", " ")
    cuda = cuda_of_label(version.local)
    candidates = [Candidate(TORCH, label, (), cuda=cuda)] if cuda else []
    problem = Fit(verdict="unknown", reason=unknown_release(question, TORCH, version), about=(TORCH,))
    return [TorchReading(label, candidates, problem)]


def _reading(question: Question, row: TorchRow, builds: list[Candidate], problem: Fit | None) -> TorchReading:
    """The release with those builds, of which what is known of the release holds too."""
    exact = parse_version(row.version)
    plain = release_candidates(question, TORCH, exact) if exact else []
    whole = [build._replace(rows=(*build.rows, *plain[0].rows)) for build in builds] if plain else builds
    return TorchReading(f"torch {row.version}", whole, problem)


_Found: TypeAlias = tuple[list[Candidate], Fit | None]


def _tagged(question: Question, row: TorchRow, tag: str) -> _Found:
    """The build of a tag. Where all builds are known, another one is somebody's own, of which nothing is known."""
    if tag == _CPU:
        return [_without_cuda(row, question, tag)], None
    known = builds(row, question.os, question.machine)
    cuda = cuda_of_label(tag)
    found = [build for build in known if cuda and build.cuda == str(cuda)]
    if found:
        meant, exact = _of_build(row, found[0], question), parse_version(row.version)
        if exact and found[0].cuda == default_cuda(row, question):  # which PyPI has under no tag, with its METADATA
            meant = _on_pypi(question.matrix, meant, exact, ())
        return [meant], None
    listed = bool(known) and row.all_builds
    label = f"torch {row.version}"
    reason = f"{label} has no build +{tag}" if listed else f"the matrix knows no build +{tag} of {label}"
    change = f"{label}+{tag_of(known[0].cuda)}" if listed else ""
    reason = f"{reason} for {_where(question)}{_there_are(known)}"
    problem = conclude(question.matrix, "unknown", reason, row, change=change).concerning(TORCH)
    toolkits = question.matrix.rows_for("nvcc", Version(tuple(cuda), scheme=scheme("nvcc"))) if cuda else []
    if toolkits and not any(of_os(one, question.os) for one in toolkits):
        reason = f"CUDA {cuda} is not for {question.os}: {label} has no build +{tag} for it"
        return [], conclude(question.matrix, "incompatible", reason, row, *toolkits).concerning(TORCH, "os")
    if tag.startswith(("rocm", "xpu")):
        unlisted = _without_cuda(row, question, tag)
    else:
        own = cuda if cuda and not listed and may_exist(question.matrix, cuda) else None
        unlisted = Candidate(TORCH, f"{label}+{tag}", (_release(row, question),), cuda=own)
    return [unlisted], problem


def _for_cuda(question: Question, row: TorchRow, _: str) -> _Found:
    known = builds(row, question.os, question.machine)
    wanted = {str(cuda) for cuda in question.cuda}
    found = [_of_build(row, build, question) for build in known if build.cuda in wanted]
    if found:
        return found, None
    majors = {cuda.major for cuda in question.cuda}
    near = [build for build in known if (own := CudaVersion.parse(build.cuda)) and own.major in majors]
    named = ((name, version) for name, versions in question.versions.items() for version in versions)
    needing = (one for name, version in named for one in question.matrix.rows_for(name, version) if "nvcc" in one.needs)
    if near and any(needing):  # the CUDA is that of the toolkit, beside PyTorch's own
        return [_of_build(row, near[0], question)], None
    reason = f"torch {row.version} has no build for {question.labels['cuda']} on {_where(question)}{_there_are(known)}"
    verdict: FitVerdict = "incompatible" if known and row.all_builds else "unknown"
    nearest = f"CUDA {known[0].cuda}" if known else ""
    return [], conclude(question.matrix, verdict, reason, row, change=nearest).concerning(TORCH, "cuda")


def build_on_pypi(question: Question) -> str | None:
    """The build that a version without local tag was taken for, where it is one."""
    versions = question.versions.get(TORCH, ())
    if len(versions) != 1 or versions[0].local or question.cuda:
        return None
    readings = torch_readings(question, versions[0])
    labels = [candidate.label for reading in readings for candidate in reading.candidates]
    return f"{labels[0].partition(' ')[2]}, the wheel on PyPI" if len(labels) == 1 else None


def default_cuda(row: TorchRow, question: Question) -> str | None:
    """CUDA of the wheel on PyPI for the system in question; empty text for a CPU build, None when not known."""
    if question.os == "windows":
        return ""
    if question.os == "macos":
        return None
    return row.default_cuda if question.machine == "x86_64" else row.default_cuda_aarch64


def _default(question: Question, row: TorchRow, _: str) -> _Found:
    cuda, exact = default_cuda(row, question), parse_version(row.version)
    wheels = wheels_of(question.matrix, TORCH, exact) if exact else ()
    if cuda is None and question.os == "macos" and wheels:
        cuda = ""  # where there is no wheel, the rows of the wheels say so
    if cuda is None:
        reason = f"the matrix does not know what the wheel of torch {row.version} on PyPI for {_where(question)} holds"
        return [], conclude(question.matrix, "unknown", reason, row).concerning(TORCH)
    found = [build for build in builds(row, question.os, question.machine) if build.cuda == cuda]
    build = _of_build(row, found[0] if found else TorchBuild(cuda=cuda), question) if cuda else None
    build = build or _without_cuda(row, question, _CPU)
    return [_on_pypi(question.matrix, build, exact, wheels) if exact else build], None


def _where(question: Question) -> str:
    return f"{question.os} {question.machine}"


def _there_are(known: Sequence[TorchBuild]) -> str:
    return f"; there are {', '.join(tag_of(build.cuda) for build in known)}" if known else ""


def _of_build(row: TorchRow, build: TorchBuild, question: Question) -> Candidate:
    default = build.cuda == default_cuda(row, question) and question.machine == "x86_64"
    row_of_build = row if default else build
    bundles = {name: version for name in _LIBRARIES if (version := getattr(row_of_build, name))}
    major = build.cuda.partition(".")[0]
    pinned = bundles if build.os == "linux" and build.pinned else {}  # an environment holds one version of each
    pins = {f"nvidia-{name}-cu{major}": text for name, text in pinned.items()}
    known = _release(row, question)
    release = msgspec.structs.replace(
        known,
        os=(build.os,),
        machine=(build.machine,),
        build=tag_of(build.cuda),
        cuda=build.cuda,
        targets=build.targets,
        needs=known.needs | pins,
        bundles=bundles,
        confidence=min(row.confidence, build.confidence, key=WEAKEST_FIRST.index),
    )
    return Candidate(TORCH, f"torch {row.version}+{tag_of(build.cuda)}", (release,))


def _without_cuda(row: TorchRow, question: Question, tag: str) -> Candidate:
    release = msgspec.structs.replace(_release(row, question), build=tag, cuda="")
    # Where there are CUDA builds for a system, there is a CPU build too.
    if tag == _CPU and (
        builds(row, question.os, question.machine)
        or (question.os in ("linux", "wsl") and default_cuda(row, question) == "")
    ):
        kind: Os = "windows" if question.os == "windows" else "linux"
        release = msgspec.structs.replace(release, os=(kind,), machine=(question.machine,))
    return Candidate(TORCH, f"torch {row.version}+{tag}", (release,))


def _release(row: TorchRow, question: Question) -> ReleaseRow:
    """What holds for every build of a release."""
    needs: dict[str, str] = {}
    if pythons := pythons_with_wheels(question.matrix, row, question.os, question.machine):
        needs["python"] = pythons
    if row.triton and (question.os, question.machine) == ("linux", "x86_64"):
        needs["triton"] = row.triton
    spec = f"=={row.version}"
    return ReleaseRow(name=TORCH, versions=spec, needs=needs, source=row.source, confidence=row.confidence)


# What comes with what was named: JetPack's CUDA, cuDNN and TensorRT; the CUDA of a PyTorch build.


def with_implied(question: Question) -> Question:
    """The question with what its system software and its container bring, where that is not named itself."""
    found: dict[str, Implied] = {}
    systems = tuple(
        System(name, candidate.label, row)
        for name in sorted(SYSTEMS)
        for version in question.versions.get(name, ())[:1]
        for candidate in release_candidates(question, name, version)[:1]
        for row in candidate.rows
    )
    for system in systems:
        for brought, text in system.row.bundles.items():
            version = parse_version(text, scheme(brought))
            # Programs may run in another Python than the system's.
            if version and brought not in question.labels and brought != "python":
                found.setdefault(brought, Implied(system.by, system.label, version, system.row))
    # The JetPack whose L4T was named, where it is that of one alone.
    rows = [
        row
        for version in question.versions.get("l4t", ())
        for row in question.matrix.rows_of("jetpack")
        if covered(row.needs.get("l4t", "<0"), version) != "none"
    ]
    if len({row.versions for row in rows}) == 1 and "jetpack" not in question.labels:
        jetpack = Version(parse_specifier(rows[0].versions).bounds[0].numbers, scheme=scheme("jetpack"))
        found["jetpack"] = Implied("l4t", question.labels["l4t"], jetpack, rows[0])
    container = question.container
    for key, text in container.holds.items() if container else ():
        version = parse_version(text, scheme(key))
        if container and version:
            found.setdefault(key, Implied(CONTAINER, container.label, version, container.row))
    libc = _of_distribution(question)
    if libc and "glibc" not in question.labels:
        found["glibc"] = libc
    cuda = _of_torch(question)
    if cuda and "cuda" not in question.labels:
        found.setdefault("cuda", cuda)
    return question._replace(implied=found, systems=systems, torch_cuda=cuda)


def _of_distribution(question: Question) -> Implied | None:
    """The glibc of the Linux distribution in the container, or else of the one that was named."""
    names = question.matrix.distribution_names
    inside = question.container.holds if question.container else {}
    contained = [(CONTAINER, name, parse_version(text, scheme(name))) for name, text in inside.items() if name in names]
    by = "os" if "os" in question.labels else ""
    named = [(by or name, name, each) for name in sorted(names) for each in question.versions.get(name, ())]
    for told_by, name, version in contained or named:
        for row in question.matrix.rows_for(name, version) if version else ():
            libc = parse_version(row.bundles["glibc"], scheme("glibc"))
            if libc:
                return Implied(told_by, f"{name} {version}", libc, row)
    return None


def _of_torch(question: Question) -> Implied | None:
    readings = [one for version in question.versions.get(TORCH, ()) for one in torch_readings(question, version)]
    builds = [candidate for reading in readings for candidate in reading.candidates]
    if len({candidate.built_with for candidate in builds}) != 1:
        return None
    build = builds[-1]
    cuda = parse_version(build.built_with, scheme("cuda"))
    row = build.rows[0] if build.rows else question.matrix.cuda_rows.get(build.cuda) if build.cuda else None
    return Implied(TORCH, build.label, cuda, row) if cuda and row else None
