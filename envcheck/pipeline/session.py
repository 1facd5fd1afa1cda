"""Gather, merge, complete, judge, report: the only orchestration, called by every front end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from msgspec.structs import replace

from envcheck.collect.catalog import ProbeSpec, all_probes
from envcheck.collect.gather import gather
from envcheck.collect.starting import few_cores, probe_request
from envcheck.model.checks import Report
from envcheck.model.events import Event, Interrupted, OnEvent, ProbeFinished, ProbesPlanned, ProbeStarted, ignore
from envcheck.model.merge import merge
from envcheck.model.snapshot import Environment, ProbeRun, Snapshot
from envcheck.pipeline.assume import assumes_machine, merged_components
from envcheck.pipeline.request import ALL_SCOPES as ALL_SCOPES  # noqa: PLC0414 - for callers of check
from envcheck.pipeline.request import Request as Request  # noqa: PLC0414
from envcheck.pipeline.timing import Timing
from envcheck.pipeline.warm_up import WarmUp, Work

if TYPE_CHECKING:
    from envcheck.model.components import Component

_ABOUT_SOFTWARE = frozenset({"platform", "environments", "toolkits", "libraries", "variables", "driver.libraries"})
"""Sections of which something stays this machine's own when its GPUs and driver are assumed."""

_ABOUT_ENVIRONMENTS = frozenset({"environments", "libraries", "toolkits", "variables"})
"""Sections that say nothing about an environment that does not exist yet."""

_OF_ENVIRONMENTS = frozenset({"environments", "libraries"})  # Probes that take long where there are many packages

_BY_READING = ("file", "driver", "verify")  # Kinds of probes that read what is here, and try nothing


def check(
    request: Request,
    on_event: OnEvent = ignore,
    should_stop: Callable[[], bool] = lambda: False,
    meanwhile: Work = lambda: None,
    show: Callable[[Report], object] = lambda _report: None,
    timing: Timing | None = None,
) -> Report:
    """Examine this machine and judge it; raise UsageError when the request cannot be carried out.

    Soon after ``should_stop`` says so every child is ended, and what came in until then is judged. ``meanwhile`` runs
    in a thread of its own while probes do, and there ``show`` gets what would be the report if no driver answered.
    """
    timing = timing or Timing()
    stopped: list[Interrupted] = []
    parts: list[Snapshot] = []
    kinds = {spec.name: spec.kind for spec in all_probes()}
    left = set[str]()
    # Every package's requirements are parsed; making their grammar takes as long as that.
    grammar = partial(import_module, "packaging.requirements")
    warm_up = WarmUp(lambda: import_module("envcheck.pipeline.judging").get_ready(request), meanwhile, grammar)

    def rehearse() -> None:
        show(judge(merge(tuple(parts)), request))

    first_rehearsal = WarmUp(warm_up.join, rehearse)
    rehearsal = WarmUp(first_rehearsal.join, rehearse)

    def watched(event: Event) -> None:
        if isinstance(event, Interrupted):
            stopped.append(event)
        if isinstance(event, ProbesPlanned):
            left.update(name for name, _ in event.probes)
        if isinstance(event, ProbeStarted):
            warm_up.start()  # not before: it would delay the start of the first child
        if isinstance(event, ProbeFinished):
            parts.append(event.facts)
            left.discard(event.run.name)
            if left and {kinds.get(name) for name in left - _OF_ENVIRONMENTS} <= {"driver"}:
                # What a second judgement and its page find ready is most of the first.
                if left.isdisjoint(_OF_ENVIRONMENTS):
                    rehearsal.start()
                elif not few_cores() and any(part.gpus and part.gpus.items for part in parts):
                    first_rehearsal.start()
        on_event(event)

    switch_interval = sys.getswitchinterval()
    sys.setswitchinterval(0.0005)  # seconds: this thread reads pipes that children wait to fill, beside the warm-up
    try:
        snapshot = gather_here(request, watched, should_stop)
    finally:
        first_rehearsal.join()
        rehearsal.join()
        warm_up.join()
        sys.setswitchinterval(switch_interval)
    timing.end("gather")
    return judge(snapshot, request, on_event, timing=timing, interrupted=bool(stopped))


def gather_here(
    request: Request, on_event: OnEvent = ignore, should_stop: Callable[[], bool] = lambda: False
) -> Snapshot:
    """Examine this machine; every probe, also one that was not started, leaves its row in ``runs``."""
    if request.require or request.only or request.skip or request.targets or request.policy:
        from envcheck.pipeline import judging  # noqa: PLC0415  as below

        judging.check_request(request)
    # What is read comes before what is tried: where both tell of one thing, the record keeps the source that was read.
    asked = [spec for spec in all_probes() if not request.probes or spec.name in request.probes]
    asked.sort(key=lambda spec: spec.kind not in _BY_READING)
    machines = [merged_components(request.assume, target.assume) for target in request.targets] or [request.assume]
    left_out: list[ProbeRun] = []
    specs: list[ProbeSpec] = []
    for spec in asked:
        reasons = [_assumed_away(spec, request, assumed) for assumed in machines]
        if not all(reasons):
            specs.append(spec)
        elif request.planned is None:
            away = ProbeRun(name=spec.name, title=spec.title, status="skipped", detail=reasons[0], fills=spec.fills)
            left_out.append(away)
    if request.planned is not None:
        specs = [spec for spec in specs if spec.kind in ("file", "driver") and not _ABOUT_ENVIRONMENTS & {*spec.fills}]
        specs = [] if all(map(assumes_machine, machines)) else specs
    asking = probe_request(
        root=request.root,
        cwd=request.cwd,
        variables=request.variables,
        python=request.python,
        all_envs=request.all_envs,
    )
    parts = gather(
        specs,
        asking,
        scopes=request.scopes,
        on_event=on_event,
        deadline_s=request.timeout,
        should_stop=should_stop,
        verify=request.verify or request.deep,
        deep=request.deep,
        force=request.force,
        bench=request.bench,
    )
    return merge([*parts, Snapshot(runs=tuple(left_out))])


def _assumed_away(spec: ProbeSpec, request: Request, assumed: Sequence[Component]) -> str:
    """Why what ``spec`` would find is not what is asked about: it tries what is here, and that is not assumed."""
    if not assumed:
        return ""
    if assumes_machine(assumed):
        software = _ABOUT_SOFTWARE.intersection(spec.fills)
        by_reading = spec.kind in _BY_READING
        return "" if software and by_reading else "not assumed (--assume describes another machine)"
    trying = (spec.kind == "deep" or spec.deep) and request.deep
    tried = trying or (spec.kind == "bench" and request.bench is not None)
    return "not assumed (--assume describes another environment)" if tried else ""


def judge(
    snapshot: Snapshot,
    request: Request,
    on_event: OnEvent = ignore,
    *,
    timing: Timing | None = None,
    interrupted: bool = False,
) -> Report:
    """Judge facts that were gathered before, here or elsewhere (a saved report, pasted text)."""
    from envcheck.pipeline import judging  # noqa: PLC0415  it brings every rule; until facts are there, nothing waits for it

    return judging.judge(snapshot, request, on_event, timing=timing, interrupted=interrupted)


def plan_judge(facts: Snapshot, request: Request) -> Callable[[Environment], Report]:
    """What judges, by ``facts``, the packages that would be installed in place of those of ``request``."""
    return lambda chosen: judge(facts, replace(request, planned=chosen, tried=True))
