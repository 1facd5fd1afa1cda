"""Judge one release of a package that a plan names: with its extras, on the machine, beside the frameworks of the plan;
builds of PyTorch and of conda's frameworks, which the rules judge in part; and what the rules find, with file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.compat.candidates import named_by
from envcheck.compat.package_needs import exact
from envcheck.compat.question import Answer, exactly
from envcheck.compat.requirements import brought, extras_of
from envcheck.compat.wheels import covering
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.specifier import parse_version, speaks_of
from envcheck.knowledge.tables.software import ExtraRow
from envcheck.model.checks import Check, Evidence, Fix, Location, Status
from envcheck.model.components import Component
from envcheck.model.snapshot import Framework, Planned, Snapshot, frameworks_in
from envcheck.model.versions import CondaBuild, CudaVersion, is_release
from envcheck.pipeline.planned.checks import JudgedPlan, is_torch, label_of
from envcheck.pipeline.planned.libraries import perhaps_forward, perhaps_runs
from envcheck.pipeline.planned.ranges import judge_range
from envcheck.plans.settle import is_published
from envcheck.rules.api import Facts
from envcheck.rules.facts.library_names import wheel_of
from envcheck.text.lazy import lazy_pattern

_MINOR = lazy_pattern(r"==([0-9]{1,2}\.[0-9]{1,2})(?![0-9])")
_ALWAYS = ("cuda", "cudnn")
_OF_PROJECTS = (".toml", ".lock", ".py", ".cfg")
"""How files are called that may have extras and groups beside what is installed unasked."""


@dataclass(frozen=True)
class JudgedReleases(JudgedPlan):
    """What is found of single releases, and what the packages of a plan are for."""

    facts: Facts

    @cached_property
    def _frameworks(self) -> Mapping[str, Framework]:
        return {each.name: each for each in reversed(frameworks_in(self.environment))}

    def _judged_by_rules(self, name: str) -> Framework | None:
        """The framework, where enough is known of its build for the rules: what they skip would not prevent a pass."""
        found = self._frameworks.get(name)
        return found if found and (found.cpu_only or found.hip or (found.cuda and found.gpu_code)) else None

    @cached_property
    def _is_beside_torch(self) -> bool:
        """Whether the plan installs a PyTorch that may compute on the GPU, as an open release may."""
        torch = self._frameworks.get("torch")
        planned = any(is_torch(each, self.matrix) and each.build != "cpu" for each in self.entries)
        return planned and (torch is None or not (torch.cpu_only or torch.hip))

    def _is_for_the_cpu(self, item: Planned) -> bool:
        """Whether the package computes on the CPU, with what the plan brings beside it."""
        version, rows = parse_version(item.version or ""), self.matrix.rows_of(canonical(item.name))
        if version is None:
            return item.name in self.releases and {row.cuda for row in rows if row.cuda is not None} == {""}
        if any(row.cuda == "" for row in self.matrix.rows_for(canonical(item.name), version)):
            return True
        needed = [row for row in extras_of(self.matrix, item.name, str(item.version)) if row.needed]
        by_extras = brought(needed, str(item.version), item.extras)
        return bool(needed) and not by_extras and not self._comes_otherwise(needed)

    def _important(self, item: Planned) -> bool:
        """Whether people install a project for it, so that an open question about it leaves the verdict open."""
        row = self.matrix.role_of(item.name)
        if row is None or row.role not in ("framework", "engine"):
            return False
        # Of the packages that only start with a framework's name, those count that the matrix knows.
        return item.name in row.names or bool(self.matrix.rows_of(canonical(item.name)))

    def _needs_gpu(self, item: Planned) -> bool:
        """Whether rows that speak of it say anything of GPUs, or of compiling for them, or its tag: +cu116."""
        rows = self.matrix.rows_of(canonical(item.name))
        return (bool(rows) and "+cu" in (item.version or "")) or any(
            row.cuda or row.targets or row.capability_min or row.capabilities or {"cuda", "nvcc"} & row.needs.keys()
            for row in rows
        )

    def _is_built_for_gpus(self, item: Planned) -> bool:
        """Whether it is a wheel of CUDA's libraries, or compiled for PyTorch, though no row says anything of GPUs."""
        name = canonical(item.name)
        if wheel_of(item.name) is not None or self.matrix.has_trait(item.name, "compiles-where-it-runs"):
            return True
        pure = any("any" in row.pythons for row in self.matrix.wheels_by_name.get(name, ()))
        return not pure and any("torch" in row.needs for row in self.matrix.rows_of(name))

    def _other(self, item: Planned) -> Check:
        """A package that is no build of a framework which the rules judge: one release, or all that the plan admits."""
        if item.version is not None:
            return self.of_release(item, item.version)
        return judge_range(
            item, self, lambda plan, one, suggest: plan.of_release(one, one.version or "", suggest=suggest)
        )

    def of_release(self, item: Planned, version: str, *, suggest: bool = True) -> Check:
        by_extras: list[Component] = []
        if item.conda is None and item.image is None:
            known = extras_of(self.matrix, item.name, version)
            by_extras = brought(known, version, item.extras) or []
            rows = [row for row in known if row.needed]
            asks_gpu = any(part.name == "gpu" for part in self.machine)
            if rows and not brought(rows, version, item.extras) and asks_gpu and not self._comes_otherwise(rows):
                alone = self.asked(item.name, version, suggest=suggest)
                if alone.verdict == "incompatible":
                    return self.answered(item, alone)
                return self._without_gpu(item, rows)
        beside = [*by_extras, *self.machine]
        if item.build and "+" not in version and self.matrix.has_trait(item.name, "on-torch-index"):
            served = self.asked(item.name, f"{version}+{item.build}", beside, suggest=suggest)
            if served.verdict != "unknown":
                return self.answered(item, served)
        answer = self.asked(item.name, version, beside, suggest=suggest)
        if answer.verdict != "incompatible":
            answer = self._for_another_cuda(item.name, version) or answer
        torch = self._frameworks.get("torch") if self.matrix.has_trait(item.name, "compiled-by-pip") else None
        if answer.verdict == "compatible" and torch is not None and torch.version:
            named = {"torch": torch.version.partition("+")[0], "cuda": torch.cuda}
            build = [exactly(name, its) for name, its in named.items() if its]
            compiled = self.asked(item.name, version, [*build, *self.system], suggest=False)
            answer = compiled if compiled.verdict == "unknown" else answer
        if answer.verdict == "unknown" and item in self.entries:
            answer = self._beside_frameworks(item.name, version, beside) or answer
        return self.answered(item, answer)

    def _before_release(self, item: Planned) -> Check | None:
        """The failure of a pre-release beside the plan's PyTorch: the rules ask about releases alone."""
        torch, version = self._frameworks.get("torch"), item.version or ""
        if torch is None or not torch.version or is_release(version) or not is_release(torch.version):
            return None
        build = [exactly("torch", torch.version), *self.system]
        answer = self.asked(item.name, version, build, suggest=False)
        return self.answered(item, answer) if answer.verdict == "incompatible" else None

    def _for_another_cuda(self, name: str, version: str) -> Answer | None:
        """That a release which runs within PyTorch is built for other versions of CUDA than the plan's PyTorch, or that
        rows leave it open; None where they do not, or do not speak of it.
        """
        torch = self._frameworks.get("torch")
        if torch is None or not torch.cuda or name == "torch" or "torch" not in named_by(canonical(name), self.matrix):
            return None
        answer = self.asked(name, version, [exactly("cuda", torch.cuda), *self.system], suggest=False)
        deciding = [each for each in answer.reasons if each.verdict == answer.verdict != "compatible"]
        return answer if any(each.sources for each in deciding) else None

    def _beside_frameworks(self, name: str, version: str, beside: Sequence[Component]) -> Answer | None:
        """That a release fits, though only together with the plan's frameworks, and whatever the Python, does anything
        speak of it; None where it does not, or that is open.
        """
        number, named = parse_version(version), named_by(canonical(name), self.matrix)
        wheels = covering(self.matrix.wheels_by_name.get(canonical(name), ()), number) if number else ()
        decides_python = "python" in named or any(row.pythons or row.archive_pythons for row in wheels)
        decides_python |= bool(number and number.pre and self.matrix.wheels_by_name.get(canonical(name)))
        others = [part for part in beside if part.name != "python" or decides_python]
        others += [
            exactly(each.name, each.version)
            for each in frameworks_in(self.environment)
            if each.version and each.name in named and each.name != name
        ]
        if "torch" in named and name != "torch" and (torch := self._torch_of_pins):
            others.append(exactly("torch", torch))
        if others == [*beside]:
            return None
        answer = self.asked(name, version, others, suggest=False)
        return answer if answer.verdict == "compatible" else None

    @property
    def _torch_of_pins(self) -> str | None:
        """The PyTorch that a pinned package requires, where no entry names it: xFormers requires one release."""
        if any(is_torch(each, self.matrix) for each in self.entries):
            return None
        of_pip = (each.name for each in self.entries if each.version and each.conda is each.image is None)
        lists = (self.needs[name].get("torch", "") for name in of_pip)
        return next(filter(None, (exact(SpecifierSet(bounds)) for bounds in lists)), None)

    def _comes_otherwise(self, rows: Sequence[ExtraRow]) -> bool:
        """Whether the plan names what an extra would bring, as lock files and images with CUDA do."""
        names = {name for row in rows for name in row.brings} - set(_ALWAYS)
        built = {row.built for row in rows}
        if any(each.name in names or (each.name in built and "+" in (each.version or "")) for each in self.entries):
            return True

        def is_named(name: str) -> bool:
            own = f"nvidia-{name}-"
            return any(name in (canonical(one.name), one.brings) or one.name.startswith(own) for one in self.entries)

        return any(all(map(is_named, row.brings)) for row in rows if brings_libraries(row))

    def _without_gpu(self, item: Planned, rows: Sequence[ExtraRow]) -> Check:
        """A package that is asked for without the extra that brings its GPU support."""
        version = item.version or ""
        names = [row.extras[0] for row in reversed(rows)]
        with_extra = {name: [*(brought(rows, version, (name,)) or ()), *self.machine] for name in names}
        answers = {name: self.asked(item.name, version, parts, suggest=False) for name, parts in with_extra.items()}
        fits = next((name for name, answer in answers.items() if answer.verdict == "compatible"), names[0])
        unseen = any(not each.name or each.image is not None for each in self.entries)
        remark = "; what else the plan installs may bring it" if unseen else ""
        if not unseen and PurePath(item.file).suffix in _OF_PROJECTS:
            unseen, remark = (
                True,
                "; an extra or group of the project may bring it, which counts where FILE[NAME] names it",
            )
        if any(map(brings_libraries, rows)):
            unseen, remark = True, f"{remark}, unless CUDA and cuDNN are there already"
        status: Status = "warn" if unseen and self._is_beside_torch else "unknown" if unseen else "fail"
        title = f"{label_of(item)} is asked for without GPU support"
        why = f"Without an extra such as {fits} it computes on the CPU{remark}."
        fix = Fix(text=f"Ask for {item.name}[{fits}]{item.bounds}.")
        return self.check(item, status, title, why, fixes=(fix,), sources=self.matrix.cite(*rows))

    def _of_torch(self, item: Planned) -> Iterator[Check]:
        """What the rules leave out of PyTorch: releases within bounds, builds that are not known, and PTX alone."""
        if item.version is None:
            yield self._torch(item)
            return
        if item.build and "+" not in item.version and item.conda is None and item.image is None:
            release = f"{item.version}+{item.build}"
            if not is_published(release, item, self.matrix):
                yield self.answered(item, self.asked("torch", release))
                return
        yield from self._of_build(item, "torch")

    def _torch(self, item: Planned) -> Check:
        """PyTorch within bounds, by all known releases that they accept."""
        chosen = [self._chosen_cuda()]
        if item.conda is None:  # that of the index, and that which PyPI has beside it
            cuda = CudaVersion.from_tag(item.build or "")
            chosen = [cuda and str(cuda), self.matrix.torch[-1].default_cuda]
        answers = [self.asked("cuda", each) for each in chosen if each]
        if len(answers) == len(chosen) and all(answer.verdict == "incompatible" for answer in answers):
            return self.answered(item, answers[0])  # as is each release with that CUDA
        if item.build is None or item.conda is not None:
            return self.left_open(item)
        tag = f"+{item.build}" if item.build else ""
        return judge_range(
            item,
            self,
            lambda plan, one, suggest: plan.answered(one, plan.asked("torch", f"{one.version}{tag}", suggest=suggest)),
        )

    def _of_build(self, item: Planned, name: str) -> Iterator[Check]:
        """A build of a framework: what the rules leave out of one that they judge, else what is known of it."""
        framework = self._judged_by_rules(name)
        if framework is None:
            yield self._without_code(item)
        elif framework.cuda and any(target.startswith("compute_") for target in framework.gpu_code or ()):
            # Its PTX may run on a GPU that is newer than the CUDA libraries which come with it.
            gpus = [part for part in self.machine if part.name == "gpu"]
            answer = self.asked("cuda", framework.cuda, gpus)
            if gpus and answer.verdict == "incompatible":
                yield self.answered(item, answer)

    def _without_code(self, item: Planned) -> Check:
        """A build whose GPU code is not known: it does not fit where its CUDA does not, and else that is open."""
        build = CondaBuild.parse(item.conda or "")
        if build.cpu:
            why = f"{label_of(item)}: the build {item.conda} is for the CPU."
            return self.check(item, "fail", f"{label_of(item)} has no GPU support", why)
        torch = self._frameworks.get("torch") if is_torch(item, self.matrix) else None
        cudas = [(torch and torch.cuda) or (str(build.cuda) if build.cuda else self._chosen_cuda())]
        if item.conda == "" and not cudas[0] and is_torch(item, self.matrix):
            version = parse_version(item.version or "")
            rows = (row for row in self.matrix.conda_builds if version is not None and row.name == item.name)
            cudas = [row.cuda for row in rows if version and speaks_of(row.versions, version) == "all"]
        answers = [self.asked("cuda", cuda) for cuda in cudas if cuda]
        if answers and len(answers) == len(cudas) and all(answer.verdict == "incompatible" for answer in answers):
            return self.answered(item, answers[-1])
        why = "no row of the matrix has the GPU code of this release"
        if item.conda is not None:
            why = "the matrix does not have the GPU code of this build of conda's"
        elif item.build is None:
            why = "the package indexes that the plan names may serve another build than PyPI"
        return self.check(item, "unknown", f"The build of {item.asked.replace('==', ' ')} is not known", why)

    def _chosen_cuda(self) -> str | None:
        """The CUDA that a package of conda's pins which chooses PyTorch's: a build for the CPU is no better."""
        for each in self.entries:
            if self.matrix.has_trait(each.name, "chooses-cuda-of-torch") and (found := _MINOR.match(each.bounds)):
                return found[1]
        return None


