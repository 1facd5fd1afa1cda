"""The end of the page: probes that died, what was assumed, what was not tested, and the count of the checks."""

from __future__ import annotations

from envcheck.model.checks import STATUSES, Report
from envcheck.model.snapshot import frameworks_in
from envcheck.report.page.findings import dead_probes, probe_sentence
from envcheck.report.page.head import has_trial, is_live_report, was_to_be_tried
from envcheck.report.page.layout import Room
from envcheck.report.page.pen import Line, Pen, StyledSpan
from envcheck.report.page.subject import judged_environment
from envcheck.text.wrap import width

_GAP = 3
_WAYS = {"deep": "framework import (--deep)", "bench": "performance (--bench)"}
"""What the probes of a kind test."""
_ASSUMED_AWAY = "not assumed ("
"""How the reason begins for which a probe was left out beside ``--assume``."""


def tail_lines(report: Report, pen: Pen, room: Room) -> list[Line]:
    """All of it, ending in ``Not tested: framework import (--deep).   1 fail, 14 pass, 3 skipped``."""
    assumed = ", ".join(f"{name} {value}".rstrip() for name, value in report.assumed.items())
    untried, number = untested(report), count_text(report)
    counts: list[Line] = [(StyledSpan(untried, "dim"), StyledSpan(" " * _GAP), StyledSpan(number))]
    if not untried or width(untried) + _GAP + width(number) > pen.width:
        counts = [(StyledSpan(text, "dim"),) for text in pen.fill(untried, pen.width)]
        counts += [(StyledSpan(text),) for text in pen.fill(number, pen.width)]
    dead = dead_probes(report)
    shown = dead if len(dead) <= room.probes else dead[: room.probes - 1]
    probes = [probe_sentence(run) for run in shown]
    if len(dead) > len(shown):
        probes.append(f"Failed probes (-v): {', '.join(run.name for run in dead[len(shown) :])}")
    return [
        *((StyledSpan(pen.clip(text, pen.width)),) for text in probes),
        *((StyledSpan(text),) for text in (pen.fill(f"Assumed: {assumed}", pen.width, room.row) if assumed else [])),
        *_configuration(report, pen),
        *_overlays(report, pen),
        *counts,
    ]


def _configuration(report: Report, pen: Pen) -> list[Line]:
    """The file that set options or findings aside, and what of the findings it changed."""
    if not report.configuration:
        return []
    changed = sum(check.judged is not None for check in report.checks)
    ignored = sum(check.ignored is not None for check in report.checks)
    told = [f"{count} {what}" for count, what in ((ignored, "ignored"), (changed, "with another severity")) if count]
    remark = f" (findings: {', '.join(told)})" if told else ""
    return [(StyledSpan(pen.clip(f"Configuration: {report.configuration}{remark}", pen.width)),)]


def _overlays(report: Report, pen: Pen) -> list[Line]:
    """The overlay folders of the matrix, and what each decided."""
    if not report.overlays:
        return []
    from envcheck.knowledge.load import decides

    told = []
    for place in report.overlays:
        rules = dict.fromkeys(check.rule for check in report.checks if decides(check.sources, place))
        told.append(f"{place} (decided: {', '.join(rules) or 'nothing'})")
    return [(StyledSpan(pen.clip(f"Matrix overlay: {'; '.join(told)}", pen.width)),)]


def untested(report: Report) -> str:
    """What was not looked at, and which tests would confirm a verdict of static checks, or why they were not run; empty
    for none. Probes that died have their own lines.
    """
    dead = {run.name for run in dead_probes(report)}
    unseen = [each.what for each in report.grounds if each.status == "not-read" and each.source not in dead]
    ways = _to_test(report) if is_live_report(report) else _not_run(report)
    untried = f"Not tested: {(', ' if is_live_report(report) else '; ').join(ways)}." if ways else ""
    return " ".join(filter(None, (f"Not looked at: {', '.join(unseen)}." if unseen else "", untried)))


def _to_test(report: Report) -> list[str]:
    ways = []
    if frameworks_in(judged_environment(report)) and not (has_trial(report) or was_to_be_tried(report)):
        ways.append(_WAYS["deep"])
    environment = judged_environment(report)
    if environment and environment.shipped and environment.shipped.packages and environment.verified is None:
        ways.append("file contents (--verify)")
    if report.gpus and not any(found.value for found in report.measurements):
        ways.append(_WAYS["bench"])
    return ways


def _not_run(report: Report) -> list[str]:
    """What tries the machine or environment that is here does not try what was assumed in its place."""
    ways: list[str] = []
    said: set[str] = set()
    for kind, way in _WAYS.items():
        told = {run.detail for run in report.probes if run.name.startswith(f"{kind}.") and run.status == "skipped"}
        if len(told) == 1 and (reason := told.pop()).startswith(_ASSUMED_AWAY):
            why = f"not run, {reason.removeprefix(_ASSUMED_AWAY).removesuffix(')')}"
            ways.append(f"{way}: {'likewise' if why in said else why}")
            said.add(why)
    return ways


def count_text(report: Report) -> str:
    """``1 fail, 14 pass, 3 skipped``."""
    summary = report.summary
    numbers = {
        "fail": summary.fail,
        "warn": summary.warn,
        "unknown": summary.unknown,
        "note": summary.note,
        "pass": summary.passed,
        "skipped": summary.skipped,
    }
    return ", ".join(f"{numbers[status]} {status}" for status in STATUSES if numbers[status]) or "no check ran"
