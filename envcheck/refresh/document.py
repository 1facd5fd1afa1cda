"""The files of the matrix to change, and the rows in them to regenerate.

Of a file of TOML, all that is not changed stays as it is, comments included. It names the rows to regenerate in tables:

    [generated.vllm]
    source = "vllm"                                       # key of the source that these rows cite
    needs = { torch = "torch", cudnn = "nvidia-cudnn-cu12", python = "Requires-Python" }

``needs`` lists the needs that METADATA provides, with the name of each there. A row that cites another source too was
completed by hand: it is never changed, only reported. ``[generated.torch]`` has no ``needs``: it is about the rows of
``[[torch]]``. Where the address of the source is no distribution but a list of NVIDIA's, ``kinds`` translates what that
calls the kinds of drivers. A file of lines has one for each project; all its rows are written anew, so that what
METADATA adds is never missed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import tomlkit
from tomlkit.container import Container
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Comment, Table, Whitespace

from envcheck.errors import MatrixError, UsageError
from envcheck.knowledge.compiling import BY_NAME, GENERATED


class Projects:
    """The file of which each line is a project: its name, its source, and all of its rows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.before = read_whole(path)
        self.lines: list[dict[str, Any]] = [json.loads(line) for line in self.before.encode().splitlines()]

    @property
    def text(self) -> str:
        kept = ("name", "source", *BY_NAME)
        lines = [{key: line[key] for key in kept if line.get(key)} for line in self.lines]
        lines.sort(key=lambda line: str(line["name"]))
        return "".join(f"{json.dumps(line, ensure_ascii=False, separators=(',', ':'))}\n" for line in lines)


class Document:
    """A file of TOML."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.before = read_whole(path)
            self.content = tomlkit.parse(self.before)
        except TOMLKitError as error:
            raise MatrixError(f"{path.name}: cannot be read as TOML: {error}") from None

    def rows(self, table: str) -> list[Table]:
        found = self.content.get(table, [])
        return list(found) if isinstance(found, AoT) else []

    def insert(self, table: str, position: int, row: Mapping[str, Any]) -> None:
        """Put a new row before the one at ``position``."""
        array = self.content.get(table)
        if not isinstance(array, AoT):
            array = tomlkit.aot()
            self.content.append(table, array)
        # A row in the style of hand-written ones: one key on each line, followed by an empty line.
        lines = [f"{key} = {_text_of(value)}" for key, value in row.items()]
        parsed = tomlkit.parse("\n".join((f"[[{table}]]", *lines, "", "")))[table]
        assert isinstance(parsed, AoT)  # noqa: S101 - it was written in the line above
        new = parsed[0]
        if position > 0:  # the comments after the previous row are about the one that they precede
            trivia = _cut_trivia(array[position - 1]) or [(None, Whitespace("\n"))]
            _last_container(array[position - 1]).body.append((None, Whitespace("\n")))
            _cut_trivia(new)
            _last_container(new).body.extend(trivia)
        array.insert(position, new)

    @property
    def text(self) -> str:
        return tomlkit.dumps(self.content)


def is_generated(path: Path) -> bool:
    """Whether rows of a file of TOML may be generated: tomlkit takes a second for some of those that are not."""
    return re.search(rf"^[ \t]*\[[ \t]*[\"']?{GENERATED}\b", read_whole(path), re.MULTILINE) is not None


def read_whole(path: Path) -> str:
    """The text with its original line ends."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def on_one_line(value: Any) -> Any:
    """A value as an item of TOML on one line."""
    return tomlkit.parse(f"value = {_text_of(value)}\n")["value"]


def assign(row: Table, field: str, value: Any) -> None:
    """Set a field of a row. Comments after it are about the next row, and stay there."""
    trivia = _cut_trivia(row)
    row[field] = on_one_line(value)
    _last_container(row).body.extend(trivia)


