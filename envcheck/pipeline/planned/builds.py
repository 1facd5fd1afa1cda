"""Judge builds of PyTorch and of conda's frameworks: what the rules leave out of those that they judge, and those that
they do not know; and what the rules find, with file and line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.specifier import parse_version, speaks_of
from envcheck.model.checks import Check, Evidence, Location
from envcheck.model.snapshot import Planned, Snapshot
from envcheck.model.versions import CondaBuild
from envcheck.pipeline.planned.checks import is_torch, label_of
from envcheck.pipeline.planned.libraries import perhaps_forward, perhaps_runs
from envcheck.pipeline.planned.ranges import Judge, judge_range
from envcheck.pipeline.planned.releases import JudgedReleases
from envcheck.plans.settle import is_published
from envcheck.rules.api import Facts

_MINOR = re.compile(r"==([0-9]{1,2}\.[0-9]{1,2})(?![0-9])")


@dataclass(frozen=True)
class JudgedBuilds(JudgedReleases):
    """What is found of builds of frameworks."""

    def _of_torch(self, item: Planned) -> Iterator[Check]:
        """What the rules leave out of PyTorch: releases within bounds, builds that are not known, and PTX alone."""
        if item.version is None:
            yield self._torch(item)
            return
        if item.build and "+" not in item.version and item.conda is None and item.image is None:
            release = f"{item.version}+{item.build}"
            answer = None if is_published(release, item, self.matrix) else self.asked("torch", release)
            if answer is not None:
                yield self.answered(item, answer)
                return
        yield from self._of_build(item, "torch")

    def _torch(self, item: Planned) -> Check:
        """PyTorch within bounds, by all known releases that they accept."""
        chosen = self._chosen_cuda() if item.conda is not None else None
        answer = self.asked("cuda", chosen) if chosen else None
        if answer is not None and answer.verdict == "incompatible":
            return self.answered(item, answer)  # as is each release with that CUDA
        if item.build is None or item.conda is not None:
            return self.left_open(item)
        tag = f"+{item.build}" if item.build else ""

        def judged(plan: JudgedReleases) -> Judge:
            return lambda one, suggest: plan.answered(one, plan.asked("torch", f"{one.version}{tag}", suggest=suggest))

        return judge_range(item, self, judged(self), judged(self._without_driver))

    def _of_build(self, item: Planned, name: str) -> Iterator[Check]:
        """A build of a framework: what the rules leave out of one that they judge, else what is known of it."""
        framework = self._judged_by_rules(name)
        if framework is None:
            yield self._without_code(item)
        elif framework.cuda and any(target.startswith("compute_") for target in framework.gpu_code or ()):
            # Its PTX may run on a GPU that is newer than the CUDA libraries which come with it.
            gpus = [part for part in self.machine if part.name == "gpu"]
            answer = self.asked("cuda", framework.cuda, gpus) if gpus else None
            if answer is not None and answer.verdict == "incompatible":
                yield self.answered(item, answer)

    def _without_code(self, item: Planned) -> Check:
        """A build whose GPU code is not known: it does not fit where its CUDA does not, and else that is open."""
        build = CondaBuild.parse(item.conda or "")
        if build.cpu:
            why = f"{label_of(item)}: the build {item.conda} is for the CPU."
            return self.check(item, "fail", f"{label_of(item)} has no GPU support", why)
        torch = self._framework("torch") if is_torch(item, self.matrix) else None
        cudas = [(torch and torch.cuda) or (str(build.cuda) if build.cuda else self._chosen_cuda())]
        if item.conda == "" and not cudas[0] and is_torch(item, self.matrix):
            version = parse_version(item.version or "")
            rows = (row for row in self.matrix.conda_builds if version is not None and row.name == item.name)
            cudas = [row.cuda for row in rows if version and speaks_of(row.versions, version) == "all"]
        answers = [self.asked("cuda", cuda) if cuda else None for cuda in cudas]
        if all(answer is not None and answer.verdict == "incompatible" for answer in answers) and answers:
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


def with_places(checks: Sequence[Check], snapshot: Snapshot, matrix: Matrix) -> tuple[Check, ...]:
    """Add to the rules' checks on a plan the file and line that they are about, and fixes that edit the plan."""
    facts = Facts(snapshot, matrix)
    environment = facts.environment
    if environment is None or environment.planned is None:
        return tuple(checks)
    if any(check.rule == "driver-too-old" and check.status == "fail" for check in checks) and perhaps_forward(facts):
        checks = [
            perhaps_runs(each) if each.rule == "driver-too-old" and each.status == "fail" else each for each in checks
        ]
    by_source = {item.source: item for item in environment.planned}
    by_name = {("torch" if is_torch(item, matrix) else item.name): item for item in environment.planned}
    return tuple(_placed(check, environment.key, by_source, by_name) for check in checks)


def _placed(check: Check, key: str, by_source: dict[str, Planned], by_name: dict[str, Planned]) -> Check:
    if check.subject.environment != key or check.location is not None:
        return check
    seen = (by_source[part.source] for part in check.evidence if part.source in by_source)
    item = by_name.get(check.subject.key.removeprefix(f"{key}:")) or next(seen, None)
    if item is None:
        return check
    named = any(part.source == item.source for part in check.evidence)
    line = Evidence(what="planned", value=item.asked, source=item.source)
    return msgspec.structs.replace(
        check,
        evidence=check.evidence if named else (line, *check.evidence),
        location=Location(file=item.file, line=item.line),
        # Commands act on an environment, and here is none.
        fixes=tuple(msgspec.structs.replace(fix, command=(), risk="") if fix.changes else fix for fix in check.fixes),
    )