def brings_libraries(row: ExtraRow) -> bool:
    """Whether the extra brings nothing but CUDA's libraries, which a machine or image may have as well."""
    return not row.built and set(row.brings) <= set(_ALWAYS)


def with_places(checks: Sequence[Check], snapshot: Snapshot, matrix: Matrix) -> tuple[Check, ...]:
    """Add to the rules' checks on a plan the file and line that they are about."""
    facts = Facts(snapshot, matrix)
    environment = facts.environment
    if environment.planned is None:
        return tuple(checks)
    if any(check.rule == "driver-too-old" and check.status == "fail" for check in checks) and perhaps_forward(facts):
        checks = [
            perhaps_runs(each) if each.rule == "driver-too-old" and each.status == "fail" else each for each in checks
        ]
    by_source = {item.source: item for item in environment.planned}
    by_name = {("torch" if is_torch(item, matrix) else item.name): item for item in environment.planned}
    return tuple(_placed(check, environment.key, by_source, by_name) for check in checks)


def _placed(check: Check, key: str, by_source: dict[str, Planned], by_name: dict[str, Planned]) -> Check:
    seen = [by_source[part.source] for part in check.evidence if part.source in by_source]
    item = by_name.get(check.subject.key.removeprefix(f"{key}:")) or next(iter(seen), None)
    if check.subject.environment != key or check.location is not None or item is None:
        return check
    own = next(iter(seen), item)
    if check.status == "fail" and own is not item and own.build is own.conda is own.image is None:
        doubt = f"{check.message} Another index that the plan names may have its own build of {label_of(own)}."
        check = msgspec.structs.replace(check, status="unknown", message=doubt)
    named = any(part.source == item.source for part in check.evidence)
    line = Evidence(what="planned", value=item.asked, source=item.source)
    return msgspec.structs.replace(
        check,
        evidence=check.evidence if named else (line, *check.evidence),
        location=Location(file=item.file, line=item.line),
    )
