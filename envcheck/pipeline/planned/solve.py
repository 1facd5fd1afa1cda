"""``envcheck plan``: the newest releases that fit each other and the machine, of those that the matrix knows.

One package leads: PyTorch, where anything that is asked for runs within it, else the first framework. Each of its
releases decides what is left of the others; the set in which least was given up comes first, and each is judged as a
plan before it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain, islice, tee

import msgspec

from envcheck.compat.answer import ask
from envcheck.compat.candidates import named_by
from envcheck.compat.narrowing import admitted_by, contains
from envcheck.compat.package_needs import pinned_by
from envcheck.compat.question import Reason
from envcheck.compat.requirements import declared, extras_of
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.knowledge.relations.torch import builds, tag_of, torch_row
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import PLAN, Check, Report
from envcheck.model.components import Bound, Component
from envcheck.model.snapshot import Environment, Planned, Snapshot
from envcheck.pipeline.planned.checks import answer_of
from envcheck.pipeline.planned.judge import machine_of
from envcheck.plans import WISHES
from envcheck.plans.settle import as_environment, at_newest, is_open
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import framework_named
from envcheck.rules.packages.extensions import wheel_addresses

_MOST_RELEASES = 60
_MOST_JUDGED = 8
_LIBRARIES = {"cuda", "cudnn"}
_TORCH = "torch"

Judge = Callable[[Environment], Report]


class ChosenRelease(msgspec.Struct, frozen=True, kw_only=True):
    """A package of the set."""

    name: str
    """Normalized name of the distribution."""
    version: str
    """With the local tag of the build, where an index serves others: ``2.14.0+cu128``."""
    extras: tuple[str, ...] = ()
    """Normalized names of the extras to ask for."""
    compiled: bool = False
    """Whether it is compiled where it is installed, and needs the CUDA toolkit."""
    wheel: str = ""
    """Address of its wheel for this PyTorch, CUDA and Python, where the project publishes some apart from PyPI; not
    every combination has one."""
    given_up: str = ""
    """Why it is not the newest release that was asked for."""


class Solution(msgspec.Struct, frozen=True, kw_only=True):
    """What to install, or why nothing fits."""

    verdict: FitVerdict
    """Whether the set fits; ``incompatible``: none does."""
    machine: dict[str, str]
    """What it is for, by component."""
    packages: tuple[ChosenRelease, ...] = ()
    """PyTorch first, then in the order of the wishes."""
    tag: str = ""
    """Local tag of the build of PyTorch that its own index serves; empty: PyPI's, or no PyTorch."""
    reasons: tuple[Reason, ...] = ()
    """What was judged of the set; where nothing fits, of the best one."""
    nearest: tuple[str, ...] = ()
    """Changes with which there would be a set."""
    steps: tuple[tuple[str, ...], ...] = ()
    """The commands that change the installed environment so, in order, where one is repaired."""
    resolved: tuple[str, ...] = ()
    """All that uv would install, pinned, where it was asked."""
    resolved_s: float = 0.0
    """How long uv took, in seconds."""


def solve(snapshot: Snapshot, wishes: Environment, matrix: Matrix, judge: Judge) -> Solution:
    """The best set of ``wishes.planned`` on the machine of ``snapshot``; ``judge`` says what is found of one."""
    return _Solver(snapshot, wishes, matrix, judge).solution()


