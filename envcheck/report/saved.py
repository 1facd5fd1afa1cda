"""Read a saved report, of a newer minor schema as well. Its contents are foreign: whoever shows them cleans them.

And figures kept for later comparison: the measurements of one run or several, less their conditions.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from envcheck.errors import ExitCode, UsageError
from envcheck.knowledge.performance.expected import at_work
from envcheck.model.checks import SCHEMA_VERSION, Report, Summary, Tool
from envcheck.model.snapshot import Environment, Listing, Measurement, Snapshot, items_in
from envcheck.redact import is_redacted
from envcheck.text.clean import clean
from envcheck.text.output import write_whole
from envcheck.text.wrap import clip

MOST_BYTES = 64 << 20
MOST_RECORDS = 500_000
MOST_VALUES = 4_000_000  # What a saved report may hold: a record takes some hundred bytes of memory
_LEAST_RECORD, _LEAST_VALUE = len("{},"), len("0,")
"""Bytes that the smallest one takes: a shorter text cannot hold too many, and need not be counted."""
MOST_JUDGED = {"GPUs": 1024, "frameworks": 1024, "error lines": 10_000, "measurements": 20_000}
"""Most records of each kind that every rule, or every known error line, is matched with."""


class _Head(msgspec.Struct, frozen=True):
    """What every report of every version begins with."""

    schema_version: str


def read_report(text: bytes, shared: SharedEnvironments | None = None) -> Report:
    """Decode a saved JSON report of our major schema version, any minor; raise UsageError for anything else.

    What ``shared`` has read before is not read again.
    """
    if len(text) > MOST_BYTES:
        raise UsageError(f"the saved report has more than {MOST_BYTES >> 20} MiB; that is not a report of envcheck")
    content = text.removeprefix(codecs.BOM_UTF8)
    if not content.strip():
        raise UsageError("the saved report is empty; save one with: envcheck check --format json")
    if content[:100].lstrip().startswith(b'{"collected"'):  # what a collector (``envcheck collect --script``) prints
        from envcheck.collect.script import read_collected

        found, snapshot = read_collected(content)
        report = Report(
            tool=Tool(version=found.collected, matrix=""),
            created=found.created,
            duration_s=found.duration_s,
            host=found.host,
            headline="Collected, and not judged",
            exit_code=ExitCode.UNKNOWN,
            verdict="unknown",
            summary=Summary(),
            snapshot=msgspec.structs.replace(snapshot, runs=()),
            probes=snapshot.runs,
        )
        return _checked(report)
    for sign, most, least in ((b"{", MOST_RECORDS, _LEAST_RECORD), (b",", MOST_VALUES, _LEAST_VALUE)):
        if len(content) > least * most and content.count(sign) > most:
            raise UsageError(f"the saved report has more than {MOST_RECORDS} records or {MOST_VALUES} values")
    if shared is not None:
        with suppress(msgspec.MsgspecError, ValueError, RecursionError):  # what is wrong is reported below
            report = shared.decode(content)
            _check_version(report.schema_version)
            return _checked(report)
    return _checked(_decode(content))


def _with_raw(kind: type[msgspec.Struct], **others: Any) -> type[msgspec.Struct]:
    """``kind`` with other types of some of its fields."""
    fields = [
        (each.name, others.get(each.name, each.type), *([] if each.required else [_default(each)]))
        for each in msgspec.structs.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields, kw_only=True)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    given = {"default": field.default, "default_factory": field.default_factory}
    return msgspec.field(**{name: value for name, value in given.items() if value is not msgspec.NODEFAULT})


class SharedEnvironments:
    """Reads reports of many machines that have the same environments: half of a report, which is read once.

    Such an environment is one object in all of these reports.
    """

    _MOST = 64

    def __init__(self) -> None:
        snapshot = _with_raw(Snapshot, environments=msgspec.Raw)
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_with_raw(Report, snapshot=snapshot | None))
        self._known: dict[bytes, Any] = {b"": None}

    def decode(self, content: bytes) -> Report:
        """The report in ``content``; raise MsgspecError or ValueError where it is none of this version."""
        found = self._decoder.decode(content)
        fields = {name: getattr(found, name) for name in found.__struct_fields__}
        if found.snapshot is not None:
            fields_of_snapshot = {name: getattr(found.snapshot, name) for name in found.snapshot.__struct_fields__}
            text = bytes(fields_of_snapshot["environments"] or b"")
            if text not in self._known:
                if len(self._known) > self._MOST:
                    self._known = {b"": None}
                self._known[text] = msgspec.json.decode(text, type=Listing[Environment] | None)
            fields["snapshot"] = Snapshot(**{**fields_of_snapshot, "environments": self._known[text]})
        return Report(**fields)


def _checked(report: Report) -> Report:
    """``report``, if every rule can be held against all of it."""
    snapshot = report.snapshot or Snapshot()
    listings = [environment.frameworks for environment in items_in(snapshot.environments) if environment.frameworks]
    log = snapshot.kernel.log if snapshot.kernel else None
    counts = {
        "GPUs": len(snapshot.gpus.items) if snapshot.gpus else 0,
        "frameworks": sum(len(listing.items) for listing in listings),
        "error lines": len(snapshot.observed_errors) + (len(log.messages or ()) if log else 0),
        "measurements": len(report.measurements),
    }
    for what, count in counts.items():
        if count > MOST_JUDGED[what]:
            raise UsageError(f"the saved report has {count} {what}; at most {MOST_JUDGED[what]} are read")
    return report


def _check_version(version: str) -> None:
    found = re.fullmatch(r"([0-9]{1,4})\.([0-9]{1,4})", version)
    if found is None:
        raise UsageError(f"the saved report has a schema_version of {version[:20]!r}, not one like {SCHEMA_VERSION}")
    ours, major, minor = int(SCHEMA_VERSION.partition(".")[0]), *found.groups()
    if int(major) == ours:
        return
    newer = f"and this envcheck reads up to {ours}.x; use a newer envcheck"
    older = f"which this envcheck ({SCHEMA_VERSION}) cannot read"
    raise UsageError(f"the saved report has schema {major}.{minor}, {newer if int(major) > ours else older}")


def _decode(content: bytes) -> Report:
    """Read ``content`` strictly, else as a report of a newer minor."""
    try:
        try:
            report = msgspec.json.decode(content, type=Report)
        except msgspec.ValidationError:
            _check_version(msgspec.json.decode(content, type=_Head).schema_version)
            known = _read(msgspec.json.decode(content), inspect.type_info(Report))
            try:
                return msgspec.convert(known, Report)
            except msgspec.ValidationError:
                return msgspec.convert(_without_claims(known), Report)
    except msgspec.ValidationError as error:
        # The reason quotes the file, and goes to a terminal.
        raise UsageError(f"the file is JSON, but not a report of envcheck: {clip(clean(str(error)), 160)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise UsageError("the file is not JSON; save a report with: envcheck check --format json") from None
    except RecursionError:
        raise UsageError("the file is JSON nested too deeply to be a report of envcheck") from None
    _check_version(report.schema_version)
    return report


NOT_KNOWN = {
    ("Report", "verdict"): "unknown", ("Target", "verdict"): "unknown", ("Check", "scope"): "node",
    ("Check", "layer"): "request", ("Check", "status"): "unknown", ("ProbeRun", "status"): "failed",
}  # fmt: skip
"""What stands for a word that is not known, in fields that need one. A record of another kind that needs one is left
out; fields that need none have a value for that.
"""


class _StrangeError(Exception):
    """A record with an unknown word cannot be shown without it."""


def _read(value: Any, kind: inspect.Type) -> Any:
    """``value``, plain JSON of a ``kind``, without the words that its enumerations do not have."""
    if isinstance(kind, inspect.UnionType):
        containers = {inspect.StructType: dict, inspect.DictType: dict, inspect.VarTupleType: list}
        fitting = [each for each in kind.types if isinstance(value, containers.get(type(each), ()))]
        return _read(value, fitting[0]) if len(fitting) == 1 else value
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        fields = {field.encode_name: field for field in kind.fields}
        read: dict[str, Any] = {}
        for key, field in ((key, fields[key]) for key in value if key in fields):
            if found := _item(value[key], field.type):
                read[key] = found[0]
            elif field.required and (kind.cls.__name__, field.name) not in NOT_KNOWN:
                raise _StrangeError
            elif field.required:
                read[key] = NOT_KNOWN[kind.cls.__name__, field.name]
        return read
    if isinstance(kind, inspect.VarTupleType) and isinstance(value, list):
        return [read for item in value for read in _item(item, kind.item_type)]
    if isinstance(kind, inspect.DictType) and isinstance(value, dict):
        return {key: _read(item, kind.value_type) for key, item in value.items()}
    return value


def _item(value: Any, kind: inspect.Type) -> list[Any]:
    """The item as it is read; nothing for a word in the place of a known one."""
    kinds = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    words = {word for each in kinds if isinstance(each, inspect.LiteralType) for word in each.values}
    if words and isinstance(value, str) and value not in words:
        return []
    try:
        return [_read(value, kind)]
    except _StrangeError:
        return []


def _without_claims(report: Any) -> Any:
    """``report`` without its verdicts: one that claims to pass, and does not say on what, proves nothing."""
    if not isinstance(report, dict):
        return report
    targets = report.get("targets")
    target_reports = [_without_claims(target) for target in targets] if isinstance(targets, list) else []
    claims = {"verdict": "unknown", "exit_code": int(ExitCode.UNKNOWN), "grounds": []}
    claimed = {key: value for key, value in claims.items() if isinstance(report.get(key), type(value))}
    return {**report, **claimed, **({"targets": target_reports} if target_reports else {})}


REPORT = re.compile(
    rb"""
      \{\s*"schema_version":\s*"[^"]*",\s*"tool":\s*\{\s*"name":\s*"envcheck"
    | \{\s*"\$schema":[^{]*"runs":\s*\[\s*\{\s*"tool":\s*\{\s*"driver":\s*\{\s*"name":\s*"envcheck"
    | \{\s*"\$schema":[^{]*"metadata":\s*\{\s*"tools":\s*\{\s*"components":\s*\[\s*\{\s*"name":\s*"envcheck"
    | \[\s*(?:\{\s*"description":\s*"(?:[^"\\]|\\.)*",\s*"check_name":|\]\s*\Z)
    | <\?xml[^>]*>\s*<testsuites\ name="envcheck"
    | <!DOCTYPE\ html>\s*<html[^>]*>\s*<head>(?:<meta[^>]*>\s*)*<title>envcheck:
    | \#\#\#\ \S+\ (?:PASS|WARN|FAIL|UNKNOWN):[ ]
    | Judged\ for\ [0-9]+\ targets?\n
    | (?:PASS|WARN|FAIL|UNKNOWN|\?)\ \ +\S
    | ENVCHECK\ [A-Z]+\ -[ ]
    | envcheck:[ ]
    | \#\ HELP\ envcheck_info[ ]
    | ::(?:notice|warning|error)\ [^\n]*title=envcheck%3A
    """,
    re.VERBOSE,
)
"""Of any format but ``node-problem-detector``: one line of any words, by which nothing can be told."""

MOST_RUNS = 16  # Runs that count: enough to tell how far they lie apart, few enough for a report with their figures


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


def save_baseline(report: Report, path: str) -> None:
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


def read_baseline(data: bytes, name: str) -> Baseline:
    """The figures of a file that ``save_baseline`` wrote, or of a JSON report; raise UsageError when it is neither.

    Raises NoFiguresError for a report that holds nothing to compare with.
    """
    try:
        is_report = msgspec.json.decode(data, type=_Version).schema_version is not None
        found = Baseline() if is_report else msgspec.json.decode(data, type=Baseline)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{name} is not a baseline that --save-baseline wrote: {error}") from None
    if not is_report:
        if found.baseline_version.partition(".")[0] != "1" or not found.measurements:
            raise UsageError(f"{name} is not a baseline of version 1 with figures in it")
        return found
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
