"""Entries of a plan that admit several releases, and pins that exclude each other.

A range is judged by all known releases that it admits: it fits where all do, and does not where none does. One without
an upper bound admits releases that nobody knows yet, so it stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from packaging.specifiers import SpecifierSet

from envcheck.compat.package_needs import release_fits
from envcheck.compat.requirements import declared
from envcheck.compat.wheels import published
from envcheck.knowledge.images import is_framework
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.model.checks import Check, Evidence, Fix
from envcheck.model.components import Bound, Component
from envcheck.model.snapshot import Planned
from envcheck.pipeline.planned.checks import JudgedPlan, label_of

Judge = Callable[[Planned, bool], Check]
"""What is found of one release, and whether to look for releases that fit in its place."""

_MOST_RELEASES = 80
_MOST_TRIED = 40
"""Releases of a range without an upper bound that are tried for one that fits, newest first."""
_FEW = 6
_BEYOND = "99999"
"""A version that only a range without an upper bound admits."""


def judge_range(item: Planned, plan: JudgedPlan, judge: Judge) -> Check:
    """The check on an entry that admits several releases; ``judge`` finds what one of them is."""
    pinned = _pinned(plan)
    admitted = _admitted(item, plan.matrix)
    known = [version for version in admitted if _accepts(item, version, pinned, plan)] or admitted
    if item.problem is not None or not known:
        why = item.problem or (None if not item.bounds else "no known release is within these bounds")
        return plan.left_open(msgspec.structs.replace(item, problem=why))

    def judge_beside(one: Planned, suggest: bool) -> Check:  # noqa: FBT001 - as Judge
        found = judge(one, suggest)
        clashes = found.status == "pass" and _clashes(one, pinned, plan.matrix)
        return msgspec.structs.replace(found, status="unknown") if clashes else found

    if SpecifierSet(item.bounds).contains(_BEYOND):
        # Of these, each release requires its own PyTorch: newer ones than the newest require a newer one still.
        if plan.matrix.has_trait(item.name, "released-with-torch") and known[-1] != admitted[-1]:
            return _of_release(item, known[-1], judge_beside)
        return plan.left_open(item, *_newest_of_each(item, known, judge_beside))
    found = {version: _of_release(item, version, judge_beside) for version in known[-_MOST_RELEASES:]}
    statuses = {check.status for check in found.values()}
    if len(statuses) > 1 or statuses == {"unknown"}:
        fits = [version for version, check in found.items() if check.status == "pass"]
        return plan.left_open(item, fits, [version for version in found if version not in fits])
    newest = _of_release(item, known[-1], judge_beside, suggest=True)
    if newest.status != "fail":
        return newest
    listed = ", ".join(found) if len(found) <= _FEW else f"{known[0]} to {known[-1]}"
    return msgspec.structs.replace(newest, title=f"{newest.title} (none of {listed})")


def held_back(item: Planned, plan: JudgedPlan) -> Check | None:
    """An entry about which only other packages matter, where the newest release that an installer would choose does not
    work with a pinned one; None where it does, or where the matrix relates it to none.
    """
    if item.problem is not None:
        return None
    pinned = _pinned(plan)
    known = [each for each in _admitted(item, plan.matrix) if _accepts(item, each, pinned, plan)]
    where = [part for part in plan.machine if part.name in ("os", "machine")]
    for other, its in pinned.items():
        mine, its_name = canonical(item.name), canonical(other)
        related = mine != its_name and (
            its_name in _named_by(mine, plan.matrix) or mine in _named_by(its_name, plan.matrix)
        )
        if not known or not related:
            continue
        beside = [Component(other, (Bound("==", its),)), *where]

        def refused(version: str, beside: Sequence[Component] = beside) -> bool:
            answer = plan.asked(item.name, version, beside, suggest=False)
            return answer is not None and answer.verdict == "incompatible"

        if refused(known[-1]):
            fits = next((version for version in known[-2 : -_MOST_TRIED - 1 : -1] if not refused(version)), None)
            why = f"{item.name} {known[-1]} does not work with {other} {its}"
            told = msgspec.structs.replace(item, problem=why)
            return plan.left_open(told, [fits] if fits else [])
    return None


def _of_release(item: Planned, version: str, judge: Judge, *, suggest: bool = False) -> Check:
    return judge(msgspec.structs.replace(item, version=version, bounds=f"=={version}"), suggest)


def _newest_of_each(item: Planned, known: Sequence[str], judge: Judge) -> tuple[list[str], list[str]]:
    """The newest release that fits, and the newest that does not or is not known to, as far as they are found."""
    fits: list[str] = []
    others: list[str] = []
    for version in known[: -_MOST_TRIED - 1 : -1]:
        found = fits if _of_release(item, version, judge).status == "pass" else others
        if not found:
            found.append(version)
        if fits and others:
            break
    return fits, others


def _admitted(item: Planned, matrix: Matrix) -> list[str]:
    """The known releases that the entry admits, ascending."""
    name, bounds = canonical(item.name), SpecifierSet(item.bounds)
    if name == "torch":
        known = [row.version for row in matrix.torch]
    else:
        known = [str(version) for version in published(matrix, name) or matrix.known_versions(name)]
    return [version for version in known if bounds.contains(version)]


def _pinned(plan: JudgedPlan) -> dict[str, str]:
    """Versions of the packages that the plan pins, by name; not of what CUDA an image or a channel of conda has."""
    return {
        each.name: each.version
        for each in plan.entries
        if each.version is not None
        and each.conda is None
        and (each.image is None or is_framework(plan.matrix, each.name))
    }


def _accepts(item: Planned, version: str, pinned: Mapping[str, str], plan: JudgedPlan) -> bool:
    """Whether a release requires nothing that the pinned packages contradict."""
    needs = declared(plan.matrix, item.name, version, plan.markers, extras=item.extras)
    return all(
        SpecifierSet(text).contains(pinned[name], prereleases=True) for name, text in needs.items() if name in pinned
    )


def _clashes(item: Planned, pinned: Mapping[str, str], matrix: Matrix) -> bool:
    """Whether documents say of a release, or of a pinned package, that they do not work together."""
    for name, version in pinned.items():
        fits = (
            release_fits(matrix, item.name, item.version or "", canonical(name), version),
            release_fits(matrix, name, version, canonical(item.name), item.version or ""),
        )
        if any(fit is not None and fit.bad for fit in fits):
            return True
    return False


def _named_by(name: str, matrix: Matrix) -> set[str]:
    """The packages that rows of ``name`` name."""
    needs = [row.needs for row in matrix.rows_of(name)]
    needs += [row.needs for row in matrix.requirements_by_name.get(name, ())]
    return {canonical(key) for each in needs for key in each}


def contradictions(plan: JudgedPlan) -> Iterator[Check]:
    """A failure for each pin that another pin of the same command or file requires otherwise."""
    pinned = {
        each.name: each
        for each in plan.entries
        if each.name and each.version is not None and each.together is not None and each.refused is None
    }
    for each in pinned.values():
        needs = declared(plan.matrix, each.name, each.version or "", plan.markers, build=each.build, extras=each.extras)
        for name, bounds in needs.items():
            other = pinned.get(name)
            if other is not None and other.together == each.together and _excludes(bounds, other.version or ""):
                yield _check(each, other, bounds, plan)


def _excludes(bounds: str, version: str) -> bool:
    try:
        return not SpecifierSet(bounds).contains(version, prereleases=True)
    except ValueError:
        return False


def _check(item: Planned, other: Planned, bounds: str, plan: JudgedPlan) -> Check:
    check = plan.check(
        item,
        "fail",
        f"{label_of(item)} and {label_of(other)} cannot be installed together",
        f"{label_of(item)} requires {other.name}{bounds}, and {other.source} pins {other.asked}: pip refuses both.",
        fixes=(Fix(text=f"Pin {other.name}{bounds}, or another {item.name}."),),
    )
    rows = [row for row in plan.matrix.requirements_by_name.get(item.name, ()) if other.name in row.needs]
    return msgspec.structs.replace(
        check,
        id=f"{check.id} {other.name}",
        evidence=(*check.evidence, Evidence(what="planned", value=other.asked, source=other.source)),
        sources=plan.matrix.cite(*rows[:1]),
    )
