"""A plan that is judged: the question that it puts to the matrix, and the checks that it yields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from envcheck.compat.answer import ask
from envcheck.compat.candidates import named_by
from envcheck.compat.narrowing import Narrowing, Releases, is_pinned, pythons_in
from envcheck.compat.question import Answer, Reason, exactly
from envcheck.compat.requirements import declared
from envcheck.enrich.stated import FORWARD, forward_of_image
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.tables.packages import VirtualPackageRow
from envcheck.model.checks import PLAN, Changes, Check, Evidence, Fix, Location, Status, Subject
from envcheck.model.components import Component
from envcheck.model.snapshot import Environment, Planned
from envcheck.model.versions import ComputeCapability
from envcheck.rules.api import Facts
from envcheck.sources import Source


@dataclass(frozen=True)
class JudgedPlan:
    """What plans would install, and what it is held against; it puts the questions, and words the checks."""

    environment: Environment
    matrix: Matrix
    machine: Sequence[Component]  # The GPUs, the driver, the system and the Python
    markers: Mapping[str, str]
    tried: bool  # Whether no fix is looked for, which takes most of the time

    @property
    def entries(self) -> Sequence[Planned]:
        """What the plans name."""
        return self.environment.planned or ()

    @cached_property
    def system(self) -> Sequence[Component]:
        """What of the machine wheels are for."""
        return [part for part in self.machine if part.name in ("os", "machine")]

    @cached_property
    def pinned(self) -> Mapping[str, str]:
        """Versions of the packages that the plan pins."""
        return {each.name: each.version or "" for each in self.entries if is_pinned(each, self.matrix)}

    @cached_property
    def releases(self) -> Mapping[str, Releases]:
        """The releases of the entries that it leaves open."""
        return Narrowing(self.entries, self.matrix, self.markers).releases()

    @cached_property
    def needs(self) -> Mapping[str, Mapping[str, str]]:
        """By package that is pinned, the bounds that it sets on others."""
        return {
            each.name: declared(
                self.matrix, each.name, each.version, self.markers, build=each.build, extras=each.extras
            )
            for each in self.entries
            if each.version is not None
        }

    def related(self, name: str) -> Iterator[tuple[str, str]]:
        """The pinned packages that rows relate to one, with their versions."""
        own, its = canonical(name), named_by(canonical(name), self.matrix)
        for other, version in self.pinned.items():
            mine = canonical(other)
            if mine != own and (mine in its or own in named_by(mine, self.matrix)):
                yield other, version

    def pythons(self, item: Planned, *, compiled: bool = False) -> frozenset[str]:
        """The Pythons that PyPI has files, or wheels, of a pin for; none where they are not known, or another place may
        have it.
        """
        if item.conda is not None or item.image is not None or item.build is None:
            return frozenset()
        return pythons_in(self.matrix, item.name, item.version or "", self.markers, compiled=compiled)

    @cached_property
    def pythons_of_pins(self) -> Mapping[str, frozenset[str]]:
        """These, by package that is pinned."""
        return {each.name: self.pythons(each) for each in self.entries if each.version is not None}

    def asked(
        self, name: str, version: str, beside: Sequence[Component] | None = None, *, suggest: bool = True
    ) -> Answer:
        """What the matrix answers of a release ``beside`` these, else the machine."""
        others = self.machine if beside is None else beside
        try:
            return answer_of(self.matrix, (exactly(name, version), *others), suggest, self.tried)
        except UsageError:
            unread = Reason(verdict="unknown", message="The matrix cannot read this version.")
            return Answer(verdict="unknown", reasons=(unread,))

    def check(
        self,
        item: Planned,
        status: Status,
        title: str,
        message: str,
        *,
        fixes: tuple[Fix, ...] = (),
        sources: tuple[Source, ...] = (),
    ) -> Check:
        """A check on one entry of the plan, at its line."""
        environment = self.environment.key
        key = f"{environment}:{item.name or f'{item.source} {item.asked}'}"
        return Check(
            id=f"{PLAN}@{key}",
            rule=PLAN,
            scope="env",
            layer="framework",
            subject=Subject(kind="framework", key=key, environment=environment),
            status=status,
            title=title,
            message=message,
            evidence=(Evidence(what="planned", value=item.asked, source=item.source),),
            location=Location(file=item.file, line=item.line),
            fixes=fixes,
            sources=sources,
        )

    def answered(self, item: Planned, answer: Answer, of: str = "") -> Check:
        """The check that states the matrix's answer about a package; ``of`` tells which releases it stands for."""
        label = label_of(item)
        reasons = [reason for reason in answer.reasons if reason.verdict == answer.verdict]
        message = "; ".join(dict.fromkeys(reason.message for reason in reasons))
        sources = tuple(dict.fromkeys(source for reason in reasons for source in reason.sources))
        if answer.verdict == "incompatible":
            ways = answer.suggestions[:3]
            pins = [(way.replace(" ", "=="),) if way.startswith(f"{item.name} ") else () for way in ways]
            changes = [Changes(installs=pin) if pin else None for pin in pins]
            fixes = tuple(Fix(text=f"Use {way}.", changes=each) for way, each in zip(ways, changes, strict=True))
            return self.check(item, "fail", f"{label} does not fit{of}", message, fixes=fixes, sources=sources)
        if answer.verdict == "compatible":
            return self.check(item, "pass", f"{label} fits", message, sources=sources)
        return self.check(item, "unknown", f"Whether {label} fits is not known", message, sources=sources)

    def left_open(self, item: Planned, fits: Sequence[str] = (), others: Sequence[str] = ()) -> Check:
        """The plan does not say which release, and they do not all fit."""
        name = item.name
        why = item.problem or "the plan accepts several releases"
        around = (
            f"; {name} {fits[-1]} fits" if fits else "; no release that it accepts is known to fit" if others else ""
        )
        around += f", {name} {others[-1]} does not or is not known to" if fits and others else ""
        fix = Fix(text=f"Pin {name}=={fits[-1]}, which fits." if fits else f"Pin {name} to one release.")
        title = f"Which release of {name} would be installed is open"
        return self.check(item, "unknown", title, f"{item.asked}: {why}{around}.", fixes=(fix,))


