"""Run probes in child processes, and return the facts of each with one row about how it ended.

Order of work: the file probes in two children, that of the machine with the early ones first, and that of the software
in it, whose probes share what they read; as soon as the early ones are through, each driver probe in a child of its own
beside them; then, if they are asked for, the deep probes (``deep.py``) and the bench probes (``bench.py``).
"""

from __future__ import annotations

import selectors
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from envcheck import bundle
from envcheck.collect import cleanup
from envcheck.collect.attempt import Verdict, row
from envcheck.collect.bench import run_bench
from envcheck.collect.bench_plan import BenchRequest
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.child import Launch
from envcheck.collect.deaths import noted
from envcheck.collect.job import Ended, ProbeGroup, Setting
from envcheck.collect.loop import Loop
from envcheck.collect.request import own_path
from envcheck.model import events
from envcheck.model.checks import Scope
from envcheck.model.events import Interrupted, OnEvent, ProbeFinished, ProbesPlanned
from envcheck.model.merge import merge
from envcheck.model.runs import not_asked_for
from envcheck.model.snapshot import Snapshot

if TYPE_CHECKING:
    from envcheck.collect.trials import Deep

CountGpus = Callable[[Snapshot], int]

_GPUS_OF_A_LARGE_SERVER = 8
"""Number of GPUs assumed for deadlines if they could not be listed: a long deadline does less harm than a short one."""


def count_gpus(early: Snapshot) -> int:
    """The NVIDIA GPUs that the early probes saw on the PCI bus."""
    return _GPUS_OF_A_LARGE_SERVER if early.gpus is None else len(early.gpus.items)


def gather(
    specs: Sequence[ProbeSpec],
    request: Mapping[str, Any],
    *,
    scopes: Collection[Scope],
    on_event: OnEvent = events.ignore,
    gpus: CountGpus | None = None,
    deadline_s: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    folder: Path | None = None,
    interpreter: str | None = None,
    verify: bool = False,
    deep: Deep | None = None,
    bench: BenchRequest | None = None,
) -> list[Snapshot]:
    """Run ``specs`` and return a partial Snapshot for each, in their order, with its rows in ``runs``.

    ``request`` is what ``probe_request`` returned. Probes that none of ``scopes`` needs, and those that ``verify``,
    ``deep`` and ``bench`` would have to ask for, are not started and get the row ``skipped``. A deep probe has a
    row for each framework that it tried. ``gpus`` counts the GPUs in the early probes' facts, for deadlines.
    After ``deadline_s`` seconds, or when ``should_stop`` says so, whatever still runs is ended. ``folder`` holds the
    probes (the shipped ones when None); ``interpreter`` runs them (``sys.executable`` when None). Whatever ends
    this call early, KeyboardInterrupt included, ends the children first; while something is measured, Ctrl-C only ends
    that, and the event Interrupted says so.
    """
    results = _Results(on_event, gpus or count_gpus)
    with closing(selectors.PollSelector()) as selector:
        setting = Setting(
            folder=str(folder or bundle.folder("probes")),
            selector=selector,
            older=cleanup.running_processes(),
            allowed=results.allowed,
            on_event=on_event,
            finished=results.add,
        )
        launch = Launch(
            interpreter=sys.executable if interpreter is None else interpreter,
            request=request,
            path=own_path() if interpreter is None else (),
        )
        loop = Loop(setting, deadline_s, should_stop)
        try:
            asked = _Asked(verify, deep, bench)
            chosen = [spec for spec in specs if not results.skipped(spec, scopes, asked)]
            _run_in_order(chosen, launch, loop, results)
            if deep:
                _try_out(chosen, deep, loop, results, request)
                _measure(
                    asked.shown_to_work(chosen), BenchRequest(force=deep.force, timing=False), loop, launch, results
                )
            if bench:
                _measure(asked.measured(chosen), bench, loop, launch, results)
        finally:
            loop.abort()
    return [results.part(spec) for spec in specs]


def _run_in_order(specs: Sequence[ProbeSpec], launch: Launch, loop: Loop, results: _Results) -> None:
    specs = [spec for spec in specs if spec.kind in ("file", "verify", "driver")]
    results.plan(specs)
    files = sorted(
        (spec for spec in specs if spec.kind != "driver"), key=lambda spec: (spec.kind == "verify", not spec.early)
    )
    machine = [spec for spec in files if spec.early or "node" in spec.scopes]
    software = [spec for spec in files if spec not in machine]
    drivers = [ProbeGroup([spec], launch, ready=results.early_are_through) for spec in specs if spec.kind == "driver"]
    loop.run([*(ProbeGroup(group, launch) for group in (machine, software) if group), *drivers])


