"""A fleet report as JSON lines, written and read again. What is read is untrusted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.record import FLEET_SCHEMA_VERSION, Fleet, Head, Record
from envcheck.report.saved.schema import described
from envcheck.text.clean import clean
from envcheck.text.encode import encode
from envcheck.text.wrap import clip

MOST_BYTES = 512 << 20
"""A fleet of 10,000 nodes with 100 figures each takes some 60 MB."""
_MOST_LINES = 2_000_000


def write(fleet: Fleet) -> Iterator[str]:
    """The lines of ``fleet``, each with its end."""
    for record in fleet.records():
        yield encode(record) + "\n"


def is_fleet(content: bytes) -> bool:
    """Whether ``content`` begins as a fleet report does."""
    return content[:400].lstrip().startswith(b'{"record":"fleet"')


def read(content: bytes) -> Fleet:
    """The fleet report in ``content``; raise UsageError where it is none."""
    if len(content) > MOST_BYTES or content.count(b"\n") > _MOST_LINES:
        raise UsageError(f"the fleet report has more than {MOST_BYTES >> 20} MiB or {_MOST_LINES:,} lines")
    if not is_fleet(content):
        raise UsageError("this is not a fleet report; save one with: envcheck fleet … -o jsonl:fleet.jsonl")
    try:
        found = msgspec.json.Decoder(Record).decode_lines(content)
    except msgspec.ValidationError as error:
        raise UsageError(f"this is not a fleet report of this version: {clip(clean(str(error)), 160)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise UsageError("the fleet report is cut off or damaged: a line is not JSON") from None
    heads = [record for record in found if isinstance(record, Head)]
    if len(heads) != 1 or heads[0].schema_version.partition(".")[0] != FLEET_SCHEMA_VERSION.partition(".")[0]:
        raise UsageError(f"the fleet report has another schema than {FLEET_SCHEMA_VERSION}")
    return Fleet.of(heads[0], found)


def placed(fleet: Fleet, file: str) -> Fleet:
    """``fleet``, read from ``file``: the reports of its nodes may have moved together with it."""
    folder = Path(file).expanduser().parent
    nodes = []
    for node in fleet.nodes:
        # As it was given, from here; else from the folder of the file.
        is_here = not node.path or os.path.isabs(node.path) or os.path.exists(node.path)  # noqa: PTH110, PTH117  10,000
        nodes.append(node if is_here else msgspec.structs.replace(node, path=str(folder / node.path)))
    return msgspec.structs.replace(fleet, nodes=tuple(nodes))


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a line of a fleet report."""
    return described(Record, "fleet", FLEET_SCHEMA_VERSION, ": a line")
