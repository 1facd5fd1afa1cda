"""Find components, versions and GPU models in a line, however people and programs write them.

The names are those of the matrix's rows, and how people say them (``names.toml``). What a sentence says of another
machine, of a wish or of a requirement is no fact about this one: such mentions are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from envcheck.importers.prose.hedges import before_error, clauses, is_asked_for, is_list
from envcheck.importers.wording import text_of, wording
from envcheck.knowledge.load import load_matrix
from envcheck.text.lazy import lazy_pattern

LONGEST = 1_000  # Most characters of a line in which mentions are looked for

TORCH_CUDA = "torch.version.cuda"  # The component of a mention that tells what PyTorch was built with

DRIVER_CUDA = "driver.cuda"  # The component of a mention that tells the newest CUDA that the driver supports

_NO_SPEECH = frozenset(
    {"kernel-module-open", "torch-extension", "tensorrt-engine", "nvcc", "caffe", "l4t", "jetpack", "cuda-toolkit"}
)
"""Names in the matrix that stand for more than a version that people state, or that other readers know."""

_BRANCHES = ("branch", "package", "of_branch", "this_branch")  # The groups of a driver's branch, without a release

_TAG = lazy_pattern(r"[ (/,+_-]{1,3}(?:with |for |and |using |built with |compiled with )?cu(?P<tag>[0-9]{2,3})\b")
_USED_FOR = lazy_pattern(r"\bused (?:to build|for building|to compile) $", re.IGNORECASE)
"""What stands before the name of something whose part's version follows: "ROCM used to build PyTorch: 5.7"."""
_WORKS = lazy_pattern(r"[`'\"*)]{0,3} (?:works?|worked|is fine)(?: (?:fine|well|too))?(?=[,;.)\s]*$)", re.IGNORECASE)
"""What follows a version that works, in a sentence beside one that does not."""

_OF_PROJECT = lazy_pattern(r"[A-Za-z]{2}")  # Words between a name and its version, as of "ort version: 1.20"
_OF_DRIVER = lazy_pattern(r"\bNVIDIA-SMI\b|\bDriver Version: [0-9.]{5,12} {2,}")
"""The head of nvidia-smi's table, whose CUDA is the newest that the driver supports."""

_CHANGES = ("graded", "grading", "updat", "switch", "bumped")  # One of these stands in each sentence about a change
_DIGIT, _DOTTED = lazy_pattern(r"[0-9]"), lazy_pattern(r"[0-9]\.[0-9]")
_NAMES_A_GPU = lazy_pattern(r"[0-9]|titan|jetson|dgx|agx|orin", re.IGNORECASE)
_OF_GEFORCE = lazy_pattern(r"[1-5][0-9]{2}0")
"""What parts of a line need: one that names a component, any version, a GPU, or a GeForce by its number alone."""
_UNNUMBERED = lazy_pattern(r"titan|jetson|\bdgx\b")  # The GPUs and machines whose names have no digit


class Mention(NamedTuple):
    """A component and its version, as a line says them."""

    component: str
    version: str
    labelled: bool  # Whether the line is a list or a label, not a sentence
    cuda: str | None = None  # The CUDA version of the build, where it is said beside
    exact: bool = False  # Whether the package itself is named, not the project or its version
    cpu: bool = False  # Whether it is said beside that the build is for the CPU


class NamedGpu(NamedTuple):
    model: str
    labelled: bool
    capability: str | None = None


class LineMentions(NamedTuple):
    mentions: tuple[Mention, ...]
    gpus: tuple[NamedGpu, ...]
    capability: str | None  # The compute capability of a GPU whose model the line does not name


def mentions_in(line: str, whole: str | None = None) -> LineMentions:
    """Everything that a line mentions; ``whole``, the text around it in lower case, spares names that it lacks."""
    return LineMentions(tuple(mentions(line, whole)), tuple(gpus(line)), capability_of_gpu(line))


def speaks_of_field(text: str) -> bool:
    """Whether a text has a word of this field at all."""
    return wording("of-this-field").search(text.lower()) is not None


def may_mention(line: str) -> bool:
    """Whether it is worth looking for mentions in a line: versions have a digit, and so have most GPUs."""
    text = line[:LONGEST].lower()
    numbered = _DIGIT.search(text) or _UNNUMBERED.search(text)
    return numbered is not None and wording("of-component").search(text) is not None


