"""Errors that were met in trials: what a framework said here, in this environment, when it was put to work."""

from __future__ import annotations

from typing import NamedTuple

from envcheck.checks import Evidence
from envcheck.rules.api import Facts, FrameworkSubject
from envcheck.rules.facts.frameworks import for_cuda, frameworks_in
from envcheck.rules.facts.trials import failed, said_here, tried
from envcheck.rules.messages.lines import ErrorLine, named_by
from envcheck.rules.messages.refine import refine
from envcheck.rules.trials.files import culprit_of
from envcheck.snapshot import Environment, Framework


class MetInTrial(NamedTuple):
    """A problem that a framework's own error names."""

    line: ErrorLine
    subject: FrameworkSubject
    evidence: tuple[Evidence, ...]


def problems_met_in_trials(facts: Facts) -> tuple[MetInTrial, ...]:
    """The problems that failed trials name, each once for a framework.

    What a framework prints and then works all the same proves nothing. Nor does what a build for the CPU says of CUDA,
    or what is said of a file that is not what was installed (``trial_files``).
    """
    environment = facts.environment
    found = []
    for framework in tried(environment):
        if environment is None or not failed(framework) or framework.cpu_only or culprit_of(framework):
            continue
        for line, text in _named(framework).values():
            if line.problem == "cpu-only-build" and _has_cuda(framework, environment):
                continue  # JAX says so too where its part for CUDA is there and does not start
            meant = refine(line, text, facts.snapshot, facts.matrix)
            found.append(MetInTrial(meant, FrameworkSubject(environment, framework), said_here(framework, text)))
    return tuple(found)


def _has_cuda(framework: Framework, environment: Environment) -> bool:
    """Whether its files, or those of its part for CUDA, say that it is a build for CUDA."""
    parts = [each for each in frameworks_in(environment) if each.extends == framework.name]
    return any(for_cuda(each) for each in (framework, *parts))


def _named(framework: Framework) -> dict[str, tuple[ErrorLine, str]]:
    """The error, and when that names nothing what was printed, by the problem named."""
    trial = framework.trial
    if trial is None:
        return {}
    for texts in ((trial.error,), trial.warnings):
        pairs = [(line, text) for text in texts if text and (line := named_by(text)) and line.status == "fail"]
        if pairs:
            return {line.problem: (line, text) for line, text in reversed(pairs)}
    return {}
