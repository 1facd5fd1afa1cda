"""Entries of a plan that admit several releases, and pins that exclude each other.

What the other entries require narrows them, as it does for an installer, which takes the newest release that is left.
That one is judged where the plan bounds it: by bounds of its own, by what other entries require, or because the
frameworks beside it are pinned. Else newer releases than anybody knows would be installed, so it stays open.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.compat.candidates import named_by
from envcheck.compat.devices import is_for_a_part
from envcheck.compat.narrowing import (
    BEYOND,
    NO_RELEASES,
    excluding,
    is_open,
    joined_bounds,
    leaves_any,
    pythons_in,
    with_each_python,
)
from envcheck.compat.package_needs import satisfies
from envcheck.compat.question import exactly
from envcheck.compat.requirements import brought, declared, extras_of, is_excluded
from envcheck.compat.wheels import gap_of, span_of, without_python
from envcheck.enrich.stated import FORWARD
from envcheck.knowledge.load import matrix_date
from envcheck.knowledge.names import canonical
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Changes, Check, Evidence, Fix, Status
from envcheck.model.snapshot import Planned
from envcheck.pipeline.planned.checks import JudgedPlan, label_of
from envcheck.sources import Source

P = TypeVar("P", bound=JudgedPlan)
Judge = Callable[[P, Planned, bool], Check]
"""What a plan finds of one release, and whether to look for releases that fit in its place."""

_MOST_RELEASES = 80
_MOST_TRIED = 40  # Releases of a range without an upper bound that are tried for one that fits, newest first
_FEW = 6


def judge_range(item: Planned, plan: P, judge: Judge[P]) -> Check:
    """The check on an entry that admits several releases; ``judge`` finds what one of them is.

    A driver that is too old for the newest, where no other is known to fit, is too old for later ones: minimums only
    grow.
    """
    admitted, known = plan.releases.get(item.name, NO_RELEASES)
    known = [each for each in known if brought(extras_of(plan.matrix, item.name, each), each, item.extras)] or known
    known = [each for each in item.alternatives if each.partition("+")[0] in known] or known
    if item.problem is not None or not known:
        none = "no known release is within these bounds" if item.bounds else None
        none = f"no release within its bounds is known to have come to PyPI by {item.as_of}" if item.as_of else none
        why = item.problem or none
        return plan.left_open(msgspec.structs.replace(item, problem=why))

    def judge_beside(version: str, *, suggest: bool = False) -> Check:
        found = judge(plan, msgspec.structs.replace(item, version=version, bounds=f"=={version}"), suggest)
        pins = plan.related(item.name) if found.status == "pass" else ()
        if not any(_is_refused(plan, item.name, version, other, its) for other, its in pins):
            return found
        clashing.add(version)
        return msgspec.structs.replace(found, status="unknown")

    clashing = set[str]()
    bounded = known[-1] != admitted[-1] or not SpecifierSet(item.bounds).contains(BEYOND)
    decides = bounded or _beside_pinned_framework(item, plan)
    found: dict[str, Check] = {}
    most = _MOST_RELEASES if bounded else _MOST_TRIED
    for version in known[: -most - 1 : -1]:
        found[version] = judge_beside(version)
        if decides and version == known[-1] and found[version].status == "pass" and not item.alternatives:
            return not_pinned(item, version, f"{version} fits", plan)
        if len({check.status == "pass" for check in found.values()}) > 1:
            break  # no more is told than one that fits and one that does not
    statuses = {check.status for check in found.values()}
    if item.alternatives and statuses == {"pass"}:
        return found[known[-1]]
    newest = msgspec.structs.replace(item, version=known[-1], bounds=f"=={known[-1]}")
    for_a_part = is_for_a_part(plan.matrix, "torch", item.name)  # without which PyTorch runs
    fails = (bounded or (decides and not for_a_part)) and statuses == {"fail"}
    if not (bounded or for_a_part) and len(found) == len(known) and "pass" not in statuses:
        alone = replace(plan, machine=[part for part in plan.machine if part.name not in ("driver", FORWARD)])
        too_new = found[known[-1]].status == "fail" and judge(alone, newest, False).status == "pass"
        fails = too_new and not clashing  # with what the plan pins, which may go
    if not fails:
        fits = [version for version, check in found.items() if check.status == "pass"]
        return plan.left_open(item, fits[:1], [version for version in found if version not in fits][:1])
    judged = judge_beside(known[-1], suggest=True)
    listed = ", ".join(reversed(found)) if len(found) <= _FEW else f"{known[0]} to {known[-1]}"
    return msgspec.structs.replace(judged, title=f"{judged.title} (none of {listed})")


def not_pinned(item: Planned, version: str, outcome: str, plan: JudgedPlan) -> Check:
    """The note that a release was chosen as an installer would; ``outcome`` says what came of it."""
    why = f"{version} is the newest known release that the plan leaves (rows of {matrix_date()})"
    if item.as_of:
        why = f"{why}, of those until {item.as_of}"
        outcome = f"{outcome} as of {item.as_of}"
    check = plan.check(item, "note", f"{item.name} is not pinned; {outcome}", f"{item.asked}: {why}.")
    return msgspec.structs.replace(check, id=f"{check.id} not pinned") if item.newest else check


def _beside_pinned_framework(item: Planned, plan: JudgedPlan) -> bool:
    """Whether the entry is no framework itself, its command or file pins one, and the plan leaves none open."""
    frameworks = [each for each in plan.entries if plan.matrix.has_role(each.name, "framework")]
    beside = any(each.together == item.together is not None for each in frameworks)
    one_release = {name for name, releases in plan.releases.items() if len(releases.left) == 1}  # torch~=2.8.0
    decided = (each.version is not None or each.name in one_release for each in frameworks)
    return beside and all(decided) and item.name not in {each.name for each in frameworks}


def held_back(item: Planned, plan: JudgedPlan) -> Check | None:
    """An entry about which only other packages matter, where the newest release that an installer would choose does not
    work with a pinned one; None where it does, or where the matrix relates it to none.
    """
    if item.problem is not None:
        return None
    known = plan.releases.get(item.name, NO_RELEASES).left
    for other, its in plan.related(item.name) if known else ():
        tried = known[: -_MOST_TRIED - 1 : -1]
        if tried and _is_refused(plan, item.name, tried[0], other, its):
            older = (version for version in tried[1:] if not _is_refused(plan, item.name, version, other, its))
            fits = next(older, None)
            why = f"{item.name} {tried[0]} does not work with {other} {its}"
            open_item = msgspec.structs.replace(item, problem=why)
            return plan.left_open(open_item, [fits] if fits else [])
    return None


def _is_refused(plan: JudgedPlan, name: str, version: str, other: str, its: str) -> bool:
    """Whether the matrix says that a release does not work with a pinned package."""
    return plan.asked(name, version, [exactly(other, its), *plan.system], suggest=False).verdict == "incompatible"


def contradictions(plan: JudgedPlan) -> Iterator[Check]:
    """A failure for each pin that another pin of the same command or file requires otherwise, whatever the Python, and
    for the first two that no Python can have both of.
    """
    pinned = {
        each.name: each
        for each in plan.entries
        if each.name and each.version is not None and each.together is not None and each.refused is None
    }
    for together in dict.fromkeys(each.together for each in pinned.values()):
        group = {name: each for name, each in pinned.items() if each.together == together}
        by_label = {label_of(each): each for each in group.values()}
        stated = "python_version" in plan.markers
        pythons = {label: plan.pythons_of_pins[each.name] for label, each in by_label.items()} if not stated else {}
        if found := without_python(pythons):
            one, other = by_label[found[0]], by_label[found[1]]
            fix = Fix(text=f"Pin releases of {one.name} and {other.name} for the same Python.")
            title = f"No Python has wheels of {label_of(one)} and {label_of(other)}"
            yield _of_both(other, one, title, f"{found[2]}: pip finds no files of both.", (fix,), plan)
        markers = with_each_python(plan.markers, pythons.values())
        needs = {
            name: [
                declared(plan.matrix, name, each.version or "", one, build=each.build, extras=each.extras)
                for one in markers
            ]
            for name, each in group.items()
            if each.extras or name in plan.matrix.requirements_by_name
        }
        yield from _of_requirements(plan, group, together, needs)


def _of_requirements(
    plan: JudgedPlan,
    group: Mapping[str, Planned],
    together: str | None,
    needs: Mapping[str, Sequence[Mapping[str, str]]],
) -> Iterator[Check]:
    """A failure for each pin that another one requires otherwise, and for the first two entries that leave no known
    release of what one requires, and the other requires too or names with bounds.
    """
    entries = {each.name: each for each in plan.entries if each.name}
    asked = defaultdict[str, dict[str, Sequence[str]]](dict)
    for owner, its in needs.items():
        for name in its[0].keys() - {*entries[owner].overridden}:
            asked[name][owner] = [of_one.get(name, "") for of_one in its]

    for name, by_owner in sorted(asked.items()):
        item, required, pairs = entries.get(name), [*by_owner.values()], list[tuple[str, ...]]()
        if item is not None and name in group:
            refused = (all(one and satisfies(one, item.version or "") is False for one in each) for each in required)
            pairs = [(owner, name) for owner, excludes in zip(by_owner, refused, strict=True) if excludes]
        elif item is None or (is_open(item) and item.together == together):  # else another command's, or an override
            if item is not None:
                parts = {part for bounds in required for one in bounds for part in one.split(",")}
                own = ",".join(part for part in item.bounds.split(",") if part not in parts)
                by_owner[name] = [own] * len(required[0])
            pairs = [pair] if (pair := excluding(plan.matrix, name, by_owner, name)) else []
        for one, other in ((entries[owner], entries[its]) for owner, its in pairs):
            pin, fixes = f"{name}{by_owner[one.name][-1]}", tuple[Fix, ...]()
            why = f"not {other.asked} ({other.source})"
            if other is not item:
                why = f"{label_of(other)} ({other.source}) requires {name}{by_owner[other.name][-1]}"
            elif name in group:
                fixes = (Fix(text=f"Pin {pin}, or another {one.name}.", changes=Changes(installs=(pin,))),)
            elif leaves_any(plan.matrix, canonical(name), asking := joined_bounds(bounds[-1] for bounds in required)):
                fixes = (Fix(text=f"Ask for {name}{asking}."),)
            rows = (row for each in (one, other) for row in plan.matrix.requirements_by_name.get(each.name, ()))
            sources = plan.matrix.cite(*islice((row for row in rows if name in row.needs), 1))
            title = f"{label_of(one)} and {label_of(other)} cannot be installed together"
            yield _of_both(
                one, other, title, f"{label_of(one)} requires {pin}, {why}: pip refuses both.", fixes, plan, sources
            )


def without_release(plan: JudgedPlan) -> Iterator[Check]:
    """A failure for each open entry of which pip takes no known release beside a pin of the same command or file."""
    pinned = defaultdict[str | None, list[tuple[Planned, frozenset[str]]]](list)
    for each in plan.entries:
        if each.version is not None and each.refused is None and each.name:
            pinned[each.together].append((each, plan.pythons_of_pins[each.name]))
    for item in (each for each in plan.entries if is_open(each) and each.together is not None):
        known = plan.releases.get(item.name, NO_RELEASES).admitted
        beside = pinned[item.together] if known else []
        own = [pythons_in(plan.matrix, item.name, each, plan.markers) for each in known]
        apart = {its for its in {its for _, its in beside} if its and all(own) and not any(its & one for one in own)}
        names = named_by(canonical(item.name), plan.matrix)
        for other, its in (each for each in beside if each[0].name in names or each[1] in apart):
            label = label_of(other)
            if all(is_excluded(plan.matrix, item.name, each, other.name, other.version or "") for each in known):
                title = f"No release of {item.asked} can be installed with {label}"
                why = f"each known one requires another {other.name} than {other.asked} ({other.source})"
                why = f"{why}: pip refuses both"
            elif its in apart:
                title = f"No Python has wheels of {item.asked} and {label}"
                why = f"no known release is for a Python that {label} is for: pip finds no files of both"
            else:
                continue
            yield _of_both(item, other, title, f"{item.asked}: {why}.", (), plan)


def without_files(item: Planned, plan: JudgedPlan) -> Check | None:
    """The failure of a pin that PyPI has no files of for the system, or for the Python that the plan states; a warning
    where pip may compile its source archive.
    """
    python, label = plan.markers.get("python_version"), label_of(item)
    known = canonical(item.name) in plan.matrix.wheels_by_name and "platform_machine" in plan.markers
    if known and item.version and item.build == "" and item.conda is item.image is None:
        answer = plan.asked(item.name, item.version, plan.system, suggest=False)
        number = parse_version(item.version)
        unlisted = number is not None and gap_of(plan.matrix, canonical(item.name), number) is not None
        if answer.verdict == "incompatible" or unlisted:
            return plan.answered(item, answer)
    if python is None or item.problem is not None:
        return None
    kinds: tuple[tuple[str, Status, bool], ...] = (("files", "fail", False), ("wheels", "warn", True))
    for what, status, compiled in kinds:
        served = plan.pythons(item, compiled=compiled)
        if served and python not in served:
            why = f"PyPI has {what} of {label} for Python {span_of(served)}"
            why += "; pip would compile its source archive, if that takes this Python." if compiled else "."
            fix = Fix(text=f"Pin a release of {item.name} for Python {python}, or take Python {span_of(served)}.")
            return plan.check(item, status, f"{label} has no {what} for Python {python}", why, fixes=(fix,))
    return None


def _of_both(
    item: Planned,
    other: Planned,
    title: str,
    why: str,
    fixes: tuple[Fix, ...],
    plan: JudgedPlan,
    sources: tuple[Source, ...] = (),
) -> Check:
    check = plan.check(item, "fail", title, why, fixes=fixes, sources=sources)
    evidence = (*check.evidence, Evidence(what="planned", value=other.asked, source=other.source))
    return msgspec.structs.replace(check, id=f"{check.id} {other.name}", evidence=evidence)