def _try_out(specs: Sequence[ProbeSpec], wish: Deep, loop: Loop, results: _Results, request: Mapping[str, Any]) -> None:
    from envcheck.collect.trials import run_deep  # noqa: PLC0415  most checks try nothing, and start faster without it

    run_deep(
        [spec for spec in specs if spec.kind == "deep"],
        wish,
        loop,
        request=request,
        gathered=results.gathered(),
        finished=results.add,
        on_event=results.on_event,
    )


def _measure(specs: Sequence[ProbeSpec], wish: BenchRequest, loop: Loop, launch: Launch, results: _Results) -> None:
    """Run the measurements; if the user interrupts them, keep the results so far."""
    if not specs:
        return
    with noted() as interrupted:
        loop.stop_when(interrupted)
        run_bench(
            specs,
            wish,
            loop,
            launch,
            gathered=results.gathered(),
            finished=results.add,
            on_event=results.on_event,
        )
        if interrupted():
            results.on_event(Interrupted())


class _Asked(NamedTuple):
    """What the caller asked for in addition to reading."""

    verify: bool
    deep: Deep | None
    bench: BenchRequest | None

    def wants(self, spec: ProbeSpec) -> bool:
        if spec.kind == "bench":
            return bool(self.bench or (self.deep and spec.deep))
        return spec.kind in ("file", "driver") or bool(getattr(self, spec.kind))

    def shown_to_work(self, specs: Sequence[ProbeSpec]) -> list[ProbeSpec]:
        """Bench probes that a deep check runs without timing: those that are not going to be timed anyway."""
        timed = self.bench is not None and (self.bench.full or bool(self.bench.only))
        return [spec for spec in specs if spec.deep and not timed]

    def measured(self, specs: Sequence[ProbeSpec]) -> list[ProbeSpec]:
        """Bench probes that measure: each runs once."""
        others = self.shown_to_work(specs) if self.deep else []
        return [spec for spec in specs if spec.kind == "bench" and spec not in others]


class _Results:
    """The facts of the probes so far."""

    def __init__(self, on_event: OnEvent, count: CountGpus) -> None:
        self.parts: dict[str, list[Snapshot]] = {}
        self.on_event = on_event
        self._count = count
        self._early: frozenset[str] = frozenset()
        self._gpus = _GPUS_OF_A_LARGE_SERVER

    def skipped(self, spec: ProbeSpec, scopes: Collection[Scope], asked: _Asked) -> bool:
        """Whether ``spec`` must not be started; if so, record that as its result."""
        reason = ""
        if not asked.wants(spec):
            reason = not_asked_for(spec.kind)
        elif not set(spec.scopes) & set(scopes):
            reason = f"scope {', '.join(scopes)} does not need it"
        if reason:
            self.parts[spec.name] = [Snapshot(runs=(row(spec, Verdict("skipped", reason)),))]
        return bool(reason)

    def plan(self, specs: Sequence[ProbeSpec]) -> None:
        self._early = frozenset(spec.name for spec in specs if spec.early)
        self.on_event(ProbesPlanned(probes=tuple((spec.name, spec.title) for spec in specs)))
        self._count_gpus()

    def add(self, ended: Ended) -> None:
        whole = ended
        if ended.run.framework:
            from envcheck.collect.trials import with_its_end  # noqa: PLC0415  as above

            whole = with_its_end(ended)
        part = merge([*whole.facts, Snapshot(runs=(whole.run,))])
        self.parts.setdefault(whole.spec.name, []).append(part)
        if whole.spec.name in self._early:
            self._count_gpus()
        self.on_event(ProbeFinished(run=whole.run, facts=part))

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
        """Whether all early probes of the plan have ended."""
        return self._early <= self.parts.keys()

    def _count_gpus(self) -> None:
        if self.early_are_through():
            self._gpus = self._count(self.gathered())

    def allowed(self, spec: ProbeSpec) -> float:
        """The time limit of ``spec`` in seconds."""
        return spec.seconds + spec.seconds_per_gpu * self._gpus
