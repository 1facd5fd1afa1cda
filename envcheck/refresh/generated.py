"""The rows to regenerate: those that a file of TOML names in ``[generated.NAME]`` tables, and all of each project that
has a line of its own.

    [generated.vllm]
    source = "vllm"                                       # key of the source that these rows cite
    needs = { torch = "torch", cudnn = "nvidia-cudnn-cu12", python = "Requires-Python" }

``needs`` lists the needs that METADATA provides, with the name of each there. A row that cites another source too was
completed by hand: it is never changed, only reported. ``[generated.torch]`` has no ``needs``: it is about the rows of
``[[torch]]``. The rows of a line are written anew, so that what METADATA adds is never missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

import msgspec

from envcheck.compat.compiling import GENERATED
from envcheck.errors import MatrixError, UsageError
from envcheck.refresh.document import Document, Projects

TORCH = "torch"


class Generated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows to regenerate for one distribution."""

    source: str
    needs: dict[str, str] = {}


class Work(msgspec.Struct, frozen=True):
    """One distribution whose rows are in one file."""

    name: str
    document: Document
    source: MutableMapping[str, Any]
    """The source to date."""
    generated: Generated


class Project(msgspec.Struct, frozen=True):
    """One distribution whose rows are a line, which the index alone provides."""

    name: str
    document: Projects
    source: MutableMapping[str, Any]
    line: dict[str, Any]


class Change(msgspec.Struct, frozen=True):
    """A difference."""

    what: str
    """The row: ``torch 2.6.0``."""
    how: str
    made: bool = True
    """False if the difference is only reported, because the row was completed by hand."""


def find_work(documents: Sequence[Document | Projects], only: Sequence[str]) -> list[Work | Project]:
    """The rows to regenerate; raises UsageError if ``only`` names something that no file wants regenerated."""
    found: list[Work | Project] = []
    for document in documents:
        if isinstance(document, Projects):
            found += [Project(line["name"], document, line["source"], line) for line in document.lines]
            continue
        for name, content in document.content.get(GENERATED, {}).items():
            generated = _read(document, str(name), content)
            found.append(Work(str(name), document, document.content["sources"][generated.source], generated))
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
) -> Iterator[Change]:
    """Put ``rows`` in the place of those of the project; yields the differences."""
    before = {_key(row, telling_apart): row for row in project.line.get(field, ())}
    after = {_key(row, telling_apart): row for row in rows}
    project.line[field] = rows
    for key in [*after, *(gone for gone in before if gone not in after)]:
        if before.get(key) != after.get(key):
            how = "written" if key in after else "taken away: its releases are in other rows now"
            yield Change(" ".join(part for part in (project.name, *key) if part), how)


def _key(row: Mapping[str, Any], telling_apart: Sequence[str]) -> tuple[str, ...]:
    values = (row.get(field, "") for field in telling_apart)
    return tuple(value if isinstance(value, str) else ",".join(value) for value in values)


def _read(document: Document, name: str, content: Any) -> Generated:
    try:
        plain = content.unwrap() if hasattr(content, "unwrap") else content
        generated = msgspec.convert(plain, Generated)
    except msgspec.ValidationError as error:
        raise MatrixError(f"{document.path.name}: [{GENERATED}.{name}]: {error}") from None
    if generated.source not in document.content.get("sources", {}):
        raise MatrixError(
            f"{document.path.name}: [{GENERATED}.{name}]: there is no [sources.{generated.source}] in this file"
        )
    return generated
