"""From the lines of plans to one environment: what is asked twice is joined, and PyTorch brings what it implies."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from envcheck.compat.narrowing import BEYOND, is_open, releases_within
from envcheck.compat.package_needs import exact, release_fits
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.torch import build_of, torch_row
from envcheck.knowledge.specifier import parse_version, speaks_of
from envcheck.knowledge.tables.packages import CondaBuildRow
from envcheck.model.snapshot import Distribution, Environment, Framework, Listing, Planned, inferred
from envcheck.model.versions import CondaBuild, CudaVersion
from envcheck.plans.requirement import one_of

_CUDA_PIN = re.compile(r"==([0-9]{1,2}\.[0-9])(?:\.\*|\.[0-9]{1,4})?")
_PYTHON = re.compile(r"==(3\.[0-9]{1,2})\.\*")
_NO_DISTRIBUTIONS = frozenset({"cuda", "cudnn", "python"})


def settled(items: Iterable[Planned], constraints: Iterable[Planned], undecided: Container[str] = ()) -> list[Planned]:
    """Each package once: its lines joined, and the constraints that concern it added.

    An installed package replaces what a base image holds. Of pins that all have markers that are ``undecided``, by
    their sources, one will count.
    """
    by_name: dict[str, list[Planned]] = {}
    for item in items:
        by_name.setdefault(item.name, []).append(item)
    bound: dict[str, list[Planned]] = {}
    for each in constraints:
        bound.setdefault(each.name, []).append(each)
    found: list[Planned] = []
    for name, asked in by_name.items():
        if not name:
            found += {(each.source, each.asked): each for each in asked}.values()
            continue
        installed = [each for each in asked if each.image is None] or asked
        by_marker = len(installed) > 1 and all(each.source in undecided for each in installed)
        if by_marker and all(each.version for each in installed):
            installed = [one_of(installed, SpecifierSet())]
        joined = _joined([*installed, *bound.get(name, ())])
        if by_marker and joined.problem and not any(each.problem for each in installed):
            joined = msgspec.structs.replace(joined, problem="which of them counts depends on what is not stated")
        found.append(joined)
    return found


def later(there: Planned, asked: Planned) -> Planned:
    """What is there after a later command: pip leaves a release that the command accepts, and replaces any other."""
    if not asked.name or asked.conda is not None or not _meets(there, asked):
        return asked
    together = there.together if asked.version is None else asked.together
    return msgspec.structs.replace(there, extras=tuple(sorted({*there.extras, *asked.extras})), together=together)


def _joined(asked: Sequence[Planned]) -> Planned:
    """One record for several lines about one package: the line that pins it, within the bounds of all."""
    lead = next((each for each in asked if each.version is not None), asked[0])
    if len(asked) == 1:
        return lead
    texts = list(dict.fromkeys(each.bounds for each in asked if each.bounds))
    try:
        bounds = SpecifierSet(",".join(texts))
    except InvalidSpecifier:
        return lead
    problem = next((each.problem for each in asked if each.problem), None)
    version = lead.version if len(texts) == 1 else exact(bounds)
    if version is None and any(each.version for each in asked):
        other = next(each for each in asked if each.bounds not in ("", lead.bounds))
        problem = f"{other.source} asks for {other.asked} and contradicts it"
    build = lead.build if len({each.build for each in asked}) == 1 else None
    return msgspec.structs.replace(
        lead,
        build=build,
        extras=tuple(sorted({extra for each in asked for extra in each.extras})),
        asked=f"{lead.name}{bounds}",
        bounds=str(bounds),
        version=None if problem else version,
        problem=problem,
    )


def as_environment(items: Sequence[Planned], paths: Sequence[str], matrix: Matrix) -> Environment:
    """The environment that would come to be: exact releases as distributions, PyTorch with what its build implies."""
    known = [
        each
        for each in items
        if each.version is not None
        and each.problem is None  # with one, it may not be installed at all
        # Of what an image holds, only frameworks are packages of Python.
        and not each.brings
        and (matrix.has_role(each.name, "framework") if each.image else each.name not in _NO_DISTRIBUTIONS)
    ]
    interpreter = next((each for each in items if each.name == "python"), None)
    family = _PYTHON.fullmatch(interpreter.bounds) if interpreter else None  # conda's python=3.10 is any 3.10
    python = (interpreter.version if interpreter else None) or (family[1] if family else None)
    of_conda = [each for each in known if each.conda is not None and matrix.has_trait(each.name, "distributes-torch")]
    torch = next((each for each in known if each.name == "torch" or each in of_conda), None)
    framework = _torch(torch, items, matrix) if torch else None
    # Another framework from a channel of conda, where a row tells what its build holds.
    of_channels = (each for each in known if each is not torch and CondaBuild.parse(each.conda or "").cuda)
    rows = ((each, _conda_build(each, items, matrix)) for each in of_channels)
    others = (_of_row(each, each.name, row.cuda, row, cpu_only=False) for each, row in rows if row)
    unsure = framework is not None and torch is not None and torch.build is None
    return Environment(
        source="plan",
        key=paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more",
        why="--plan",
        judged=True,
        python=python,
        manager="conda" if any(each.conda is not None for each in items) else None,
        planned=tuple(items),
        # Without the distribution nothing is inferred of a build that a private index may have made.
        distributions=tuple(
            Distribution(
                source=each.source,
                name=each.name,
                version=_with_tag(each),
                build=each.conda or None,
                channel="pip" if each.conda is None else "conda",
            )
            for each in known
            if not (unsure and each is torch)
        ),
        frameworks=Listing(items=(*([framework] if framework else []), *others)),
    )


def _with_tag(item: Planned) -> str:
    """The version, with the local tag of the index for PyTorch (other packages of such an index have none)."""
    version = item.version or ""
    return f"{version}+{item.build}" if item.name == "torch" and item.build and "+" not in version else version


def _torch(item: Planned, items: Sequence[Planned], matrix: Matrix) -> Framework:
    version = _with_tag(item)
    if item.conda is None:
        wheel = Framework(source=item.source, name="torch", version=version)
        return wheel if is_published(version, item, matrix) else msgspec.structs.replace(wheel, version=item.version)
    build = CondaBuild.parse(item.conda)
    chosen = {each.selector for each in matrix.conda_cpu_builds if item.name in each.names} & {e.name for e in items}
    cpu = build.cpu or item.name == "pytorch-cpu" or (not item.conda and bool(chosen))
    row = None if cpu else _conda_build(item, items, matrix)
    selecting = (row for row in matrix.conda_builds if row.name == item.name and not row.selector_elsewhere)
    selected = next(filter(None, (_cuda_of(row, item, items) for row in selecting)), None)
    cuda = row.cuda if row else str(build.cuda) if build.cuda else selected
    return _of_row(item, "torch", None if cpu else cuda, row, cpu_only=True if cpu else False if cuda else None)


def _of_row(
    item: Planned, name: str, cuda: str | None, row: CondaBuildRow | None, *, cpu_only: bool | None
) -> Framework:
    return Framework(
        source=item.source,
        name=name,
        version=item.version,
        cuda=cuda,
        cpu_only=cpu_only,
        gpu_code=row.targets if row else None,
        read={"gpu_code": inferred(row.id)} if row else {},
    )


def _conda_build(item: Planned, items: Sequence[Planned], matrix: Matrix) -> CondaBuildRow | None:
    """The row of the channel's build that the build string, or a package that selects the CUDA, names."""
    version = parse_version(item.version or "")
    return next(
        (
            row
            for row in matrix.conda_builds
            if row.name == item.name
            and version is not None
            and speaks_of(row.versions, version) == "all"
            and (re.fullmatch(row.builds, item.conda or "") or _cuda_of(row, item, items) == row.cuda)
        ),
        None,
    )


