"""``envcheck plan``: the newest releases that fit each other and the machine, of those that the matrix knows.

One package leads: PyTorch, where anything that is asked for runs within it, else the first framework. Each of its
releases decides what is left of the others; the set in which least was given up comes first, and each is judged as a
plan before it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice, tee

import msgspec

from envcheck.compat.narrowing import admitted_by, at_newest, contains, pythons_in
from envcheck.compat.package_needs import pinned_by, release_fits
from envcheck.compat.question import Reason, exactly
from envcheck.compat.requirements import brought, extras_of
from envcheck.compat.wheels import ANY_LATER
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.knowledge.relations.torch import builds, tag_of, torch_row
from envcheck.knowledge.specifier import numbers_in
from envcheck.model.checks import PLAN, Check, Report
from envcheck.model.components import Component
from envcheck.model.snapshot import Environment, Framework, Planned, Snapshot
from envcheck.model.versions import CudaVersion
from envcheck.pipeline.planned.checks import answer_of, described
from envcheck.pipeline.planned.sets import BESIDE, LIBRARIES, TORCH, Judge, RankedSets, open_item
from envcheck.pipeline.planned.solution import ChosenRelease, Solution
from envcheck.plans.readers.pyproject import NO_SETTINGS, UvSettings
from envcheck.plans.settle import as_environment
from envcheck.rules.api import Facts
from envcheck.rules.facts.library_names import wheel_of
from envcheck.rules.fixes.reinstall import wheel_addresses

_MOST_JUDGED = 8


def solve(
    snapshot: Snapshot, wishes: Environment, matrix: Matrix, judge: Judge, given: UvSettings = NO_SETTINGS
) -> Solution:
    """The best set of ``wishes.planned`` on the machine of ``snapshot``; ``judge`` says what is found of one."""
    return _Solver(snapshot, wishes, matrix, judge, given).solution()


class _Solver(RankedSets):
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

    def _is_listed(self, item: Planned) -> bool:
        """Whether it is wished, or decides about the GPU; what is only shared by two of these is the installer's."""
        wished = {each.name for each in self.wishes.planned or ()}
        return item.name in wished or item.name == TORCH or self._is_engine(item.name) or item.source == BESIDE

    def _solution(
        self, verdict: FitVerdict, machine: dict[str, str], items: Sequence[Planned], report: Report
    ) -> Solution:
        torch = next((each for each in items if each.name == TORCH), None)
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
        build = facts.framework(TORCH)
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
                if each.source == BESIDE and (wheel := wheel_of(each.name))
            ),
            reasons=tuple(
                Reason(verdict=verdict, message=self._seen(each), sources=each.sources)
                for each in checks or [check for check in report.checks if check.status == telling[verdict][0]][:1]
            ),
        )

    def _python(self, items: Sequence[Planned]) -> str:
        releases = {each.name: each.version or "" for each in items}
        needs = [self._needs(each.name, each.version or "", each.extras) for each in items]
        releases |= {name: its for each in needs for name, bounds in each.items() if (its := pinned_by(name + bounds))}
        known = (pythons_in(self.matrix, name, its, self.markers) for name, its in releases.items())
        shared = sorted(frozenset.intersection(*found), key=numbers_in) if (found := [*filter(None, known)]) else []
        newest = shared[-1] if shared and shared[-1] != ANY_LATER else ""
        return self.markers.get("python_version") or newest

    def _toolkit(self, facts: Facts, torch: Framework | None) -> str:
        """The newest toolkit of PyTorch's major that the driver, which an image is held to, supports."""
        most, driver = CudaVersion.parse(torch.cuda if torch else None), facts.supported_cuda
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
        torch = facts.framework(TORCH) if compiled else None
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
        admitted = admitted_by(open_item(item, asked.bounds if asked else ""), self.matrix)
        newest = admitted[-1] if admitted else item.version
        if newest == item.version:
            return ""
        row = torch_row(self.matrix, newest or "") if item.name == TORCH else None
        tags = [f"+{tag_of(each.cuda)}" for each in builds(row)] if row else [""]
        if all(self._verdict(exactly(item.name, f"{newest}{tag}")) == "incompatible" for tag in tags):
            answer = answer_of(self.matrix, (exactly(item.name, newest or ""), *self.machine))
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
        for each in (item for item in items if item.source != BESIDE):
            version = each.version or ""
            with_extras = brought(extras_of(self.matrix, each.name, version), version, each.extras) or ()
            asked.append([exactly(each.name, f"{version}+{each.build}" if each.build else version), *with_extras])
        answers = [answer_of(self.matrix, (*each, *self.machine), True) for each in asked if each[0].exact]
        refused = [answer for answer in answers if answer.verdict == "incompatible"]
        names = {each.name for each in items}
        if len(refused) == 1:  # else no single change is enough
            yield from (text for text in refused[0].suggestions if text.split()[0] not in names | LIBRARIES)
        asked += ([exactly(each.name, each.version or "")] for each in self._coming_with(items))
        yield from islice(self._other_gpus(asked), 1) if self._agree(items) else ()
        for place, each in enumerate(entries):
            before, after = entries[:place], entries[place + 1 :]
            extras = f"{each.name}[{','.join(each.extras)}]" if each.extras else ""
            changes = [(f"instead of {extras}", [msgspec.structs.replace(each, extras=())])] if extras else []
            changes += [(f"instead of {each.asked}", [open_item(each)])] if each.bounds else []
            changes += [(f"without {each.asked}", [])] if before or after else []
            found = (self._set_of([*before, *wish, *after], change) for change, wish in changes)
            yield from islice(filter(None, found), 1)

    def _other_gpus(self, asked: Sequence[Sequence[Component]]) -> Iterator[str]:
        """GPUs that nothing of what is asked refuses, where this one is refused: nearest first, newer before older."""
        own = max((capability for _, capability in self.facts.gpus_with_capability), default=None)
        refused = any(self._verdict(*each) == "incompatible" for each in asked)
        if own is None or not refused or [part.name for part in self.machine].count("gpu") != 1:
            return
        known = sorted(each for each, row in self.matrix.capability_rows.items() if not row.tegra)
        newer, older = [each for each in known if each > own], [each for each in known if each < own]
        for each in (*newer, *reversed(older)):
            gpu = exactly("gpu", str(each))
            machine = [gpu if part.name == "gpu" else part for part in self.machine]
            if all(answer_of(self.matrix, (*parts, *machine)).verdict != "incompatible" for parts in asked):
                yield f"a GPU of compute capability {each}"

    def _set_of(self, entries: Sequence[Planned], change: str) -> str:
        """What would be chosen of these; empty, where that does not fit either."""
        for chosen in islice(self._running(self._ranked(entries)), _MOST_JUDGED):
            if self._runs(chosen) and self._judged(chosen).verdict != "fail":
                items = [each for each in chosen if self._is_listed(each)]
                tag = next((each.build for each in items if each.name == TORCH), "") or ""
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
    own = name == TORCH or all(matrix.has_trait(name, trait) for trait in ("on-torch-index", "released-with-torch"))
    return f"{version}+{tag}" if tag and own and "+" not in version else version
