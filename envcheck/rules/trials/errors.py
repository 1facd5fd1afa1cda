"""What the errors of trials name: problems that rows know, and files that differ from what was installed."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from envcheck.compat.package_needs import requirement_name
from envcheck.knowledge.error_lines import ErrorLine, matches_fragment, named_by
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Distribution, Environment, Framework, TrialFile
from envcheck.rules.api import Facts, Outcome, failure, rule
from envcheck.rules.facts.frameworks import named_in, own_error
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.fixes.install import How, install
from envcheck.rules.fixes.reinstall import reinstall
from envcheck.rules.messages.observed import ObservedProblem
from envcheck.rules.messages.refine import refine
from envcheck.rules.packages.redirected import of_another_copy
from envcheck.rules.packages.required import missing_requirements
from envcheck.rules.packages.shipped import FOLLOWS_FROM_FILES

_MOST = 6


class Culprit(NamedTuple):
    """A file and the framework that it stops."""

    file: TrialFile
    framework: Framework

    @property
    def package(self) -> str | None:
        """Name of the distribution that it belongs to."""
        return self.file.owner.partition("==")[0] if self.file.owner else None


def culprit_of(framework: Framework) -> Culprit | None:
    """The file that caused a framework's failure; None if all files that the failure names are as installed."""
    trial = framework.trial
    if trial is None or not framework.failed:
        return None
    for file in trial.files or ():
        if _is_at_fault(file, trial.error or ""):
            return Culprit(file, framework)
    return None


def _is_at_fault(file: TrialFile, error: str) -> bool:
    if file.role == "module" and file.owner is None:
        return named_by(error) is None  # some modules have a separate finding
    if file.state in ("differs", "unreadable"):
        return file.role == "error" or file.owner is not None
    if file.state == "gone":
        return file.owner is not None  # of what nothing installed has, other rules know where it comes from
    unusable = matches_fragment("unusable-file", error)  # whoever installed it
    return file.role == "error" and file.state is None and file.path.startswith("/") and unusable


@rule(layer="framework", decided_by="framework-ran", explains=FOLLOWS_FROM_FILES)
def file_stops_framework(_environment: Environment, facts: Facts) -> Outcome | None:
    """A damaged or changed file stops a framework."""
    found = [culprit for framework in facts.tried_frameworks if (culprit := culprit_of(framework))]
    found.sort(key=lambda culprit: facts.importance(culprit.framework))
    # What another copy lacks is reported with what leads there: a fault of the installed files comes first.
    found = [culprit for culprit in found if not _is_of_another_copy(culprit, facts)] or found
    if not found:
        return None
    first, evidence = found[0], []
    for culprit in found[:_MOST]:
        file, trial = culprit.file, culprit.framework.trial
        evidence.append(Evidence(file.owner or "file", file.path, file.source))
        evidence += own_error(culprit.framework, (trial.error if trial else None) or file.path)
    distinct = {culprit.file.path: culprit for culprit in reversed(found)}
    culprits = [*distinct.values()][::-1][:_MOST]
    names = list(dict.fromkeys(culprit.framework.title for culprit in found))
    stopped = " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    message = f"{_sentence(first, facts)} It stops {stopped}."
    if _is_of_another_copy(first, facts):
        message += " The installed copy is not the one that is imported: installing it again changes nothing."
    return failure(
        title=title_of_first(_title(first, facts), distinct),
        message=message,
        evidence=tuple(evidence),
        fixes=tuple(dict.fromkeys(fix for each in culprits for fix in _fixes(each, facts))),
        frameworks=tuple(dict.fromkeys(culprit.framework.name for culprit in found)),
    )


def _is_of_another_copy(culprit: Culprit, facts: Facts) -> bool:
    return of_another_copy(culprit.package or _module(culprit.file).partition(".")[0], facts)


def _title(culprit: Culprit, facts: Facts) -> str:
    file, package = culprit.file, culprit.package
    if file.role == "module" and package is None:
        wanted = _required_for(culprit, facts)
        if len(wanted) == 1:
            return f"{wanted[0][0]}, which {_importer(culprit).partition('==')[0]} requires, is not installed"
        return f"No installed package provides the module {_module(file)}"
    name = posixpath.basename(file.path)
    state = {"gone": "is missing", "unreadable": "cannot be read"}.get(file.state or "", "is damaged")
    if file.state == "differs" and name.endswith(".py") and file.detail != "it is empty":
        state = "was changed after installation"
    if name == "__init__.py" or (file.state == "gone" and file.role == "module"):
        name = f"{posixpath.basename(posixpath.dirname(file.path))}/{name}"
    of = f" of {package}" if package else ""
    return f"{name}{of} {state}"


