"""Read a saved report. Its contents are foreign: whoever shows them cleans them."""

from __future__ import annotations

import codecs
from typing import TypeVar

import msgspec

from envcheck.checks import SCHEMA_VERSION, Report
from envcheck.errors import UsageError
from envcheck.report.clean import clean
from envcheck.report.wrap import clip

MOST_BYTES = 64 << 20

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
    _check_version(_decode(content, _Head).schema_version)
    return _decode(content, Report)


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
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.ValidationError as error:
        # The reason quotes the file, and goes to a terminal.
        raise UsageError(f"the file is JSON, but not a report of envcheck: {clip(clean(str(error)), 160)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UsageError("the file is not JSON; save a report with: envcheck check --format json") from None
    except RecursionError:
        raise UsageError("the file is JSON nested too deeply to be a report of envcheck") from None
