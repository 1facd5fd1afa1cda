"""Redirection: a different copy is imported than the installed one, or files do not show which."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Distribution, Environment, Framework
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.fixes.install import in_user_site, uninstall
from envcheck.rules.fixes.libraries import without_variable
from envcheck.rules.packages.shipped import FOLLOWS_FROM_FILES

_VARIABLE, _USER_SITE, _FOLDER, _OWN = "PYTHONPATH", "user site", "the working folder", "Python's own library"
_MOST = 8


def _redirected(facts: Facts) -> list[Framework]:
    """Frameworks whose import takes another copy than the installed one, or an incomplete one; then copies without a
    version that shadow a requirement, and files that shadow standard modules.
    """
    found = [
        each
        for each in facts.frameworks
        if each.instead_of
        or (each.incomplete and each.path is not None and (each.led_by or not facts.installed(each.name)))
    ]
    known = {each.path for each in found}
    for each in facts.distributions:
        if each.led_by and not each.version and each.path and each.path not in known:
            hidden = (other.path for other in facts.distributions if other.name == each.name)
            instead = tuple(path for path in hidden if path and path != each.path)
            copy = Framework(source=each.source, name=each.name, path=each.path, led_by=each.led_by, instead_of=instead)
            found.append(copy)
    for path in facts.environment.hides_pythons_own or ():
        if path not in known:
            name = path.rpartition("/")[2].removesuffix(".py")
            led_by = _VARIABLE if path.rpartition("/")[0] in facts.environment.site_packages else _FOLDER
            copies: list[Framework | Distribution | None] = []
            if led_by == _FOLDER and name not in sys.stdlib_module_names:
                # Several distributions may share a package: cuda-bindings, cuda-pathfinder.
                sharing = (each for each in facts.distributions if each.name.startswith(f"{name}-"))
                copies = [facts.framework(name), facts.installed(name), *sharing]
            hides = next((each.path for each in copies if each and each.path), _OWN)
            found.append(Framework(source=f"file {path}", name=name, path=path, led_by=led_by, instead_of=(hides,)))
    return found


def of_another_copy(module: str, facts: Facts) -> bool:
    """Whether another copy of this package is imported than the one that an installer would replace."""
    led = _redirected_names(facts)
    elsewhere = [each for each in _redirected(facts) if each.instead_of and each.led_by != _FOLDER]
    elsewhere += [each for each in facts.frameworks if each.name in led]
    return any(module in (each.name, each.module) for each in elsewhere)


def _stopped_frameworks(names: Collection[str], facts: Facts) -> tuple[str, ...]:
    """The frameworks that these packages stop: themselves, extensions, and those whose failure names their modules."""
    modules, stopped = {*names, *(each.module for each in facts.frameworks if each.name in names)}, []
    for each in facts.frameworks:
        files = (each.trial.files if each.trial and each.failed else None) or ()
        lost = [file for file in files if file.role == "module"]
        owners = {file.owner.partition("==")[0] if file.owner else file.path.partition("/")[0] for file in lost}
        if each.name in names or each.extends in names or not owners.isdisjoint(modules):
            stopped.append(each.name)
    return tuple(stopped)


@rule(layer="framework", decided_by="declared", explains=FOLLOWS_FROM_FILES)
def package_shadowed(environment: Environment, facts: Facts) -> Outcome | None:
    """Another copy of a framework is imported than the installed one."""
    found = sorted(_redirected(facts), key=facts.importance)
    if not found:
        return None
    names, frameworks = {each.name for each in found}, facts.frameworks
    everybody = not names <= {each.name for each in frameworks}
    # A single file is not the package of its name; a folder may be a whole one.
    alone = [each for each in found if each.led_by == _FOLDER and (each.path or "").endswith(".py")]
    lacking = {path.rpartition("/")[0]: path for path in environment.missing_in_copies}
    broken = any(each.instead_of != (_OWN,) for each in alone) or any(
        each.incomplete or each.failed or each.path in lacking for each in found
    )
    first, sentences, evidence = found[0], [], []
    title = f"The folder that `import {_imported(first)}` finds is not a complete package"
    if first.led_by is not None:
        who = first.led_by.rpartition("/")[2]
        who = f"T{who[1:]}" if first.led_by == _FOLDER else {_USER_SITE: "The user site"}.get(who, who)
        other = "Python's own" if first.instead_of == (_OWN,) else "the installed one"
        title = f"{who} puts another {first.name} before {other}"
    fixes: list[Fix] = []
    for each in found:
        folder = (each.path or "").rpartition("/")[0]
        if each.led_by == _FOLDER:
            fixes.append(Fix(f"Rename {each.path}, or start programs in another folder"))
        elif each.led_by:
            fixes += stop_redirection(each.led_by, folder, each.name, each.title, facts)
        else:
            fixes.append(Fix(f"Move {each.path} away: no installed package owns it", risk="deletes nothing by itself"))
    for each in found[:_MOST]:
        led_by = f" (by {each.led_by})" if each.led_by else ""
        instead = f", not {each.instead_of[0]}" if each.instead_of else ""
        whole = f"; {each.problem}" if each.incomplete and each.problem else ""
        whole += f"; it lacks {lacking[each.path].rpartition('/')[2]}" if each.path in lacking else ""
        sentences.append(f"{each.title} is imported from {each.path}{led_by}{instead}{whole}.")
        evidence.append(evidence_of(f"{each.title} is imported from", each, "path"))
        evidence += [evidence_of("led there by", each, "led_by")] if each.led_by else []
        evidence += [evidence_of("installed", each, "instead_of")] if each.instead_of else []
    return Outcome(
        status="fail" if broken else "warn",
        title=title_of_first(title, found),
        message=" ".join(sentences),
        evidence=tuple(evidence),
        fixes=tuple(dict.fromkeys(fixes)),
        frameworks=() if everybody else _stopped_frameworks(names, facts),
    )


def _imported(framework: Framework) -> str:
    return (framework.path or framework.name).rpartition("/")[2].removesuffix(".py")


def stop_redirection(led_by: str, folder: str, name: str, what: str, facts: Facts) -> Iterator[Fix]:
    """Remove a folder from Python's search path in which ``what`` is found before the installed copy."""
    if led_by == _VARIABLE:
        yield from without_variable(_VARIABLE, [folder], facts)
    elif led_by == _USER_SITE:
        if in_user_site(facts.installed(name), facts):
            yield uninstall(facts, (name,), f"Remove {what} from {folder}")
        text = f"Ignore the user site, or remove {what} from {folder}; to try it: PYTHONNOUSERSITE=1"
        yield Fix(text, command=("env", "PYTHONNOUSERSITE=1", "python"), risk="hides all packages of the user site")
    else:
        yield Fix(f"Remove the line that leads to {folder} from {led_by}")


