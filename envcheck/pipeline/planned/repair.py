"""``--fix-plan``: the nearest releases with which a plan fits, judged before they are told, as changes of its lines.

First only what does not fit moves, then PyTorch: its releases nearest to the pinned one, in each build that an index
has, with what goes with it. What a lock file pins, the tool that wrote it must change.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from envcheck.compat.answer import ask
from envcheck.compat.candidates import named_by
from envcheck.compat.narrowing import narrowed
from envcheck.compat.package_needs import marks_of
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.relations.torch import builds, tag_of
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Report, Status
from envcheck.model.components import Bound, Component
from envcheck.model.snapshot import Environment, Planned, Snapshot
from envcheck.pipeline.planned.judge import machine_of
from envcheck.plans.settle import as_environment
from envcheck.plans.settle import narrowed as within_pins
from envcheck.rules.api import Facts
from envcheck.rules.fixes.frameworks import INDEX

_MOST_TRIED = 24
_LOCKS = re.compile(r"(?:uv|poetry|pdm|Pipfile)\.lock|pylock(?:\..*)?\.toml")
_MOST_LINES = 40
"""Lines of one RUN instruction or list in which an entry is looked for."""
_INDEX = re.compile(r"(download\.pytorch\.org/whl/)(?:cu[0-9]{2,3}|cpu)\b")
_SPEC = r"(?P<extras>\s*\[[^\]\s]*\])?\s*(?:===?|~=|!=|[<>]=?)\s*[^\s;\"'\\#)]+"

Judge = Callable[[Environment], Report]


class Repair(NamedTuple):
    """What makes a plan fit."""

    moved: Mapping[str, str]
    """New versions by name."""
    tag: str
    """Local tag of the build of PyTorch that its index serves; empty: PyPI's."""
    diff: str
    """The files' changes, unified; empty where none of them can be changed so."""
    by_hand: tuple[str, ...] = ()
    """Files in which an entry was not found as a line, or that have no place for the index."""


def repair(report: Report, plan: Environment, matrix: Matrix, judge: Judge) -> Repair | None:
    """The nearest change after which nothing of ``plan`` fails; None where none of those that were tried does.

    Raises UsageError for a lock file, which its tool writes.
    """
    entries = plan.planned or ()
    if locked := next((each.file for each in entries if _LOCKS.fullmatch(Path(each.file).name)), None):
        raise UsageError(
            f"--fix-plan: {locked} is written by its tool: name the file that it is made from, and lock again"
        )
    failing = set(map(_name, _with(report, "fail")))
    open_before = _with(report, "unknown")
    torch = next((each for each in entries if each.name == "torch" and each.conda is each.image is None), None)
    platform = report.snapshot.platform if report.snapshot else None
    markers = marks_of(plan.python, (platform and platform.os) or "linux", platform and platform.machine)
    paths = list(dict.fromkeys(each.file for each in entries))
    own = named_by("torch", matrix)
    related = {each.name for each in entries if each.name in own or "torch" in named_by(canonical(each.name), matrix)}
    machine = [part for part in machine_of(Facts(report.snapshot or Snapshot(), matrix)) if part.name != "python"]

    def runs(build: Planned | None) -> bool:
        if build is None:
            return bool(failing - {"torch"})
        version = build.version if not build.build or "+" in (build.version or "") else f"{build.version}+{build.build}"
        release = Component("torch", (Bound("==", version or ""),))
        return ask(matrix, [release, *machine], suggest=False, tell_apart=False).verdict == "compatible"

    for build in islice(filter(runs, _builds(torch, matrix)), _MOST_TRIED):
        beside = related if build else set[str]()
        opened = [
            each
            if each.name == "torch" or each.version is None or each.name not in failing | beside
            else msgspec.structs.replace(each, version=None, bounds="", problem=None, refused=None)
            for each in entries
        ]
        items = [build if build and each is torch else each for each in opened]
        left = narrowed(items, matrix, markers)
        chosen = [
            _nearest(each, old, left[each.name].left) if each.version != old.version and each.name in left else each
            for each, old in zip(items, entries, strict=True)
        ]
        moved = {new.name: new.version for new, old in zip(chosen, entries, strict=True) if new.version != old.version}
        found = judge(as_environment(within_pins(chosen, matrix, markers), paths, matrix))
        doubts = _with(found, "unknown")
        if not _with(found, "fail") and doubts <= open_before and moved.keys().isdisjoint(map(_name, doubts)):
            tag = (build.build if build else torch.build if torch else "") or ""
            changed = [(old, moved[old.name] or "") for old in entries if old.name in moved]
            diff, by_hand = _diff(changed, tag, torch)
            return Repair({name: version or "" for name, version in moved.items()}, tag, diff, by_hand)
    return None


