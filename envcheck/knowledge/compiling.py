"""Join the files of a matrix folder, rows by hand and generated ones, into one plain document, as the wheel carries it.

The build of the wheel runs this with nothing but the standard library (and tomli on Python 3.10), so nothing here may
import more; ``load`` checks the types of what comes out.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from envcheck.bounded import TooLargeError, read_file
from envcheck.bundle import DATE
from envcheck.errors import MatrixError
from envcheck.knowledge.names import canonical
from envcheck.knowledge.patterns import (
    expanded,
    fragments_of,
    index_of,
    needed_by,
    patterns_of,
    remedy_patterns,
    wording_texts,
)

BY_NAME = {
    "releases": "release",
    "wheels": "wheel",
    "requirements": "requirement",
    "extras": "extra-requirement",
    "published": "published",
}
"""The tables whose rows are decoded by the name of their component, by what generated lines call them."""

ERROR_INDEX, REMEDY_INDEX, FAILURE_INDEX, NEEDED = "error-index", "remedy-index", "failure-index", "needed-words"
"""The entries of the compiled matrix that are no table."""
PROJECTS = "generated/pypi.jsonl"
"""The file that ``envcheck matrix refresh`` alone writes: a line of name, source and rows for each project."""
_MOST_MARKS = 400_000  # Keys and items of that file: each takes up to a kilobyte. The shipped one has 170,000.
MOST_ENTRIES = 10_000
MOST_FILES = 200
MOST_BYTES = 8 << 20  # What a folder of rows may have: entries, TOML files, bytes. The shipped one has less than half

GENERATED = "generated"  # The table that says which rows of a file ``envcheck matrix refresh`` writes; no knowledge
EXAMPLES = ("examples", "examples_beside")
"""Lines that an ``[[error]]`` names, alone or beside another, that a ``[[reading]]`` reads, or texts that a
``[[remedy]]`` is for; for tests alone."""


def compile_folder(folder: Path, known: Collection[str] = ()) -> dict[str, Any]:
    """Everything in the files of ``folder``: the sources, and the rows of each table, in plain lists and dictionaries.

    A row's ``source`` becomes a list of ``file/key``. Raises MatrixError naming file and row, also of a table that is
    none of the ``known`` ones.
    """
    document: dict[str, Any] = {"sources": {}}
    left = MOST_BYTES
    for path in row_files(folder):
        data = _bytes(path, left)
        left -= len(data)
        if path.suffix == ".toml":
            _add_file(document, path, data, known)
        else:
            _add_projects(document, path, data)
    return document


def write_compiled(document: dict[str, Any], place: Path) -> None:
    """Write what ``compile_folder`` returned as the wheel carries it: rows of components by canonical name, so that
    those of one component can be decoded alone, and the indexes of the patterns of error lines and remedies. Beside it
    the newest day on which a source was read.
    """
    import json  # noqa: PLC0415 - only the build writes it

    grouped = dict(document)
    for table in BY_NAME.values():
        grouped[table] = {}
        for row in document.get(table, ()):
            grouped[table].setdefault(canonical(row["name"]), []).append(row)
    fragments = fragments_of(
        ((row["name"], row["pattern"]) for row in document["fragment"]),
        ((row["kind"], row["files"]) for row in document["family"]),
    )
    errors = sorted(document["error"], key=lambda row: row["priority"])
    lines = (patterns_of(row.get("lines", ()), row.get("codes", ()), fragments) for row in errors)
    grouped[ERROR_INDEX] = index_of(chain.from_iterable(lines))
    remedies = ((*row.get("lines", ()), row.get("beside", ""), row.get("unless", "")) for row in document["remedy"])
    grouped[REMEDY_INDEX] = index_of(remedy_patterns(remedies, fragments))
    grouped[FAILURE_INDEX] = index_of(pattern for row in document["failure"] for pattern in row["patterns"])
    words = wording_texts(
        ((row["name"], row["patterns"]) for row in document["wording"]),
        ((row["means"], row["said"]) for row in document["word"]),
    )
    said = (pattern for row in document["variable"] for pattern in (*row.get("said", ()), *row.get("hinted", ())))
    patterns = (*(expanded(words[row["name"]], words) for row in document["wording"]), *said)
    grouped[NEEDED] = {pattern: needed_by(pattern) for pattern in patterns}
    newest = max(source["read"] for source in document["sources"].values())
    place.with_name(DATE).write_text(f"{newest}\n", encoding="ascii")
    place.write_text(json.dumps(grouped, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")


def read_rows(path: Path, table: str) -> list[dict[str, Any]]:
    """The rows of one table of one TOML file, as ``compile_folder`` has them; raise MatrixError naming file and row."""
    document: dict[str, Any] = {"sources": {}}
    _add_file(document, path, _bytes(path, MOST_BYTES))
    rows: list[dict[str, Any]] = document.get(table, [])
    return rows


def row_files(folder: Path) -> list[Path]:
    """The TOML files of ``folder``, sorted, then the generated one; MatrixError where there are none, or too many."""
    found: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if entry.name.endswith(".toml"):
                    found.append(folder / entry.name)
                if number >= MOST_ENTRIES or len(found) > MOST_FILES:
                    raise MatrixError(
                        f"{folder}: a folder of rows has at most {MOST_FILES} TOML files among {MOST_ENTRIES} entries"
                    )
        found.sort()
        with suppress(FileNotFoundError, NotADirectoryError):
            (folder / PROJECTS).lstat()
            found.append(folder / PROJECTS)
    except OSError as error:
        raise MatrixError(f"{folder}: the folder cannot be read: {error.strerror or error}") from None
    if not found:
        raise MatrixError(f"{folder}: no matrix here: it has no TOML file")
    return found


def _add_file(document: dict[str, Any], path: Path, data: bytes, known: Collection[str] = ()) -> None:
    from envcheck.text.toml import loads  # noqa: PLC0415  an installed matrix is compiled, and a question loads no parser

    try:
        content = loads(data.decode())
    except ValueError as error:
        raise MatrixError(f"{path.name}: cannot be read as TOML: {error}") from error
    content.pop(GENERATED, None)
    sources = content.pop("sources", {})
    if not isinstance(sources, dict):
        raise MatrixError(f"{path.name}: [sources] is not a table")
    document["sources"].update({f"{path.stem}/{key}": source for key, source in sources.items()})
    for table, rows in content.items():
        if known and table not in known:
            raise MatrixError(f"{path.name}: [[{table}]] is not a table of the matrix; they are {', '.join(known)}")
        if not isinstance(rows, list):
            raise MatrixError(f"{path.name}: [{table}] must be written [[{table}]]")
        for number, row in enumerate(rows, start=1):
            place = f"{path.name}: [[{table}]] number {number}"
            keys = row.get("source") if isinstance(row, dict) else None
            keys = [keys] if isinstance(keys, str) else keys
            if not isinstance(keys, list) or not keys:
                raise MatrixError(f"{place}: the row names no source")
            if missing := [key for key in keys if key not in sources]:
                raise MatrixError(f"{place}: there is no [sources.{missing[0]}] in this file")
            left_out = EXAMPLES if table in ("error", "reading", "remedy") else ()
            entry = {key: value for key, value in row.items() if key not in left_out}
            for field in {"needs", "bundles"} & entry.keys():  # components, by what people call them
                if isinstance(entry[field], dict):
                    entry[field] = {canonical(key): value for key, value in entry[field].items()}
            document.setdefault(table, []).append({**entry, "source": [f"{path.stem}/{key}" for key in keys]})


def _add_projects(document: dict[str, Any], path: Path, data: bytes) -> None:
    import json  # noqa: PLC0415 - an installed package reads what is compiled

    if sum(map(data.count, (b"{", b"[", b",", b":"))) > _MOST_MARKS:
        raise MatrixError(f"{path.name}: more than {_MOST_MARKS:,} keys and items")
    for number, line in enumerate(data.splitlines(), start=1):
        place = f"{path.name}: line {number}"
        try:
            project = json.loads(line)
            name, source = project.pop("name"), {**project.pop("source")}
            key = f"{path.name}/" + name
            tables = {
                field: [{"name": name, **row, "source": [key]} for row in rows] for field, rows in project.items()
            }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise MatrixError(f"{place}: not a project as 'envcheck matrix refresh' writes it: {error}") from None
        if name != canonical(name):
            raise MatrixError(f"{place}: {name} stands for the component {canonical(name)}, whose rows these would be")
        if key in document["sources"] or not tables.keys() <= {*BY_NAME}:
            raise MatrixError(f"{place}: {name} has another line, or rows that are none of {', '.join(BY_NAME)}")
        document["sources"][key] = source
        for field, rows in tables.items():
            document.setdefault(BY_NAME[field], []).extend(rows)


def _bytes(path: Path, most: int) -> bytes:
    try:
        return read_file(path, most)
    except OSError as error:
        raise MatrixError(f"{path.name}: cannot be read: {error.strerror or error}") from None
    except TooLargeError:
        raise MatrixError(f"{path.name}: the rows of a folder have at most {MOST_BYTES >> 20} MiB") from None
