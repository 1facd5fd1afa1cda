"""Offer only fixes after which, by the same rules, the finding is gone and nothing else is worse.

Each alternative that changes packages is simulated on top of those chosen for earlier findings: a reader who follows a
page from top to bottom must not bring an earlier finding back. Where no alternative is left, the report offers all that
a framework requires, the nearest releases that fit together, two environments, or another release of one framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from envcheck.compat.package_needs import admits, extra_of, normalised, read_requirement, requirement_name
from envcheck.knowledge.matrix import Matrix
from envcheck.model.checks import ASSUMPTION, PLAN, Changes, Check, Fix, Scope, ways
from envcheck.model.snapshot import Framework, frameworks_in, items_in
from envcheck.rules.api import Facts, Rule
from envcheck.rules.engine.cause import primary
from envcheck.rules.engine.evaluate import evaluate
from envcheck.rules.engine.resolve import requirements_broken
from envcheck.rules.engine.simulate import Simulated, simulate, without_trials
from envcheck.rules.facts.library_names import family_of_wheel
from envcheck.rules.facts.machine import and_more
from envcheck.rules.fixes.frameworks import same_version
from envcheck.rules.fixes.install import create_command, fill_command, in_steps, install, is_of_uv, uninstall
from envcheck.rules.fixes.releases import other_releases
from envcheck.rules.fixes.remedies import remedy_of
from envcheck.rules.packages.redirected import stop_redirection

_BAD = ("fail", "warn")
_OPEN = ("unknown", "skipped")
_SCOPES: frozenset[Scope] = frozenset({"env"})
_MOST = 80  # Alternatives that are simulated for one report
_MOST_JUDGED = 4000  # Frameworks that are judged again in all simulations together
_LEAST = 4
_NAMED = 4

_OF_ANOTHER_TORCH = ("extension-built-for-other-torch", "torch-family-mismatch")
_OF_RELEASES = frozenset({"driver-too-old", "cuda-major-mismatch", "extension-code-missing", *_OF_ANOTHER_TORCH})
"""The rules whose findings the release of a package decides, and no file that another release may have or not."""

Way = tuple[Fix, ...]
Key = tuple[str, str]
Nearest = Callable[[Facts], Way]


class JudgedChange(msgspec.Struct, frozen=True):
    """The judgement of an environment after some changes, by all rules and all requirements."""

    bad: dict[Key, int]  # The severity of each finding: 0 for a failure, 1 for a warning
    checks: dict[Key, Check]
    broken: frozenset[tuple[str, str]]
    after: Simulated


class Tried(msgspec.Struct, frozen=True):
    """An alternative and its simulated result."""

    way: Way
    judged: JudgedChange
    before: Simulated
    remains: bool
    worse: tuple[Check, ...]
    broken: tuple[tuple[str, str], ...]
    idle: bool = False  # Whether it changes nothing, and only a line tells of the finding, which no simulation can end
    untried: bool = False  # The report had used up its simulations

    @property
    def is_clean(self) -> bool:
        return not (self.remains or self.worse or self.broken or self.idle or self.untried)

    @property
    def works(self) -> bool:
        """Whether the result works. A broken requirement that no rule reports is only a risk."""
        return not (self.remains or self.worse or self.idle or self.untried or self.judged.after.impossible)

    @property
    def is_known(self) -> bool:
        """Whether it brings no framework in a release that only the index knows."""
        after = self.judged.after
        return not {each.name for each in frameworks_in(after.snapshot.judged_environment)} & {*after.unknown}

    @property
    def refused_by(self) -> list[str]:
        """The packages that require another release of a framework that it installs."""
        frameworks = {each.name for each in frameworks_in(self.judged.after.snapshot.judged_environment)}
        wanted = {requirement_name(line) for change in _changes(self.way) for line in change.installs} & frameworks
        return [owner for owner, asked in self.broken if requirement_name(asked) in wanted]


def offer(checks: Sequence[Check], facts: Facts, rules: Iterable[Rule], nearest: Nearest) -> tuple[Check, ...]:
    """The checks with only those fixes that pass the simulation, judged by all ``rules`` about environments.

    ``nearest`` tells the nearest releases with which an environment fits, as steps.
    """
    root = primary(checks)
    found = [check for check in checks if check.status in _BAD and check.rule not in (PLAN, ASSUMPTION)]
    page = _Page(facts, tuple(rules), found, nearest)
    found.sort(key=lambda check: (check is not root, bool(check.explained_by), _BAD.index(check.status)))
    mended = {id(check): page.with_fixes(check) for check in found}
    return tuple(mended.get(id(check), check) for check in checks)


class _Page:
    """The findings of one report, in the order in which a reader fixes them."""

    def __init__(self, given: Facts, rules: Sequence[Rule], found: Sequence[Check], nearest: Nearest) -> None:
        self._found, self._nearest, self._given = found, nearest, given
        self._snapshot = without_trials(given.snapshot, given.matrix)
        self._tables, self._rules = given.matrix, rules
        # Where nothing was tried, its environments have been judged.
        self._start = given if self._snapshot == given.snapshot else Facts(self._snapshot, self._tables)
        frameworks = sum(len(frameworks_in(each)) for each in items_in(given.snapshot.environments))
        self._left = min(_MOST, max(_LEAST, _MOST_JUDGED // max(1, frameworks)))
        self._steps: tuple[Changes, ...] = ()  # The changes of the alternatives chosen so far
        self._before = self._judged(())
        self._now = self._before

    def with_fixes(self, check: Check) -> Check:
        alternatives = list(dict.fromkeys(_unshadow_first(way, self._start) for way in ways(check.fixes)))
        if all(fix.changes is None or fix.changes.edits for way in alternatives for fix in way):
            return msgspec.structs.replace(check, fixes=tuple(fix for way in alternatives for fix in way))
        chosen = self._chosen(check, self._each_tried(check, alternatives))
        return msgspec.structs.replace(check, fixes=tuple(fix for way in chosen for fix in way))

    def _each_tried(self, check: Check, alternatives: Iterable[Way]) -> list[tuple[Way, Tried | None]]:
        """Each alternative with its result; None where it changes no package."""
        return [(way, self._try(check, way) if _changes(way) else None) for way in alternatives]

    def _chosen(self, check: Check, pairs: Sequence[tuple[Way, Tried | None]]) -> list[Way]:
        """The alternatives that work, in order; those that leave a requirement unmet only where no other works."""
        alternatives, tried = [way for way, _ in pairs], [each for _, each in pairs]
        gone = _key(check) in self._before.bad and _key(check) not in self._now.bad
        if gone and not any(each and each.is_clean for each in tried):
            unchanging = [way for way, each in pairs if each is None]
            return [(Fix("Follow the fix of the finding above first, then check again"),), *unchanging]
        kept = [(way, each) for way, each in pairs if each is None or each.works or each.untried]
        if any(each for _, each in kept):
            if not any(each and each.is_clean for _, each in kept):
                # A fix of another finding may end this one too, and leave no requirement unmet.
                known = (way for other in self._found for way in ways(other.fixes) if _changes(way))
                tries = (self._try(check, way) for way in known if way not in alternatives)
                owners = [owner for _, each in kept if each for owner in each.refused_by]
                clean = next((each for each in tries if each.is_clean), None)
                others = [clean] if clean else self._other_releases(check, owners) if owners else ()
                kept += [(each.way, each) for each in others if each.is_clean]
            if any(each and each.is_clean for _, each in kept):
                kept = [(way, each) for way, each in kept if each is None or each.is_clean]
            kept.sort(key=lambda pair: pair[1] is not None and not pair[1].is_clean)
            return self._offered(kept)
        if kept and all(each is None or each.idle for each in tried):
            return [way for way, _ in kept]
        instead = self._replacements(check, [each for each in tried if each is not None])
        helps = any(fix.who != "user" for way, _ in kept for fix in way)
        return [*(way for way, _ in kept), *(way for way in instead if not helps or way[0].command)]

    def _replacements(self, check: Check, tried: Sequence[Tried]) -> list[Way]:
        """The fixes where every alternative breaks something or leaves the finding."""
        facts = Facts(self._now.after.snapshot, self._tables)
        least = min(tried, key=lambda each: (each.remains, len(each.worse), len(each.broken)))
        reasons = [check.title for check in least.worse[:2]]
        reasons = reasons or [f"{owner} requires {asked}" for owner, asked in least.broken[:2]]
        reasons += [f"no release meets {asked}" for asked in least.judged.after.impossible]
        why = f"then {' and '.join(reasons)}" if reasons else ""
        keys = (other.subject.key.rpartition(":")[2] for each in tried for other in each.worse)
        others = list(dict.fromkeys((*keys, *(owner for each in tried for owner, _ in each.broken))))
        completed = next(
            (each for way in complete_in_place(facts, check, others) if (each := self._try(check, way)).works), None
        )
        if completed is not None:
            return self._offered([(completed.way, completed)])
        way = self._nearest(facts)
        if way and (fitting := self._try(check, way)).is_clean:
            return self._offered([(way, fitting)])
        separate = [self._try(check, way) for way in two_environments(facts, check, why, others)] if why else []
        subject = (check.subject.key.rpartition(":")[2],) if check.rule in _OF_RELEASES else ()
        other_releases = self._other_releases(check, (*subject, *others)) if why or subject else ()
        good = [each for each in (*separate, *other_releases) if each.works]
        if not good and (row := remedy_of(check.rule, check.evidence, self._given)):
            known = self._each_tried(check, (_unshadow_first(way, facts) for way in ways(row.fixes)))
            if helping := [(way, each) for way, each in known if each is None or each.works or each.untried]:
                return self._offered(helping)
        if not good and not why:
            return [(Fix("No automatic fix for this finding: install what you need into a new environment"),)]
        if not good:
            return [(Fix(f"No package change fixes this: {why}. Use separate environments"),)]
        return self._offered([(each.way, each) for each in good[:2]])

    def _other_releases(self, check: Check, others: Sequence[str]) -> Iterator[Tried]:
        """The first other release of each that works, also by the frameworks that it brings: of these, releases that
        nobody knows prove nothing.
        """
        if _key(check) not in self._before.bad:
            return  # only an error line tells of it, which another release may print too
        for ways_of_one in install_others(Facts(self._now.after.snapshot, self._tables), check, others):
            tried = (self._try(check, way) for way in ways_of_one)
            known = (each for each in tried if each.works and each.is_known)
            if check.rule not in _OF_RELEASES:  # what leaves the finding itself open has not ended it
                known = (each for each in known if each.judged.checks.get(_key(check), check).status not in _OPEN)
            yield from islice(known, 1)

    def _offered(self, pairs: Sequence[tuple[Way, Tried | None]]) -> list[Way]:
        """The alternatives with their risks; what follows on the page is judged after the first of them."""
        if first := pairs[0][1]:
            self._steps = (*self._steps, *_changes(first.way))
            self._now = first.judged
        return [_with_risk(each) if each else way for way, each in pairs]

    def _try(self, check: Check, way: Way) -> Tried:
        now, key = self._now, _key(check)
        self._left -= 1
        if self._left < 0:
            return Tried(way, now, now.after, remains=False, worse=(), broken=(), untried=True)
        after = self._judged((*self._steps, *_changes(way)))
        there, then = (Facts(each.after.snapshot, self._tables).distributions for each in (now, after))
        # It may change nothing: it reinstalls nothing, brings no libraries by an extra, and removes nothing that an
        # incomplete list does not have and that may be there.
        environment = self._snapshot.judged_environment
        idle = environment is not None and not any(
            step.again
            or any("[" in line for line in step.installs)
            or (step.removes and not environment.distributions_complete)
            for step in _changes(way)
        )
        worse = [after.checks[other] for other, bad in after.bad.items() if bad < now.bad.get(other, len(_BAD))]
        return Tried(
            way,
            after,
            now.after,
            remains=key in after.bad and key in self._before.bad,
            worse=tuple(other for other in worse if _key(other) != key),
            broken=tuple(sorted(after.broken - now.broken)),
            idle=idle and key not in self._before.bad and then == there,
        )

    def _judged(self, steps: Sequence[Changes]) -> JudgedChange:
        after = simulate(self._snapshot, steps, self._tables) if steps else Simulated(self._snapshot, (), ())
        facts = Facts(after.snapshot, self._tables) if steps else self._start
        checks = {_key(check): check for check in evaluate(facts, self._rules, _SCOPES)}
        bad = {key: _BAD.index(check.status) for key, check in checks.items() if check.status in _BAD}
        return JudgedChange(bad, checks, requirements_broken(facts), after)


def _unshadow_first(way: Way, facts: Facts) -> Way:
    """The alternative, preceded by steps that take copies off the search path which would shadow what it installs; only
    those steps where the copies behind them suffice.
    """
    steps: dict[Fix, None] = {}
    wanted = any(change.removes for change in _changes(way))
    for line, again in ((line, change.again) for change in _changes(way) for line in change.installs):
        name = normalised(asked.name) if (asked := read_requirement(line)) else ""
        copies = [each for each in facts.distributions if each.name == name]
        first = copies[0] if copies else None
        folder = ((first.path if first else None) or "").rpartition("/")[0]
        # The folders up to the one of the environment that installers write to come first.
        environment = facts.environment
        folders = environment.site_packages
        prefix = f"{environment.prefix or ''}/"
        own = next((place for place, each in enumerate(folders) if each.startswith(prefix)), len(folders))
        if asked is None or first is None or not first.led_by or folder in folders[own:]:
            wanted = True
            continue
        steps |= dict.fromkeys(stop_redirection(first.led_by, folder, name, f"{name} {first.version}".strip(), facts))
        behind = next((each for each in copies if each.led_by != first.led_by), None)
        # What is damaged in that copy says nothing of the one behind it, in whatever release.
        wanted = wanted or behind is None or (not again and admits(str(asked.specifier), behind.version) is False)
    return in_steps((*steps, *(way if wanted else ()))) if steps else way


def _key(check: Check) -> Key:
    return check.rule, check.subject.key


def _changes(way: Way) -> tuple[Changes, ...]:
    return tuple(fix.changes for fix in way if fix.changes is not None)


def _with_risk(tried: Tried) -> Way:
    """The alternative, with its side effects as risk."""
    moved = [each for each in tried.judged.after.moved if each not in tried.before.moved]
    changed = [
        f"{name} {before} to {after.replace('.999', '.x') or 'the newest release'}"
        for name, before, after in moved
        if before and before != after
    ]
    added = [name for name, before, _ in moved if not before]
    risks = [f"changes {', '.join(changed[:_NAMED])}{and_more(changed, _NAMED)}"] if changed else []
    risks += [f"adds {', '.join(added[:_NAMED])}{and_more(added, _NAMED)}"] if added else []
    risks += [f"{owner} asks for {asked}" for owner, asked in tried.broken[:_NAMED]]
    installed = {requirement_name(line) for change in _changes(tried.way) for line in change.installs}
    unknown = [name for name in tried.judged.after.unknown if name in installed]
    if unknown:
        risks.append(f"not checked: the newest release of {', '.join(unknown[:_NAMED])}{and_more(unknown, _NAMED)}")
    if tried.untried:
        risks.append("not checked: whether this ends the finding, and what else it changes")
    last = max((place for place, fix in enumerate(tried.way) if fix.changes), default=0)
    risk = "; ".join(filter(None, (tried.way[last].risk, *risks)))
    return tuple(
        msgspec.structs.replace(fix, risk=risk) if place == last and risk != fix.risk else fix
        for place, fix in enumerate(tried.way)
    )


def two_environments(facts: Facts, check: Check, why: str, others: Sequence[str]) -> Iterator[tuple[Fix, ...]]:
    """Move one framework into a separate environment, preferably the one that the finding is about."""
    environment = facts.environment
    if not environment.prefix or environment.externally_managed:
        return
    for framework in _concerned_frameworks(facts, check, others):
        place, uv = f"{environment.prefix.rstrip('/')}-{framework.name}", is_of_uv(facts)
        interpreter = environment.executable or "python3"
        create = create_command(place, uv=uv, python=environment.python or "", interpreter=interpreter)
        wanted = f"{framework.name}{_gpu_extra(framework, facts.matrix)}{same_version(framework)}"
        alone = f"{framework.name} in a separate environment, since in one environment {why}"
        yield in_steps(
            (
                Fix(f"Keep {alone}: create it", command=create),
                Fix(f"Install {wanted} there", command=fill_command(place, wanted, uv=uv)),
                uninstall(facts, (framework.name,), f"Remove {framework.name} from {environment.prefix}"),
            )
        )


def install_others(facts: Facts, check: Check, others: Sequence[str]) -> Iterator[list[Way]]:
    """For each of the frameworks and engines, the ways to another release, whose requirements may fit."""
    frameworks = {each.name: each for each in _concerned_frameworks(facts, check, others)}
    there = {name: each.version or "" for name, each in frameworks.items()}
    there |= {each.name: each.version for each in facts.distributions if each.name in (*others, *there)}
    for name in sorted(there, key=lambda name: name in frameworks):
        extra = _gpu_extra(frameworks[name], facts.matrix) if name in frameworks else ""
        text = f"Install a release of {name} that fits with the rest, with what it requires"
        yield [install(facts, (f"{name}{extra}{pin}",), text) for pin in other_releases(name, there[name], facts)]


def complete_in_place(facts: Facts, check: Check, others: Sequence[str]) -> Iterator[tuple[Fix, ...]]:
    """Install the release of a framework that is there: pip then brings what it requires and is missing or differs."""
    if facts.environment.planned is not None:
        return
    by_pip = {each.name for each in facts.distributions if each.channel == "pip"}
    for framework in _concerned_frameworks(facts, check, others):
        if framework.name in by_pip:
            wanted = f"{framework.name}{_gpu_extra(framework, facts.matrix)}{same_version(framework)}"
            yield install(facts, (wanted,), f"Install all that {framework.title} requires, in its releases")


def _concerned_frameworks(facts: Facts, check: Check, others: Sequence[str]) -> list[Framework]:
    subject = check.subject.key.rpartition(":")[2] if check.subject.kind == "framework" else ""
    named = map(facts.framework, dict.fromkeys((subject, *others)))
    return [each for each in named if each and facts.is_main_framework(each) and each.version]


def _gpu_extra(framework: Framework, matrix: Matrix) -> str:
    """The extra that installs the CUDA libraries, or the plug-in that needs them: ``[and-cuda]``."""
    for line in framework.requires:
        name, extra = requirement_name(line), extra_of(line)
        if extra and (family_of_wheel(name) or matrix.has_trait(name, "part-for-cuda")):
            return f"[{extra}]"
    return ""