@lru_cache(maxsize=1)  # asked for the versions of a line, then for its GPUs
def _of_a_person(line: str) -> str:
    """What a line says before the error that it quotes; empty where a program speaks."""
    text = before_error(line[:LONGEST])
    return "" if wording("program-speaks").search(text) else text


def mentions(line: str, whole: str | None = None) -> Iterator[Mention]:
    """The components and versions that a line states of this machine."""
    text = _of_a_person(line)
    if "ersion of" in text:  # "the version of torch is 2.0.1", "updated torch from 2.0 to 2.1"
        text = wording("version-before-name").sub(r"\g<name> version\g<link>", text)
    if " to " in text and any(map(text.lower().__contains__, _CHANGES)) and not wording("change-helped").search(text):
        text = wording("version-changed").sub(r"; \g<name> \g<version>; ", text)
    listed = is_list(text)
    for part in clauses(text, listed=listed):
        if not _DIGIT.search(part) or (not listed and wording("other-environment").match(part)):
            continue
        if _DOTTED.search(part):
            yield from _with_versions(part, _names(whole), listed=listed)
        for found in wording("driver-release").finditer(part) if wording("of-driver").search(part) else ():
            if not ((not listed and _is_hedged(part)) or is_asked_for(part, found.start())):
                branch = next(filter(None, map(found.__getitem__, _BRANCHES)), None)
                release = found["version"] or found["bare"] or found["before"] or branch
                if release is None:  # Windows shows 32.0.15.7216: the last five digits are 572.16
                    digits = found["windows"].replace(".", "")[-5:]
                    release = f"{digits[:3]}.{digits[3:]}"
                yield Mention("driver", release, listed or _is_labelled(found))


@lru_cache(maxsize=1)  # asked for each component of a part
def _is_hedged(part: str) -> bool:
    return wording("another-machine").search(part) is not None


def _with_versions(part: str, names: re.Pattern[str], *, listed: bool) -> Iterator[Mention]:
    """The components whose versions have a dot, as all but those of a driver's branch."""
    if build := wording("cuda-of-torch").search(part):
        yield Mention(TORCH_CUDA, build["cuda"], labelled=True)
    if pair := wording("cuda-and-cudnn").search(part):
        yield Mention("cuda", pair["cuda"], labelled=True)
        if pair["cudnn"]:
            yield Mention("cudnn", pair["cudnn"], labelled=True)
    rest = wording("cuda-and-cudnn").sub(" ", wording("cuda-of-torch").sub(" ", part))
    if shown := wording("cuda-of-driver").search(rest) if "smi" in part or "river" in part else None:
        yield Mention(DRIVER_CUDA, next(filter(None, shown.groups())), labelled=True)
        rest = wording("cuda-of-driver").sub(" nvidia-smi ", rest)
    for found in names.finditer(rest):
        labelled, component = listed or _is_labelled(found), _component(found["name"].lower())
        of_driver = component == "cuda" and _OF_DRIVER.search(rest) is not None
        of_part = _USED_FOR.search(rest, max(0, found.start() - 20), found.start())
        works = not listed and _WORKS.match(rest, found.end())
        hedged = not labelled and _is_hedged(part)
        if hedged or of_driver or of_part or works or is_asked_for(rest, found.start()):
            continue
        cuda = _cuda_beside(rest, found) if component == "torch" else None
        cpu = component == "torch" and cuda is None and wording("build-for-cpu").match(rest[found.end() :]) is not None
        exact = found["name"] == component and not _OF_PROJECT.search(found["link"])
        yield Mention(component, found["version"], labelled, cuda, exact, cpu)


def gpus(line: str) -> Iterator[NamedGpu]:
    """The GPU models that a line says are here, in its order."""
    text = _of_a_person(line)
    listed = is_list(text)
    for part in clauses(text, listed=listed):
        found = [each for each in models(part) if not is_asked_for(part, each[0])]
        if found and not listed:
            own = part.rstrip("?\uff1f ") if wording("own-machine").search(part) else part
            if wording("another-machine").search(wording("asked-whether-it-runs").sub("", own)):
                continue
        capability = wording("compute-capability").search(part) if len({name for _, name in found}) == 1 else None
        for _, name in found:
            yield NamedGpu(name, listed, f"{capability[1]}.{capability[2]}" if capability else None)


