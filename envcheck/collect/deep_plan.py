"""What is to be tried: for each judged environment, the deep probes whose frameworks are in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from envcheck.collect.attempt import About, Verdict, row
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.deep_gpu import Choice
from envcheck.collect.job import Ended
from envcheck.snapshot import Environment, Framework, Snapshot

OLDEST_PYTHON = (3, 8)
"""The oldest Python that the probes' own code runs in."""
_MOST_NAMED = 3


class Trial(msgspec.Struct, frozen=True):
    """One probe to be run in one environment."""

    spec: ProbeSpec
    about: About
    interpreter: str
    request: Mapping[str, Any]


class Plan(msgspec.Struct, frozen=True):
    """What is tried, and the rows of what is not."""

    trials: tuple[Trial, ...]
    settled: tuple[Ended, ...]


def plan(specs: Sequence[ProbeSpec], snapshot: Snapshot, request: Mapping[str, Any], choice: Choice) -> Plan:
    """The trials that ``specs`` come to on what was gathered, the ``request`` of each completed."""
    environments = [found for found in _environments(snapshot) if found.judged]
    steps = [step for environment in environments for step in _within(environment, specs, snapshot, request, choice)]
    if not environments:
        reason: Verdict = ("skipped", "no Python environment was found to try anything in")
        steps = [Ended(spec, row(spec, reason)) for spec in specs]
    trials = tuple(step for step in steps if isinstance(step, Trial))
    return Plan(trials, tuple(step for step in steps if isinstance(step, Ended)))


def _environments(snapshot: Snapshot) -> tuple[Environment, ...]:
    return snapshot.environments.items if snapshot.environments else ()


def _within(
    environment: Environment,
    specs: Sequence[ProbeSpec],
    snapshot: Snapshot,
    request: Mapping[str, Any],
    choice: Choice,
) -> Iterator[Trial | Ended]:
    interpreter, problem = _interpreter(environment)
    for spec in specs:
        for about, framework, absent in _subjects(spec, environment, snapshot):
            reason = problem or (choice.refused if spec.uses == "gpu" else "")
            if absent:
                yield Ended(spec, row(spec, ("absent", absent), about))
            elif reason:
                yield Ended(spec, row(spec, ("skipped", reason), about))
            else:
                asked = {**request, **_details(environment, framework, snapshot, choice)}
                yield Trial(spec, about, interpreter, asked)


def _subjects(
    spec: ProbeSpec, environment: Environment, snapshot: Snapshot
) -> Iterator[tuple[About, Framework | None, str]]:
    """What ``spec`` is about in the environment, or why nothing."""
    if not spec.tries:
        libraries = snapshot.libraries.items if snapshot.libraries else ()
        yield About(environment.key), None, "" if libraries else "no library was found"
        return
    frameworks = environment.frameworks.items if environment.frameworks else ()
    found = [framework for framework in frameworks if any(fnmatchcase(framework.name, name) for name in spec.tries)]
    for framework in found:
        yield About(environment.key, framework.name), framework, ""
    if not found:
        names = ", ".join(spec.tries[:_MOST_NAMED]) + (" …" if len(spec.tries) > _MOST_NAMED else "")
        yield About(environment.key), None, f"not there: {names}"


def _interpreter(environment: Environment) -> tuple[str, str]:
    """The environment's own interpreter, and why it is not started."""
    inside = f"{environment.prefix}/bin/python" if environment.prefix else ""
    interpreter = environment.executable or inside
    if environment.problem:
        return interpreter, f"the environment cannot run: {environment.problem}"
    if not interpreter or not Path(interpreter).is_file():
        return interpreter, f"{environment.key} has no interpreter"
    numbers = (environment.python or "").split(".")[: len(OLDEST_PYTHON)]
    version = tuple(int(part) for part in numbers if part.isdecimal() and len(part) < 5)
    if len(version) == len(OLDEST_PYTHON) and version < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return interpreter, f"a trial needs Python {oldest} or newer; this is {environment.python}"
    return interpreter, ""


def _details(
    environment: Environment, framework: Framework | None, snapshot: Snapshot, choice: Choice
) -> dict[str, Any]:
    """What a deep probe is told besides the request of every probe."""
    libraries = snapshot.libraries.items if framework is None and snapshot.libraries else ()
    return {
        "environment": environment.key,
        "framework": framework and {"name": framework.name, "version": framework.version, "path": framework.path},
        "no_gpu": choice.absent,
        "libraries": [
            {"path": library.path, "family": library.family}
            for library in libraries
            if not library.stub and library.environment in (None, environment.key)
        ],
        "gpu": choice.gpu and msgspec.to_builtins({"uuid": choice.gpu.uuid, "index": choice.gpu.index}),
    }