def _cuda_of(row: CondaBuildRow, item: Planned, items: Sequence[Planned]) -> str | None:
    """The CUDA that the row's selector is pinned to; None where it does not choose the item's build."""
    if item.conda or not row.selector or (row.selector_elsewhere and item.channels[:1] != (row.channel,)):
        return None
    pins = (_CUDA_PIN.fullmatch(each.bounds) for each in items if each.name == row.selector)
    return next((pin[1] for pin in pins if pin), None)


def with_torch_decided(items: Sequence[Planned], matrix: Matrix) -> list[Planned]:
    """The items, with PyTorch at the release that bounds such as ``>=2.8.0,<2.9`` leave of the known ones; from a
    channel of conda at the newest patch release of the ``pytorch=1.12`` or ``>=2.2,<2.3`` that a file asks for: conda
    takes the newest that goes with the rest. pip finds it there, and installs none beside it.
    """
    family = [each for each in items if each.version and matrix.has_trait(each.name, "released-with-torch")]
    found = list(items)
    for place, item in enumerate(items):
        if item.version or item.problem or not item.bounds or not matrix.has_trait(item.name, "distributes-torch"):
            continue
        known = releases_within(matrix, "torch", item.bounds, item.as_of)
        if is_open(item):
            decided = len(known) == 1 and not SpecifierSet(item.bounds).contains(BEYOND)
        else:
            fits = (release_fits(matrix, each.name, each.version or "", "torch", known[-1]) for each in family if known)
            one_series = len({version.rpartition(".")[0] for version in known}) == 1
            decided = item.conda is not None and one_series and not any(fit is not None and fit.bad for fit in fits)
        if decided:
            found[place] = msgspec.structs.replace(item, version=known[-1], newest=is_open(item))
    of_conda = (one for one in found if one.conda is not None and matrix.has_trait(one.name, "distributes-torch"))
    there = next(of_conda, None)
    return [one for one in found if not (there and one.name == "torch" and one is not there and _meets(there, one))]


def _meets(there: Planned, asked: Planned) -> bool:
    """Whether pip leaves what is there in the place of a requirement; a pin without a local tag accepts every tag."""
    another = asked.problem is not None or there.version is None or (asked.version is not None and bool(asked.build))
    return not another and SpecifierSet(asked.bounds).contains(there.version or "", prereleases=True)


def is_published(version: str, item: Planned, matrix: Matrix) -> bool:
    """Whether the build that an index's tag leads to exists, as far as the matrix tells."""
    row, tag = torch_row(matrix, version), version.partition("+")[2]
    cuda = CudaVersion.from_tag(tag) if tag.startswith("cu") else None
    if row is None or cuda is None or not item.build:
        return True
    return build_of(matrix, row.version, cuda, "linux", "x86_64") is not None
