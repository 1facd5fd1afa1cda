"""Read a saved report. Its contents are foreign: whoever shows them cleans them."""

from __future__ import annotations

import codecs
from typing import TypeVar

import msgspec

from envcheck.checks import SCHEMA_VERSION, Report
from envcheck.errors import UsageError
from envcheck.snapshot import Snapshot
from envcheck.text.clean import clean
from envcheck.text.wrap import clip

MOST_BYTES = 64 << 20
MOST_RECORDS = 500_000
MOST_VALUES = 4_000_000
"""What a saved report may hold: a record takes some hundred bytes of memory."""
MOST_JUDGED = {"GPUs": 1024, "frameworks": 1024, "error lines": 10_000, "measurements": 20_000}
"""Of what every rule, or every known error line, is held against each."""

T = TypeVar("T")


class _Head(msgspec.Struct, frozen=True):
    """What every report of every version begins with."""

    schema_version: str


def read_report(text: bytes) -> Report:
    """Decode a saved JSON report of our major schema version, any minor; raise UsageError for anything else."""
    if len(text) > MOST_BYTES:
        raise UsageError(f"the saved report has more than {MOST_BYTES >> 20} MiB; that is no report of envcheck")
    content = text.removeprefix(codecs.BOM_UTF8)
    if not content.strip():
        raise UsageError("the saved report is empty; save one with: envcheck check --format json")
    if content.count(b"{") > MOST_RECORDS or content.count(b",") > MOST_VALUES:
        raise UsageError(f"the saved report has more than {MOST_RECORDS} records or {MOST_VALUES} values")
    _check_version(_decode(content, _Head).schema_version)
    report = _decode(content, Report)
    for what, count in _counts(report).items():
        if count > MOST_JUDGED[what]:
            raise UsageError(f"the saved report has {count} {what}; at most {MOST_JUDGED[what]} are read")
    return report


def _counts(report: Report) -> dict[str, int]:
    snapshot = report.snapshot or Snapshot()
    environments = snapshot.environments.items if snapshot.environments else ()
    listings = [environment.frameworks for environment in environments if environment.frameworks]
    log = snapshot.kernel.log if snapshot.kernel else None
    return {
        "GPUs": len(snapshot.gpus.items) if snapshot.gpus else 0,
        "frameworks": sum(len(listing.items) for listing in listings),
        "error lines": len(snapshot.observed_errors) + (len(log.messages or ()) if log else 0),
        "measurements": len(report.measurements),
    }


def _check_version(version: str) -> None:
    ours = int(SCHEMA_VERSION.partition(".")[0])
    major, dot, minor = version.partition(".")
    if not (dot and _is_number(major) and _is_number(minor)):
        raise UsageError(f"the saved report has a schema_version of {version[:20]!r}, not one like {SCHEMA_VERSION}")
    if int(major) > ours:
        raise UsageError(
            f"the saved report has schema {major}.{minor}, and this envcheck reads up to {ours}.x; use a newer envcheck"
        )
    if int(major) < ours:
        raise UsageError(
            f"the saved report has schema {major}.{minor}, which this envcheck ({SCHEMA_VERSION}) cannot read"
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 4


def _decode(content: bytes, kind: type[T]) -> T:
    """Read ``content`` strictly, else as one of a newer minor."""
    try:
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.ValidationError:
            from envcheck.report.newer import read_newer

            return read_newer(content, kind)
    except msgspec.ValidationError as error:
        # The reason quotes the file, and goes to a terminal.
        raise UsageError(f"the file is JSON, but not a report of envcheck: {clip(clean(str(error)), 160)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UsageError("the file is not JSON; save a report with: envcheck check --format json") from None
    except RecursionError:
        raise UsageError("the file is JSON nested too deeply to be a report of envcheck") from None
