"""Metrics for the textfile collector of Prometheus' node exporter.

Write them with ``-o prometheus:FILE.prom``: the file is written beside and renamed, so a scrape never reads half of it.
``envcheck_verdict`` has a series for each verdict, of which one is 1. What is not known has no series.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone

from msgspec.structs import replace

from envcheck.model.checks import STATUSES, Report
from envcheck.report import Format, Options
from envcheck.rules.facts.measurements import measurement_key
from envcheck.text.clean import clean

FORMAT = Format(
    shows="metrics for the textfile collector of Prometheus' node exporter", suffix="prom", syntax="text", targets=False
)

VERDICTS = ("pass", "warn", "fail", "unknown")
_MOST, _LABEL = 1000, 300  # Most series of a metric, and characters of a label
_UNITS = {"B/s": "bytes_per_second", "FLOP/s": "flop_per_second", "OP/s": "operations_per_second", "s": "seconds"}
"""How the names of metrics end that hold figures of a unit."""

Labels = Mapping[str, str]


def render(report: Report, _options: Options) -> str:
    """``report`` in the text format of Prometheus, version 0.0.4."""
    counts = {status: sum(check.status == status for check in report.checks) for status in STATUSES}
    findings = [
        {
            "rule": check.rule,
            "status": check.status,
            "layer": check.layer,
            "subject": check.subject.key,
            "gpu": "" if check.subject.index is None else str(check.subject.index),
            "uuid": check.subject.uuid or "",
        }
        for check in report.checks
        if check.status in ("fail", "warn", "unknown") and not check.ignored
    ]
    numbers = {gpu.uuid: str(gpu.index) for gpu in report.gpus if gpu.uuid and gpu.index is not None}
    figures = []
    for unit, name in _UNITS.items():
        found = [each for each in report.measurements if each.unit == unit and each.value is not None]
        samples = []
        for each in found[:_MOST]:
            about = {"figure": measurement_key(replace(each, peer=None)), "gpu": numbers.get(each.gpu or "", "")}
            about |= {"uuid": each.gpu or "", "peer": numbers.get(each.peer or "", "")}
            samples.append((about, each.value or 0.0))
        figures.append(metric(f"measured_{name}", f"Measured figures in {unit}.", samples))
    parts = [
        metric("info", "Version of envcheck and the newest day of its matrix.",
                [({"version": report.tool.version, "matrix": report.tool.matrix}, 1)]),
        metric("verdict", "1 for the verdict of the last run, 0 for the others.",
                [({"verdict": verdict}, int(verdict == report.verdict)) for verdict in VERDICTS]),
        metric("exit_code", "Exit status of the last run: 0 no finding, 1 a finding, 3 no verdict.",
                [({}, int(report.exit_code))]),
        metric("checks", "Number of checks by status.", [({"status": name}, count) for name, count in counts.items()]),
        metric("finding", "1 for each check that failed, warned or could not be judged.",
                [(labels, 1) for labels in findings[:_MOST]]),
        metric("findings_left_out", "Number of findings beyond those that have a series.",
                [({}, max(0, len(findings) - _MOST))]),
        metric("duration_seconds", "Time that the last run took.", [({}, report.duration_s)]),
        metric("run_timestamp_seconds", "When the facts of the last run were gathered.",
                made({}, report.created)),
        *figures,
    ]  # fmt: skip
    return "".join(parts)


def made(labels: Labels, created: str) -> list[tuple[Labels, float]]:
    """Seconds since 1970 in UTC when a report was ``created``, where it says."""
    with suppress(ValueError, OverflowError):
        when = datetime.fromisoformat(created)
        return [(labels, (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp())]
    return []


def metric(name: str, text: str, samples: Iterable[tuple[Labels, float]]) -> str:
    """A gauge with its series; nothing where it has none. A series that stands twice would void the whole file."""
    series = {}
    for labels, value in samples:
        shown = {key: clean(text[:_LABEL]).replace("\\", "\\\\").replace('"', '\\"') for key, text in labels.items()}
        pairs = ",".join(f'{label}="{text}"' for label, text in shown.items() if labels[label])
        series[f"envcheck_{name}" + (f"{{{pairs}}}" if pairs else "")] = value
    head = f"# HELP envcheck_{name} {text}\n# TYPE envcheck_{name} gauge\n"
    return head + "".join(f"{each} {value!r}\n" for each, value in series.items()) if series else ""
