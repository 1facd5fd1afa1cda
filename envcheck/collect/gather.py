"""Run probes in child processes, and return the facts of each with a record of how it ended.

Order of work: what is here is read (``runner.reading_groups``); then, if they are asked for, the deep probes, while
files are hashed, and the bench probes (``trials.py``).
"""

from __future__ import annotations

import selectors
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envcheck import bundle
from envcheck.collect import child
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.child import noted
from envcheck.collect.protocol import Message, decode, receive, run_of
from envcheck.collect.runner import (
    GPUS_OF_A_LARGE_SERVER,
    Attempt,
    Ended,
    Loop,
    Setting,
    Verdict,
    not_run,
    reading_groups,
)
from envcheck.collect.starting import Launch, own_path, take_early, waits
from envcheck.model import events
from envcheck.model.checks import Scope
from envcheck.model.events import Interrupted, OnEvent, ProbeFinished, ProbesPlanned, ProbeStarted, Progress
from envcheck.model.merge import merge
from envcheck.model.runs import not_asked_for
from envcheck.model.snapshot import Snapshot

if TYPE_CHECKING:
    from envcheck.collect.plan import BenchRequest


def count_gpus(early: Snapshot) -> int:
    """The NVIDIA GPUs that the early probes saw on the PCI bus."""
    return GPUS_OF_A_LARGE_SERVER if early.gpus is None else len(early.gpus.items)


def gather(
    specs: Sequence[ProbeSpec],
    request: Mapping[str, Any],
    *,
    scopes: Collection[Scope],
    on_event: OnEvent = events.ignore,
    deadline_s: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    folder: Path | None = None,
    interpreter: str | None = None,
    verify: bool = False,
    deep: bool = False,
    force: bool = False,
    bench: BenchRequest | None = None,
) -> list[Snapshot]:
    """Run ``specs`` and return a partial Snapshot for each, in their order, with how it ended in ``runs``.

    ``request`` is what ``probe_request`` returned. Probes that none of ``scopes`` needs, and those that ``verify``,
    ``deep`` and ``bench`` would have to ask for, are not started and are ``skipped``. A deep probe has a
    record for each framework that it tried; ``force`` lets it use a busy GPU.
    After ``deadline_s`` seconds, or when ``should_stop`` says so, whatever still runs is ended. ``folder`` holds the
    probes (the shipped ones when None); ``interpreter`` runs them (``sys.executable`` when None). Whatever ends
    this call early, KeyboardInterrupt included, ends the children first; while something is measured, Ctrl-C only ends
    that, and the event Interrupted says so.
    """
    child.reap_abandoned()
    results = _Results(on_event)
    place = str(folder or bundle.folder("probes"))
    path = own_path() if interpreter is None else ()
    launch = Launch(sys.executable if interpreter is None else interpreter, request, path)
    asked = {"file", "driver", *(("verify",) if verify else ()), *(("deep",) if deep else ())}
    chosen: list[ProbeSpec] = []
    for spec in specs:
        if spec.kind not in asked and not (spec.kind == "bench" and (bench or (deep and spec.deep))):
            results.skip(spec, not_asked_for(spec.kind))
        elif not set(spec.scopes) & set(scopes):
            results.skip(spec, f"scope {', '.join(scopes)} does not need it")
        else:
            chosen.append(spec)
    with closing(selectors.PollSelector()) as selector:
        setting = Setting(
            folder=place,
            selector=selector,
            older=child.running_processes(),
            waiting=lambda group: take_early(place, group.specs[0].name, group.launch),
            allowed=results.allowed,
            decode=decode,
            started=results.started,
            heard=results.receive,
            finished=results.add,
            planned=results.announce,
        )
        loop = Loop(setting, deadline_s, should_stop)
        try:
            reading = [spec for spec in chosen if spec.kind in ("file", "verify", "driver")]
            results.plan(reading)
            alone = not (deep or bench)  # else the next children would share the GPUs with those that exit
            groups = reading_groups(
                reading, launch, results.early_are_through, lambda name: results.found_no_driver() and not waits(name)
            )
            loop.run(groups, until_exit=not alone)
            # Bench probes that a deep check runs without timing: those that are not going to be timed anyway.
            timed = bench is not None and (bench.full or bool(bench.only))
            shown = [spec for spec in chosen if deep and spec.deep and not timed]
            if deep:
                from envcheck.collect.plan import BenchRequest  # noqa: PLC0415  most checks only read, and start faster
                from envcheck.collect.trials import run_deep  # noqa: PLC0415

                trials = [spec for spec in chosen if spec.kind == "deep"]
                run_deep(trials, loop, request, results.gathered(), force=force)
                _measure(shown, BenchRequest(force=force, timing=False), loop, launch, results)
            loop.finish()  # nothing is measured beside
            if bench:
                measured = [spec for spec in chosen if spec.kind == "bench" and spec not in shown]
                _measure(measured, bench, loop, launch, results)
        finally:
            loop.abort()
    return [results.part(spec) for spec in specs]


