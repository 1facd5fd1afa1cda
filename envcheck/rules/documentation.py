"""The pages of rules: ``docs/rules/NAME.md``, beside the code in a checkout and inside the package in a wheel.

A page is read when it is shown. A check opens none: the addresses that its findings cite are in ``sources.json``, which
the build of the wheel makes of all pages, as it makes ``lines.json`` of the examples in ``matrix/errors.toml``. A
checkout has neither and reads the pages and the rows.

The build runs this module with the standard library alone (and tomli on Python 3.10).
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from envcheck.bundle import folder
from envcheck.text.lazy import lazy_pattern

FOLDER = "docs/rules"
SOURCES = "sources.json"
LINES = "lines.json"
ERRORS = "errors.toml"
RELATED = "Related rules"
_HEADING = lazy_pattern(r"^## (.+)\n\n", re.MULTILINE)
_LINK = lazy_pattern(r"^- \[(?P<title>.+)\]\((?P<address>https://\S+)\)$", re.MULTILINE)
_RULE_LINK = lazy_pattern(r"^- \[`(?P<name>[a-z-]+)`\]\((?P=name)\.md\)$", re.MULTILINE)


def page_of(name: str) -> str:
    """The page of a rule as its author wrote it, in Markdown; empty where there is none."""
    with suppress(FileNotFoundError):
        return (folder(FOLDER) / f"{name}.md").read_text(encoding="utf-8")
    return ""


def title_and_sections(page: str) -> tuple[str, dict[str, str]]:
    """The first sentence of a page, and the text below each heading."""
    title, *sections = _HEADING.split(page.partition("\n\n")[2])
    return title.strip(), dict(zip(sections[::2], (body.strip("\n") for body in sections[1::2]), strict=True))


def cited(page: str) -> list[tuple[str, str]]:
    """Title and address of each source of a page."""
    return [(found["title"], found["address"]) for found in _LINK.finditer(page.rpartition("## Sources\n")[2])]


def sources_of(name: str) -> list[tuple[str, str]]:
    """Title and address of what a rule's page cites."""
    compiled = _compiled(SOURCES)
    return cited(page_of(name)) if compiled is None else compiled.get(name, [])


def named_on(page: str) -> list[str]:
    """The rules that a page names as related."""
    return [found["name"] for found in _RULE_LINK.finditer(page.partition(f"## {RELATED}\n")[2])]


def lines_of(name: str) -> list[str]:
    """Error lines that name the problem, one of each kind, those of the row that is tried first in front."""
    compiled = _compiled(LINES)
    return (example_lines(folder("matrix") / ERRORS) if compiled is None else compiled).get(name, [])


@cache
def _compiled(file: str) -> dict[str, list[Any]] | None:
    with suppress(FileNotFoundError):
        from msgspec.json import decode  # noqa: PLC0415 - not there while the wheel is built

        return decode((folder(FOLDER) / file).read_bytes(), type=dict[str, list[Any]])
    return None


@cache
def example_lines(rows: Path) -> dict[str, list[str]]:
    """By problem, the first example of each row of error lines."""
    from envcheck.text.toml import loads  # noqa: PLC0415 - an installed package reads what is compiled

    found: dict[str, list[str]] = {}
    for row in sorted(loads(rows.read_text(encoding="utf-8"))["error"], key=lambda row: int(row["priority"])):
        found.setdefault(row["problem"], []).extend(row.get("examples", ())[:1])
    return found


def write_compiled_pages(pages: Path, matrix: Path, place: Path) -> None:
    """Write into ``place`` what the wheel carries of the ``pages`` and of the rows of ``matrix``."""
    import json  # noqa: PLC0415 - only the build writes it

    sources = {page.stem: cited(page.read_text(encoding="utf-8")) for page in sorted(pages.glob("*.md"))}
    for file, content in ((SOURCES, sources), (LINES, example_lines(matrix / ERRORS))):
        (place / file).write_text(json.dumps(content, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