def imported_from(distribution: Distribution) -> str:
    """Where a package is imported from and what leads there, as the end of a clause; empty without redirection."""
    folder = (distribution.path or "").rpartition("/")[0]
    return f", imported from {folder} (by {distribution.led_by})" if distribution.led_by else ""


@rule(layer="framework", decided_by="declared", explains=FOLLOWS_FROM_FILES)
def search_path_changed(environment: Environment, facts: Facts) -> Outcome | None:
    """A .pth file changes Python's search path by code."""
    lines = environment.startup or ()
    if not lines:
        return None
    file = lines[0].path.rpartition("/")[2]
    compared = [
        each.trial.as_found for each in facts.tried_frameworks if each.trial and each.trial.as_found is not None
    ]
    stopped = _stopped_frameworks(_redirected_names(facts), facts)
    if not stopped and any(line.shadows for line in lines):  # a folder that a line adds holds another copy
        stopped = tuple(each.name for each in facts.frameworks if each.failed)
    sentences = []
    for line in lines[:_MOST]:
        where = f"{line.path} runs {line.module}, which" if line.module else line.path
        folders = f"; it names {', '.join(line.folders[:_MOST])}" if line.folders else ""
        shadows = f", which has {', '.join(line.shadows[:_MOST])} too" if line.shadows else ""
        sentences.append(f"{where} changes sys.path{folders}{shadows}.")
    if not compared:
        sentences.append("Files cannot tell what will be imported (--deep imports it).")
    elif all(compared):
        sentences.append("The frameworks were imported from where their files lie.")
    as_installed = bool(compared) and all(compared) and not stopped
    harmless = as_installed or all(each.folders and not each.shadows for each in lines)
    return Outcome(
        status="note" if harmless else "warn",
        title=title_of_first(f"Code in {file} changes Python's search path", lines),
        message=" ".join(sentences),
        evidence=tuple(evidence_of(each.path, each, "line") for each in lines[:_MOST]),
        fixes=tuple(Fix(f"Remove {each.path}, unless it is intended") for each in lines[:_MOST]),
        # where it is not known of any, the file's own name: what leads nobody elsewhere accounts for nothing
        frameworks=stopped or (file,),
    )


def _redirected_names(facts: Facts) -> frozenset[str]:
    """The frameworks that are imported from elsewhere, or are found first in a folder that such a line adds."""
    shadowed = {name for line in facts.environment.startup or () for name in line.shadows}
    seen_to_be = {each.name: each.trial.as_found if each.trial else None for each in facts.frameworks}
    return frozenset(
        each.name
        for each in facts.frameworks
        if seen_to_be[each.name] is False or (seen_to_be[each.name] is None and _imported(each) in shadowed)
    )


@rule(layer="framework", decided_by="framework-ran", explains=FOLLOWS_FROM_FILES)
def imported_elsewhere(framework: Framework, facts: Facts) -> Outcome | None:
    """A framework is imported from an unexpected place."""
    trial = framework.trial
    if trial is None or trial.as_found is None:
        return None
    expected = f"{framework.path} ({framework.version or 'version not known'})"
    where = (
        Evidence("imported", f"{trial.path} ({trial.version or 'version not known'})", trial.source),
        Evidence("expected", expected, framework.source_of("path")),
    )
    if trial.as_found:
        return passed(f"{framework.title} is imported from where its files lie", *where)
    lines = facts.environment.startup or ()
    led = f" Code in {lines[0].path} changes the search path." if lines else ""
    others = _stopped_frameworks((framework.name,), facts)
    text = "See what runs when the interpreter starts, and remove what leads to the other copy"
    return Outcome(
        status="fail" if framework.failed else "warn",
        title=f"{framework.name} is imported from an unexpected place",
        message=f"{trial.path} is imported, but {framework.path} was expected and checked.{led}",
        evidence=where,
        fixes=(Fix(text, command=(facts.interpreter, "-v", "-c", "pass")),),
        frameworks=others if len(others) > 1 else (),
    )
