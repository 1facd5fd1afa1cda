"""Figures kept for later comparison: the measurements of a report, less their conditions."""

from __future__ import annotations

from pathlib import Path

import msgspec

from envcheck.checks import Report
from envcheck.compat.performance.at_work import at_work
from envcheck.errors import UsageError
from envcheck.snapshot import Gpu, Measurement
from envcheck.text.output import write_whole


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
    gpus = {gpu.uuid: gpu for gpu in (report.snapshot.gpus.items if report.snapshot and report.snapshot.gpus else ())}
    kept = tuple(
        msgspec.structs.replace(measured, conditions=None, verification=None)
        for measured in report.measurements
        if _is_comparable(measured, gpus.get(measured.gpu))
    )
    if not kept:
        raise UsageError(f"there is no figure to compare with later, so {path} was not written")
    found = Baseline(created=report.created, host=report.host, tool=report.tool.version, measurements=kept)
    write_whole(Path(path), msgspec.json.format(msgspec.json.encode(found), indent=1).decode() + "\n", "json")


def _is_comparable(measured: Measurement, gpu: Gpu | None) -> bool:
    right = measured.verification is None or measured.verification.right
    before = measured.conditions.utilisation_before if measured.conditions else None
    used = measured.conditions.memory_before if measured.conditions else None
    total = gpu.memory.total if gpu and gpu.memory else None
    return measured.value is not None and right and not at_work(before and before / 100, used, total)


def read(data: bytes, name: str) -> tuple[Measurement, ...]:
    """The figures of a file that ``save`` wrote; raise UsageError when it is none."""
    try:
        found = msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{name} is no baseline that --save-baseline wrote: {error}") from None
    if found.baseline_version.partition(".")[0] != "1" or not found.measurements:
        raise UsageError(f"{name} is no baseline of version 1 with figures in it")
    return found.measurements