@lru_cache(maxsize=1 << 13)  # plans that are judged in one run pin much of the same
def answer_of(matrix: Matrix, asked: tuple[Component, ...], fully: bool = False, tried: bool = False) -> Answer:  # noqa: FBT001, FBT002
    return ask(matrix, asked, suggest=fully and not tried, tell_apart=fully, is_all=False)


def label_of(item: Planned) -> str:
    """What the plan asks for, as text: ``torch 2.5.1``."""
    if item.newest:
        return f"{item.name} {item.version}"
    return item.asked.replace("==", " ") + (f" of {item.image}" if item.image else "")


def is_torch(item: Planned, matrix: Matrix) -> bool:
    return matrix.has_trait(item.name, "distributes-torch")


def virtual(row: VirtualPackageRow, facts: Facts) -> str | None:
    """The version of a virtual package on the machine, where that is known."""
    snapshot = facts.snapshot
    libc = (snapshot.platform.libc or "") if snapshot.platform else ""
    parsed = (ComputeCapability.parse(gpu.compute_capability) for gpu in facts.usable_gpus)
    known = sorted(filter(None, parsed))
    found = {
        "driver-cuda": snapshot.driver.cuda if snapshot.driver else None,
        "capability": str(known[0]) if known else None,
        "newest-capability": str(known[-1]) if known else None,
        "glibc": libc.removeprefix("glibc ") if libc.startswith("glibc ") else None,
    }
    return found[row.means]


def described(facts: Facts) -> tuple[str, ...]:
    """The machine in the words of conda's solver and of wheel variants."""
    found = ((row, virtual(row, facts)) for row in facts.matrix.virtual_packages)
    return tuple(
        row.writes.replace("{name}", row.name).replace("{value}", value).replace("{digits}", value.replace(".", ""))
        for row, value in found
        if value
    )


def machine_of(facts: Facts) -> list[Component]:
    """The GPUs, the driver, the system and the Python that the plan is held against."""
    snapshot = facts.snapshot
    names = dict.fromkeys(
        gpu.name or f"sm_{(gpu.compute_capability or '').replace('.', '')}" for gpu in facts.usable_gpus
    )
    release = snapshot.driver.release if snapshot.driver else None
    platform, of_image = snapshot.platform, forward_of_image(snapshot, facts.matrix)
    stated = {
        "driver": release,
        "os": "wsl" if platform and platform.wsl else platform.os if platform else None,
        "machine": platform.machine if platform else None,
        "python": facts.python,
        FORWARD: str(of_image[0]) if of_image else None,
    }
    gpus = [exactly("gpu", name) for name in names if name != "sm_"]
    return [*gpus, *(exactly(name, value) for name, value in stated.items() if value)]
