"""From checks to a report: the verdict, the root cause, the headline, what to ask next, and the exit code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Literal

import msgspec

from envcheck.checks import ASSUMPTION, STATUSES, Check, Report, Summary, Tool, Verdict
from envcheck.exitcode import ExitCode
from envcheck.rules.api import Rule
from envcheck.rules.cause import primary
from envcheck.rules.measured import headline as measured_headline
from envcheck.rules.measured import nothing_measured, only_measured
from envcheck.snapshot import Framework, Snapshot

FailOn = Literal["fail", "warn"]

HEADLINE = 80
"""Most characters of a headline."""
_MOST_NAMED = 3


def conclude(
    snapshot: Snapshot,
    checks: Sequence[Check],
    rules: Iterable[Rule],
    *,
    tool: Tool,
    fail_on: FailOn = "fail",
    assumed: dict[str, str] | None = None,
    duration: float = 0.0,
) -> Report:
    """Build the report on ``checks``; ``rules`` are those that were put."""
    put = tuple(rules)
    required = frozenset(rule.name for rule in put if rule.required)
    ordered = tuple(sorted(checks, key=lambda check: (STATUSES.index(check.status), bool(check.explained_by))))
    decision = verdict(ordered, required, needs_machine=any(rule.scope == "node" for rule in put))
    cause = primary(ordered)
    slim = msgspec.structs.replace(snapshot, runs=(), measurements=())
    return Report(
        tool=tool,
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        duration_s=round(duration, 3),
        host=snapshot.platform.host if snapshot.platform else None,
        headline=_headline(decision, cause, ordered, required, snapshot),
        exit_code=exit_code(decision, fail_on),
        verdict=decision,
        primary=cause.rule if cause else None,
        primary_check=cause.id if cause else None,
        summary=Summary.of(ordered),
        assumed=assumed or {},
        ask=_ask(ordered, required),
        checks=ordered,
        measurements=snapshot.measurements,
        snapshot=slim,
        probes=snapshot.runs,
    )


def verdict(checks: Sequence[Check], required: frozenset[str], *, needs_machine: bool = True) -> Verdict:
    """Fail if any fail, else warn if any, else unknown if a required check is unknown or none passed, else pass.

    Where the machine itself is out of scope (``needs_machine`` is False) and there is none to hold the software
    against, it is enough that something was checked and nothing found.
    """
    counted = [check for check in checks if not check.ignored]
    statuses = {check.status for check in counted}
    if "fail" in statuses:
        return "fail"
    if "warn" in statuses:
        return "warn"
    decisive = {check.status for check in counted if not required or _decides(check, required)}
    passed = decisive & {"pass", "note"} or (not needs_machine and statuses & {"pass", "note"})
    return "pass" if passed and "unknown" not in decisive else "unknown"


def _decides(check: Check, required: frozenset[str]) -> bool:
    """Whether the verdict waits for it; what was assumed without being held against anything settles nothing."""
    if check.rule == ASSUMPTION or check.layer == "request":
        return True
    return check.rule in required and not (check.status == "pass" and check.only_assumed)


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
    required: frozenset[str],
    snapshot: Snapshot,
) -> str:
    if cause is not None:
        text = cause.title
    elif decision == "unknown":
        open_questions = [
            check for check in checks if _decides(check, required) and check.status in ("unknown", "skipped")
        ]
        why = open_questions[0].message if open_questions else nothing_measured(snapshot.runs)
        text = f"no verdict: {why or 'nothing could be checked'}"
    elif only_measured(checks):
        text = measured_headline(checks)
    elif any(check.subject.kind == "framework" and check.status == "pass" for check in checks):
        text = f"GPU, driver and frameworks fit{_how_far_tried(_frameworks(snapshot))}"
    elif any(_decides(check, required) and check.status == "pass" for check in checks):
        text = "GPU and driver fit; no framework was judged"
    else:
        text = "Nothing is wrong in itself; no GPU or driver here to hold it against"
    return text if len(text) <= HEADLINE else text[: HEADLINE - 1] + "…"


def _how_far_tried(frameworks: Sequence[Framework]) -> str:
    """What goes behind "they fit": that they ran, which of them ran, or that it is so on paper."""
    worked = [found for found in frameworks if found.trial and found.trial.ran_on_gpu is not None]
    ran = [found.name for found in worked if found.trial and found.trial.ran_on_gpu]
    if not ran:
        return " on paper"
    if len(ran) == sum(not found.cpu_only for found in worked):
        return ", and ran"
    return f"; {len(ran)} of {len(worked)} ran" if len(ran) > _MOST_NAMED else f"; {', '.join(ran)} ran"


def _frameworks(snapshot: Snapshot) -> tuple[Framework, ...]:
    """Those of the environment that the verdict is about."""
    environments = snapshot.environments.items if snapshot.environments else ()
    judged = next((found for found in environments if found.judged), None)
    return judged.frameworks.items if judged and judged.frameworks else ()


def _ask(checks: Sequence[Check], required: frozenset[str]) -> tuple[str, ...]:
    """The facts that would settle what is still open, required checks first."""
    pending = [check for check in checks if check.status in ("unknown", "skipped") and not check.explained_by]
    pending.sort(key=lambda check: (check.status != "unknown", check.rule not in required))
    facts = dict.fromkeys(missing.fact for check in pending for missing in check.missing)
    return tuple(facts)[:10]
