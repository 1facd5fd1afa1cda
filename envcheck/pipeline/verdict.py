"""From checks to a report: the verdict, the root cause, the headline, what to ask next, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Literal

import msgspec

from envcheck.checks import (
    LAYERS,
    LONGEST_HEADLINE,
    STATUSES,
    Check,
    Ground,
    Report,
    Summary,
    Tool,
    Verdict,
    pressing,
    shortened,
    ways_in_order,
)
from envcheck.exitcode import ExitCode
from envcheck.pipeline.grounds import grounds_of
from envcheck.rules.api import Rule
from envcheck.rules.engine.cause import Importance, primary
from envcheck.rules.facts.frameworks import LEAST_IMPORTANT
from envcheck.rules.facts.ignored import ignored
from envcheck.rules.facts.machine import release_in
from envcheck.rules.facts.measurements import coverage, only_measured
from envcheck.rules.facts.measurements import headline as measured_headline
from envcheck.rules.speed.siblings import across_gpus
from envcheck.snapshot import Framework, Snapshot, frameworks_in, items_in

FailOn = Literal["fail", "warn"]

_MOST_NAMED = 3
_LONGEST_ASIDE = LONGEST_HEADLINE * 2 // 3


def conclude(
    snapshot: Snapshot,
    checks: Sequence[Check],
    rules: Iterable[Rule],
    *,
    tool: Tool,
    fail_on: FailOn = "fail",
    assumed: dict[str, str] | None = None,
    machine_assumed: bool = False,
    importance: Importance | None = None,
    duration: float = 0.0,
) -> Report:
    """Build the report on ``checks``; ``rules`` are those that were put, ``importance`` ranks the frameworks."""
    put = tuple(rules)
    required = frozenset(rule.name for rule in put if rule.required or rule.on_request)
    ordered = tuple(sorted(checks, key=lambda check: (STATUSES.index(check.status), bool(check.explained_by))))
    needs_machine = any(rule.scope == "node" for rule in put)
    grounds = grounds_of(snapshot, ordered, put, machine_assumed=machine_assumed)
    decision = verdict(ordered, grounds)
    cause = primary(ordered, importance, frozenset(rule.name for rule in put if rule.symptom))
    slim = msgspec.structs.replace(snapshot, runs=(), measurements=())
    return Report(
        tool=tool,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        duration_s=round(duration, 3),
        host=snapshot.platform.host if snapshot.platform else None,
        headline=_with_ignored(
            _headline(decision, cause, ordered, grounds, snapshot, importance or {}, needs_machine=needs_machine),
            ordered,
        ),
        exit_code=exit_code(decision, fail_on),
        verdict=decision,
        primary=cause.rule if cause else None,
        primary_check=cause.id if cause else None,
        fix=next(iter(ways_in_order(cause.fixes)), ()) if cause else (),
        summary=Summary.of(ordered),
        assumed=assumed or {},
        grounds=grounds,
        ask=_ask(ordered, required),
        checks=ordered,
        measurements=snapshot.measurements,
        across_gpus=across_gpus(items_in(snapshot.gpus), snapshot.measurements),
        snapshot=slim,
        probes=snapshot.runs,
    )


def verdict(checks: Sequence[Check], grounds: Sequence[Ground]) -> Verdict:
    """Fail if any check fails, else unknown unless every ground holds, else warn if any warns, else pass.

    A failure that is certain stays one, whatever else could not be read. A warning is no answer to what was asked.
    """
    statuses = {check.status for check in checks if not check.ignored}
    if "fail" in statuses:
        return "fail"
    if not all(ground.holds for ground in grounds):
        return "unknown"
    return "warn" if "warn" in statuses else "pass"


def exit_code(decision: Verdict, fail_on: FailOn) -> ExitCode:
    """The exit status that the verdict means under ``--fail-on``."""
    if decision == "unknown":
        return ExitCode.UNKNOWN
    bad = ("fail",) if fail_on == "fail" else ("fail", "warn")
    return ExitCode.FOUND if decision in bad else ExitCode.OK


def _headline(
    decision: Verdict,
    cause: Check | None,
    checks: Sequence[Check],
    grounds: Sequence[Ground],
    snapshot: Snapshot,
    importance: Importance,
    *,
    needs_machine: bool,
) -> str:
    if decision == "unknown":
        first = pressing(grounds)[0]
        text = f"no verdict: {f'{first.what}: {first.detail}' if first.status == 'not-read' else first.detail}"
    elif cause is not None:
        text = cause.title
    elif only_measured(checks):
        gpus = items_in(snapshot.gpus)
        text = measured_headline(checks, coverage(gpus, snapshot.measurements, snapshot.runs))
    elif not needs_machine and (compared := _not_compared(snapshot, importance)):
        text = compared
    elif any(check.subject.kind == "framework" and check.status == "pass" for check in checks):
        text = f"GPU, driver and frameworks {_how_far_tried(_frameworks(snapshot))}"
    elif needs_machine and any(ground.status == "judged" for ground in grounds):
        absent = _not_known(snapshot)
        text = f"No fault found; no {absent} is known" if absent else "GPU and driver fit; no framework was judged"
    else:
        text = "Environment is consistent"
    return text


def _with_ignored(headline: str, checks: Sequence[Check]) -> str:
    """``headline`` at the length of one, with what the verdict leaves out."""
    aside = ignored(checks)
    if not aside:
        return shortened(headline, LONGEST_HEADLINE)
    told = f" ({shortened(aside, _LONGEST_ASIDE)})"
    return shortened(headline, LONGEST_HEADLINE - len(told)) + told


def _not_compared(snapshot: Snapshot, importance: Importance) -> str:
    """The headline where the machine is out of scope and a GPU or driver to compare with was not found; else empty."""
    absent = _not_known(snapshot)
    if not absent:
        return ""
    chosen = {key.rpartition(":")[2] for key, weight in importance.items() if weight < LEAST_IMPORTANT}
    leading = [found for found in _frameworks(snapshot) if found.name in chosen]
    if leading and all(found.cpu_only for found in leading):
        names = ", ".join(found.name for found in leading)
        return f"Environment is consistent; {names} {'is a CPU build' if len(leading) == 1 else 'are CPU builds'}"
    return f"Environment is consistent; not compared with a {absent}"


def _not_known(snapshot: Snapshot) -> str:
    """What of GPU and driver was not found: without both, they were not compared."""
    gpu = any(gpu.compute_capability for gpu in items_in(snapshot.gpus))
    driver = release_in(snapshot) is not None
    return " or ".join(what for what, known in (("GPU", gpu), ("driver", driver)) if not known)


def _how_far_tried(frameworks: Sequence[Framework]) -> str:
    """That they ran, which of them ran, or that they look compatible by static checks."""
    worked = [found for found in frameworks if found.trial and found.trial.ran_on_gpu is not None]
    ran = [found.name for found in worked if found.trial and found.trial.ran_on_gpu]
    if not ran:
        return "look compatible"
    if len(ran) == sum(not found.cpu_only for found in worked):
        return "fit, and ran"
    return f"fit; {len(ran)} of {len(worked)} ran" if len(ran) > _MOST_NAMED else f"fit; {', '.join(ran)} ran"


def _frameworks(snapshot: Snapshot) -> tuple[Framework, ...]:
    """Those of the environment that the verdict is about."""
    return frameworks_in(snapshot.judged_environment)


def _ask(checks: Sequence[Check], required: frozenset[str]) -> tuple[str, ...]:
    """The facts that would settle what is still open, required checks first."""
    pending = [check for check in checks if check.status in ("unknown", "skipped") and not check.explained_by]
    pending.sort(key=lambda check: (check.status != "unknown", check.rule not in required, LAYERS.index(check.layer)))
    facts = dict.fromkeys(missing.fact for check in pending for missing in check.missing)
    return tuple(facts)[:10]
