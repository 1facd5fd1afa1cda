"""The nearest releases with which a plan or an installed environment fits, judged before they are told: a check has
them as the lines to change, ``--fix-plan`` as a diff, ``plan --repair`` as commands for the environment, simulated on
the whole of it.

First only what does not fit moves, then what runs within PyTorch with it, or what it requires, then PyTorch: to the
release that something requires, else to those nearest to the pinned one, in each build that an index has; and with each
what it requires in another release. What a lock file pins, the tool that wrote it must change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from envcheck.compat.candidates import named_by
from envcheck.compat.narrowing import contains, in_turn, newest_of
from envcheck.compat.package_needs import marks_of, pinned_by
from envcheck.compat.question import Reason, exactly, listed
from envcheck.compat.requirements import declared
from envcheck.compat.wheels import published
from envcheck.errors import UsageError
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Changes, Check, Fix, Report, Status
from envcheck.model.snapshot import Environment, Planned, Snapshot
from envcheck.pipeline.planned.checks import answer_of, machine_of
from envcheck.pipeline.planned.nearby import Start, of_conda, of_images, of_pip, torch_of
from envcheck.pipeline.planned.patch import diff_of
from envcheck.pipeline.planned.sets import TORCH, Judge
from envcheck.pipeline.planned.solution import ChosenRelease, Solution
from envcheck.pipeline.planned.solve import labelled, package_of
from envcheck.pipeline.verdict import with_checks
from envcheck.plans.readers.environment_yml import VIRTUAL
from envcheck.plans.settle import as_environment
from envcheck.rules.api import Facts
from envcheck.rules.catalog import all_rules
from envcheck.rules.engine.evaluate import evaluate
from envcheck.rules.engine.resolve import requirements_broken
from envcheck.rules.engine.simulate import simulate, without_trials
from envcheck.rules.fixes.frameworks import INDEX
from envcheck.rules.fixes.install import How, in_steps, install, is_conda_package
from envcheck.text.lazy import lazy_pattern

_MOST_EDITED = 5  # Failing plans of one run for which the lines to change are looked for
_MOST_TRIED = 24
_MOST_JUDGED = 16
_MOST_FAILING = 32
"""Packages beyond which no set is looked for: such a file is not mended line by line, and the search takes minutes."""
_MOST_ROUNDS = 3  # In which packages are freed that those that move require in other releases
_UPPER = lazy_pattern(r"<|==|~=")
_LOCKS = lazy_pattern(r"(?:uv|poetry|pdm|Pipfile)\.lock|pylock(?:\..*)?\.toml")

JudgeOfTargets = Callable[[Environment], Sequence[Report]]  # What judges a plan for each machine that it is meant for


class Repair(msgspec.Struct, frozen=True):
    """What makes a plan fit."""

    moved: Mapping[str, str]  # New versions by name
    tag: str  # Local tag of the build of PyTorch that its index serves; empty: PyPI's
    image: str = ""  # What to start from in place of the image
    diff: str = ""  # The changes of its files, unified; empty where none of them can be changed so
    by_hand: tuple[str, ...] = ()
    """Files in which an entry was not found as a line, or that have no place for the index."""


def repair(report: Report) -> Repair | None:
    """The lines to change that a report tells, as changes of the files; None where it tells none.

    Raises UsageError for a lock file, which its tool writes.
    """
    plan = report.snapshot.judged_environment if report.snapshot else None
    entries = (plan.planned if plan else None) or ()
    if locked := next((each.file for each in entries if _LOCKS.fullmatch(Path(each.file).name)), None):
        why = "is written by its tool: name the file that it is made from, and lock again"
        raise UsageError(f"--fix-plan: {locked} {why}")
    told = (fix.changes for check in report.checks if check.status == "fail" for fix in check.fixes if fix.changes)
    if plan is None or (changes := next((each for each in told if each.edits), None)) is None:
        return None
    moved = dict(line.split("==", 1) for line in changes.installs)
    changed = [(each, moved[each.name]) for each in entries if each.name in moved and each.image is None]
    of_image = [each for each in entries if each.image and changes.image][:1]
    changed += [(each, changes.image.partition(":")[2]) for each in of_image]
    tag, torch = changes.torch_backend, torch_of(entries)
    return Repair(moved, tag, changes.image, *diff_of(changed, None if of_image else tag, torch))


def with_edits(
    reports: Sequence[Report],
    plans: Sequence[Environment | None],
    matrix: Matrix,
    judge: Callable[[int, Environment], Report],
) -> list[Report]:
    """The reports on the plans; what fails has the lines to change as its fix, where the nearest releases are known: a
    change of one package alone may fail for another. ``judge`` says what is found of a plan at the place of another.
    """
    edited, by_key = [*reports], defaultdict[str, list[int]](list)
    for place, plan in enumerate(plans):
        by_key[plan.key if plan else ""].append(place)
    failing = [key for key, places in by_key.items() if key and _with([reports[each] for each in places], "fail")]
    for places in (by_key[key] for key in failing[:_MOST_EDITED]):
        own = dict[int, Environment]()
        for place in places:
            # Without packages of which no row tells: nothing of them is judged, and they move nothing.
            if plan := plans[place]:
                names = {each.name for each in plan.planned or ()}
                known = {name for name in names if matrix.knows(canonical(name)) or matrix.is_named(name)}
                known |= {name for name in names if name.startswith(VIRTUAL)}
                left = (each for each in plan.planned or () if each.name in known or each.extras or not each.name)
                own[place] = replace(plan, planned=tuple(left))

        def judge_all(chosen: Environment, own: Mapping[int, Environment] = own) -> list[Report]:
            alone = len(own) == 1
            return [judge(place, chosen if alone else _as_in(chosen, plan, matrix)) for place, plan in own.items()]

        found = _with_edits([reports[place] for place in places], [*own.values()], matrix, judge_all)
        for place, report in zip(places, found, strict=True):
            edited[place] = report
    return edited


def _as_in(chosen: Environment, plan: Environment, matrix: Matrix) -> Environment:
    """What is chosen, of the lines that ``plan`` has: those for other systems may be others."""
    entries = chosen.planned or ()
    new = {(each.source, each.name): each for each in entries}
    its = [new.get((each.source, each.name), each) for each in plan.planned or ()]
    return chosen if its == [*entries] else as_environment(its, list(dict.fromkeys(each.file for each in its)), matrix)


def _with_edits(
    reports: Sequence[Report], plans: Sequence[Environment], matrix: Matrix, judge: JudgeOfTargets
) -> list[Report]:
    """The reports on one plan; what a lock file chooses is left to it."""
    plan = next(each for each, report in zip(plans, reports, strict=True) if _with([report], "fail"))
    entries, failing = plan.planned or (), _with(reports, "fail")
    if any(_LOCKS.fullmatch(Path(each.file).name) for each in entries):
        return [*reports]
    found = nearest_set(reports, plan, matrix, judge)
    # One machine may take none of another's; conda and images have more releases than rows tell.
    others = any(each.name in failing and (each.conda, each.image) != (None, None) for each in entries)
    if found is None and (others or len(reports) > 1 or len(failing) > _MOST_FAILING):
        return [*reports]
    edit = Fix("None of the releases that were tried makes the whole plan fit")
    if found is not None:
        pins = tuple(f"{name}=={version}" for name, version in found.moved.items())
        index = f"{INDEX}{found.tag}" if found.tag else ""
        changes = Changes(installs=pins, index=index, torch_backend=found.tag, image=found.image, edits=True)
        edit = Fix(_in_words(found, plan), changes=changes)

    def edited(check: Check) -> Check:
        if check.status != "fail" or check.subject.environment != plan.key:
            return check
        kept = (fix for fix in check.fixes if fix.changes is None)  # such as a newer driver, or what to leave out
        others = [fix for fix in kept if found is None or not fix.text.startswith("No ")]  # that none is known
        return replace(check, fixes=(edit, *others)) if found or others != [*check.fixes] or not others else check

    return [with_checks(report, [*map(edited, report.checks)]) for report in reports]


def _in_words(found: Repair, plan: Environment) -> str:
    """What to write in which line, by file."""
    torch, pins = torch_of(plan.planned), dict[str, list[str]]()
    for each in plan.planned or ():
        version = found.moved.get(each.name) if each.image is None else None
        image = found.image if each.image else ""
        if image or (version and version != each.version):
            extras = f"[{','.join(each.extras)}]" if each.extras else ""
            pin = image or f"{each.name}{extras}{'==' if each.conda is None else '='}{version}"
            text = f"{pin} in line {each.line}" if each.line else pin
            pins.setdefault(each.file, []).extend([text] if text not in pins.get(each.file, ()) else [])
    parts = [f"in {file}, write {listed(each)}" for file, each in pins.items()]
    if torch is not None and found.tag and found.tag != torch.build:
        parts.append(f"take torch from {INDEX}{found.tag}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:]


def nearest_set(reports: Sequence[Report], plan: Environment, matrix: Matrix, judge: JudgeOfTargets) -> Repair | None:
    """The nearest releases after which nothing of ``plan`` fails and no more is open than before."""
    entries = plan.planned or ()
    failing = _with(reports, "fail")
    if len(failing) > _MOST_FAILING:
        return None
    open_before = _with(reports, "unknown")
    platform = reports[0].snapshot.platform if reports[0].snapshot else None
    markers = marks_of(plan.python, (platform and platform.os) or "linux", platform and platform.machine)
    paths = list(dict.fromkeys(each.file for each in entries))
    own = named_by("torch", matrix)
    related = {each.name for each in entries if each.name in own or "torch" in named_by(canonical(each.name), matrix)}
    machines = [
        [part for part in machine_of(Facts(report.snapshot or Snapshot(), matrix)) if part.name != "python"]
        for report in reports
    ]

    @cache
    def verdicts(name: str, version: str) -> set[str]:
        release = exactly(name, version)
        return {answer_of(matrix, (release, *machine)).verdict for machine in machines}

    def runs(name: str, version: str) -> bool:
        found = verdicts(name, version)
        return found == {"compatible"} if name == "torch" else "incompatible" not in found

    def may_run(name: str, version: str) -> bool:
        return name not in failing or "incompatible" not in verdicts(name, version)

    others = failing - {"torch"}
    required = {other for name in others for other in named_by(canonical(name), matrix)}
    beside = {each.name for each in entries if each.name in required}
    stays = [(Start(entries), others | more) for more in (set[str](), related, beside) if others]
    needs = (declared(matrix, each.name, each.version or "", markers) for each in entries if each.name in others)
    pinned = {pinned_by(f"torch{bounds['torch']}") for bounds in needs if "torch" in bounds}
    images = of_images(entries, markers, matrix, runs)
    others_first = images if failing & {each.name for each in entries if each.image} else ()
    pip, conda = islice(of_pip(entries, pinned, matrix, runs), _MOST_TRIED), of_conda(entries, matrix)
    bases = chain(others_first, pip, conda, images)
    old = {each.name: each for each in entries}
    tried = set[tuple[tuple[str, str | None], ...]]()
    for (base, tag, image), free in chain(stays, ((base, failing | related) for base in bases)):
        wrong = failing
        for _ in range(_MOST_ROUNDS):
            pinned_too = {each.name for each in entries if each.version or each.name in wrong}
            chosen = _with_free(base, free & pinned_too, matrix, markers, may_run)
            pairs = [(new, old.get(new.name, new)) for new in chosen if new.name and not new.image]
            moved = {
                new.name: new.version for new, its in pairs if (new.version, new.build) != (its.version, its.build)
            }
            attempt = (*moved.items(), (image, tag))
            if len(tried) == _MOST_JUDGED:
                return None
            if attempt in tried:
                break
            tried.add(attempt)
            found = judge(as_environment(chosen, paths, matrix))
            doubts, fails = _with(found, "unknown"), _with(found, "fail")
            unchosen = any(version is None for version in moved.values())
            if not (unchosen or fails or doubts - open_before or moved.keys() & doubts):
                torch = torch_of(entries)
                served = (torch.build if tag is None and torch else tag) or ""
                return Repair({name: _as_listed(name, its or "", matrix) for name, its in moved.items()}, served, image)
            if unchosen or fails <= free | {"torch"}:
                break
            wrong = wrong | fails  # what went with the old releases
            free = free | fails  # noqa: PLW2901
    return None


def _as_listed(name: str, version: str, matrix: Matrix) -> str:
    """The version as PyPI lists it: 0.9.0, where 0.9.0.0 tells it from 0.9.0.1."""
    short = version.removesuffix(".0")
    listed = {str(each) for each in published(matrix, canonical(name))}
    return short if short in listed and version not in listed else version


def _with(reports: Sequence[Report], status: Status) -> set[str]:
    """The packages of checks about the plan, not about the machine."""
    checks = (check for report in reports for check in report.checks if check.subject.environment)
    return {package_of(check) for check in checks if check.status == status}


def _with_free(
    entries: Sequence[Planned],
    free: Collection[str],
    matrix: Matrix,
    markers: Mapping[str, str],
    may_run: Callable[[str, str], bool],
) -> list[Planned]:
    """The entries, those that are ``free`` at the nearest releases that go with the rest and may run on the machine,
    and with them what these require in another release than is pinned.
    """
    pins = {
        # torchvision~=0.8.2 holds PyTorch as a pin does.
        each.name: each.version or (newest_of(each, matrix, markers) if with_torch else None)
        for each in entries
        if (with_torch := matrix.has_trait(each.name, "released-with-torch")) or each.version or each.name in free
        if each.name != "torch" and each.conda is each.image is None
        if "+" not in (each.version or "")
        or matrix.has_trait(each.name, "on-torch-index")  # else PyPI's is for the CPU
    }
    asked = {each.name: each.bounds for each in entries}
    names, chosen = {*free} & pins.keys(), list(entries)

    def needs(name: str, version: str) -> Mapping[str, str]:
        return declared(matrix, name, version, markers)

    def first(name: str, releases: Sequence[str]) -> str | None:
        return next((each for each in releases[:_MOST_TRIED] if may_run(name, each)), None)

    def nearest(item: Planned, left: Sequence[str]) -> str | None:
        """The pinned release, the oldest later one, or the newest older one: of those that name their PyTorch, if any
        do. An older one that names none only does not know this PyTorch. Of what is not pinned, the newest, or else
        the first above what is asked for.
        """
        if item.name not in names:
            return None
        there = parse_version((pins[item.name] or "").partition("+")[0])
        if there is None:
            least = ",".join(part for part in asked[item.name].split(",") if part.startswith(">"))
            within = [version for version in left if contains(asked[item.name], version)]
            above = [version for version in left if contains(least, version) and version not in within]
            return first(item.name, [*reversed(within), *above])
        bounds = {version: needs(item.name, version).get("torch") for version in left}
        known = [version for version in left if "==" in (bounds[version] or "")] or left
        later = [one for one in known if (number := parse_version(one)) and number.numbers >= there.numbers]
        older = [*reversed(known[: len(known) - len(later)])] if _UPPER.search(bounds[known[-1]] or "<") else []
        return first(item.name, [*later, *older])

    for _ in range(_MOST_ROUNDS):
        items = [
            replace(each, version=None, bounds="", problem=None, refused=None) if each.name in names else each
            for each in entries
        ]
        chosen = in_turn(items, matrix, markers, nearest)
        required = [needs(each.name, each.version) for each in chosen if each.name in names and each.version]
        pinned = {
            name
            for asked in required
            for name, bounds in asked.items()
            if name in pins.keys() - names and not contains(bounds, pins[name] or "")
        }
        if not pinned:
            break
        names |= pinned
    return [replace(each, asked=f"{each.name}{each.bounds}") if each.name in names else each for each in chosen]


def repair_installed(report: Report, matrix: Matrix, judge: Judge) -> Solution:
    """What to install over the judged environment of ``report``; ``judge`` says what is found of a plan.

    Raises UsageError where there is no environment, or conda installed what does not fit.
    """
    facts = Facts(report.snapshot or Snapshot(), matrix)
    environment = facts.environment
    if environment.distributions is None:
        raise UsageError("--repair: there is no Python environment to repair; name one: --repair ENVIRONMENT")
    plan, before, failing = _judged(facts, environment, judge)
    machine = {part.name: part.exact or "" for part in machine_of(facts)} | {"environment": environment.key}
    if not failing:
        others = [check for check in _failing(report.checks) if check.scope == "env"]
        reasons = tuple(Reason(verdict="unknown", message=each.title, sources=each.sources) for each in others)
        return Solution(verdict="unknown" if others else "compatible", machine=machine, reasons=reasons)
    there = {each.name: each for each in environment.distributions}
    by_conda = [name for name in map(package_of, failing) if name in there and is_conda_package(there[name])]
    if by_conda:
        raise UsageError(f"--repair: conda installed {by_conda[0]}, and chooses its releases: see envcheck check")
    found = nearest_set([before], plan, matrix, lambda chosen: [judge(chosen)])
    steps = _steps(found, facts) if found else ()
    worse = [*_worse(steps, report, facts)]
    if found is None or worse:
        causes = [f"{each.title}: {each.message}" for each in failing]
        messages = [*causes, *worse] if found else causes
        sources = failing[0].sources
        reasons = tuple(Reason(verdict="incompatible", message=each, sources=sources) for each in messages)
        return Solution(verdict="incompatible", machine=machine, reasons=reasons)
    titles = {package_of(each): each.title for each in failing}
    packages = tuple(
        ChosenRelease(
            name=name,
            version=labelled(name, version, found.tag, matrix),
            given_up=f"{there[name].version} is installed: {titles.get(name, 'it does not go with the rest')}",
        )
        for name, version in found.moved.items()
    )
    commands = tuple(step.command for step in steps)
    return Solution(verdict="compatible", machine=machine, packages=packages, tag=found.tag, steps=commands)


def nearest_way(facts: Facts, judge: Judge) -> tuple[Fix, ...]:
    """The steps to the nearest releases with which the environment fits; nothing where it does, or none is near."""
    environment = facts.environment
    if environment.distributions is None or environment.planned is not None:
        return ()
    plan, before, failing = _judged(facts, environment, judge)
    found = nearest_set([before], plan, facts.matrix, lambda chosen: [judge(chosen)]) if failing else None
    return in_steps(_steps(found, facts)) if found else ()


def _judged(facts: Facts, environment: Environment, judge: Judge) -> tuple[Environment, Report, list[Check]]:
    """What the matrix knows of the environment as a plan, its report, and the packages that fail."""
    plan = as_environment([*_installed(facts, environment)], [environment.key], facts.matrix)
    before = judge(plan)
    return plan, before, _failing(before.checks)


def _installed(facts: Facts, environment: Environment) -> Iterator[Planned]:
    """What the matrix knows of it, pinned; what PyTorch requires moves with it."""
    matrix, there = facts.matrix, environment.distributions or ()
    torch = next((each.version.partition("+")[0] for each in there if each.name == TORCH), "")
    follows = declared(matrix, TORCH, torch, facts.markers) if torch else {}
    for each in there:
        known = matrix.rows_of(canonical(each.name)) or matrix.has_trait(each.name, "distributes-torch")
        if known and each.version and each.name not in follows:
            yield Planned(
                source=environment.key,
                name=each.name,
                asked=f"{each.name}=={each.version}",
                bounds=f"=={each.version}",
                version=each.version,
                build=each.version.partition("+")[2] if each.name == TORCH else "",
                conda=each.build or "" if is_conda_package(each) else None,
                file=environment.key,
                together=environment.key,
            )


def _failing(checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if check.status == "fail" and check.subject.kind == "framework"]


def _steps(found: Repair, facts: Facts) -> tuple[Fix, ...]:
    """PyTorch with what its index serves, then the rest."""
    matrix, moved = facts.matrix, found.moved
    served = [name for name in moved if name == TORCH or matrix.has_trait(name, "on-torch-index")]
    indexed = How(index=f"{INDEX}{found.tag}", torch_backend=found.tag) if found.tag else How()
    steps: list[Fix] = []
    for how, names in ((indexed, served), (How(), [name for name in moved if name not in served])):
        lines = [f"{name}=={labelled(name, moved[name], found.tag, matrix)}" for name in names]
        steps += install(facts, lines, f"Install {' and '.join(lines)}", how) if lines else ()
    return tuple(steps)


def _worse(steps: Sequence[Fix], report: Report, facts: Facts) -> Iterator[str]:
    """What would be wrong after the steps that is right now."""
    snapshot = without_trials(facts.snapshot, facts.matrix)
    after = simulate(snapshot, [step.changes for step in steps if step.changes], facts.matrix)
    there = requirements_broken(facts)
    then = Facts(after.snapshot, facts.matrix)
    broken = requirements_broken(then)
    yield from (f"then {owner} lacks {asked}, which it requires" for owner, asked in sorted(broken - there))
    yield from (f"no release meets {asked}" for asked in after.impossible)
    known = {check.id for check in report.checks if check.status == "fail"}
    for check in evaluate(then, all_rules(), frozenset({"env"})):
        if check.status == "fail" and check.id not in known:
            yield f"then {check.title}"
