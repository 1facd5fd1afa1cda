"""``envcheck plan``: the newest releases that fit each other and the machine, of those that the matrix knows.

One package leads: PyTorch, where anything that is asked for runs within it, else the first framework. Each of its
releases decides what is left of the others; the set in which least was given up comes first, and each is judged as a
plan before it is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import chain, islice, takewhile, tee

import msgspec

from envcheck.compat.answer import ask
from envcheck.compat.candidates import named_by
from envcheck.compat.narrowing import admitted_by, contains, newest_of
from envcheck.compat.package_needs import pinned_by, read_requirement, release_fits, requirement_name
from envcheck.compat.question import Reason
from envcheck.compat.requirements import brought, declared, extras_of
from envcheck.compat.wheels import ANY_LATER, published, pythons_of
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.knowledge.relations.torch import builds, tag_of, torch_row
from envcheck.knowledge.specifier import numbers_in, parse_version
from envcheck.model.checks import PLAN, Check, Report
from envcheck.model.components import Bound, Component
from envcheck.model.snapshot import Environment, Framework, Planned, Snapshot
from envcheck.model.versions import CudaVersion
from envcheck.pipeline.planned.checks import answer_of, described, machine_of
from envcheck.pipeline.planned.libraries import library_wheels
from envcheck.pipeline.planned.overrides import constraint, left_out, mending
from envcheck.pipeline.planned.solution import ChosenRelease, Constraint, Override, Solution
from envcheck.plans import WISHES
from envcheck.plans.readers.pyproject import NO_SETTINGS, UvSettings
from envcheck.plans.settle import as_environment, at_newest, is_open
from envcheck.rules.api import Facts
from envcheck.rules.facts.frameworks import framework_named
from envcheck.rules.facts.library_names import wheel_of
from envcheck.rules.facts.machine import gpus_with_capability, supported_cuda
from envcheck.rules.fixes.reinstall import wheel_addresses

_MOST_RELEASES = 60
_MOST_JUDGED = 8
_LIBRARIES = {"cuda", "cudnn"}
_TORCH = "torch"
_OF_PROJECT = "as tool.uv of the project says"
_BESIDE = "what others work with"
"""Source of what nobody wished for, but is told."""

Judge = Callable[[Environment], Report]


def solve(
    snapshot: Snapshot, wishes: Environment, matrix: Matrix, judge: Judge, given: UvSettings = NO_SETTINGS
) -> Solution:
    """The best set of ``wishes.planned`` on the machine of ``snapshot``; ``judge`` says what is found of one."""
    return _Solver(snapshot, wishes, matrix, judge, given).solution()


class _Solver:
    def __init__(
        self, snapshot: Snapshot, wishes: Environment, matrix: Matrix, judge: Judge, given: UvSettings
    ) -> None:
        self.matrix, self.judge, self.wishes, self.given = matrix, judge, wishes, given
        self.overridden = {requirement_name(each) for each in given.overrides}
        self.bounds = {requirement_name(each): each for each in (*given.constraints, *given.overrides)}
        self.facts = facts = Facts(snapshot, matrix)
        self.machine, self.markers = machine_of(facts), facts.markers
        self.as_of = next((each.as_of for each in wishes.planned or () if each.as_of), "")
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
            report = self._judged(items) if self._runs(items) else None
            if report is None or any(check.status == "fail" for check in report.checks):
                continue
            if report.verdict != "unknown" and all(each.version for each in items):
                return self._solution("compatible", machine, items, report)
            undecided = undecided or (report, items)
        if undecided:
            return self._solution("unknown", machine, undecided[1], undecided[0])
        # A set in which PyTorch runs shows what else does not.
        alone, as_they_are = tee(all_sets)
        best = first or next(self._running(alone, alone=True), None) or next(as_they_are, None)
        best = best or at_newest(self._with_lead(entries), self.matrix, self.markers)
        refused = self._solution("incompatible", machine, best, self._judged(best))
        return msgspec.structs.replace(refused, nearest=tuple(self._nearest(best, entries)))

    def _judged(self, items: Sequence[Planned]) -> Report:
        """The report on a set, with what comes with it, and what does in the place of that."""
        return self.judge(as_environment([*items, *self._coming_with(items)], self.paths, self.matrix))

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
                if each.name != _TORCH and name not in names and self.matrix.rows_of(canonical(name)):
                    version = pinned_by(f"{name}{bounds}") or (name not in its_own and self._refused(name, bounds))
                    required |= {name: version} if version else {}
        return [
            msgspec.structs.replace(items[0], name=name, version=its, asked=name + pin, bounds=pin, extras=(), build="")
            for name, its in required.items()
            for pin in [f"=={its}"]
        ]

    def _runs(self, items: Sequence[Planned]) -> bool:
        """Whether the machine runs, as far as that is known, what comes with a set: else it needs no judgement."""
        beside = self._coming_with(items)
        return all(self._verdict(_release(each.name, each.version or "")) != "incompatible" for each in beside)

    def _refused(self, name: str, bounds: str) -> str:
        """The newest release within bounds, where the driver runs neither that nor the oldest."""
        admitted = admitted_by(msgspec.structs.replace(self._wish(name), bounds=bounds), self.matrix, self.markers)
        machine = [part for part in self.machine if part.name != "gpu"]
        asked = [(_release(name, each), *machine) for each in dict.fromkeys((*admitted[:1], *admitted[-1:]))]
        refused = asked and all(answer_of(self.matrix, each).verdict == "incompatible" for each in asked)
        return admitted[-1] if refused else ""

    def _verdict(self, *releases: Component) -> FitVerdict:
        return answer_of(self.matrix, (*releases, *self.machine)).verdict

    def _ranked(self, entries: Sequence[Planned]) -> Iterator[list[Planned]]:
        """The sets whose releases agree, that first in which the fewest newer releases are given up: of what is wished,
        then of all.
        """
        items = self._with_lead(entries)
        torch = next((each.version for each in items if each.name == _TORCH and each.version), "")
        items = [self._within_reach(each, torch) for each in items]
        roles = {place: self.matrix.role_of(each.name) for place, each in enumerate(items)}
        leading = [place for place, role in roles.items() if role and role.role in ("framework", "engine")]
        lead = next((place for place in leading if items[place].name == _TORCH), next(iter(leading), None))
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
        admitted = admitted_by(item, self.matrix, self.markers) if is_open(item) and item.name != _TORCH else ()
        fits = (release_fits(self.matrix, item.name, each, _TORCH, torch) for each in reversed(admitted) if torch)
        newer = sum(1 for _ in takewhile(lambda fit: fit is not None and fit.bad, fits))
        newest_first = admitted[::-1][newer : newer + _MOST_RELEASES]
        chosen = newest_first[0] if newer and newest_first else ""
        if newest_first and self._verdict(_release(item.name, newest_first[0])) == "incompatible":
            for version in newest_first:
                number = parse_version(version)
                rows = self.matrix.rows_for(canonical(item.name), number) if number else []
                spoken_of = any(row.cuda or row.targets or row.capability_min or row.capabilities for row in rows)
                if spoken_of and self._verdict(_release(item.name, version)) == "compatible":
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
        in_torch = [name for name in required if _TORCH in named_by(canonical(name), self.matrix)]
        alone = (name for name in required if self.matrix.has_trait(name, "cuda-from-outside"))
        added = [name for name in dict.fromkeys((*in_torch, *alone)) if self._is_engine(name)]
        names = {each.name for each in items}
        if in_torch or any(_TORCH in named_by(canonical(name), self.matrix) for name in names):
            added.insert(0, _TORCH)
        items = [*(self._added(name) for name in added if name not in names), *items]
        bounds: dict[str, list[str]] = {}
        whole = [item for item in items if item.name != _TORCH]  # whose libraries follow from its build
        for name, its in (each for item in whole for each in self._required(item).items()):
            bounds.setdefault(name, []).append(its)
        names = {each.name for each in items}
        shared = (
            name for name, its in bounds.items() if len({*its}) > 1 and any(map(pinned_by, (name + e for e in its)))
        )
        return [*items, *(self._added(name) for name in shared if name not in names and published(self.matrix, name))]

    def _is_engine(self, name: str) -> bool:
        role = self.matrix.role_of(name)
        return name != _TORCH and role is not None and role.role == "engine"

    def _is_listed(self, item: Planned) -> bool:
        """Whether it is wished, or decides about the GPU; what is only shared by two of these is the installer's."""
        wished = {each.name for each in self.wishes.planned or ()}
        return item.name in wished or item.name == _TORCH or self._is_engine(item.name) or item.source == _BESIDE

    def _required(self, item: Planned) -> Mapping[str, str]:
        """What the newest release that was asked for requires."""
        newest = item.version or newest_of(item, self.matrix)
        return self._needs(item.name, newest, item.extras)

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

    def _with_libraries(self, item: Planned) -> Planned:
        """The item with the extras that bring CUDA's libraries, which it takes from outside, in a release that runs."""
        known = extras_of(self.matrix, item.name, item.version or "")
        known = [row for row in known if not row.built and row.brings.keys() <= _LIBRARIES]
        extras = {*item.extras}
        for brings in dict.fromkeys(tuple(row.brings) for row in known):
            rows = [row for row in known if tuple(row.brings) == brings]
            runs = (
                row for row in reversed(rows) if self._verdict(*brought([row], "", row.extras) or ()) != "incompatible"
            )
            if extras.isdisjoint(extra for row in rows for extra in row.extras) and (row := next(runs, None)):
                extras.add(row.extras[0])
        return msgspec.structs.replace(item, extras=tuple(sorted(extras)))

    def _held_beside(self, items: Sequence[Planned]) -> Iterator[Planned]:
        """What an installer would take in a newer release than rows say that one of the items works with."""
        names = {each.name for each in items}
        needs = [self._needs(each.name, each.version or "", each.extras) for each in items]
        names_of = {name: self._required(self._wish(name)) for each in needs for name in each}
        comes = {name for own in (names_of, *names_of.values()) for name in own}
        for each in items:
            version = parse_version(each.version or "")
            rows = self.matrix.rows_for(canonical(each.name), version) if version else []
            declared = self._needs(each.name, each.version or "", each.extras)
            for name, bounds in (need for row in rows for need in row.needs.items() if need[0] in comes - names):
                asked = declared.get(name, "") if name in self.matrix.wheels_by_name else None
                if asked is not None and (newest := self._newest(name, asked)) and not contains(bounds, newest):
                    names.add(name)
                    yield from self._beside(name, ",".join(filter(None, (asked, bounds))))

    def _overrides(self, items: Sequence[Planned]) -> Iterator[Override]:
        """Where the set does not keep to what its packages require."""
        yield from (Override(requirement=each, reason=_OF_PROJECT) for each in self.given.overrides)

        def runs(name: str, version: str) -> bool:
            return self._verdict(_release(name, version)) != "incompatible"

        needs = {each.name: self._needs(each.name, each.version or "", each.extras) for each in items}
        for each in items:
            of_build = declared(self.matrix, each.name, each.version or "", self.markers, build=each.build)
            own = {name: bounds for name, bounds in of_build.items() if name not in self.overridden}
            yield from mending(each, own, self.matrix, runs)
        beside = {name for own in needs.values() for name in own} - needs.keys()
        yield from left_out(items, {name: self._required(self._wish(name)) for name in beside} | needs, self.matrix)

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

    def _wish(self, name: str) -> Planned:
        """What nobody wished for."""
        as_of = self.as_of or None
        return Planned(source=WISHES, name=name, asked=name, build="", file=WISHES, together=WISHES, as_of=as_of)

    def _newest(self, name: str, bounds: str) -> str:
        return newest_of(msgspec.structs.replace(self._wish(name), bounds=bounds), self.matrix, self.markers)

    def _beside(self, name: str, bounds: str) -> Iterator[Planned]:
        """The newest release within bounds of what nobody wished for, but is told."""
        if newest := self._newest(name, bounds):
            pin, wish = f"=={newest}", self._wish(name)
            yield msgspec.structs.replace(wish, source=_BESIDE, version=newest, bounds=pin, newest=True)

    def _wheels_beside(self, items: Sequence[Planned]) -> Iterator[Planned]:
        """NVIDIA's wheels that bring what the items take from outside, where no PyTorch does."""
        names = {each.name for each in items}
        if _TORCH in names or self.markers.get("sys_platform") != "linux":
            return
        wheels = {name: its for each in items for name, its in library_wheels(each, self.matrix).items()}
        for name, bounds in wheels.items():
            yield from self._beside(name, bounds) if name not in names else ()

    def _agree(self, items: Sequence[Planned]) -> bool:
        """Whether each has a release, within what the others require."""
        versions = {each.name: each.version for each in items}
        # Of a package without rows the installer chooses the release.
        known = (each for each in items if each.version is None and admitted_by(_open(each), self.matrix))
        return next(known, None) is None and all(
            name not in versions or contains(bounds, versions[name] or "")
            for each in items
            for name, bounds in self._needs(each.name, each.version or "", each.extras).items()
        )

    def _needs(self, name: str, version: str, extras: Sequence[str] = ()) -> Mapping[str, str]:
        needs = declared(self.matrix, name, version, self.markers, extras=extras)
        return {other: bounds for other, bounds in needs.items() if other not in self.overridden}

    def _added(self, name: str) -> Planned:
        """What nobody wished for, within what uv is given."""
        line = self.bounds.get(name, name)
        bounds = str(asked.specifier) if (asked := read_requirement(line)) else ""
        return msgspec.structs.replace(self._wish(name), bounds=bounds, version=pinned_by(line))

    def _running(self, sets: Iterable[list[Planned]], *, alone: bool = False) -> Iterator[list[Planned]]:
        """The sets in each build of PyTorch that runs on the machine: PyPI's, then that for the newest CUDA; ``alone``:
        whatever becomes of what runs within it.
        """
        for items in sets:
            torch = next((each for each in items if each.name == _TORCH), None)
            row = torch_row(self.matrix, torch.version or "") if torch else None
            default = tag_of(row.default_cuda or "") if row else ""
            stated = torch is None or row is None or torch.build or "+" in (torch.version or "")
            known = [tag_of(each.cuda) for each in builds(row)] if row else []
            tags = [default, *(tag for tag in reversed(known) if tag != default)]
            release, _, local = (torch.version or "" if torch else "").partition("+")
            for tag in [local or (torch.build if torch else "")] if stated else tags:
                version = f"{release}+{tag}" if tag else release
                build = [_release(_TORCH, version)] if torch else []
                within = [each for each in items if torch and _TORCH in named_by(canonical(each.name), self.matrix)]
                pairs = [[*build, _release(each.name, each.version)] for each in within if each.version]
                runs = not build or self._verdict(*build) == "compatible"
                if runs and (alone or all(self._verdict(*each) != "incompatible" for each in pairs)):
                    served = tag if stated or tag != default else ""
                    yield [
                        msgspec.structs.replace(each, build=served)
                        if each is torch or (tag and (each.version or "").endswith(f"+{tag}"))
                        else each
                        for each in items
                    ]

    def _solution(
        self, verdict: FitVerdict, machine: dict[str, str], items: Sequence[Planned], report: Report
    ) -> Solution:
        torch = next((each for each in items if each.name == _TORCH), None)
        tag = (torch.build if torch else "") or ""
        telling: dict[FitVerdict, Sequence[str]] = {
            "compatible": ("pass", "warn", "note"), "unknown": ("unknown",), "incompatible": ("fail",)
        }  # fmt: skip

        def concerns(check: Check) -> bool:
            if check.status == "pass":  # what is released with PyTorch is asked without its build
                return bool(check.sources) and not self.matrix.has_trait(package_of(check), "released-with-torch")
            return check.rule != PLAN or check.status != "note"  # that it is not pinned, which it is here

        about = (each for each in report.checks if each.subject.kind == "framework")
        checks = [each for each in about if each.status in telling[verdict] and concerns(each)]
        wished = {each.name for each in self.wishes.planned or ()}
        own = [each for each in checks if package_of(each) in wished]
        checks = own if verdict == "incompatible" and own else checks  # not what a PyTorch lacks that nobody asked for
        facts = Facts(report.snapshot or Snapshot(), self.matrix)
        packages = tuple(self._choice(each, items, tag, facts) for each in items if self._is_listed(each))
        python = self._python(items)
        compiled = any(each.compiled for each in packages)
        build = framework_named(_TORCH, facts.environment)
        cuda = CudaVersion.parse(build.cuda if build else None)
        nvcc = f"nvcc of CUDA {cuda.major} (PyTorch's is {cuda})" if cuda else "nvcc"
        return Solution(
            verdict=verdict,
            machine=machine,
            as_of=self.as_of,
            packages=packages,
            overrides=tuple(self._overrides(items)) if verdict != "incompatible" else (),
            constraints=tuple(self._constraints(items)) if verdict != "incompatible" else (),
            tag=tag,
            compiling=f"{nvcc} and a C++ compiler" if compiled else "",
            python=python,
            image=self._image("cuda", self._toolkit(facts, build)) if compiled else self._image("python", python),
            described=described(facts),
            opened_by_path=tuple(
                f"nvidia.{wheel.name.replace('-', '_')}"
                for each in items
                if each.source == _BESIDE and (wheel := wheel_of(each.name))
            ),
            reasons=tuple(
                Reason(verdict=verdict, message=self._seen(each), sources=each.sources)
                for each in checks or [check for check in report.checks if check.status == telling[verdict][0]][:1]
            ),
        )

    def _python(self, items: Sequence[Planned]) -> str:
        system = f"{self.markers['platform_system'].lower()}-{self.markers.get('platform_machine')}"
        releases = {each.name: each.version or "" for each in items}
        needs = [self._needs(each.name, each.version or "", each.extras) for each in items]
        releases |= {name: its for each in needs for name, bounds in each.items() if (its := pinned_by(name + bounds))}
        versions = ((canonical(name), parse_version(its)) for name, its in releases.items())
        known = (pythons_of(self.matrix, name, one, (system, "any")) for name, one in versions if one)
        shared = sorted(frozenset.intersection(*found), key=numbers_in) if (found := [*filter(None, known)]) else []
        newest = shared[-1] if shared and shared[-1] != ANY_LATER else ""
        return self.markers.get("python_version") or newest

    def _toolkit(self, facts: Facts, torch: Framework | None) -> str:
        """The newest toolkit of PyTorch's major that the driver, which an image is held to, supports."""
        most, driver = CudaVersion.parse(torch.cuda if torch else None), supported_cuda(facts)
        if most and driver and driver.major == most.major:
            most = min(most, driver)
        row = self.matrix.cuda_rows.get(most) if most else None
        return row.releases[-1] if row and row.releases else ""

    def _image(self, component: str, version: str) -> str:
        rows = (row for row in self.matrix.images if version and f"{{{component}}}" in row.written)
        return next((f"{row.names[0]}:{row.written.format(**{component: version})}" for row in rows), "")

    def _seen(self, check: Check) -> str:
        """What a check says; of a package that fits, what it has to do with the GPU and the driver."""
        message = f"{check.title}: {check.message}".removesuffix(": ")
        named = [part.exact for part in self.machine if part.name in ("gpu", "driver") and part.exact]
        telling = [part for part in check.message.split("; ") if any(value in part for value in named)]
        own = [part for part in telling if part.startswith(check.title.removesuffix(" fits"))]
        return "; ".join(own or telling) if check.status == "pass" and telling else message

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
        if item.version is None:
            until = f" to have come by {self.as_of}" if self.as_of else " here"
            return f"no release of it is known{until}: the installer chooses one, which may require others than these"
        asked = next((each for each in self.wishes.planned or () if each.name == item.name), None)
        admitted = admitted_by(_open(item, asked.bounds if asked else ""), self.matrix)
        newest = admitted[-1] if admitted else item.version
        if newest == item.version:
            return ""
        row = torch_row(self.matrix, newest or "") if item.name == _TORCH else None
        tags = [f"+{tag_of(each.cuda)}" for each in builds(row)] if row else [""]
        if all(self._verdict(_release(item.name, f"{newest}{tag}")) == "incompatible" for tag in tags):
            answer = answer_of(self.matrix, (_release(item.name, newest or ""), *self.machine))
            why = next((each.message for each in answer.reasons if each.verdict == "incompatible"), "")
            page = self.matrix.extension_build(item.name).releases.format(version=newest)
            apart = f"; its project has builds for other CUDA versions: {page}" if page else ""
            return f"{newest} is newer: {why}{apart}" if why else f"{newest} is newer, and no build of it runs here"
        for other in items:
            needs = self._needs(other.name, other.version or "", other.extras).get(item.name, "")
            if other is not item and not contains(needs, newest or ""):
                return f"{other.name} {other.version} requires {item.name}{needs}, and {newest} is newer"
            own = self._needs(item.name, newest or "", item.extras).get(other.name, "")
            if other is not item and not contains(own, other.version or ""):
                return f"{newest} is newer, and requires {other.name}{own}"
            for one, its, two, version in (
                (item.name, newest, other.name, other.version), (other.name, other.version, item.name, newest)
            ):  # fmt: skip
                fit = release_fits(self.matrix, one, its or "", two, version or "")
                if other is not item and fit and fit.bad:
                    return f"{newest} is newer: {fit.reason}"
        return f"{newest} is newer, and does not fit with the rest"

    def _nearest(self, items: Sequence[Planned], entries: Sequence[Planned]) -> Iterator[str]:
        """Changes of the machine with which what is refused runs, and changes of one wish with which there is a set."""
        asked: list[Sequence[Component]] = []
        for each in (item for item in items if item.source != _BESIDE):
            version = each.version or ""
            with_extras = brought(extras_of(self.matrix, each.name, version), version, each.extras) or ()
            asked.append([_release(each.name, f"{version}+{each.build}" if each.build else version), *with_extras])
        answers = [ask(self.matrix, [*each, *self.machine]) for each in asked if each[0].exact]
        refused = [answer for answer in answers if answer.verdict == "incompatible"]
        names = {each.name for each in items}
        if len(refused) == 1:  # else no single change is enough
            yield from (text for text in refused[0].suggestions if text.split()[0] not in names | _LIBRARIES)
        asked += ([_release(each.name, each.version or "")] for each in self._coming_with(items))
        yield from islice(self._other_gpus(asked), 1) if self._agree(items) else ()
        for place, each in enumerate(entries):
            before, after = entries[:place], entries[place + 1 :]
            extras = f"{each.name}[{','.join(each.extras)}]" if each.extras else ""
            changes = [(f"instead of {extras}", [msgspec.structs.replace(each, extras=())])] if extras else []
            changes += [(f"instead of {each.asked}", [_open(each)])] if each.bounds else []
            changes += [(f"without {each.asked}", [])] if before or after else []
            found = (self._set_of([*before, *wish, *after], change) for change, wish in changes)
            yield from islice(filter(None, found), 1)

    def _other_gpus(self, asked: Sequence[Sequence[Component]]) -> Iterator[str]:
        """GPUs that nothing of what is asked refuses, where this one is refused: nearest first, newer before older."""
        own = max((capability for _, capability in gpus_with_capability(self.facts)), default=None)
        refused = any(self._verdict(*each) == "incompatible" for each in asked)
        if own is None or not refused or [part.name for part in self.machine].count("gpu") != 1:
            return
        known = sorted(each for each, row in self.matrix.capability_rows.items() if not row.tegra)
        newer, older = [each for each in known if each > own], [each for each in known if each < own]
        for each in (*newer, *reversed(older)):
            gpu = Component("gpu", (Bound("==", str(each)),))
            machine = [gpu if part.name == "gpu" else part for part in self.machine]
            if all(answer_of(self.matrix, (*parts, *machine)).verdict != "incompatible" for parts in asked):
                yield f"a GPU of compute capability {each}"

    def _set_of(self, entries: Sequence[Planned], change: str) -> str:
        """What would be chosen of these; empty, where that does not fit either."""
        for chosen in islice(self._running(self._ranked(entries)), _MOST_JUDGED):
            if self._runs(chosen) and self._judged(chosen).verdict != "fail":
                items = [each for each in chosen if self._is_listed(each)]
                tag = next((each.build for each in items if each.name == _TORCH), "") or ""
                extras = (f"[{','.join(each.extras)}]" if each.extras else "" for each in items)
                versions = (labelled(each.name, each.version or "", tag, self.matrix) for each in items)
                items_text = (f"{each.name}{own} {its}" for each, own, its in zip(items, extras, versions, strict=True))
                return f"{change}: {', '.join(items_text)}".rstrip()
        return ""


def package_of(check: Check) -> str:
    """The package that a check is about."""
    return check.subject.key.rpartition(":")[2].partition(" ")[0]


def labelled(name: str, version: str, tag: str, matrix: Matrix) -> str:
    """The version with the local tag of PyTorch's index, which it writes into what is released with PyTorch alone."""
    own = name == _TORCH or all(matrix.has_trait(name, trait) for trait in ("on-torch-index", "released-with-torch"))
    return f"{version}+{tag}" if tag and own and "+" not in version else version


def _open(item: Planned, bounds: str = "") -> Planned:
    return msgspec.structs.replace(item, version=None, bounds=bounds, newest=False)


def _release(name: str, version: str) -> Component:
    return Component(name, (Bound("==", version),))
