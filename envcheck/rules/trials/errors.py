"""Errors of trials: what a framework reported in this environment when it was imported and used."""

from __future__ import annotations

from typing import NamedTuple

from envcheck.knowledge.error_lines import ErrorLine
from envcheck.model.checks import Evidence
from envcheck.model.snapshot import Framework, frameworks_in
from envcheck.rules.api import Facts, FrameworkSubject
from envcheck.rules.facts.frameworks import is_known_cuda_build
from envcheck.rules.facts.trials import failed, named_in, own_error, tried_frameworks
from envcheck.rules.messages.refine import refine
from envcheck.rules.trials.files import culprit_of


class TrialProblem(NamedTuple):
    """A problem named by a framework's own error."""

    line: ErrorLine
    subject: FrameworkSubject
    evidence: tuple[Evidence, ...]


def trial_problems(facts: Facts) -> tuple[TrialProblem, ...]:
    """The problems that failed trials name, each once for a framework.

    Messages of a framework that then works prove nothing; neither do messages of CPU builds about CUDA, or about a file
    that differs from what was installed (``files.py``).
    """
    environment = facts.environment
    found = []
    for framework in tried_frameworks(environment):
        if environment is None or not failed(framework) or framework.cpu_only or culprit_of(framework):
            continue
        for line, text in _named(framework).values():
            parts = [each for each in frameworks_in(environment) if framework.name in (each.name, each.extends)]
            if line.problem == "cpu-only-build" and any(map(is_known_cuda_build, parts)):
                continue  # JAX says so too if its CUDA plug-in is there but does not start
            meant = refine(line, text, facts.snapshot, facts.matrix)
            if meant is not None:
                found.append(TrialProblem(meant, FrameworkSubject(environment, framework), own_error(framework, text)))
    return tuple(found)


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
