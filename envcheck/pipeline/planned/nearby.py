"""What a plan that does not fit may start from instead: builds of PyTorch, of pip's or of a channel of conda, and other
tags of the image that it is built from, nearest first, of which the matrix knows what they hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from envcheck.compat.narrowing import contains
from envcheck.compat.package_needs import release_for
from envcheck.compat.requirements import declared
from envcheck.compat.wheels import published
from envcheck.knowledge.images import image_of
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.relations.torch import builds, tag_of
from envcheck.knowledge.specifier import numbers_in
from envcheck.knowledge.tables import is_named
from envcheck.knowledge.tables.software import TorchRow
from envcheck.model.snapshot import Planned
from envcheck.pipeline.planned.checks import is_torch
from envcheck.plans.readers.dockerfile import of_image
from envcheck.plans.sheet import Sheet
from envcheck.text.lazy import lazy_pattern

_BEGINS = lazy_pattern(r"(?:\\.|[^\\()\[\]?*+|.])*")
REQUIREMENTS = (".txt", ".in", ".pip")  # What files are called that may name an index in a line of its own
_NUMBER = lazy_pattern(r"[0-9]{1,9}")

Runs = Callable[[str, str], bool]  # Whether a release of a component may run on the machine


class Start(NamedTuple):
    """The entries of a plan that starts from something else."""

    entries: Sequence[Planned]
    tag: str | None = None  # Local tag of its PyTorch, if another index of PyTorch's own serves it
    image: str = ""  # The other image


def torch_of(entries: Iterable[Planned] | None) -> Planned | None:
    """The PyTorch that pip installs."""
    return next((each for each in entries or () if each.name == "torch" and each.conda is each.image is None), None)


def of_pip(entries: Sequence[Planned], pinned: set[str | None], matrix: Matrix, runs: Runs) -> Iterator[Start]:
    """With another build of PyTorch, those that something requires first, and what its index serves besides."""
    torch = torch_of(entries)
    if torch is None:
        return
    own = [*filter(None, (torch.version, *torch.alternatives))]
    there, placed = (own[-1] if own else "").partition("+")[0], torch.file.endswith(REQUIREMENTS) or not torch.line
    stays = torch.build == "" and not placed  # there is no line for an index
    found = list[tuple[tuple[bool, bool], str, str]]()
    for row in _nearest(there, matrix.torch):
        known, default = [tag_of(build.cuda) for build in builds(row)], tag_of(row.default_cuda or "")
        older = numbers_in(row.version) < numbers_in(there)
        for tag in sorted(known, key=lambda tag: (tag != torch.build, tag != default, -known.index(tag))):
            local = f"+{tag}" if own and "+" in own[-1] else ""
            served = "" if not local and not torch.build and tag == default else tag
            key = (row.version not in pinned, stays and (bool(served) or older))
            found.append((key, f"{row.version}{local}", served))
    for _, version, served in sorted(found, key=lambda each: each[0]):
        if runs("torch", f"{version}+{served}" if served and "+" not in version else version):
            beside = [each for each in entries if each.build and each.build == torch.build and each is not torch]
            moved = {each.name for each in beside if matrix.has_trait(each.name, "on-torch-index")}
            others = (replace(each, build=served) if each.name in moved else each for each in entries)
            yield Start([_at(each, version, served) if each is torch else each for each in others], served)


def of_conda(entries: Sequence[Planned], matrix: Matrix) -> Iterator[Start]:
    """With another build of PyTorch from the channel, by the package that chooses its CUDA."""
    torch = next((each for each in entries if each.conda is not None and is_torch(each, matrix)), None)
    if torch is None:
        return
    rows = [row for row in matrix.conda_builds if row.name == torch.name and row.selector]
    for version in (each.version for each in _nearest(torch.version or "", matrix.torch)):
        for row in (row for row in rows if contains(row.versions, version)):
            chosen = {torch.name: version, row.selector: row.cuda}
            for each in entries:
                beside = each.conda is not None and matrix.has_trait(each.name, "released-with-torch")
                pin = release_for(matrix, each.name, "torch", version) if beside and version != torch.version else None
                chosen |= {each.name: pin.removeprefix("==")} if pin else {}
            if row.selector in {each.name for each in entries}:
                yield Start(
                    [
                        replace(_at(each, chosen[each.name]), conda="") if each.name in chosen else each
                        for each in entries
                    ]
                )


def of_images(entries: Sequence[Planned], markers: Mapping[str, str], matrix: Matrix, runs: Runs) -> Iterator[Start]:
    """With another tag of the image, where what it holds may run."""
    old = next((each for each in entries if each.image), None)
    others = [each for each in entries if old and each.image != old.image]
    for image in _tags(old.image or "", markers, matrix) if old else ():
        items = [*of_image(Sheet(old.file, "", matrix, markers), image, old.line or 1)] if old else []
        held = ((each.name, (each.version or "")) for each in items if each.name in ("torch", "cuda"))
        if all(runs(*each) for each in held):
            names = {each.name for each in others}
            yield Start([*(each for each in items if each.name not in names), *others], image=image)


def _tags(image: str, markers: Mapping[str, str], matrix: Matrix) -> Iterator[str]:
    """The image in other tags that rows cover and that are known to be there."""
    own = image_of(matrix, image)
    if own is None or own.row is None:
        return
    (name, _, tag), row = own.name.partition(":"), own.row
    stated = re.fullmatch(row.tags, tag)
    parts = [part for part, value in (stated.groupdict() if stated else {}).items() if value]
    texts = list[dict[str, str]]()
    if "torch" in parts and row.each_build:
        for torch in (each for each in matrix.torch if contains(row.each_build, each.version)):
            needs = declared(matrix, "torch", torch.version, markers)
            cudnn = next(
                (its.removeprefix("==").partition(".")[0] for each, its in needs.items() if "cudnn" in each), ""
            )
            texts += ({"torch": torch.version, "cuda": build.cuda, "cudnn": cudnn} for build in builds(torch))
    elif [part for part in parts if part != "ubuntu"] == ["cuda"] and stated:
        if tag == row.written.format(cuda=stated["cuda"]):
            texts = [{"cuda": release} for each in matrix.cuda_rows.values() for release in each.releases]
    elif len(parts) == 1:
        texts = [{parts[0]: str(each)} for each in published(matrix, canonical(parts[0]))]
    found = {_with_parts(stated, {**stated.groupdict(), **each}) for each in texts} if stated else set[str]()
    rows = [each for each in matrix.images if is_named(name, each.names)]
    begin = _begin(row.tags)
    found |= {_begin(each.tags) + tag.removeprefix(begin) for each in rows if begin and tag.startswith(begin)}
    known = [each for each in found if any(re.fullmatch(row.tags, each) for row in rows)]
    numbers = {each: tuple(map(int, _NUMBER.findall(each))) for each in [*known, tag]}
    known.sort(key=numbers.__getitem__)
    later = [each for each in known if numbers[each] > numbers[tag]]
    older = [each for each in known if numbers[each] < numbers[tag]]
    yield from (f"{name}:{each}" for each in (*later, *reversed(older)))


def _with_parts(stated: re.Match[str], texts: Mapping[str, str | None]) -> str:
    """The tag with other versions of its parts."""
    tag = stated[0]
    for part in sorted((part for part, value in texts.items() if value), key=stated.start, reverse=True):
        tag = f"{tag[: stated.start(part)]}{texts[part]}{tag[stated.end(part) :]}"
    return tag


def _begin(pattern: str) -> str:
    """The text that a pattern begins with."""
    found = _BEGINS.match(pattern)
    return re.sub(r"\\(.)", r"\1", found[0]) if found else ""


def _nearest(there: str, known: Iterable[TorchRow]) -> Iterator[TorchRow]:
    """The release and later ones ascending, then older ones descending."""
    own, rows = numbers_in(there), [*known]
    later = [each for each in rows if own and numbers_in(each.version) >= own]
    yield from (*later, *(each for each in reversed(rows) if each not in later))


def _at(item: Planned, version: str, build: str | None = None) -> Planned:
    """The entry pinned to a version."""
    pin = f"=={version}"
    moved = replace(item, version=version, bounds=pin, asked=f"{item.name}{pin}", problem=None, refused=None)
    return replace(moved, build=item.build if build is None else build, alternatives=())
