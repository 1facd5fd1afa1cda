"""Figures kept for later comparison: the measurements of one run or several, less their conditions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from envcheck.errors import UsageError
from envcheck.knowledge.performance.expected import at_work
from envcheck.model.checks import Report
from envcheck.model.snapshot import Measurement
from envcheck.redact import is_redacted
from envcheck.report.saved.read import read_report
from envcheck.text.output import write_whole

MOST_RUNS = 16
"""Runs that count: enough to tell how far runs lie apart, and few enough for a report that carries their figures."""


class NoFiguresError(UsageError):
    """A report of envcheck that holds nothing to compare with: its GPUs were in use, or nothing was measured."""


class _Version(msgspec.Struct, frozen=True):
    """What tells a report from a baseline."""

    schema_version: str | None = None


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--save-baseline`` writes."""

    baseline_version: str = "1.0"
    created: str = ""
    host: str | None = None
    tool: str = ""
    measurements: tuple[Measurement, ...] = ()


def save(report: Report, path: str) -> None:
    """Write the figures of ``report`` to ``path``, whole or not at all; raise UsageError.

    Left out are those of wrong results, and of GPUs that others used: nothing can be held to them.
    """
    kept = _figures_of(report)
    if not kept:
        raise UsageError(f"there is no figure to compare with later, so {path} was not written")
    found = msgspec.json.encode(_baseline(report, kept))
    write_whole(Path(path), msgspec.json.format(found, indent=1).decode() + "\n", "json")


def _baseline(report: Report, kept: tuple[Measurement, ...]) -> Baseline:
    return Baseline(created=report.created, host=report.host, tool=report.tool.version, measurements=kept)


def _figures_of(report: Report) -> tuple[Measurement, ...]:
    gpus, kept = {gpu.uuid: gpu for gpu in report.gpus}, []
    for measured in report.measurements:
        gpu = gpus.get(measured.gpu)
        right = measured.verification is None or measured.verification.right
        before = measured.conditions.utilisation_before if measured.conditions else None
        used = measured.conditions.memory_before if measured.conditions else None
        total = gpu.memory.total if gpu and gpu.memory else None
        if measured.value is not None and right and not at_work(before and before / 100, used, total):
            kept.append(msgspec.structs.replace(measured, conditions=None, verification=None))
    return tuple(kept)


def read(data: bytes, name: str) -> Baseline:
    """The figures of a file that ``save`` wrote, or of a JSON report; raise UsageError when it is neither.

    Raises NoFiguresError for a report that holds nothing to compare with.
    """
    try:
        head = msgspec.json.decode(data, type=_Version)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{name} is not a baseline that --save-baseline wrote: {error}") from None
    if head.schema_version is not None:
        return _of_report(data, name)
    try:
        found = msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{name} is not a baseline that --save-baseline wrote: {error}") from None
    if found.baseline_version.partition(".")[0] != "1" or not found.measurements:
        raise UsageError(f"{name} is not a baseline of version 1 with figures in it")
    return found


def _of_report(data: bytes, name: str) -> Baseline:
    try:
        report = read_report(data)
    except UsageError as error:
        raise UsageError(f"{name} is not a baseline: {error}") from None
    if is_redacted(report):
        raise UsageError(f"{name} is redacted, so its GPUs cannot be recognized: it is not a baseline")
    kept = _figures_of(report)
    if not kept:
        raise NoFiguresError(f"{name} is not a baseline: it holds no figure to compare with")
    return _baseline(report, kept)


def newest(baselines: Sequence[Baseline]) -> tuple[Measurement, ...]:
    """The figures of the newest ``MOST_RUNS`` of ``baselines``, the oldest first."""
    kept = sorted(baselines, key=lambda found: found.created)[-MOST_RUNS:]
    return tuple(measured for found in kept for measured in found.measurements)
