"""Statements that a layout spreads over several lines, as one line each: ``GPU: RTX 5090``.

Issue forms have a heading and the answer below it, tables have the names in the first row, and JSON has a record of a
name and a version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_HEADING = re.compile(r"#{1,6} {0,3}(\S.{0,100})$")
_LABEL = re.compile(r"[A-Za-z][\w ,./()&'-]{1,60}[:?]?$")
_VALUE = re.compile(
    r"[`\"']?(?:[A-Za-z]{2,14}[ =:-]{1,2})?v?[0-9]{1,4}\.[0-9][\w.+-]{0,40}[`\"']?(?:\s?[/,(| ].{0,60})?$"
)
_BETWEEN = re.compile(r"\s{0,20}(?:`{3}\w{0,12}|[-=]{3,40}|<!--.{0,200}-->)?$")
_FEW_LINES = 3
"""Most empty lines and fences between a heading and its answer."""

_ELEMENT = re.compile(r"<([a-z_]{3,40})>([^<>]{1,100})</\1>$")

_RULE = re.compile(r"\|?(?: {0,4}:?-{2,60}:? {0,4}\|){1,20} {0,4}(?::?-{2,60}:?)?$")
_CSV = re.compile(r"[^,]{1,60}(?:,[^,]{1,60}){1,20}$")
_VERSION = re.compile(r"[0-9]\.[0-9]")
_LONGEST_ROW, _MOST_ROWS, _WIDEST = 600, 40, 20

_OUTER = re.compile(r"\s{0,12}(?:- )?[\"']?(?P<name>[A-Za-z][\w -]{1,30})[\"']?: ?\{?$")
_INNER = re.compile(
    r"\s{1,16}[\"']?version[\"']?: {0,4}[\"']?(?P<version>v?[0-9][\w.+-]{0,60})[\"']?,?$", re.IGNORECASE
)
_NESTED = re.compile(
    r"[\"'](?P<name>[A-Za-z][\w -]{1,30})[\"']\s{0,4}:\s{0,4}\{[^{}]{0,200}?[\"']version[\"']\s{0,4}:\s{0,4}"
    r"[\"'](?P<version>v?[0-9][\w.+-]{0,60})[\"']"
)
_RECORD = re.compile(r"\{[^{}]{1,800}\}")
_FIELD = re.compile(r"[\"'](name|package|version)[\"']\s{0,4}:\s{0,4}[\"']([\w.+-]{1,80})[\"']", re.IGNORECASE)
_LONGEST_TEXT, _MOST_RECORDS = 1 << 20, 2_000


def spread_statements(lines: Sequence[str]) -> Iterator[str]:
    """The statements of headings with answers, and of tables with the names in a row of their own."""
    for place, line in enumerate(lines):
        yield from _nested(line, lines[place + 1 : place + 1 + _FEW_LINES])
        below = lines[place + 1] if place + 1 < len(lines) else ""
        if element := _ELEMENT.match(line.strip()):
            yield f"{element[1].replace('_', ' ')}: {element[2]}"
        if _CSV.match(line) and _CSV.match(below) and not _VERSION.search(line):
            yield from _joined(line.split(","), below.split(","))
        elif place and _RULE.match(line.strip()):
            yield from _of_table(lines[place - 1], lines[place + 1 : place + 1 + _MOST_ROWS])
        elif heading := _heading(line):
            answer = _answer(lines[place + 1 : place + 2 + _FEW_LINES])
            if answer:
                yield f"{heading}: {answer}"


def _nested(line: str, below: Sequence[str]) -> Iterator[str]:
    """The versions of YAML's and JSON's objects that are named by their key."""
    if "ersion" in line:
        for nested in _NESTED.finditer(line):
            yield f"{nested['name']} version: {nested['version']}"
    outer = _OUTER.match(line) if line.endswith((":", "{")) else None
    inner = next((found for each in below if (found := _INNER.match(each))), None) if outer else None
    if outer and inner:
        yield f"{outer['name']} version: {inner['version']}"


def records(text: str) -> Iterator[tuple[str, str]]:
    """The names and versions of JSON objects that have both, as ``pip list --format=json`` prints them."""
    if '"' not in text and "'" not in text:
        return
    found = _RECORD.finditer(text[:_LONGEST_TEXT])
    for record, _ in zip(found, range(_MOST_RECORDS), strict=False):
        fields = {key.lower(): value for key, value in _FIELD.findall(record[0])}
        name = fields.get("name") or fields.get("package")
        if name and "version" in fields:
            yield name, fields["version"]


def _heading(line: str) -> str:
    """The words of a heading, or of a line that is a label alone; empty for any other line."""
    text = line.strip()
    found = _HEADING.match(text)
    words = found[1] if found else text if _LABEL.match(text) else ""
    return words.rstrip(" :?") if not _VERSION.search(words) else ""


def _answer(below: Sequence[str]) -> str:
    """The version in the first line below a heading that has words; empty where that is something else."""
    for line in below:
        if not _BETWEEN.match(line):
            return line.strip() if _VALUE.match(line.strip()) else ""
    return ""


def _of_table(head: str, rows: Sequence[str]) -> Iterator[str]:
    names = _cells(head)
    for row in rows:
        if "|" not in row:
            return
        yield from _joined(names, _cells(row))


def _joined(names: Sequence[str], values: Sequence[str]) -> Iterator[str]:
    if len(names) == len(values) and 1 < len(names) <= _WIDEST:
        for name, value in zip(names, values, strict=True):
            yield f"{name.strip()}: {value.strip()}"


def _cells(row: str) -> list[str]:
    return row[:_LONGEST_ROW].strip().strip("|").split("|")