def _sentence(culprit: Culprit, facts: Facts) -> str:
    file = culprit.file
    if file.role == "module" and file.owner is None:
        text = f"{_importer(culprit)} imports {_module(file)}, which no installed package provides."
        wanted = ", ".join(f"{name}{bounds}" for name, bounds in _required_for(culprit, facts))
        return f"{text} It requires {wanted}, not installed here." if wanted else text
    place = f"{file.path}, line {file.line}" if file.line else file.path
    detail = file.detail or {"gone": "it is gone"}.get(file.state or "", "the loader refuses it")
    owner = f" (installed by {file.owner})" if file.owner else " (no installed package lists it)"
    return f"{place}{owner}: {detail}."


def _importer(culprit: Culprit) -> str:
    """The package whose code imports a missing module, with its version; else the framework."""
    trial = culprit.framework.trial
    frames = [file for file in (trial.files if trial else None) or () if file.role == "frame"]
    return next((each.owner for each in frames if each.owner), None) or culprit.framework.title


def _required_for(culprit: Culprit, facts: Facts) -> list[tuple[str, str]]:
    """Name and bounds of the requirements that are not installed and may hold a missing module: those of the importing
    package, or of the framework, that are called like the module; where none is, all of them.
    """
    if not facts.environment.distributions_complete:
        return []
    module = _module(culprit.file).partition(".")[0].lower().replace("_", "-")
    for owner in dict.fromkeys((_importer(culprit).partition("==")[0], culprit.framework.name)):
        asking = facts.installed(owner)
        wanted = missing_requirements(asking.requires or (), facts) if asking else []
        if wanted:
            return [each for each in wanted if each[0] == module or each[0].startswith(f"{module}-")] or wanted
    return []


def _module(file: TrialFile) -> str:
    return file.path.replace("/", ".")


def _fixes(culprit: Culprit, facts: Facts) -> Iterator[Fix]:
    file = culprit.file
    if _is_of_another_copy(culprit, facts):
        return  # the fix is that of what leads there: an installer would replace the copy that nobody imports
    if file.owner is not None:
        yield from _install_again(file.owner, facts)
    elif file.role == "module" and (wanted := _required_for(culprit, facts)):
        lines = [f"{name}{bounds}" for name, bounds in wanted]
        text = f"Install what {_importer(culprit).partition('==')[0]} requires and is not installed"
        yield from install(facts, lines, text, How(owner=culprit.framework.name))
    elif file.role == "module":
        # The distribution named like the module, if an installed one requires it.
        module = _module(file).partition(".")[0]
        name = module.lower().replace("_", "-")
        required = (line for each in facts.distributions for line in each.requires or ())
        if facts.installed(name):
            yield from _install_again(name, facts)
        elif name in map(requirement_name, required):
            yield from install(facts, (name,), f"Install {name}, which is required and not installed")
        else:
            yield Fix(f"Install the package that provides the module {module}; its name may differ from the module's")
    else:
        yield Fix(f"No package lists {file.path}: find out where it comes from, and remove or replace it")


def _install_again(owner: str, facts: Facts) -> tuple[Fix, ...]:
    name, _, version = owner.partition("==")
    stated = Distribution(source="trial", name=name, version=version, channel="pip")
    return reinstall((facts.installed(name) or stated,), facts)


def trial_problems(facts: Facts) -> Iterator[tuple[Framework, ObservedProblem]]:
    """The problems that failed trials name, each once for a framework, by its own error.

    Messages of a framework that then works prove nothing; neither do messages of CPU builds about CUDA, or about a file
    that differs from what was installed (``culprit_of``).
    """
    for framework in facts.tried_frameworks:
        if not framework.failed or framework.cpu_only or culprit_of(framework):
            continue
        for line, text in _named(framework).values():
            parts = [each for each in facts.frameworks if framework.name in (each.name, each.extends)]
            if line.problem == "cpu-only-build" and any(each.is_known_cuda_build for each in parts):
                continue  # JAX says so too if its CUDA plug-in is there but does not start
            meant = refine(line, text, facts)
            if meant is not None:
                yield framework, ObservedProblem(meant, own_error(framework, text))


def _named(framework: Framework) -> dict[str, tuple[ErrorLine, str]]:
    """The error, or else printed lines, by the problem that they name."""
    trial = framework.trial
    if trial is None:
        return {}
    for texts in ((trial.error,), trial.warnings):
        pairs = [(line, text) for text in texts if text and (line := named_in(trial, text)) and line.status == "fail"]
        if pairs:
            return {line.problem: (line, text) for line, text in reversed(pairs)}
    return {}
