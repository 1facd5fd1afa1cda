"""The order in which a report is shown: findings, one for each rule, with their consequences; probes that died."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from envcheck.checks import Check, Report, Status
from envcheck.snapshot import ProbeRun

_BAD = ("fail", "warn")
_FOLLOWS = ("fail", "warn", "unknown")
_LONGEST_CHAIN = 16


@dataclass(frozen=True)
class Finding:
    """What one rule found, for one subject or several; the first check is shown in detail."""

    checks: tuple[Check, ...]

    @property
    def lead(self) -> Check:
        return self.checks[0]

    @property
    def rule(self) -> str:
        return self.lead.rule

    @property
    def status(self) -> Status:
        return self.lead.status


class Outline:
    """The checks of a report in the order in which they are shown. What a policy ignores is not shown."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self._told = [check for check in report.checks if not check.ignored]
        self._causes = {check.id: check for check in reversed(self._told) if check.status in _BAD}

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The failures and warnings that nothing else explains: the primary one first, fails before warnings."""
        roots = [check for check in self._told if check.status in _BAD and self.root(check) is check]
        primary = self.report
        roots.sort(
            key=lambda check: (
                check.id != primary.primary_check,
                check.rule != primary.primary,
                _BAD.index(check.status),
            )
        )
        return _by_rule(roots)

    @cached_property
    def notes(self) -> tuple[Finding, ...]:
        """What is true and worth saying."""
        return _by_rule(check for check in self._told if check.status == "note")

    @cached_property
    def unknowns(self) -> tuple[Finding, ...]:
        """What could not be judged, and is not a consequence of a finding."""
        return _by_rule(check for check in self._told if check.status == "unknown" and self.root(check) is check)

    def consequences(self, finding: Finding) -> tuple[Finding, ...]:
        """What ``finding`` explains: fails, then warnings, then what could not be judged."""
        causes = {check.id for check in finding.checks}
        found = [
            check
            for check in self._told
            if check.status in _FOLLOWS and (root := self.root(check)) is not check and root.id in causes
        ]
        found.sort(key=lambda check: _FOLLOWS.index(check.status))
        return _by_rule(found)

    def root(self, check: Check) -> Check:
        """The finding that explains ``check``, in one step or several; ``check`` itself when none does.

        A cause that the report does not have explains nothing, and neither does an endless chain (a circle): no
        finding is lost.
        """
        cause = check
        for _ in range(_LONGEST_CHAIN):
            further = self._causes.get(cause.explained_by or "")
            if further is None:
                return cause
            cause = further
        return check


def _by_rule(found: Iterable[Check]) -> tuple[Finding, ...]:
    groups: dict[tuple[str, Status], list[Check]] = {}
    for check in found:
        groups.setdefault((check.rule, check.status), []).append(check)
    return tuple(Finding(tuple(group)) for group in groups.values())


DIED = ("crashed", "timed-out", "failed")


def dead_probes(report: Report) -> list[ProbeRun]:
    """The probes that were started and did not end well."""
    return [run for run in report.probes if run.status in DIED]


def probe_end(run: ProbeRun) -> str:
    """``timed out``, ``crashed``."""
    return run.status.replace("-", " ")


def probe_sentence(run: ProbeRun) -> str:
    """``Probe nvml timed out after 10 s: no answer from nvmlInit``."""
    end = f"timed out after {run.seconds:.0f} s" if run.status == "timed-out" else run.status
    detail = run.detail.strip()
    for start in (end, run.status, probe_end(run)):
        if detail.lower().startswith(start):
            detail = detail[len(start) :].lstrip(" :;,")
    return f"Probe {probe_name(run)} {end}" + (f": {detail}" if detail else "")


def probe_name(run: ProbeRun) -> str:
    """``nvml``; ``deep.extensions (xformers)`` for one that tried a framework."""
    return f"{run.name} ({run.framework})" if run.framework else run.name


def dead_probe_for(section: str, report: Report) -> ProbeRun | None:
    """The dead probe that was to fill ``section`` of the Snapshot."""
    return next((run for run in dead_probes(report) if any(_covers(fill, section) for fill in run.fills)), None)


def _covers(fill: str, section: str) -> bool:
    return fill == section or fill.startswith(f"{section}.")
