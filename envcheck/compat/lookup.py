"""What the matrix knows of one component: the pages of ``envcheck matrix show``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, get_args

import msgspec

from envcheck.compat.containers import REGISTRY, known_containers, read_container
from envcheck.compat.question import CONTAINER, exactly, listed, readable
from envcheck.compat.reading import gpu_of, spelled
from envcheck.compat.wheels import covering, gap_of, published, requirements_covering
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import COMPILERS, canonical, scheme
from envcheck.knowledge.performance.expected import peak
from envcheck.knowledge.relations.driver import architecture_of, branch_of, module_supports
from envcheck.knowledge.relations.torch import pythons_with_wheels, tag_of
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables import Os, Row
from envcheck.knowledge.tables.hardware import Precision
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.components import Component
from envcheck.model.versions import DriverRelease, Flavour
from envcheck.sources import Source

_Record = tuple[Row, dict[str, Any]]

_NOT_FACTS = frozenset({"source", "confidence", "note", "all_builds"})


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a component."""

    component: str  # As it was asked: ``torch==2.5.1``
    known: tuple[str, ...] = ()  # The versions or names that the matrix has, when none was asked for
    missing: str = ""  # Why nothing is known of the version that was asked for, and which ones are near
    facts: tuple[dict[str, Any], ...] = ()
    """One record for each row about it. Numbers are in base units: bytes, bytes per second, FLOP per second."""
    sources: tuple[Source, ...] = ()


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A component that rows of the matrix are about."""

    name: str  # As it is asked for
    rows: int  # How many rows are about it
    read: str  # The newest day on which a source of them was read


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the matrix has rows about."""

    components: tuple[Listed, ...]  # By name


def overview(matrix: Matrix) -> Overview:
    """Every component with rows of its own."""
    rows: dict[str, list[Row]] = {
        "gpu": [*matrix.gpus, *matrix.capabilities],
        "cuda": [*matrix.cuda],
        "driver": [*matrix.drivers],
        "torch": [*matrix.torch],
        "mig": [*matrix.migs],
        CONTAINER: [row for row in matrix.images if any(name.startswith(REGISTRY) for name in row.names)],
    }
    for names in (matrix.releases_by_name, matrix.wheels_by_name, matrix.requirements_by_name):
        for name, own in names.items():
            rows.setdefault(name, []).extend(own)
    found = [
        Listed(name=name, rows=len(own), read=max((source.read for source in matrix.cite(*own)), default=""))
        for name, own in sorted(rows.items())
        if own
    ]
    return Overview(components=tuple(found))


def look_up(matrix: Matrix, component: Component) -> Page | None:
    """What is known of a component, with an exact version or without one; None when that is nothing."""
    name = canonical(component.name)
    if component.bounds and component.exact is None:
        how = f"write {component.name}==VERSION, or {component.name} alone for the known ones"
        raise UsageError(f"{str(component)!r}: {how}")
    if not component.bounds:
        known = _known(matrix, name)
        return Page(component=name, known=tuple(known)) if known else None
    text = spelled(name, component).exact or ""
    version = parse_version(text, scheme(name))
    gap = gap_of(matrix, name, version) if version else None
    if version and gap:  # what rows say of those around it need not hold for it
        start = version.numbers[:2]
        series = [str(one) for one in published(matrix, name) if one.numbers[:2] == start]
        reason = f"PyPI lists no release {name} {version}: {gap.older} is followed by {gap.newer}."
        reason += f" The series {'.'.join(map(str, start))} has {listed(series)}." if series else ""
        return Page(component=str(component), missing=reason, sources=matrix.cite(*gap.rows))
    # What has a table of its own needs a row there; rows of releases then add to it.
    finder = _FINDERS.get(name)
    own = list(finder(matrix, text)) if finder else []
    records = [] if finder and not own else own + _releases(matrix, name, text)
    if not records:
        near = _near(matrix, name, version) if version else ""
        reason = f"The matrix does not know {component}; {near}."
        return Page(component=str(component), missing=reason) if near else None
    rows = [row for row, _ in records]
    return Page(component=str(component), facts=tuple(facts for _, facts in records), sources=matrix.cite(*rows))