def _measure(specs: Sequence[ProbeSpec], wish: BenchRequest, loop: Loop, launch: Launch, results: _Results) -> None:
    """Run the measurements; if the user interrupts them, keep the results so far."""
    if not specs:
        return
    from envcheck.collect.trials import run_bench  # noqa: PLC0415  as above

    with noted() as interrupted:
        loop.stop_when(interrupted)
        run_bench(specs, wish, loop, launch, results.gathered())
        if interrupted():
            results.on_event(Interrupted())


class _Results:
    """The facts of the probes so far."""

    def __init__(self, on_event: OnEvent) -> None:
        self.parts: dict[str, list[Snapshot]] = {}
        self.on_event = on_event
        self._early: frozenset[str] = frozenset()
        self._gpus = GPUS_OF_A_LARGE_SERVER

    def skip(self, spec: ProbeSpec, reason: str) -> None:
        """Record why ``spec`` is not started."""
        self.parts[spec.name] = [Snapshot(runs=(run_of(not_run(spec, Verdict("skipped", reason))),))]

    def plan(self, specs: Sequence[ProbeSpec]) -> None:
        self._early = frozenset(spec.name for spec in specs if spec.early)
        self.announce(specs)
        self._count_gpus()

    def announce(self, specs: Sequence[ProbeSpec]) -> None:
        self.on_event(ProbesPlanned(probes=tuple((spec.name, spec.title) for spec in specs)))

    def started(self, attempt: Attempt) -> None:
        spec, about = attempt.spec, attempt.about
        self.on_event(ProbeStarted(spec.name, spec.title, about.framework, about.gpu))

    def receive(self, attempt: Attempt, message: Message) -> None:
        receive(attempt, message)
        if message.progress is not None:
            about = attempt.about
            self.on_event(Progress(message.probe, attempt.progress, about.framework, about.gpu))

    def add(self, ended: Ended) -> None:
        run, facts = run_of(ended), ended.attempt.facts
        if run.framework:
            from envcheck.collect.trials import proof_of  # noqa: PLC0415  as above

            facts = [*facts, *proof_of(ended, run)]
        part = merge([*facts, Snapshot(runs=(run,))])
        self.parts.setdefault(run.name, []).append(part)
        if run.name in self._early:
            self._count_gpus()
        self.on_event(ProbeFinished(run=run, facts=part))

    def part(self, spec: ProbeSpec) -> Snapshot:
        """All facts of ``spec``, in the same order on every run."""

        def subject(part: Snapshot) -> tuple[str, str, str]:
            run = part.runs[0]
            return run.environment or "", run.framework or "", run.gpu or ""

        return merge(sorted(self.parts[spec.name], key=subject))

    def gathered(self) -> Snapshot:
        """All facts so far."""
        return merge(part for parts in self.parts.values() for part in parts)

    def early_are_through(self) -> bool:
        return self._early <= self.parts.keys()

    def found_no_driver(self) -> bool:
        """Whether the early probes saw everything that speaks for a driver, and nothing was there."""
        seen = self.gathered()
        none_on_bus = seen.gpus is not None and seen.gpus.complete and not seen.gpus.items
        module = seen.kernel.nvidia if seen.kernel is not None and seen.kernel.device_nodes == () else None
        none_loaded = module is not None and module.loaded is False
        return none_on_bus and none_loaded

    def _count_gpus(self) -> None:
        if self.early_are_through():
            self._gpus = count_gpus(self.gathered())

    def allowed(self, spec: ProbeSpec) -> float:
        """The time limit of ``spec`` in seconds."""
        return spec.seconds + spec.seconds_per_gpu * self._gpus
