"""The pages of rules: ``docs/rules/NAME.md``, beside the code in a checkout and inside the package in a wheel.

A page is read when it is shown. A check opens none: the addresses that its findings cite are in ``sources.json``, which
the build of the wheel makes of all pages. A checkout has no such file and reads the pages of its findings.

The build runs this module with the standard library alone.
"""

from __future__ import annotations

import json
import re
import textwrap
from contextlib import suppress
from functools import cache
from pathlib import Path

from envcheck.bundle import folder

FOLDER = "docs/rules"
SOURCES = "sources.json"
_WIDEST = 100
"""Columns of a page."""
_HEADING = re.compile(r"^## (.+)\n\n", re.MULTILINE)
_LINK = re.compile(r"^- \[(?P<title>.+)\]\((?P<address>https://\S+)\)$", re.MULTILINE)


def page_of(name: str) -> str:
    """The page of a rule as its author wrote it, in Markdown; empty where there is none."""
    with suppress(FileNotFoundError):
        return (folder(FOLDER) / f"{name}.md").read_text(encoding="utf-8")
    return ""


def as_text(page: str) -> str:
    """A page as a terminal shows it: title, and indented below each heading what stands there."""
    title, *sections = _HEADING.split(page.partition("\n\n")[2])
    parts = [title.strip()]
    for heading, body in zip(sections[::2], sections[1::2], strict=True):
        text = "\n".join(map(_source_lines, cited(body))) if heading == "Sources" else body.strip("\n")
        parts.append(f"{heading}\n{textwrap.indent(text, '    ')}")
    return "\n\n".join(parts)


def _source_lines(source: tuple[str, str]) -> str:
    title, address = source
    one = f"{title}: {address}"
    return one if len(one) + 4 <= _WIDEST else f"{title}:\n  {address}"


def cited(page: str) -> list[tuple[str, str]]:
    """Title and address of each source of a page."""
    return [(found["title"], found["address"]) for found in _LINK.finditer(page.rpartition("## Sources\n")[2])]


def sources_of(name: str) -> list[tuple[str, str]]:
    """Title and address of what a rule's page cites."""
    compiled = _compiled_sources()
    return cited(page_of(name)) if compiled is None else compiled.get(name, [])


@cache
def _compiled_sources() -> dict[str, list[tuple[str, str]]] | None:
    with suppress(FileNotFoundError):
        found: dict[str, list[tuple[str, str]]] = json.loads((folder(FOLDER) / SOURCES).read_bytes())
        return found
    return None


def write_sources(pages: Path, place: Path) -> None:
    """Write what all ``pages`` cite as the wheel carries it."""
    found = {page.stem: cited(page.read_text(encoding="utf-8")) for page in sorted(pages.glob("*.md"))}
    place.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
