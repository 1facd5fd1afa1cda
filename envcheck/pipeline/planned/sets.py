"""The sets of releases that agree, those first in which least is given up, each in the builds of PyTorch that run; and
what comes with a set: what its releases require, what they take from outside, and what uv is given for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice, takewhile

import msgspec

from envcheck.compat.candidates import named_by
from envcheck.compat.narrowing import (
    admitted_by,
    at_newest,
    contains,
    is_open,
    joined_bounds,
    newest_of,
    releases_within,
)
from envcheck.compat.package_needs import pinned_by, read_requirement, release_fits, requirement_name
from envcheck.compat.question import Answer, exactly
from envcheck.compat.requirements import brought, declared, extras_of
from envcheck.compat.wheels import published
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import HARDWARE, canonical
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.knowledge.relations.torch import builds, tag_of, torch_row
from envcheck.knowledge.specifier import parse_version, speaks_of
from envcheck.model.checks import Report
from envcheck.model.components import Component
from envcheck.model.snapshot import Environment, Planned, Snapshot
from envcheck.pipeline.planned.checks import answer_of, machine_of
from envcheck.pipeline.planned.libraries import library_wheels, newer_beside, written_over
from envcheck.pipeline.planned.solution import Constraint, Override
from envcheck.plans import WISHES
from envcheck.plans.readers.pyproject import UvSettings
from envcheck.rules.api import Facts
from envcheck.rules.facts.library_names import wheel_of

_MOST_RELEASES = 60
TORCH = "torch"
LIBRARIES = {"cuda", "cudnn"}
_OF_PROJECT = "as tool.uv of the project says"
BESIDE = "what others work with"  # Source of what nobody wished for, but is told

Judge = Callable[[Environment], Report]


class RankedSets:
    """The sets of releases that meet the wishes on a machine."""

    def __init__(
        self, snapshot: Snapshot, wishes: Environment, matrix: Matrix, judge: Judge, given: UvSettings
    ) -> None:
        self.matrix, self.judge, self.wishes, self.given = matrix, judge, wishes, given
        self.overridden = {requirement_name(each) for each in given.overrides}
        self.bounds = {requirement_name(each): each for each in (*given.constraints, *given.overrides)}
        self.facts = facts = Facts(snapshot, matrix)
        self.machine, self.markers = machine_of(facts), facts.markers
        self.paths = list(dict.fromkeys(each.file for each in wishes.planned or ())) or [WISHES]
        self.as_of = next((each.as_of for each in wishes.planned or () if each.as_of), "")

    def _verdict(self, *releases: Component) -> FitVerdict:
        return answer_of(self.matrix, (*releases, *self.machine)).verdict

    def _needs(
        self, name: str, version: str, extras: Sequence[str] = (), *, build: str | None = ""
    ) -> Mapping[str, str]:
        needs = declared(self.matrix, name, version, self.markers, build=build, extras=extras)
        return {other: bounds for other, bounds in needs.items() if other not in self.overridden}

    def _required(self, item: Planned) -> Mapping[str, str]:
        """What the newest release that was asked for requires."""
        newest = item.version or newest_of(item, self.matrix)
        return self._needs(item.name, newest, item.extras)

    def _wish(self, name: str) -> Planned:
        """What nobody wished for."""
        as_of = self.as_of or None
        return Planned(source=WISHES, name=name, asked=name, build="", file=WISHES, together=WISHES, as_of=as_of)

    def _added(self, name: str) -> Planned:
        """What nobody wished for, within what uv is given."""
        line = self.bounds.get(name, name)
        bounds = str(asked.specifier) if (asked := read_requirement(line)) else ""
        return msgspec.structs.replace(self._wish(name), bounds=bounds, version=pinned_by(line))

    def _newest(self, name: str, bounds: str) -> str:
        return newest_of(msgspec.structs.replace(self._wish(name), bounds=bounds), self.matrix, self.markers)

    def _beside(self, name: str, bounds: str) -> Iterator[Planned]:
        """The newest release within bounds of what nobody wished for, but is told."""
        if newest := self._newest(name, bounds):
            pin, wish = f"=={newest}", self._wish(name)
            yield msgspec.structs.replace(wish, source=BESIDE, version=newest, bounds=pin, newest=True)

    def _coming_with(self, items: Sequence[Planned]) -> list[Planned]:
        """The packages of which those of a set require one release, or for an extra releases that the driver does not
        run.
        """
        names = {each.name for each in items}
        required: dict[str, str] = {}
        for each in items:
            its_own = self._needs(each.name, each.version or "")
            for name, bounds in self._needs(each.name, each.version or "", each.extras).items():
                # PyTorch's libraries are known by its build.
                if each.name != TORCH and name not in names and self.matrix.rows_of(canonical(name)):
                    version = pinned_by(f"{name}{bounds}") or (name not in its_own and self._refused(name, bounds))
                    required |= {name: version} if version else {}
        return [
            msgspec.structs.replace(items[0], name=name, version=its, asked=name + pin, bounds=pin, extras=(), build="")
            for name, its in required.items()
            for pin in [f"=={its}"]
        ]

    def _refused(self, name: str, bounds: str) -> str:
        """The newest release within bounds, where the driver runs neither that nor the oldest."""
        admitted = admitted_by(msgspec.structs.replace(self._wish(name), bounds=bounds), self.matrix, self.markers)
        machine = [part for part in self.machine if part.name != "gpu"]
        asked = [(exactly(name, each), *machine) for each in dict.fromkeys((*admitted[:1], *admitted[-1:]))]
        refused = asked and all(answer_of(self.matrix, each).verdict == "incompatible" for each in asked)
        return admitted[-1] if refused else ""

    def _runs(self, items: Sequence[Planned]) -> bool:
        """Whether the machine runs, as far as that is known, what comes with a set: else it needs no judgement."""
        beside = self._coming_with(items)
        return all(self._verdict(exactly(each.name, each.version or "")) != "incompatible" for each in beside)

    def _held_beside(self, items: Sequence[Planned]) -> Iterator[Planned]:
        """What an installer would take in a newer release than rows say that one of the items works with."""
        needs = {each.name: self._needs(each.name, each.version or "", each.extras) for each in items}
        every = {name: self._required(self._wish(name)) for own in [*needs.values()] for name in own} | needs
        for _, name, asked, fit in newer_beside(items, every, {*needs}, self.matrix, self._newest):
            yield from self._beside(name, joined_bounds((asked, fit.nearest_change.removeprefix(name))))

    def _wheels_beside(self, items: Sequence[Planned]) -> Iterator[Planned]:
        """NVIDIA's wheels that bring what the items take from outside, where no PyTorch does."""
        names = {each.name for each in items}
        if TORCH in names or self.markers.get("sys_platform") != "linux":
            return
        wheels = {name: its for each in items for name, its in library_wheels(each, self.matrix).items()}
        for name, bounds in wheels.items():
            yield from self._beside(name, bounds) if name not in names else ()

    def _with_libraries(self, item: Planned) -> Planned:
        """The item with the extras that bring CUDA's libraries, which it takes from outside, in a release that runs."""
        known = extras_of(self.matrix, item.name, item.version or "")
        known = [row for row in known if not row.built and row.brings.keys() <= LIBRARIES]
        extras = {*item.extras}
        for brings in dict.fromkeys(tuple(row.brings) for row in known):
            rows = [row for row in known if tuple(row.brings) == brings]
            runs = (
                row for row in reversed(rows) if self._verdict(*brought([row], "", row.extras) or ()) != "incompatible"
            )
            if extras.isdisjoint(extra for row in rows for extra in row.extras) and (row := next(runs, None)):
                extras.add(row.extras[0])
        return msgspec.structs.replace(item, extras=tuple(sorted(extras)))

    def _overrides(self, items: Sequence[Planned]) -> Iterator[Override]:
        """Where the set does not keep to what its packages require."""
        yield from (Override(requirement=each, reason=_OF_PROJECT) for each in self.given.overrides)
        needs = {each.name: self._needs(each.name, each.version or "", each.extras) for each in items}
        for each in items:
            yield from self._mending(each)
        beside = {name for own in needs.values() for name in own} - needs.keys()
        every = {name: self._required(self._wish(name)) for name in beside} | needs
        for item, owner, name in written_over(items, every, self.matrix):
            projects = self.matrix.projects(item.name, "has-cuda-provider")
            rows = [row for row in self.matrix.traits if row.trait == "shares-its-folder" and row.project in projects]
            yield Override(
                requirement=f'{name}; sys_platform == "never"',
                reason=f"left out, though {owner} requires it: it writes over the files of {item.name}",
                pip=(
                    ("uninstall", "-y", name),
                    ("install", "--force-reinstall", "--no-deps", f"{item.name}=={item.version}"),
                ),
                sources=self.matrix.cite(*rows),
            )

    def _mending(self, item: Planned) -> Iterator[Override]:
        """The libraries without which a release is broken, where it pins others: in the nearest release that runs; a
        row knows it better than the package, as of PyTorch 2.9.1, which pins such a cuDNN.
        """
        needs, version = self._needs(item.name, item.version or "", build=item.build), parse_version(item.version or "")
        rows = [row for row in self.matrix.flaws if row.mended_by and row.name == item.name and version]
        for row in (row for row in rows if version and speaks_of(row.versions, version) == "all"):
            for name, bounds in needs.items():
                wheel, pinned = wheel_of(name), pinned_by(f"{name}{bounds}")
                mended = row.mended_by.get(wheel.name, "") if wheel else ""
                others = releases_within(self.matrix, name, mended, item.as_of) if mended else ()
                runs = (each for each in others if self._verdict(exactly(name, each)) != "incompatible")
                if (release := next(runs, "")) and pinned and not contains(mended, pinned):
                    pin = f"{name}=={release}"
                    reason = f"in place of {pinned}, which {item.name} {item.version} requires: {row.problem}"
                    pip = (("install", "--no-deps", pin),)
                    yield Override(requirement=pin, reason=reason, pip=pip, sources=self.matrix.cite(row))

    def _constraints(self, items: Sequence[Planned]) -> Iterator[Constraint]:
        """Where an installer would take the newest release of what comes with the set, and that does not run here."""
        yield from (Constraint(requirement=each, reason=_OF_PROJECT) for each in self.given.constraints)
        needs = {each.name: self._needs(each.name, each.version or "", each.extras) for each in items}
        bounds: dict[str, str] = {}
        left = [*needs.values()]
        while left:
            for name, its in left.pop().items():
                if name not in needs:
                    known = bounds.get(name)
                    bounds[name] = ",".join(filter(None, (known, its)))
                    if known is None and name in self.matrix.requirements_by_name:
                        left.append(self._needs(name, self._newest(name, its)))
        for name, its in bounds.items():
            if name not in self.bounds and not pinned_by(f"{name}{its}") and self.matrix.rows_of(canonical(name)):
                wish = msgspec.structs.replace(self._wish(name), bounds=its)
                yield from constraint(wish, self.matrix, self.markers, self.machine)

    def _ranked(self, entries: Sequence[Planned]) -> Iterator[list[Planned]]:
        """The sets whose releases agree, that first in which the fewest newer releases are given up: of what is wished,
        then of all.
        """
        items = self._with_lead(entries)
        torch = next((each.version for each in items if each.name == TORCH and each.version), "")
        items = [self._within_reach(each, torch) for each in items]
        leading = [at for at, each in enumerate(items) if self.matrix.has_role(each.name, "framework", "engine")]
        lead = next((place for place in leading if items[place].name == TORCH), next(iter(leading), None))
        admitted = {each.name: admitted_by(each, self.matrix, self.markers) for each in items if is_open(each)}
        ready: list[tuple[int, int, int, list[Planned]]] = []
        releases = admitted.get(items[lead].name, ()) if lead is not None else ()
        wished = {each.name for each in entries}
        pushed = 0
        for behind, version in enumerate(islice(reversed(releases), _MOST_RELEASES)) if releases else [(0, "")]:
            tried = list(items)
            if lead is not None and version:
                tried[lead] = msgspec.structs.replace(tried[lead], version=version, bounds=f"=={version}", newest=True)
            chosen = at_newest(tried, self.matrix, self.markers)
            given_up = {
                each.name: len(known) - 1 - known.index(each.version)
                for each in chosen
                if each.version is not None and each.version in (known := admitted.get(each.name, ()))
            }
            of_wishes = sum(count for name, count in given_up.items() if name in wished)
            for variant in self._with_extras(chosen) if self._agree(chosen) else ():
                heappush(ready, (of_wishes, sum(given_up.values()), pushed := pushed + 1, variant))
            # An older release of the one that leads gives up more, if it is wished.
            least = behind if lead is not None and items[lead].name in wished else 0
            while ready and ready[0][0] <= least and ready[0][1] <= max(behind, ready[0][0]):
                yield heappop(ready)[3]
        while ready:
            yield heappop(ready)[3]

    def _within_reach(self, item: Planned, torch: str) -> Planned:
        """The entry within bounds that leave out what is newer than the newest release that runs on the machine, and
        beside the pinned ``torch``, if one is.
        """
        admitted = admitted_by(item, self.matrix, self.markers) if is_open(item) and item.name != TORCH else ()
        fits = (release_fits(self.matrix, item.name, each, TORCH, torch) for each in reversed(admitted) if torch)
        newer = sum(1 for _ in takewhile(lambda fit: fit is not None and fit.bad, fits))
        newest_first = admitted[::-1][newer : newer + _MOST_RELEASES]
        chosen = newest_first[0] if newer and newest_first else ""
        if newest_first and self._verdict(exactly(item.name, newest_first[0])) == "incompatible":
            for version in newest_first:
                number = parse_version(version)
                rows = self.matrix.rows_for(canonical(item.name), number) if number else []
                spoken_of = any(row.cuda or row.targets or row.capability_min or row.capabilities for row in rows)
                if spoken_of and self._verdict(exactly(item.name, version)) == "compatible":
                    chosen = version
                    break
        bounds = ",".join(filter(None, (item.bounds, f"<={chosen}" if chosen else "")))
        return msgspec.structs.replace(item, bounds=bounds)

    def _with_lead(self, entries: Sequence[Planned]) -> list[Planned]:
        """The entries, the engines that they require, PyTorch where one of them runs in it, and what one of them pins
        and another requires.
        """
        items = [msgspec.structs.replace(each, isolated=False) for each in entries]
        required = dict.fromkeys(name for each in items for name in self._required(each))
        in_torch = [name for name in required if TORCH in named_by(canonical(name), self.matrix)]
        alone = (name for name in required if self.matrix.has_trait(name, "cuda-from-outside"))
        added = [name for name in dict.fromkeys((*in_torch, *alone)) if self._is_engine(name)]
        names = {each.name for each in items}
        if in_torch or any(TORCH in named_by(canonical(name), self.matrix) for name in names):
            added.insert(0, TORCH)
        items = [*(self._added(name) for name in added if name not in names), *items]
        bounds: dict[str, list[str]] = {}
        whole = [item for item in items if item.name != TORCH]  # whose libraries follow from its build
        for name, its in (each for item in whole for each in self._required(item).items()):
            bounds.setdefault(name, []).append(its)
        names = {each.name for each in items}
        shared = (
            name for name, its in bounds.items() if len({*its}) > 1 and any(map(pinned_by, (name + e for e in its)))
        )
        return [*items, *(self._added(name) for name in shared if name not in names and published(self.matrix, name))]

    def _is_engine(self, name: str) -> bool:
        return name != TORCH and self.matrix.has_role(name, "engine")

    def _with_extras(self, items: list[Planned]) -> Iterator[list[Planned]]:
        """The set with each of the extras by which its first package that needs one gets its GPU support."""
        for place, item in enumerate(items):
            rows = [row for row in extras_of(self.matrix, item.name, item.version or "") if row.needed]
            if rows and not any({*row.extras} & {*item.extras} for row in rows):
                for row in reversed(rows):
                    extras = tuple(sorted({*item.extras, row.extras[0]}))
                    yield [*items[:place], msgspec.structs.replace(item, extras=extras), *items[place + 1 :]]
                return
        items = [*items, *self._held_beside(items)]
        yield items
        changed = [*map(self._with_libraries, items), *self._wheels_beside(items)]
        if changed != items:
            yield changed

    def _agree(self, items: Sequence[Planned]) -> bool:
        """Whether each has a release, within what the others require."""
        versions = {each.name: each.version for each in items}
        # Of a package without rows the installer chooses the release.
        known = (each for each in items if each.version is None and admitted_by(open_item(each), self.matrix))
        return next(known, None) is None and all(
            name not in versions or contains(bounds, versions[name] or "")
            for each in items
            for name, bounds in self._needs(each.name, each.version or "", each.extras).items()
        )

    def _running(self, sets: Iterable[list[Planned]], *, alone: bool = False) -> Iterator[list[Planned]]:
        """The sets in each build of PyTorch that runs on the machine: PyPI's, then that for the newest CUDA; ``alone``:
        whatever becomes of what runs within it.
        """
        for items in sets:
            torch = next((each for each in items if each.name == TORCH), None)
            row = torch_row(self.matrix, torch.version or "") if torch else None
            default = tag_of(row.default_cuda or "") if row else ""
            stated = torch is None or row is None or torch.build or "+" in (torch.version or "")
            known = [tag_of(each.cuda) for each in builds(row)] if row else []
            tags = [default, *(tag for tag in reversed(known) if tag != default)]
            release, _, local = (torch.version or "" if torch else "").partition("+")
            for tag in [local or (torch.build if torch else "")] if stated else tags:
                version = f"{release}+{tag}" if tag else release
                build = [exactly(TORCH, version)] if torch else []
                within = [each for each in items if torch and TORCH in named_by(canonical(each.name), self.matrix)]
                pairs = [[*build, exactly(each.name, each.version)] for each in within if each.version]
                runs = not build or self._verdict(*build) == "compatible"
                if runs and (alone or all(self._verdict(*each) != "incompatible" for each in pairs)):
                    served = tag if stated or tag != default else ""
                    yield [
                        msgspec.structs.replace(each, build=served)
                        if each is torch or (tag and (each.version or "").endswith(f"+{tag}"))
                        else each
                        for each in items
                    ]


def open_item(item: Planned, bounds: str = "") -> Planned:
    return msgspec.structs.replace(item, version=None, bounds=bounds, newest=False)


def constraint(
    item: Planned, matrix: Matrix, markers: Mapping[str, str], machine: Sequence[Component]
) -> Iterator[Constraint]:
    """The bound without which an installer takes the newest release, if the GPU or the driver does not run that."""
    hardware = [part for part in machine if part.name in HARDWARE]

    def answer(release: str, *parts: Component) -> Answer:
        return answer_of(matrix, (exactly(item.name, release), *parts))

    newest = newest_of(item, matrix, markers)
    reasons = answer(newest, *hardware).reasons if newest else ()
    for why in islice((each for each in reasons if each.verdict == "incompatible"), 1):
        known = reversed(admitted_by(item, matrix, markers))
        if release := next((each for each in known if answer(each, *machine).verdict == "compatible"), None):
            bound = f"{item.name}<={release}"
            yield Constraint(requirement=bound, reason=f"else {why.message}", sources=why.sources)