def _near(matrix: Matrix, name: str, version: Version) -> str:
    """What is known on both sides of a version that is not; empty text where that is nothing."""
    known = sorted(_starts(matrix, name))
    if any(start == version.numbers for start, _ in known):
        return "PyPI lists it, and no row says more"
    older = [text for start, text in known if start < version.numbers][-1:]
    newer = [text for start, text in known if start > version.numbers][:1]
    if older and newer:
        return f"the nearest that it knows are {older[0]} and {newer[0]}"
    return "".join(f"the newest that it knows is {text}" for text in older) + "".join(
        f"the oldest that it knows is {text}" for text in newer
    )


def _starts(matrix: Matrix, name: str) -> Iterator[tuple[tuple[int, ...], str]]:
    """The known releases, or else the ranges that rows cover: where each begins, and the text for it."""
    releases = published(matrix, name)
    yield from ((one.numbers, str(one)) for one in releases)
    for text in [] if releases else _known(matrix, name):
        for spec in text.split("|") if re.match("[=<>~!]", text) else [f"=={text}"]:
            with suppress(ValueError):  # of what is no version, as the name of a GPU, there is none
                bounds = [bound for bound in parse_specifier(spec).bounds if bound.operator in ("==", ">=", ">")]
                yield from ((bound.numbers, readable("", spec).strip()) for bound in bounds[:1])


def _facts(row: Row, **more: Any) -> _Record:
    """A row's own fields, those that say something, and what follows from other rows."""
    own = {key: value for key, value in msgspec.to_builtins(row).items() if key not in _NOT_FACTS}
    note = {"note": row.note} if row.note else {}
    doubt = {} if row.confidence == "high" else {"confidence": row.confidence}
    return row, own | {key: value for key, value in more.items() if value not in (None, [], {}, "")} | note | doubt


def _torch(matrix: Matrix, text: str) -> Iterable[_Record]:
    version = parse_version(text)
    start = list(map(str, version.numbers)) if version else []
    for row in matrix.torch:
        if version and row.version.split(".")[: len(start)] == start and not version.pre:
            exact, pairs = parse_version(row.version), defaultdict[str, dict[str, None]](dict)
            # The packages that name just this release, as torchvision does, and their versions.
            for tied in (each for each in matrix.releases if each.needs.get("torch", "").startswith("==")):
                if exact and covered(tied.needs["torch"], exact) == "all":
                    pairs[tied.name][tied.versions] = None
            record, facts = _facts(row, pairs={name: "|".join(specs) for name, specs in pairs.items()})
            if version.local:  # else the rows of PyPI's wheels tell it
                facts["pythons"] = pythons_with_wheels(matrix, row)
            facts["builds"] = [
                {"build": tag, "os": build.os, "machine": build.machine, "targets": list(build.targets)}
                | ({} if build.confidence == "high" else {"confidence": build.confidence})
                for build in row.builds
                if (tag := tag_of(build.cuda)) and version.local in ("", tag)
            ]
            yield record, facts


