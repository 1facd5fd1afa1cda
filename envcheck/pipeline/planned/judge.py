"""Judge what plans would install (``--plan``) by what the matrix says of each package, with file and line.

Exact releases of PyTorch are judged by the rules, as in an environment: the build that a plan leads to is known.
Everything else that needs a GPU is asked as ``envcheck matrix check`` asks it. A range is judged by all known releases
that it accepts: it fits where all do, and does not where none does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.compat.candidates import TORCH, named_by
from envcheck.compat.containers import not_started
from envcheck.compat.devices import is_for_a_part
from envcheck.compat.narrowing import contains, pythons_in, releases_within
from envcheck.compat.package_needs import marks_of, release_fits
from envcheck.compat.question import CONTAINER, exactly
from envcheck.compat.reading import read_question
from envcheck.compat.requirements import declared, extras_of
from envcheck.enrich.stated import FORWARD
from envcheck.knowledge.images import image_of
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.relations.driver import known_cuda_of
from envcheck.knowledge.specifier import numbers_in
from envcheck.model.checks import PLAN, Check, Fix, Location, Status, Subject
from envcheck.model.components import Component
from envcheck.model.snapshot import Planned, Snapshot
from envcheck.pipeline.planned.checks import is_torch, label_of, machine_of, virtual
from envcheck.pipeline.planned.libraries import (
    beside_system,
    newer_beside,
    perhaps_forward,
    perhaps_runs,
    uncompiled,
    without_libraries,
    written_over,
)
from envcheck.pipeline.planned.ranges import contradictions, held_back, not_pinned, without_files, without_release
from envcheck.pipeline.planned.releases import JudgedReleases
from envcheck.plans import WISHES
from envcheck.plans.readers.environment_yml import VIRTUAL
from envcheck.rules.api import Facts
from envcheck.rules.facts.library_names import overwritten, wheel_of
from envcheck.rules.facts.machine import and_more
from envcheck.rules.fixes.driver import update_driver
from envcheck.rules.fixes.frameworks import INDEX

_NAMED = 3


def judge_plan(snapshot: Snapshot, matrix: Matrix, *, tried: bool = False) -> tuple[Check, ...]:
    """A check for each package of the plan that needs a GPU; one that is unknown where nothing can be judged."""
    facts = Facts(snapshot, matrix)
    environment = facts.environment
    if environment.planned is None:
        return ()
    machine = machine_of(facts)
    stated = {part.name: part.exact for part in machine}
    markers = marks_of(environment.python, stated.get("os") or "linux", stated.get("machine"))
    return _Judge(environment, matrix, machine, markers, tried, facts).checks()


@dataclass(frozen=True)
class _Judge(JudgedReleases):
    """Judges the entries of one plan."""

    @cached_property
    def overwritten(self) -> Mapping[str, tuple[str, str]]:
        """Entries beside what writes the same files."""
        return overwritten(self.facts)

    def checks(self) -> tuple[Check, ...]:
        checks = [
            self._beside_its_double(check, item)
            for item in self.entries
            for check in self._found_where_it_looks(item, [*self._judge(item)])
        ]
        checks += [*contradictions(self), *without_release(self)]
        # What is judged as it would be installed today, though the plan does not say so.
        newest = [item for item in self.entries if item.newest and (self._important(item) or self._needs_gpu(item))]
        checks += [not_pinned(item, item.version or "", f"{item.version} is judged", self) for item in newest]
        # Packages for GPUs that the image's system does not take, where nothing else fails them.
        failing = {check.id for check in checks if check.status == "fail"}
        for item in self.entries:
            if is_torch(item, self.matrix) or self._important(item) or self._needs_gpu(item):
                found = beside_system(item, self)
                checks += [found] if found is not None and found.id not in failing else []
        checks += self._unnamed_torch(checks)
        checks += self._coming_along()
        rules_judge = any(
            item.version and (is_torch(item, self.matrix) or self._judged_by_rules(item.name)) for item in self.entries
        )
        about = {check.subject.key for check in checks}
        of_packages = [item for item in self.entries if item.image is None or self._important(item)]
        if not rules_judge and not any(f"{self.environment.key}:{item.name}" in about for item in of_packages):
            checks += self._of_extras()
        if not checks and not rules_judge:
            nothing = Check(
                id=f"{PLAN}@{self.environment.key}",
                rule=PLAN,
                scope="env",
                layer="framework",
                subject=Subject(kind="environment", key=self.environment.key, environment=self.environment.key),
                status="unknown",
                title="The plan names nothing that can be judged",
                message=(
                    "none of its packages is a framework or a library for GPUs that the matrix knows; "
                    "those of an extra or group count where FILE[NAME] names it"
                ),
                location=Location(file=self.environment.planned[0].file) if self.environment.planned else None,
            )
            checks.append(nothing)
        return (*checks, *self._not_known())

    def _not_known(self) -> Iterator[Check]:
        """The packages of which nothing was judged, since no row names them."""
        named = [item for item in self.entries if item.name and item.image is item.brings is None]
        unknown = [item for item in named if not self.matrix.knows(canonical(item.name))]
        if unknown:
            names = list(dict.fromkeys(item.name for item in unknown))
            title = f"Not known to the matrix: {', '.join(names[:_NAMED])}{and_more(names, _NAMED)}"
            message = f"No row names them, so nothing of them was judged: {', '.join(names)}."
            key, check = f"{PLAN}@{self.environment.key} not known", self.check(unknown[0], "skipped", title, message)
            yield msgspec.structs.replace(check, id=key, location=None)

    def _unnamed_torch(self, judged: Sequence[Check]) -> Iterator[Check]:
        """That what passes is not all: a pinned package brings some release of PyTorch, which no entry names."""
        owners = [name for name, needs in self.needs.items() if "torch" in needs]
        if (pin := self._torch_of_pins) and (answer := self.asked("torch", pin)).verdict == "incompatible":
            item = next(each for each in self.entries if pin in self.needs.get(each.name, {}).get("torch", ""))
            found, forward = self.answered(item, answer), perhaps_forward(self.facts)
            if forward and self.asked("torch", pin, [*self.machine, forward]).verdict != "incompatible":
                found = perhaps_runs(found)
            why = f"{label_of(item)} requires torch {pin}: {found.message}"
            yield msgspec.structs.replace(found, id=f"{found.id} torch", message=why)
            return
        named = any(is_torch(each, self.matrix) or each.image or not each.name for each in self.entries)
        if named or not owners or self._torch_of_pins or not any(check.status == "pass" for check in judged):
            return
        item = next(each for each in self.entries if each.name in owners)
        why = f"{label_of(item)} requires PyTorch, and the plan does not name it"
        yield self.check(item, "unknown", "Which release of torch would be installed is open", f"{why}.")

    @cached_property
    def _oldest_python(self) -> str:
        """The Python that is stated, or the oldest that PyPI has files of all pins for; empty where none is known."""
        known = [*filter(None, self.pythons_of_pins.values())]
        common = sorted(frozenset.intersection(*known), key=numbers_in) if known else []
        return self.markers.get("python_version") or next(iter(common), "")

    def _coming_along(self) -> Iterator[Check]:
        """A package for GPUs whose files one for the CPU takes the place of, which another entry requires; and one that
        does not work with the newest release of what another requires. What is solved says how to leave these out.
        """
        newest = {name: each.left[-1] for name, each in self.releases.items() if each.left}
        items = [
            msgspec.structs.replace(each, version=each.version or newest.get(each.name))
            for each in self.entries
            if each.name and each.together not in (None, WISHES) and each.conda is each.image is each.problem is None
        ]
        needs = {
            each.name: declared(self.matrix, each.name, each.version, self.markers, extras=each.extras)
            for each in items
            if each.version
        }
        for item, owner, name in written_over(items, needs, self.matrix):
            why = f"{owner} requires {name}, which has the same folder as {item.name}: the one installed last wins."
            text = f"Leave {name} out, by override-dependencies of uv, or install {item.name} once more at the end."
            yield self.check(item, "warn", f"{name} would be installed over {item.name}", why, fixes=(Fix(text=text),))
        ours = [each for each in items if is_torch(each, self.matrix) or self._important(each) or self._needs_gpu(each)]
        if not ours or any(not each.name for each in self.entries):  # which may ask for other releases
            return

        markers = {"platform_machine": "x86_64", **self.markers}

        def taken(name: str, bounds: str) -> str:
            within = reversed(releases_within(self.matrix, name, bounds, items[0].as_of))
            served = ((each, pythons_in(self.matrix, name, each, markers, compiled=True)) for each in within)
            oldest = self._oldest_python  # what is too new for it, is so for others
            return next((each for each, its in served if not (its and oldest) or oldest in its), "")

        named = {each.name for each in self.entries} | {TORCH}
        # An extra that asks for a build, as jaxlib==0.4.23+cuda12.cudnn89, pins the release.
        rows = ((each, row) for each in items for row in extras_of(self.matrix, each.name, each.version or ""))
        named |= {row.built for each, row in rows if {*row.extras} & {*each.extras}}
        pinned = {each.name for each in self.entries if each.version}
        judged = [each for each in items if each in ours or each.name in pinned]
        for item, name, _, fit in newer_beside(judged, needs, named, self.matrix, taken):
            why = f"No entry names {name}, which others require, and pip takes the newest: {fit.reason}."
            fix = Fix(text=f"Ask for {fit.nearest_change} as well.")
            check = self.check(item, "warn", f"{name} is too new for {label_of(item)}", why, fixes=(fix,))
            yield msgspec.structs.replace(check, id=f"{check.id} {name}", sources=fit.sources)

    def _of_extras(self) -> Iterator[Check]:
        """Packages that the matrix does not know, asked for with extras: these may bring what needs a GPU."""
        for item in (each for each in self.entries if each.extras):
            if not (self.matrix.rows_of(canonical(item.name)) or extras_of(self.matrix, item.name, item.version or "")):
                label = f"{item.name}[{','.join(item.extras)}]"
                why = f"the matrix does not know {item.name}, and extras may bring packages that need a GPU"
                yield self.check(item, "unknown", f"What {label} brings is not known", f"{label}: {why}.")

    def _beside_its_double(self, check: Check, item: Planned) -> Check:
        """The check; where something else of the plan writes the same files, with the fix that leaves one."""
        asked = item.name if check.status in ("fail", "unknown") and item.image is None else ""
        other, owner = self.overwritten.get(asked, ("", ""))
        if not other:
            return check
        text = f"Keep one of {item.name} and {other}, which write the same files."
        if owner:
            text = f"Remove {item.name}: {owner} requires {other}, which writes the same files."
        return msgspec.structs.replace(check, fixes=(Fix(text=text),))

    def _found_where_it_looks(self, item: Planned, checks: Sequence[Check]) -> Sequence[Check]:
        """The checks of an entry; where nothing else fails it, that no index of the plan is known to have its build:
        PyPI has none with a local tag.
        """
        tag = (item.version or "").partition("+")[2]
        elsewhere = item.build is None or (item.build and (item.build == tag or item.name != "torch"))
        if not tag or elsewhere or item.image or item.refused or any(check.status != "pass" for check in checks):
            return checks
        why = f"PyPI has no build +{tag}, and the plan names no index that has it; pip finds none unless it is told one"
        address = f" {INDEX}{tag}" if self.matrix.has_trait(item.name, "on-torch-index") or item.name == "torch" else ""
        text = f"Name the index: --extra-index-url{address}, as a line of the file or an option of pip install."
        return [self.check(item, "unknown", f"{label_of(item)} is not on PyPI", why, fixes=(Fix(text=text),))]

    def _judge(self, item: Planned) -> Iterator[Check]:
        if item.refused is not None:
            yield self.check(item, "fail", f"{label_of(item)} cannot be installed", f"{item.asked}: {item.refused}.")
        elif item.brings is not None:
            return  # it counts for what needs it
        elif item.name.startswith(VIRTUAL):
            yield from self._of_machine(item)
        elif item.conda is not None and (refused := self._refused_by_machine(item)):
            yield refused
        elif not item.name:
            if item.problem:  # without one, it is the project that the plan belongs to
                yield self.check(item, "unknown", f"{item.asked} may install anything", item.problem)
        elif is_torch(item, self.matrix):
            yield from self._of_torch(item)
        elif item.conda is not None:
            # Channels build packages with other libraries than PyPI's, which rows speak of.
            if item.version is not None:
                yield from self._of_build(item, item.name) if self._important(item) else ()
            elif self._important(item) or self._needs_gpu(item):
                role = self.matrix.role_of(item.name)
                pinned = any(is_torch(each, self.matrix) and each.version is not None for each in self.entries)
                # What selects a build of PyTorch, and what conda chooses for the pinned PyTorch, follow it.
                follows = any(row.selector == item.name for row in self.matrix.conda_builds)
                follows = follows or (pinned and self.matrix.has_trait(item.name, "released-with-torch"))
                if not follows and (not self._has_pinned_framework or (role is not None and role.role != "compiler")):
                    yield self.left_open(item)  # of libraries, the solver chooses those that the framework takes
        elif item.image is not None and any(each.image == item.image and each.name == "cuda" for each in self.entries):
            if item.name == "cuda":
                yield from self._of_image(item)
        else:
            yield from self._of_package(item)

    def _refused_by_machine(self, item: Planned) -> Check | None:
        """The failure of what asks for at least its own major version of a virtual package: ``cuda-version=13.1``."""
        row = next((row for row in self.matrix.virtual_packages if item.name in row.majors_of), None)
        starts = [each.version for each in SpecifierSet(item.bounds) if each.operator in ("==", ">=", "~=")]
        if row is None or not starts:
            return None
        asked = msgspec.structs.replace(item, name=row.name, bounds=f">={starts[0].partition('.')[0]}")
        found = next(self._of_machine(asked), None)
        return found if found is not None and found.status == "fail" else None

    def _of_machine(self, item: Planned) -> Iterator[Check]:
        """What conda's solver or an image asks of the machine, where the machine is known so far."""
        row = next((row for row in self.matrix.virtual_packages if row.name == item.name), None)
        version = virtual(row, self.facts) if row else None
        if item.image is not None:  # Docker asks the driver outside, whatever cuda-compat the image holds
            driver = self.facts.driver_release
            own = known_cuda_of(self.matrix, driver) if driver and item.bounds else None
            version = str(own) if own else None
        if row is None or version is None:
            return
        if contains(item.bounds, version):
            yield self.check(item, "pass", f"{item.asked} is met", f"{row.title} is {version}")
            return
        drivers = [each for each in self.matrix.drivers if each.os == "linux" and row.means == "driver-cuda"]
        newer = min((each.branch for each in drivers if contains(item.bounds, each.cuda or "0")), default=None)
        fixes = update_driver(self.facts, f">={newer}") if newer else ()
        message = f"{row.title} is {version}, so that the solver of conda and pixi finds no set"
        title = f"This machine does not have {item.asked}"
        if item.image is not None:
            message = f"{row.title} is {version}, so that Docker does not start a container of the image"
            title = f"The driver does not meet {item.asked}"
        yield self.check(item, "fail", title, message, fixes=fixes, sources=self.matrix.cite(row))

    def _of_package(self, item: Planned) -> Iterator[Check]:
        important = self._important(item)
        if not (important or self._needs_gpu(item) or (item.version is None and self._is_built_for_gpus(item))):
            pinned = without_files(item, self) or self._before_release(item) if item.version is not None else None
            check = pinned or (held_back(item, self) if item.version is None else self._beside_pins(item))
            yield from (check,) if check else ()
            return
        if self._is_part_of_torch(item):
            # PyTorch, which brings it, runs without it on GPUs that it does not support, but not beside another one's.
            torch = self._frameworks.get("torch")
            if torch is not None and torch.version and self.matrix.has_trait(item.name, "released-with-torch"):
                beside = [exactly("torch", torch.version), *self.system]
                answer = self.asked(item.name, item.version or "", beside, suggest=False)
                if item.version and answer.verdict == "incompatible":
                    yield msgspec.structs.replace(self.answered(item, answer), status="warn")
            return
        found = self._other(item)
        if found.status == "unknown" and item.version is None and item.problem is None and self._is_for_the_cpu(item):
            found = self.of_release(item, self.releases[item.name].left[-1])  # as are all others
        if found.status == "pass" and item.version is not None:
            found = without_libraries(item, self) or self._before_release(item) or found
        if found.status in ("pass", "note") and (unbuilt := uncompiled(item, self)):
            yield unbuilt
            return
        if found.status == "fail" and self._is_beside_torch and self._is_for_the_cpu(item):
            found = msgspec.structs.replace(found, status="warn")  # many projects bring it on purpose
        for_a_part = self._is_beside_torch and is_for_a_part(self.matrix, "torch", item.name)
        if found.status == "fail" and (for_a_part or self._is_unused_on_one(item)):
            return
        on_purpose = found.status == "fail" and self._is_for_the_cpu(item) and self._others_compute(item)
        if on_purpose or (found.status == "fail" and self.matrix.has_trait(item.name, "for-cpu-and-gpu")):
            doubt = "programs use it for the CPU as well, and whether these use it for the GPU is open"
            status: Status = "warn" if not on_purpose and any(map(self._important, self.entries)) else "unknown"
            found = msgspec.structs.replace(found, status=status, message=f"{found.message}; {doubt}")
        if found.status == "fail" and item.version is not None and item.problem:
            found = msgspec.structs.replace(found, status="unknown", message=f"{found.message}; {item.problem}")
        if found.status == "fail" and (forward := perhaps_forward(self.facts)):
            with_it: _Judge = replace(self, machine=[*self.machine, forward])
            if with_it._other(item).status != "fail":
                found = perhaps_runs(found)
        if found.status != "unknown" or important or not self._is_required(item):
            yield found

    def _beside_pins(self, item: Planned) -> Check | None:
        """That a package without GPU code does not work with another pin, as rows tell and its metadata does not: that
        it lost a name which the package imports.
        """
        named = named_by(canonical(item.name), self.matrix)
        beside = self.entries if named else ()  # most packages name none
        pins = {canonical(each.name): each for each in beside if each.version and each.image is each.conda is None}
        for name in sorted(named & pins.keys()):
            fit = release_fits(self.matrix, item.name, item.version or "", name, pins[name].version or "")
            if fit is not None and fit.bad and "<" in fit.nearest_change:  # an extra may ask for a least release
                title = f"{label_of(item)} does not work with {label_of(pins[name])}"
                found = self.check(item, "fail", title, fit.reason, fixes=(Fix(text=f"Ask for {fit.nearest_change}."),))
                return msgspec.structs.replace(found, sources=fit.sources)
        return None

    def _others_compute(self, item: Planned) -> bool:
        """Whether another entry is not for the CPU: it needs GPUs, or runs in a framework that may be there."""
        for other in (each for each in self.entries if each is not item and not self._is_for_the_cpu(each)):
            named = {other.name, *named_by(canonical(other.name), self.matrix)} - {item.name}
            if self._needs_gpu(other) or any(self.matrix.has_role(each, "framework") for each in named):
                return True
        return False

    def _is_unused_on_one(self, item: Planned) -> bool:
        """Whether a framework brings it for several GPUs, there is one, and only the GPU is against it."""
        one = self._has_pinned_framework and len(self.facts.usable_gpus) == 1
        if not one or not self._is_required(item) or not self.matrix.has_trait(item.name, "for-several-gpus"):
            return False
        beside = [part for part in self.machine if part.name != "gpu"]
        return self.asked(item.name, item.version or "", beside, suggest=False).verdict != "incompatible"

    def _is_required(self, item: Planned) -> bool:
        """Whether it is the release that another pinned package requires, which is judged in its place."""
        others = (needs for owner, needs in self.needs.items() if owner != item.name)
        return item.version is not None and any(item.name in needs for needs in others)

    def _is_part_of_torch(self, item: Planned) -> bool:
        """Whether PyTorch is judged and brings it: what it needs for some operations alone, or, of an open entry, the
        release that its build requires, which is none for another CUDA version than PyTorch's; where PyTorch is open
        too, one of its releases does.
        """
        torch = self._judged_by_rules("torch")
        if item.problem or not (torch or self._is_beside_torch):
            return False
        stem, _, major = item.name.rpartition("-cu")
        if torch and item.version is None and major.isdigit() and (torch.cuda or "").partition(".")[0] != major:
            return False
        if torch and is_for_a_part(self.matrix, "torch", item.name):
            return True
        left = self.releases["torch"].left if "torch" in self.releases else ()
        releases = [(torch.version or "").partition("+")[0]] if torch else left
        names = (name for release in releases for name in declared(self.matrix, "torch", release, self.markers))
        if item.version is not None or not stem:
            return False
        # Of a library that one of these brings, as nvJitLink, no release may be known.
        unknown = torch is not None and wheel_of(item.name) is not None and item.name not in self.releases
        return unknown or any(name.rpartition("-cu")[0] == stem for name in names)

    @property
    def _has_pinned_framework(self) -> bool:
        return any(each.version is not None and self.matrix.has_role(each.name, "framework") for each in self.entries)

    def _of_image(self, item: Planned) -> Iterator[Check]:
        """A base image with CUDA: its GPUs, driver and cuda-compat by the rows that ``nvcr==`` asks, then its parts."""
        stated = [part for part in self.machine if part.name not in ("python", FORWARD)]  # it brings its own
        answer = self.asked(CONTAINER, item.image or "", stated)
        own = any(each.image is not None and each.name.startswith(VIRTUAL) for each in self.entries)
        if own and self._not_started(item, stated):  # what this file asks of the driver counts instead
            answer = self.asked(item.name, item.version or "", stated)
        whole = msgspec.structs.replace(item, asked=item.image or "", image=None)
        found = self.answered(whole, answer)
        if found.status == "fail" and self._only_gpu(item, stated):
            if any(each.image is each.conda is None and self._important(each) for each in self.entries):
                remark = (
                    "what the plan installs brings its own CUDA, and only what is compiled in the image would not run"
                )
                found = msgspec.structs.replace(found, status="warn", message=f"{found.message}; {remark}")
            elif any(each.problem or not each.name for each in self.entries if each is not item) or any(
                self._of_extras()
            ):
                remark = "what else the plan installs may bring its own CUDA"
                found = msgspec.structs.replace(found, status="unknown", message=f"{found.message}; {remark}")
        yield found
        known = image_of(self.matrix, item.image or "")
        if found.status != "pass" or (known and known.row and known.row.driver):
            return  # which its parts would only say again; notes that name a driver are about the whole image
        for part in self.entries:
            if part.image == item.image and part is not item and not is_torch(part, self.matrix):
                of_part = self.answered(part, self.asked(part.name, part.version or "", stated))
                if of_part.status == "fail":
                    yield of_part

    def _only_gpu(self, item: Planned, stated: Sequence[Component]) -> bool:
        """Whether only the GPU is against an image of which CUDA alone counts, and it can be started."""
        known = image_of(self.matrix, item.image or "")
        replaced = any(is_torch(each, self.matrix) and each.image is None for each in self.entries)
        if known is None or known.row is None or (known.row.capability_max and not replaced):
            return False
        beside = [part for part in stated if part.name != "gpu"]
        alone = self.asked(CONTAINER, item.image or "", beside, suggest=False)
        return alone.verdict != "incompatible" and not self._not_started(item, stated)

    def _not_started(self, item: Planned, stated: Sequence[Component]) -> bool:
        """Whether Docker does not start the image with this driver."""
        return not_started(read_question(self.matrix, [exactly(CONTAINER, item.image or ""), *stated])) is not None
