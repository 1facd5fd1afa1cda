"""Probes that died: how each one ended, and which facts it took with it."""

from __future__ import annotations

from envcheck.checks import Report
from envcheck.snapshot import ProbeRun

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
    """``nvml``; ``deep_extensions (xformers)`` for one that tried a framework."""
    return f"{run.name} ({run.framework})" if run.framework else run.name


def lost_with(section: str, report: Report) -> ProbeRun | None:
    """The dead probe that was to fill ``section`` of the Snapshot."""
    return next((run for run in dead_probes(report) if any(_covers(fill, section) for fill in run.fills)), None)


def _covers(fill: str, section: str) -> bool:
    return fill == section or fill.startswith(f"{section}.")
