"""The report for an issue or a chat, in GitHub's Markdown: what matters on top, the rest folded away.

Every text from the machine is cleaned, cut and escaped: it can make no heading, link, image, table cell or mention.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from envcheck.model.checks import Report
from envcheck.redact import HOME, is_redacted
from envcheck.report import Format, Options
from envcheck.report.document import Node, Tag, code, fence, is_page, prose, section
from envcheck.report.page.contents import Contents, Extent
from envcheck.text.lazy import lazy_pattern

FORMAT = Format(
    shows="for an issue or a chat: verdict, cause, fix, stack, findings, versions",
    suffix="md",
    syntax="markdown",
    shared=True,
)

_EXTENT = Extent(targets=20, gpus=8, findings=12, evidence=5, ways=3, rows=60, whole=False)
_SIGNS = {
    "fail": "\N{CROSS MARK}",
    "warn": "\N{WARNING SIGN}\N{VARIATION SELECTOR-16}",
    "unknown": "\N{BLACK QUESTION MARK ORNAMENT}",
    "note": "\N{INFORMATION SOURCE}\N{VARIATION SELECTOR-16}",
    "pass": "\N{WHITE HEAVY CHECK MARK}",
    "skipped": "\N{EN DASH}",
}
_PLAIN = lazy_pattern(r"[\w:/.#?=%~+,@-]+", re.ASCII)
"""An address that Markdown takes as it is."""
_ADDRESS = lazy_pattern(r"(https://[^\s<>\"')]*[\w/])")


def render(report: Report, options: Options) -> str:
    """``report`` as Markdown of less than 60,000 characters, which is what an issue takes."""
    found, home = Contents(report, _EXTENT), HOME if is_redacted(report) else options.home
    writer = _Writer(f"{home}/" if home else "")
    verdict, title, about = found.verdict()
    parts = [
        *section("Targets", *found.targets()),
        *found.cause(),
        *section("The stack", *found.stack()),
        *section("Findings", *found.findings()),
        *found.details(),
        found.footer(),
    ]
    head = f"### {writer.inline([verdict])}: {writer.inline([title])}"
    return f"{head}\n\n{writer.written([about, *parts])}\n"


class _Writer:
    """Writes elements, with ``~`` for the home folder but in commands: a shell does not expand it within quotes."""

    def __init__(self, home: str) -> None:
        self._home = home

    def written(self, nodes: Iterable[Node]) -> str:
        """Parts of a document, a blank line between them; items of a list follow each other."""
        whole, above = "", ""
        for part in self._parts(nodes):
            whole += ("\n" if above.startswith("- ") and part.startswith("- ") else "\n\n" if above else "") + part
            above = part
        return whole

    def _parts(self, nodes: Iterable[Node]) -> Iterator[str]:
        for node in nodes:
            match node:
                case Tag("h2" | "h3", children):
                    yield f"**{self.inline(children)}**"
                case Tag("header" | "li", children):
                    yield f"- {' '.join(filter(None, (self.inline([child]).strip() for child in children)))}"
                case Tag("details", (summary, *children)):
                    title, inside = self.inline([summary]), self.written(children)
                    yield f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"
                case Tag("footer", children):
                    yield f"<sub>{self.inline(children)}</sub>"
                case Tag("dl"):
                    yield from self._facts(node)
                case Tag("table"):
                    yield self._table([*node.all("tr")], headed=any(node.all("th")))
                case Tag("div", _, {"class_": "tower"}):
                    yield self._table(node.elements)
                case Tag("pre", argv):
                    yield fence(tuple(map(str, argv)), 2000)
                case Tag("div" | "section" | "article" | "ul", children):
                    yield from self._parts(children)
                case _:
                    yield self.inline([node])

    def _facts(self, facts: Tag) -> Iterator[str]:
        """Each fact as an item; what has commands as paragraphs, each above its command."""
        hosts = {link.attributes["href"].split("/")[2] for link in facts.all("a")}
        for label, values in zip(facts.elements[::2], facts.elements[1::2], strict=True):
            start = f"**{self.inline([label])}:**" if any(values.all("pre")) else f"- {self.inline([label])}:"
            for fact in values.elements:
                yield from self._parts([fact]) if fact.name == "pre" else [f"{start} {self.inline([fact], hosts)}"]

    def _table(self, rows: Sequence[Tag], *, headed: bool = False) -> str:
        lines = [f"| {' | '.join(self.inline([cell]) for cell in row.children)} |" for row in rows]
        columns = len(rows[0].children)
        lines = lines if headed else [f"|{' |' * columns}", *lines]
        return "\n".join([lines[0], "|---" * columns + "|", *lines[1:]])

    def inline(self, nodes: Iterable[Node], hosts: Collection[str] = ()) -> str:
        """A text; in it, addresses on these hosts stay as they are."""
        return "".join(self._piece(node, hosts) for node in nodes)

    def _piece(self, node: Node, hosts: Collection[str]) -> str:
        match node:
            case str():
                parts = _ADDRESS.split(node.replace(self._home, "~/") if self._home else node)
                own = [_PLAIN.fullmatch(part) and is_page(part) and part.split("/")[2] in hosts for part in parts]
                return "".join(part if plain else _spaced(part) for part, plain in zip(parts, own, strict=True))
            case Tag("span", (_, word), {"class_": str(kind)}) if kind.startswith("chip "):
                return f"{_SIGNS[kind.removeprefix('chip ')]} {self.inline([word]).strip()}"
            case Tag("a", (str(title),), {"href": str(address)}):
                # What looks like an entity in an address stays as it is.
                page = address if _PLAIN.fullmatch(address) else f"<{address.replace('&', '&amp;')}>"
                return f"[{prose(title)}]({page})"
            case Tag("code", (str(text),)) | Tag("span", (str(text),), {"class_": "value" | "rule"}):
                return code(text.replace(self._home, "~/") if self._home else text)
        return self.inline(node.children, hosts)


def _spaced(text: str) -> str:
    """``text`` as prose, with the spaces around it."""
    before, after = (" " if text[:1] == " " else "", " " if text[-1:] == " " else "")
    return f"{before}{prose(text)}{after}" if text.strip() else text
