"""Join the TOML files of a matrix folder into one plain document, as the wheel carries it.

The build of the wheel runs this with nothing but the standard library (and tomli on Python 3.10), so nothing else is
imported here; ``load`` checks the types of what comes out.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from envcheck.errors import MatrixError

FIELDS = {
    "architecture": "architectures",
    "capability": "capabilities",
    "driver": "drivers",
    "cuda": "cuda",
    "gpu": "gpus",
    "rate": "rates",
    "efficiency": "efficiencies",
    "link": "links",
    "torch": "torch",
    "release": "releases",
    "flaw": "flaws",
    "variable": "variables",
    "role": "roles",
    "conda": "conda",
    "product": "products",
    "secret": "secrets",
}
"""The field of ``Tables`` for each table of rows in the TOML files."""

COMPILED = "compiled.json"

GENERATED = "generated"
"""The table that says which rows ``envcheck matrix refresh`` regenerates; no knowledge."""


def compile_folder(folder: Path) -> dict[str, Any]:
    """Everything in the TOML files of ``folder``, as ``Tables`` in plain lists and dictionaries.

    A row's ``source`` becomes a list of ``file/key``. Raises MatrixError naming file and row.
    """
    document: dict[str, Any] = {"sources": {}, **{field: [] for field in FIELDS.values()}}
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise MatrixError(f"{folder}: no matrix here: it has no TOML file")
    for path in paths:
        _add_file(document, path)
    return document


def _add_file(document: dict[str, Any], path: Path) -> None:
    content = _read(path)
    content.pop(GENERATED, None)
    sources = content.pop("sources", {})
    if not isinstance(sources, dict):
        raise MatrixError(f"{path.name}: [sources] is not a table")
    document["sources"].update({f"{path.stem}/{key}": source for key, source in sources.items()})
    for table, rows in content.items():
        if table not in FIELDS:
            raise MatrixError(f"{path.name}: [[{table}]] is no table of the matrix; they are {', '.join(FIELDS)}")
        if not isinstance(rows, list):
            raise MatrixError(f"{path.name}: [{table}] must be written [[{table}]]")
        for number, row in enumerate(rows, start=1):
            place = f"{path.name}: [[{table}]] number {number}"
            document[FIELDS[table]].append(_row(row, place, path.stem, sources))


def _row(row: Any, place: str, stem: str, sources: dict[str, Any]) -> dict[str, Any]:
    keys = row.get("source") if isinstance(row, dict) else None
    if isinstance(keys, str):
        keys = [keys]
    if not isinstance(keys, list) or not keys:
        raise MatrixError(f"{place}: the row names no source")
    for key in keys:
        if key not in sources:
            raise MatrixError(f"{place}: there is no [sources.{key}] in this file")
    return {**row, "source": [f"{stem}/{key}" for key in keys]}


def _read(path: Path) -> dict[str, Any]:
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        content: dict[str, Any] = toml.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise MatrixError(f"{path.name}: cannot be read as TOML: {error}") from error
    return content