def _text_of(value: Any) -> str:
    if isinstance(value, int):
        return str(value).lower()
    if isinstance(value, str):
        return tomlkit.string(value).as_string()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_text_of(item)}" for key, item in value.items()) + " }"
    if value and isinstance(value[0], Mapping):
        return "[\n" + "".join(f"    {_text_of(item)},\n" for item in value) + "]"
    return "[" + ", ".join(_text_of(item) for item in value) + "]"


def _cut_trivia(row: Table) -> list[tuple[Any, Any]]:
    body = _last_container(row).body
    kept = len(body)
    while kept and body[kept - 1][0] is None and isinstance(body[kept - 1][1], Comment | Whitespace):
        kept -= 1
    cut = list(body[kept:])
    del body[kept:]
    return cut


def _last_container(row: Table) -> Container:
    """The container of the text at the end of a row: its last sub-table, if it ends with one."""
    container = row.value
    while True:
        keyed = [item for key, item in container.body if key is not None]
        if not keyed or not isinstance(keyed[-1], Table):
            return container
        container = keyed[-1].value


class Generated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows to regenerate for one distribution."""

    source: str
    needs: dict[str, str] = {}
    kinds: dict[str, str] = {}


class Work(msgspec.Struct, frozen=True):
    """One distribution whose rows are in one file."""

    name: str
    document: Document
    source: MutableMapping[str, Any]  # The source to date
    generated: Generated


class Project(msgspec.Struct, frozen=True):
    """One distribution whose rows are a line, which the index alone provides."""

    name: str
    document: Projects
    source: MutableMapping[str, Any]
    line: dict[str, Any]


class RowChange(msgspec.Struct, frozen=True):
    what: str  # The row: ``torch 2.6.0``
    how: str
    made: bool = True  # False if the difference is only reported, because the row was completed by hand


def find_work(documents: Sequence[Document | Projects], only: Sequence[str]) -> list[Work | Project]:
    """The rows to regenerate; raises UsageError if ``only`` names something that no file wants regenerated."""
    found: list[Work | Project] = []
    for document in documents:
        if isinstance(document, Projects):
            found += [Project(line["name"], document, line["source"], line) for line in document.lines]
            continue
        for name, content in document.content.get(GENERATED, {}).items():
            place = f"{document.path.name}: [{GENERATED}.{name}]"
            try:
                generated = msgspec.convert(content.unwrap() if hasattr(content, "unwrap") else content, Generated)
            except msgspec.ValidationError as error:
                raise MatrixError(f"{place}: {error}") from None
            sources = document.content.get("sources", {})
            if generated.source not in sources:
                raise MatrixError(f"{place}: there is no [sources.{generated.source}] in this file")
            found.append(Work(str(name), document, sources[generated.source], generated))
    names = sorted({work.name for work in found})
    if not names:
        raise UsageError(f"no file there has a table [{GENERATED}.NAME]: nothing in it is generated from an index")
    for name in only:
        if name not in names:
            raise UsageError(f"--only {name}: no rows of it are generated; they are of {', '.join(names)}")
    return [work for work in found if not only or work.name in only]


def sources_of(row: Mapping[str, Any]) -> list[str]:
    """The keys of the sources that a row cites."""
    source = row.get("source", [])
    return [source] if isinstance(source, str) else [str(key) for key in source]


def rewrite(
    project: Project, field: str, rows: Sequence[dict[str, Any]], telling_apart: Sequence[str]
) -> Iterator[RowChange]:
    """Put ``rows`` in the place of those of the project; yields the differences."""
    before = {_key(row, telling_apart): row for row in project.line.get(field, ())}
    after = {_key(row, telling_apart): row for row in rows}
    project.line[field] = rows
    for key in [*after, *(gone for gone in before if gone not in after)]:
        if before.get(key) != after.get(key):
            how = "written" if key in after else "taken away: its releases are in other rows now"
            yield RowChange(" ".join(part for part in (project.name, *key) if part), how)


def _key(row: Mapping[str, Any], telling_apart: Sequence[str]) -> tuple[str, ...]:
    values = (row.get(field, "") for field in telling_apart)
    return tuple(value if isinstance(value, str) else ",".join(value) for value in values)