def _with(report: Report, status: Status) -> set[str]:
    return {check.subject.key for check in report.checks if check.status == status}


def _name(key: str) -> str:
    """The package of a check's subject."""
    return key.rpartition(":")[2].partition(" ")[0]


def _builds(torch: Planned | None, matrix: Matrix) -> Iterator[Planned | None]:
    """The builds of PyTorch to try, nearest first; None: the pinned one stays."""
    yield None
    if torch is None or torch.version is None:
        return
    there = parse_version(torch.version.partition("+")[0])
    rows = [(number, row) for row in matrix.torch if (number := parse_version(row.version))]
    later = [each for each in rows if there and each[0].numbers >= there.numbers]
    for _, row in [*later, *reversed([each for each in rows if each not in later])]:
        known = [tag_of(build.cuda) for build in builds(row)]
        for tag in sorted(
            known, key=lambda tag: (tag != torch.build, tag != tag_of(row.default_cuda or ""), -known.index(tag))
        ):
            local = f"+{tag}" if "+" in torch.version else ""
            served = "" if not local and not torch.build and tag == tag_of(row.default_cuda or "") else tag
            version = f"{row.version}{local}"
            yield msgspec.structs.replace(
                torch,
                version=version,
                bounds=f"=={version}",
                asked=f"torch=={version}",
                build=served,
                problem=None,
                refused=None,
            )


def _nearest(item: Planned, old: Planned, left: Sequence[str]) -> Planned:
    """The release that was pinned, where it is left, else the oldest later one, else the newest."""
    there = parse_version((old.version or "").partition("+")[0])
    later = [each for each in left if there and (number := parse_version(each)) and number.numbers >= there.numbers]
    version = (later or list(left))[0 if later else -1]
    return msgspec.structs.replace(item, version=version, bounds=f"=={version}", asked=f"{item.name}=={version}")


def _diff(changed: Sequence[tuple[Planned, str]], tag: str, torch: Planned | None) -> tuple[str, tuple[str, ...]]:
    """The changes of the files, and the files that cannot be changed so."""
    by_file: dict[str, list[tuple[Planned, str]]] = {}
    for each, version in changed:
        by_file.setdefault(each.file, []).append((each, version))
    told, by_hand = "", []
    for file, entries in by_file.items():
        try:
            before = Path(file).read_text(encoding="utf-8").splitlines(keepends=True)
        except (OSError, ValueError) as error:
            raise UsageError(f"--fix-plan: cannot read {file} again: {error}") from None
        after = list(before)
        if not all(_replaced(after, each, version) for each, version in entries):
            by_hand.append(file)
            continue
        if torch is not None and torch.file == file and tag != (torch.build or ""):
            after = [_INDEX.sub(rf"\g<1>{tag}", line) for line in after]
            if after == before or not any(f"/whl/{tag}" in line for line in after):
                if Path(file).suffix not in (".txt", ".in"):
                    by_hand.append(file)
                    continue
                after.insert((torch.line or 1) - 1, f"--extra-index-url {INDEX}{tag}\n")
        told += "".join(difflib.unified_diff(before, after, f"a/{file.lstrip('/')}", f"b/{file.lstrip('/')}"))
    return told, tuple(by_hand)


def _replaced(lines: list[str], entry: Planned, version: str) -> bool:
    """Write another version where an entry stands; whether it was found there."""
    name = re.escape(entry.name).replace(r"\-", "[-_.]+")
    written = re.compile(rf"(?<![\w.-])(?P<name>{name}){_SPEC}", re.IGNORECASE)
    start = (entry.line or 1) - 1
    for place in range(start, min(start + _MOST_LINES, len(lines))):
        line, count = written.subn(
            lambda found: f"{found['name']}{found['extras'] or ''}=={version}", lines[place], count=1
        )
        if count:
            lines[place] = line
            return True
    return False