def capability_of_gpu(line: str) -> str | None:
    """The compute capability that a line without a model states of a GPU."""
    text = line[:LONGEST]
    lowered = text.lower()
    if not any(map(lowered.__contains__, ("cap", "cc", "arch"))) or wording("program-speaks").search(text):
        return None
    for part in clauses(text, listed=is_list(text)):
        found = wording("compute-capability").search(part)
        if not found or wording("another-machine").search(part) or is_asked_for(part, found.start()):
            continue
        if wording("gpu-here").search(part):
            return f"{found[1]}.{found[2]}"
    return None


def _is_labelled(found: re.Match[str]) -> bool:
    return re.search(r"[:=|]", found[0]) is not None


def _cuda_beside(part: str, found: re.Match[str]) -> str | None:
    """The CUDA version that is said of the build just mentioned."""
    rest = part[found.end() :]
    if tag := _TAG.match(rest):
        return f"{tag['tag'][:-1]}.{tag['tag'][-1]}"
    build = wording("cuda-of-build").match(rest)
    return build["cuda"] or build["of_conda"] if build else None


@lru_cache(maxsize=1_000)  # few are said, and often
def _component(spoken: str) -> str:
    key = re.sub(r"[ _]", "-", spoken)
    if key in _exact():
        return key
    return next(row.name for row in load_matrix().spoken if re.fullmatch(row.pattern, spoken, re.IGNORECASE))


@cache
def _exact() -> frozenset[str]:
    """The matrix's own names of components."""
    return frozenset(load_matrix().releases_by_name.keys() - _NO_SPEECH - {row.name for row in load_matrix().spoken})


@lru_cache(maxsize=8)
def _names(whole: str | None) -> re.Pattern[str]:
    known = (name for name in _exact() if whole is None or all(map(whole.__contains__, name.split("-"))))
    exact = (re.escape(name).replace(r"\-", "[-_]") for name in known)
    spellings = (row.pattern for row in load_matrix().spoken)
    either = "|".join(sorted((*spellings, *exact), key=len, reverse=True))
    return re.compile(
        rf"(?<![\w./+-])(?P<name>{either})(?P<link>{text_of('between-name-and-version')})"
        rf"(?P<version>{text_of('version')}){text_of('after-version')}",
        re.IGNORECASE | re.ASCII,
    )


_LAPTOP = lazy_pattern(r"[ -]?(?:laptop|mobile)\b", re.IGNORECASE)
_OF_GPUS = lazy_pattern(r"\b(?:GPUs?|NVIDIA|Tesla|card|nodes?|cluster|cuda)\b", re.IGNORECASE)
_SHORT, _NEAR = 3, 40


def models(part: str) -> Iterator[tuple[int, str]]:
    """The models that a part of a line names, with the place of each."""
    for found in wording("gpu-model").finditer(part) if _NAMES_A_GPU.search(part) else ():
        if found["computer"]:
            continue
        name, short = found[0].strip(" -"), found["short"]
        if short and short == name and name[-1:] in "sS" and load_matrix().find_gpu(name) is None:
            name = short = name[:-1]  # several: "a node with H100s"
        if (
            short
            and len(short) <= _SHORT
            and not (_OF_GPUS.search(part) or wording("gpu-owned").search(part[: found.start()][-_NEAR:]))
        ):
            continue
        if (short or found["jetson"]) and load_matrix().find_gpu(name) is None:
            continue
        yield found.start(), name if short else " ".join(re.split(r"[ -]+", name))
    for found in wording("geforce-by-number").finditer(part) if _OF_GEFORCE.search(part) else ():
        number = next(text for text in found.groups() if text)
        if load_matrix().find_gpu(number):
            laptop = " Laptop GPU" if _LAPTOP.match(part[found.end() :]) else ""
            yield found.start(), f"{'RTX' if number[0] in '2345' else 'GTX'} {number}{laptop}"


def same_model(name: str) -> str:
    """What two ways to write one model have in common."""
    row = load_matrix().find_gpu(name)
    return row.name if row else name.lower()