def _gpu(matrix: Matrix, text: str) -> Iterable[_Record]:
    gpu = gpu_of(matrix, exactly("gpu", text))
    if gpu is None:
        shared = matrix.find_shared_name(text)
        if shared:
            yield _facts(shared)
        return
    capability, architecture = matrix.capability_rows.get(gpu.capability), architecture_of(matrix, gpu.capability)
    having = [row.version for row in matrix.cuda if gpu.capability.sm in row.targets]
    row = gpu.model or capability
    if row is None:
        return
    own = capability.first_branch if capability else None
    flavours: tuple[Flavour, ...] = get_args(Flavour)
    precisions: tuple[Precision, ...] = get_args(Precision)
    peaks = {one: top for one in precisions if gpu.model and (top := peak(matrix, gpu.model, one))}
    yield _facts(
        row,
        peaks={one: top.value for one, top in peaks.items()},
        peaks_by_formula=[one for one, top in peaks.items() if top.basis == "formula"],
        architecture=architecture.name if architecture else None,
        first_driver_branch=own or (architecture.first_branch if architecture else None),
        last_driver_branch=architecture.last_branch if architecture else None,
        kernel_modules=[one for one in flavours if module_supports(matrix, gpu.capability, one, model=gpu.model).ok],
        first_cuda=having[0] if having and having[0] != matrix.cuda[0].version else None,
        last_cuda=having[-1] if having and having[-1] != matrix.cuda[-1].version else None,
    )


def _cuda(matrix: Matrix, text: str) -> Iterable[_Record]:
    version = parse_version(text, scheme("cuda"))
    for row in matrix.cuda if version else ():
        own = parse_version(row.version)
        if version and own and all(one == other for one, other in zip(version.numbers, own.numbers, strict=False)):
            speaking = [str(one.branch) for one in matrix.drivers if one.cuda == row.version and one.os == "linux"]
            nvcc = [one for one, _ in _releases(matrix, "nvcc", row.version) if isinstance(one, ReleaseRow)]
            compilers = {key: spec for one in nvcc for key, spec in one.needs.items() if key in COMPILERS}
            yield _facts(row, spoken_by_driver_branches=speaking, host_compilers=compilers)


def _driver(matrix: Matrix, text: str) -> Iterable[_Record]:
    release = DriverRelease.parse(text)
    systems: tuple[Os, ...] = ("linux", "windows")
    for os in systems:
        row = branch_of(matrix, release, os) if release else None
        if row is not None:
            supported = [
                one.name
                for one in matrix.architectures
                if os == "linux" and (one.first_branch or 0) <= row.branch <= (one.last_branch or row.branch)
            ]
            yield _facts(row, os=os, generations=supported)


def _releases(matrix: Matrix, name: str, text: str) -> list[_Record]:
    version = parse_version(text, scheme(name))
    if version is None:
        return []
    rows = [row for row in matrix.rows_of(name) if speaks_of(row.versions, version) != "none"]
    if version.local:
        return [_facts(row) for row in rows if row.build in ("", version.local)]
    wheels = covering(matrix.wheels_by_name.get(name, ()), version)
    return [_facts(row) for row in (*rows, *wheels, *requirements_covering(matrix, name, version))]


def _known(matrix: Matrix, name: str) -> list[str]:
    by_table: dict[str, list[str]] = {
        "torch": [row.version for row in matrix.torch],
        "gpu": [row.name for row in matrix.gpus],
        "cuda": [row.version for row in matrix.cuda],
        "nvcc": [str(version) for version in matrix.toolkits],
        "driver": [str(row.branch) for row in matrix.drivers if row.os == "linux"],
        "mig": list(dict.fromkeys(profile for row in matrix.migs for profile in row.profiles)),
        CONTAINER: known_containers(matrix),
    }
    further = [f"{row.versions}+{row.build}" if row.build else row.versions for row in matrix.rows_of(name)]
    further = further or [row.versions for row in matrix.wheels_by_name.get(name, ())]
    return by_table.get(name) or list(dict.fromkeys(further))


_FINDERS: dict[str, Callable[[Matrix, str], Iterable[_Record]]] = {
    "torch": _torch,
    "gpu": _gpu,
    "cuda": _cuda,
    "nvcc": _cuda,
    "driver": _driver,
    "mig": lambda matrix, text: [_facts(row) for row in matrix.migs if text.lower() in row.profiles],
    CONTAINER: lambda matrix, text: (
        [] if isinstance(found := read_container(matrix, text), str) else [_facts(found.row, holds=dict(found.holds))]
    ),
}
