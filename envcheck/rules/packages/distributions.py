"""The metadata of installed packages: whether pip, uv or conda can still list them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

import msgspec

from envcheck.compat.package_needs import admits, bounds_on
from envcheck.knowledge.specifier import parse_version
from envcheck.model.checks import Changes, Evidence, Fix
from envcheck.model.snapshot import Distribution, Environment
from envcheck.rules.api import Facts, Outcome, evidence_of, note, passed, rule
from envcheck.rules.facts.machine import and_more
from envcheck.rules.fixes.install import in_steps, install, install_pip, is_of_uv, pip_command, uninstall
from envcheck.rules.fixes.reinstall import reinstall
from envcheck.rules.packages.shipped import FOLLOWS_FROM_FILES, DamagedPackage, compared, damaged_packages

_SHOWN = 12
_LINK = ".egg-link"
_PATH_FILE = ".pth"
_LEFT = ("~", "-")  # The first character of names to which pip renames folders while it replaces them


class _Finding(msgspec.Struct, frozen=True):
    what: str  # Who is concerned: ``torch``
    evidence: Evidence
    fix: Fix
    before: tuple[Fix, ...] = ()  # Steps that the fix needs first
    harmless: bool = False
    fatal: bool = False  # A framework that cannot be imported so
    left: str = ""  # What is to be deleted, and nothing else
    title: str = ""  # What it is called where it is the first; empty: damaged, or there twice

    @property
    def text(self) -> str:
        return f"{self.evidence.what}: {self.evidence.value}"


@rule(layer="framework", decided_by="declared", explains_failing=FOLLOWS_FROM_FILES)
def damaged_distribution(environment: Environment, facts: Facts) -> Outcome | None:
    """Installed packages are damaged, or installed twice."""
    if environment.problem is not None or environment.damaged is None or environment.distributions is None:
        return None
    packages = damaged_packages(facts)
    reported = {package.distribution.name for package in packages}
    lost = (finding for finding in _missing_packages(facts) if finding.what not in reported)
    # What is to be deleted comes after what is to be installed, and all after a framework that is lost.
    found = sorted(
        [*_recorded_twice(facts), *lost, *_contradicting(facts), *_damaged(facts)],
        key=lambda finding: (not finding.fatal, finding.what.startswith(_LEFT)),
    )
    if packages and (found or not all(package.harmless for package in packages)):
        return _not_as_installed(facts, packages, found)
    if packages:  # harmless changes: data, versions and stripped libraries
        published = all(file.as_published for package in packages for file in package.files)
        why = "They are no newer than the list, which was published so"
        why = why if published else "Only data, version files or debug symbols differ"
        return note(
            title=_title(packages),
            message=". ".join(package.summary for package in packages[:_SHOWN]) + f". {why}.",
            evidence=tuple(each for package in packages for each in package.evidence)[:_SHOWN],
        )
    if not found and not environment.distributions_complete:
        return None
    if not found:
        files = compared(environment)
        title = f"The records of the {len(environment.distributions)} installed packages are intact"
        return passed(f"{title}; {files}" if files else title)
    serious = [finding for finding in found if not finding.harmless]
    fatal = [finding for finding in serious if finding.fatal]
    names = list(dict.fromkeys(finding.what for finding in serious or found))
    title = "An interrupted installation left files behind"
    if serious:
        title = f"{serious[0].title or f'Damaged, or installed twice: {names[0][:40]}'}{and_more(names)}"
    return Outcome(
        status="fail" if fatal else "warn" if serious else "note",
        title=title,
        message="; ".join(finding.text for finding in found[:_SHOWN]) + ".",
        evidence=tuple(finding.evidence for finding in found[:_SHOWN]),
        fixes=_all_steps((), serious or found, facts),
    )


def _not_as_installed(facts: Facts, packages: Sequence[DamagedPackage], others: Sequence[_Finding]) -> Outcome:
    """The outcome for packages with changed files; other damage follows in the message."""
    packages = [package for package in packages if not package.harmless] or packages
    own = (package.distribution.name for package in packages)  # what no framework requires stops no framework
    concerned = dict.fromkeys([*own, *(name for package in packages for name in package.frameworks)])
    fatal = [package for package in packages if package.fatal]
    serious = [finding for finding in others if not finding.harmless]
    summaries = (*(package.summary for package in packages[:_SHOWN]), *(finding.text for finding in others[:_SHOWN]))
    evidence = [each for package in packages for each in package.evidence]
    twice = {finding.what for finding in others if finding.before}  # installed again by the steps of that finding
    groups = (fatal, packages[len(fatal) :]) if fatal else (packages,)
    single = [[each.distribution for each in group if each.distribution.name not in twice] for group in groups]
    fixes = tuple(fix for group in single for fix in reinstall(group, facts))
    links = dict.fromkeys(file.dead_link for package in packages for file in package.files if file.dead_link)
    if links:  # pip treats them as absent, and then writes through them
        fixes = in_steps((Fix("Delete the dangling links", command=("rm", "--", *links)), *fixes))
    return Outcome(
        status="fail" if fatal or any(finding.fatal for finding in serious) else "warn",
        frameworks=() if serious else tuple(concerned),
        title=_title(packages),
        message=". ".join(summaries) + ".",
        evidence=(*evidence[:_SHOWN], *(finding.evidence for finding in others[:_SHOWN])),
        fixes=_all_steps(fixes, serious, facts),
    )


def _all_steps(first: Sequence[Fix], findings: Sequence[_Finding], facts: Facts) -> tuple[Fix, ...]:
    """Every one of them is needed: steps of one way, in which one command deletes all that was left behind."""
    left = dict.fromkeys(finding.left for finding in findings if finding.left)
    shown = [finding for finding in findings[:_SHOWN] if finding.fix.changes or not finding.left]
    others = [fix for finding in shown for fix in (*finding.before, finding.fix)]
    steps = dict.fromkeys((*first, *others, *((_delete(*left),) if left else ())))
    by_pip = any(fix.command[1:3] == ("-m", "pip") for fix in steps)
    return in_steps(tuple(dict.fromkeys((*(install_pip(facts) if by_pip else ()), *steps))))


def _title(packages: Sequence[DamagedPackage]) -> str:
    if len(packages) == 1:
        return packages[0].title
    names = [package.distribution.name[:30] for package in packages]
    does = "damaged" if packages[0].fatal else "changed after installation"
    return f"{names[0]} and {names[1] if len(names) == 2 else f'{len(names) - 1} more packages'} are {does}"


def _recorded_twice(facts: Facts) -> Iterable[_Finding]:
    """Packages with records of two releases, of one tool in one folder: Debian gives one release two records."""
    known: dict[tuple[str, str, str | None], list[Distribution]] = {}
    for distribution in facts.distributions:
        if distribution.path:
            place = (distribution.name, posixpath.dirname(distribution.path), distribution.channel)
            known.setdefault(place, []).append(distribution)
    for (name, folder, _), records in known.items():
        if len({record.version for record in records}) > 1:
            versions = " and ".join(record.version for record in records)
            evidence = Evidence(f"{name} is installed twice", versions, f"file {folder}")
            looked = [each for each in (facts.environment.shipped, facts.environment.verified) if each]
            differ = {(file.package, file.version) for each in looked for file in each.damaged}
            whole = [record for record in records if (name, record.version) not in differ]
            bounds = [bounds_on(each.requires or (), name, facts.markers) for each in facts.distributions]
            asked = [each for each in bounds if each]
            fit = [each for each in records if all(admits(bound, each.version) is not False for bound in asked)]
            kept = ([each for each in whole if each in fit] or fit or whole or records)[-1]
            again = _install_again(kept, facts)
            # pip removes one record at a time, and none without a list of files.
            unlisted = [record.path for record in records if record.record is False and record.path]
            times = 1 if is_of_uv(facts) else len(records) - len(unlisted)
            removals = [_delete(*unlisted)] if unlisted else []
            for time in range(1, times + 1):
                text = f"Remove {name}" + (f", {time} of {times} times" if times > 1 else "")
                command = pip_command(facts, "uninstall", name)
                removals.append(Fix(text, command=command, changes=Changes(removes=(name,))))
            yield _Finding(name, evidence, again, tuple(removals) if again.changes else ())


def _missing_packages(facts: Facts) -> Iterable[_Finding]:
    """Frameworks with metadata but without their package, or an essential part of it."""
    by_name = {distribution.name: distribution for distribution in facts.distributions}
    for framework in facts.frameworks:
        distribution = by_name.get(framework.name)
        lost = (framework.incomplete and not framework.led_by) or framework.path is None
        if lost and framework.problem and distribution and not distribution.editable:
            evidence = evidence_of(framework.name, framework, "problem")
            fatal = framework.incomplete and not framework.imported
            yield _Finding(framework.name, evidence, _install_again(distribution, facts), fatal=fatal)


def _contradicting(facts: Facts) -> Iterable[_Finding]:
    """Frameworks whose own file tells another release than the metadata beside it, as when two installations mixed."""
    records = [each for each in facts.distributions if each.channel == "pip" and not each.editable]
    names = [each.name for each in records]
    beside = {(each.name, posixpath.dirname(each.path)): each for each in records if each.path}
    for framework in facts.frameworks:
        record = beside.get((framework.name, posixpath.dirname(framework.path or "")))
        source = framework.source_of("version")
        if record is None or names.count(record.name) > 1 or not source.startswith(f"file {framework.path}/"):
            continue
        versions = (parse_version(text or "") for text in (framework.version, record.version))
        if len({(*known.numbers, 0, 0)[:3] for known in versions if known}) == 2:
            file = posixpath.basename(source)
            what = f"{framework.name}: {file}, where the metadata says {record.version}"
            evidence = evidence_of(what, framework, "version")
            title = f"{framework.name}'s {file} says {framework.version}, its metadata {record.version}"
            yield _Finding(framework.name, evidence, _install_again(record, facts), title=title)


def _damaged(facts: Facts) -> Iterable[_Finding]:
    by_path = {distribution.path: distribution for distribution in facts.distributions}
    installed = {distribution.name for distribution in facts.distributions}
    for record in facts.environment.damaged or ():
        name = posixpath.basename(record.path)
        evidence = Evidence(record.path, record.problem, record.source)
        distribution, lost = by_path.get(record.path), None
        if record.name and record.version:
            lost = Distribution(source=record.source, name=record.name, version=record.version, channel="pip")
        if name.startswith(_LEFT):
            # Whether a folder that pip renamed to ``~orch`` or ``~orch-VERSION.dist-info`` exists again as ``torch``.
            stem = name.removesuffix(".dist-info").removesuffix(".egg-info")
            hidden = len(stem) - len(stem.lstrip("~-"))
            rest = stem[hidden:].partition("-")[0].replace("_", "-").replace(".", "-").lower()
            harmless = any(each[hidden:] == rest.removesuffix("-libs") for each in installed)
            if lost and not harmless:
                yield _Finding(lost.name, evidence, _install_again(lost, facts), left=record.path)
            else:
                yield _Finding(name, evidence, _delete(record.path), harmless=harmless, left=record.path)
        elif name.endswith(_PATH_FILE):
            title = f"Python does not start: {name[:40]} is not UTF-8"
            fix = Fix("Delete it; what it led to, its package brings again", command=("rm", "--", record.path))
            yield _Finding(name, evidence, fix, fatal=True, title=title)
        elif distribution is not None and distribution.editable:
            yield _without_source(distribution, evidence, facts)
        elif name.endswith(_LINK):
            text = f"Restore the source folder, or delete {record.path} and install a release in its place"
            yield _Finding(record.name or name, evidence, Fix(text))
        elif distribution is not None:
            yield _Finding(distribution.name, evidence, _install_again(distribution, facts))
        elif record.name in installed:
            yield _Finding(name, evidence, _delete(record.path), left=record.path)
        elif lost:
            lost = msgspec.structs.replace(lost, record=False)
            yield _Finding(lost.name, evidence, _install_again(lost, facts))
        else:
            yield _Finding(name, evidence, Fix(f"Delete {record.path}, and install the package again if it is wanted"))


def _without_source(distribution: Distribution, evidence: Evidence, facts: Facts) -> _Finding:
    """For an editable installation without its source: no index has its version, and it may be private."""
    name, framework = distribution.name, facts.framework(distribution.name)
    title = f"The source folder of {name[:40]}, installed in editable mode, is gone"
    remove = uninstall(facts, (name,), f"Restore the source folder of {name}, or remove {name}")
    if framework is None:
        return _Finding(name, evidence, remove, title=title)
    *before, last = install(facts, (name,), f"If you removed it, install a release of {name}")
    lost = framework.incomplete and not framework.imported
    return _Finding(name, evidence, last, (remove, *before), fatal=lost, title=title)


def _delete(*paths: str) -> Fix:
    return Fix("Delete what is left of it", command=("rm", "-r", "--", *paths))


def _install_again(distribution: Distribution, facts: Facts) -> Fix:
    """Reinstall the package with the tool that installed it."""
    return reinstall((distribution,), facts)[-1]  # pip itself is brought once, for all steps