class _Solver:
    def __init__(self, snapshot: Snapshot, wishes: Environment, matrix: Matrix, judge: Judge) -> None:
        self.matrix, self.judge, self.wishes = matrix, judge, wishes
        facts = Facts(snapshot, matrix)
        self.machine, self.markers = machine_of(facts), facts.markers
        self.paths = list(dict.fromkeys(each.file for each in wishes.planned or ())) or [WISHES]

    def solution(self) -> Solution:
        machine: dict[str, str] = {}
        for part in self.machine:  # one machine may have several models of GPUs
            machine[part.name] = " and ".join(filter(None, (machine.get(part.name), part.exact)))
        entries = self.wishes.planned or ()
        undecided: tuple[Report, list[Planned]] | None = None
        sets, all_sets = tee(self._ranked(entries))
        running = self._running(sets)
        first = next(running, None)
        for items in islice(chain([first], running), _MOST_JUDGED) if first else ():
            report = self._judged(items)
            if any(check.status == "fail" for check in report.checks):
                continue
            if report.verdict != "unknown":
                return self._told("compatible", machine, items, report)
            undecided = undecided or (report, items)
        if undecided:
            return self._told("unknown", machine, undecided[1], undecided[0])
        best = first or next(all_sets, None) or at_newest(self._with_lead(entries), self.matrix, self.markers)
        told = self._told("incompatible", machine, best, self._judged(best))
        return msgspec.structs.replace(told, nearest=tuple(self._nearest(best, entries)))

    def _judged(self, items: Sequence[Planned]) -> Report:
        """The report on a set, with the packages of which its packages require one release."""
        names = {each.name for each in items}
        required = {
            name: version
            for each in items
            if each.name != _TORCH  # whose libraries are known by its build
            for name, bounds in self._needs(each.name, each.version or "", each.extras).items()
            if name not in names and self.matrix.rows_of(canonical(name)) and (version := pinned_by(f"{name}{bounds}"))
        }
        beside = [
            msgspec.structs.replace(items[0], name=name, version=its, asked=name + pin, bounds=pin, extras=(), build="")
            for name, its in required.items()
            for pin in [f"=={its}"]
        ]
        return self.judge(as_environment([*items, *beside], self.paths, self.matrix))

    def _verdict(self, *releases: Component) -> FitVerdict:
        return answer_of(self.matrix, (*releases, *self.machine)).verdict

    def _ranked(self, entries: Sequence[Planned]) -> Iterator[list[Planned]]:
        """The sets whose releases agree, that first in which the fewest newer releases are given up."""
        items = [self._within_reach(each) for each in self._with_lead(entries)]
        lead = self._lead(items)
        admitted = {each.name: admitted_by(each, self.matrix) for each in items if is_open(each)}
        ready: list[tuple[int, int, list[Planned]]] = []
        releases = admitted.get(items[lead].name, []) if lead is not None else []
        count = 0
        for behind, version in enumerate(islice(reversed(releases), _MOST_RELEASES)) if releases else [(0, "")]:
            tried = list(items)
            if lead is not None and version:
                tried[lead] = msgspec.structs.replace(tried[lead], version=version, bounds=f"=={version}", newest=True)
            chosen = at_newest(tried, self.matrix, self.markers)
            given_up = [
                len(known) - 1 - known.index(each.version)
                for each in chosen
                if each.version is not None and each.version in (known := admitted.get(each.name, []))
            ]
            for variant in self._with_extras(chosen) if self._agree(chosen) else ():
                heappush(ready, (sum(given_up), count := count + 1, variant))
            while ready and ready[0][0] <= behind:  # an older release of the one that leads gives up more
                yield heappop(ready)[2]
        while ready:
            yield heappop(ready)[2]

    def _within_reach(self, item: Planned) -> Planned:
        """The entry within bounds that leave out what is newer than the newest release that runs on the machine."""
        newest_first = list(islice(reversed(admitted_by(item, self.matrix)), _MOST_RELEASES)) if is_open(item) else []
        if (
            item.name == _TORCH
            or not newest_first
            or self._verdict(_release(item.name, newest_first[0])) != "incompatible"
        ):
            return item
        for version in newest_first:
            number = parse_version(version)
            rows = self.matrix.rows_for(canonical(item.name), number) if number else []
            spoken_of = any(row.cuda or row.targets or row.capability_min or row.capabilities for row in rows)
            if spoken_of and self._verdict(_release(item.name, version)) == "compatible":
                bounds = ",".join(filter(None, (item.bounds, f"<={version}")))
                return msgspec.structs.replace(item, bounds=bounds)
        return item

    def _with_lead(self, entries: Sequence[Planned]) -> list[Planned]:
        """The entries, and PyTorch where one of them runs in it."""
        items = [msgspec.structs.replace(each, isolated=False) for each in entries]
        names = {each.name for each in items}
        if _TORCH not in names and any(_TORCH in named_by(canonical(name), self.matrix) for name in names):
            items.insert(0, Planned(source=WISHES, name=_TORCH, asked=_TORCH, build="", file=WISHES, together=WISHES))
        return items

    def _with_extras(self, items: list[Planned]) -> Iterator[list[Planned]]:
        """The set with each of the extras by which its first package that needs one gets its GPU support."""
        for place, item in enumerate(items):
            rows = [row for row in extras_of(self.matrix, item.name, item.version or "") if row.needed]
            if rows and not any({*row.extras} & {*item.extras} for row in rows):
                for row in reversed(rows):
                    extras = tuple(sorted({*item.extras, row.extras[0]}))
                    yield [*items[:place], msgspec.structs.replace(item, extras=extras), *items[place + 1 :]]
                return
        yield items
        # What takes CUDA's libraries from outside may have extras that bring them.
        bringing = [
            (place, row.extras[0])
            for place, item in enumerate(items)
            for row in extras_of(self.matrix, item.name, item.version or "")
            if not row.built and row.brings.keys() <= _LIBRARIES and not {*row.extras} & {*item.extras}
        ]
        if bringing:
            changed = list(items)
            for place, extra in bringing:
                extras = tuple(sorted({*changed[place].extras, extra}))
                changed[place] = msgspec.structs.replace(changed[place], extras=extras)
            yield changed

    def _lead(self, items: Sequence[Planned]) -> int | None:
        roles = {place: self.matrix.role_of(each.name) for place, each in enumerate(items)}
        leading = [place for place, role in roles.items() if role and role.role in ("framework", "engine")]
        return next((place for place in leading if items[place].name == _TORCH), next(iter(leading), None))

    def _agree(self, items: Sequence[Planned]) -> bool:
        """Whether each has a release, within what the others require."""
        versions = {each.name: each.version for each in items}
        return None not in versions.values() and all(
            name not in versions or contains(bounds, versions[name] or "")
            for each in items
            for name, bounds in self._needs(each.name, each.version or "", each.extras).items()
        )

    def _needs(self, name: str, version: str, extras: Sequence[str] = ()) -> Mapping[str, str]:
        return declared(self.matrix, name, version, self.markers, extras=extras)

    def _running(self, sets: Iterable[list[Planned]]) -> Iterator[list[Planned]]:
        """The sets in each build of PyTorch that runs on the machine: PyPI's, then that for the newest CUDA."""
        for items in sets:
            torch = next((each for each in items if each.name == _TORCH), None)
            row = torch_row(self.matrix, torch.version or "") if torch else None
            default = tag_of(row.default_cuda or "") if row else ""
            stated = torch is None or row is None or torch.build or "+" in (torch.version or "")
            known = [tag_of(each.cuda) for each in builds(row)] if row else []
            tags = [default, *(tag for tag in reversed(known) if tag != default)]
            for tag in [torch.build if torch else ""] if stated else tags:
                version = f"{torch.version}+{tag}" if torch and tag else torch.version if torch else ""
                build = [_release(_TORCH, version or "")] if torch else []
                within = [each for each in items if torch and _TORCH in named_by(canonical(each.name), self.matrix)]
                pairs = [[*build, _release(each.name, each.version or "")] for each in within]
                runs = not build or self._verdict(*build) == "compatible"
                if runs and all(self._verdict(*each) != "incompatible" for each in pairs):
                    served = tag if stated or tag != default else ""
                    yield [msgspec.structs.replace(each, build=served) if each is torch else each for each in items]

    def _told(self, verdict: FitVerdict, machine: dict[str, str], items: Sequence[Planned], report: Report) -> Solution:
        torch = next((each for each in items if each.name == _TORCH), None)
        tag = (torch.build if torch else "") or ""
        telling: dict[FitVerdict, Sequence[str]] = {
            "compatible": ("pass", "warn", "note"), "unknown": ("unknown",), "incompatible": ("fail",)
        }  # fmt: skip

        def concerns(check: Check) -> bool:
            newest = check.status == "note" and check.rule == PLAN  # that it is not pinned, which it is here
            return check.status in telling[verdict] and not newest and (check.status != "pass" or bool(check.sources))

        checks = [each for each in report.checks if concerns(each) and each.subject.kind == "framework"]
        wished = {each.name for each in self.wishes.planned or ()}
        own = [each for each in checks if each.subject.key.rpartition(":")[2].partition(" ")[0] in wished]
        checks = own if verdict == "incompatible" and own else checks  # not what a PyTorch lacks that nobody asked for
        facts = Facts(report.snapshot or Snapshot(), self.matrix)
        return Solution(
            verdict=verdict,
            machine=machine,
            packages=tuple(self._choice(each, items, tag, facts) for each in items),
            tag=tag,
            reasons=tuple(
                Reason(
                    verdict=verdict,
                    message=each.title if each.status == "pass" else f"{each.title}: {each.message}",
                    sources=each.sources,
                )
                for each in checks or [check for check in report.checks if check.status == telling[verdict][0]][:1]
            ),
        )

    def _choice(self, item: Planned, items: Sequence[Planned], tag: str, facts: Facts) -> ChosenRelease:
        compiled = self.matrix.has_trait(item.name, "compiled-by-pip")
        torch = framework_named(_TORCH, facts.environment) if compiled else None
        return ChosenRelease(
            name=item.name,
            version=labelled(item.name, item.version or "", tag, self.matrix),
            extras=item.extras,
            compiled=compiled,
            wheel=wheel_addresses(item.name, item.version or "", torch, facts)[1] if torch else "",
            given_up=self._given_up(item, items),
        )

    def _given_up(self, item: Planned, items: Sequence[Planned]) -> str:
        """Why it is not the newest release within the bounds that were asked for."""
        asked = next((each for each in self.wishes.planned or () if each.name == item.name), None)
        opened = msgspec.structs.replace(item, version=None, bounds=asked.bounds if asked else "", newest=False)
        admitted = admitted_by(opened, self.matrix)
        newest = admitted[-1] if admitted else item.version
        if newest == item.version:
            return ""
        row = torch_row(self.matrix, newest or "") if item.name == _TORCH else None
        tags = [f"+{tag_of(each.cuda)}" for each in builds(row)] if row else [""]
        if all(self._verdict(_release(item.name, f"{newest}{tag}")) == "incompatible" for tag in tags):
            answer = answer_of(self.matrix, (_release(item.name, newest or ""), *self.machine))
            why = next((each.message for each in answer.reasons if each.verdict == "incompatible"), "")
            return f"{newest} is newer: {why}" if why else f"{newest} is newer, and no build of it runs here"
        for other in items:
            needs = self._needs(other.name, other.version or "", other.extras).get(item.name, "")
            if other is not item and not contains(needs, newest or ""):
                return f"{other.name} {other.version} requires {item.name}{needs}, and {newest} is newer"
            own = self._needs(item.name, newest or "", item.extras).get(other.name, "")
            if other is not item and not contains(own, other.version or ""):
                return f"{newest} is newer, and requires {other.name}{own}"
        return f"{newest} is newer, and does not fit with the rest"

    def _nearest(self, items: Sequence[Planned], entries: Sequence[Planned]) -> Iterator[str]:
        """Changes of the machine with which the leading package runs, and wishes without which there is a set."""
        named = ((each.name, f"{each.version}+{each.build}" if each.build else each.version or "") for each in items)
        answers = [ask(self.matrix, [_release(*each), *self.machine]) for each in named]
        refused = [answer for answer in answers if answer.verdict == "incompatible"]
        if len(refused) == 1:  # else no single change is enough
            yield from refused[0].suggestions
        yield from self._without_one(entries)

    def _without_one(self, entries: Sequence[Planned]) -> Iterator[str]:
        """The wishes that others exclude, or the machine: each alone, with what would be chosen without it."""
        for left in entries if len(entries) > 1 else ():
            rest = [each for each in entries if each is not left]
            for items in islice(self._running(self._ranked(rest)), 1):
                if self._judged(items).verdict != "fail":
                    told = ", ".join(f"{each.name} {each.version}" for each in items)
                    yield f"without {left.asked}: {told}"


def labelled(name: str, version: str, tag: str, matrix: Matrix) -> str:
    """The version with the local tag of PyTorch's index, which it writes into what is released with PyTorch alone."""
    own = name == _TORCH or all(matrix.has_trait(name, trait) for trait in ("on-torch-index", "released-with-torch"))
    return f"{version}+{tag}" if tag and own and "+" not in version else version


def _release(name: str, version: str) -> Component:
    return Component(name, (Bound("==", version),))
