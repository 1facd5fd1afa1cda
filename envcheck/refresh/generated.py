"""The rows that a file of the matrix wants regenerated: its ``[generated.NAME]`` tables.

    [generated.vllm]
    source = "vllm"                                       # key of the source that these rows cite
    needs = { torch = "torch", cudnn = "nvidia-cudnn-cu12", python = "Requires-Python" }

``needs`` lists the needs that METADATA provides, with the name of each there. A row that cites another source too was
completed by hand: it is never changed, only reported. ``[generated.torch]`` has no ``needs``: it is about the rows of
``[[torch]]``. With ``wheels = true`` all rows of ``[[wheel]]`` and of ``[[requirement]]`` of that name are written
anew, so that what METADATA adds is never missed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from envcheck.compat.compiling import GENERATED
from envcheck.errors import MatrixError, UsageError
from envcheck.refresh.document import Document

TORCH = "torch"


class Generated(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows to regenerate for one distribution."""

    source: str
    needs: dict[str, str] = {}
    wheels: bool = False
    """Whether the rows are those of ``[[wheel]]`` and ``[[requirement]]``, which the index alone provides."""


class Work(msgspec.Struct, frozen=True):
    """One distribution whose rows are in one file."""

    name: str
    document: Document
    generated: Generated


class Change(msgspec.Struct, frozen=True):
    """A difference."""

    what: str
    """The row: ``torch 2.6.0``."""
    how: str
    made: bool = True
    """False if the difference is only reported, because the row was completed by hand."""


def find_work(documents: Sequence[Document], only: Sequence[str]) -> list[Work]:
    """The rows to regenerate; raises UsageError if ``only`` names something that no file wants regenerated."""
    found = [
        Work(str(name), document, _read(document, str(name), content))
        for document in documents
        for name, content in document.content.get(GENERATED, {}).items()
    ]
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


def rewrite(work: Work, table: str, rows: Sequence[dict[str, Any]], telling_apart: Sequence[str]) -> Iterator[Change]:
    """Put ``rows`` in the place of all rows of the name; yields the differences."""
    there = work.document.take(table)
    before = {_key(row, telling_apart): row for row in there if row["name"] == work.name}
    after = {_key(row, telling_apart): row for row in rows}
    there[:] = sorted([*(row for row in there if row["name"] != work.name), *rows], key=lambda row: str(row["name"]))
    for key in [*after, *(gone for gone in before if gone not in after)]:
        if before.get(key) != after.get(key):
            how = "written" if key in after else "taken away: its releases are in other rows now"
            yield Change(" ".join(part for part in (work.name, *key) if part), how)


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
