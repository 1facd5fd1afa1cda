"""A document as HTML that is safe by construction: all but its elements is cleaned, cut and escaped.

And foreign text in Markdown: as prose, as code, and as a block, none of which it can leave.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from envcheck.report.document import LONGEST, Node, cut, tag
from envcheck.text.clean import clean, shell_line
from envcheck.text.wrap import clip

_COMMAND = 4000
"""Characters of the longest command that is shown."""


def html(*nodes: Node) -> str:
    """Parts of a document as HTML."""
    out: list[str] = []
    _write(nodes, out)
    return "".join(out)


def _write(nodes: Iterable[Node], out: list[str]) -> None:
    for node in nodes:
        if isinstance(node, str):
            out.append(escape(clean(cut(node, LONGEST)), quote=True))
            continue
        if node.name == "pre":
            line = shell_line(tuple(map(str, node.children)))
            whole = f"<pre><code>{escape(clean(line))}</code></pre>"
            out.append(whole if len(line) <= _COMMAND else f"<p>(a command of {len(line):,} characters)</p>")
            continue
        told = (
            f' {key.rstrip("_").replace("_", "-")}="{escape(clean(value), quote=True)}"'
            for key, value in node.attributes.items()
            if value
        )
        out.append(f"<{node.name}{''.join(told)}>")
        if node.name not in {"meta", "br", "hr"}:
            _write(node.children, out)
            out.append(f"</{node.name}>")


def whole_page(title: str, content: Iterable[Node], style: str = "", script: str = "") -> str:
    """A whole document that loads nothing; of scripts, the policy lets ``script`` alone run, by its digest."""
    import base64
    import hashlib

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"script-src 'sha256-{digest}'; " if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {scripts}base-uri 'none'; form-action 'none'"
    shared = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
    head = html(
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title[:120]),
    )
    head = f"<head>{head}<style>\n{shared}{style}</style></head>"
    end = f"<script>{script}</script>" if script else ""
    return f'<!DOCTYPE html>\n<html lang="en">{head}<body>{html(tag("main", *content))}{end}</body></html>\n'


_LONGEST = 240
_SPECIAL = re.compile(r"([\\`*_\[\]|~$!])")
_REFERENCE = re.compile(r"([@#])(?=\w)|(?<=\w)(:)(?=//)|(?i:(?<=\bgh)(-)(?=\d)|(?<=\bwww)(\.))")
"""Where a forge would make a mention, a reference or a link of plain words."""


def prose(text: str, most: int = _LONGEST) -> str:
    """``text`` as running text that is nothing but text."""
    shown = _short(text, most).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _REFERENCE.sub(lambda match: f"{match[0]}<!-- -->", _SPECIAL.sub(r"\\\1", shown))


def code(text: str, most: int = _LONGEST) -> str:
    """``text`` as a code span, which may stand in a cell of a table."""
    shown = _short(text, most).replace("|", "\N{BROKEN BAR}")
    ticks = "`" * (_longest_run(shown) + 1)
    gap = " " if shown.startswith(("`", " ")) or shown.endswith(("`", " ")) else ""
    return f"{ticks}{gap}{shown}{gap}{ticks}" if shown.strip() else "``` ```"


def fence(command: Sequence[str], longest: int) -> str:
    """``command`` as a block to copy; a command is shown whole or not at all."""
    line = shell_line(command)
    if len(line) > longest:
        return f"(a command of {len(line):,} characters; the report has it whole)"
    ticks = "`" * max(3, _longest_run(line) + 1)
    return f"{ticks}sh\n{line}\n{ticks}"


def _short(text: str, most: int) -> str:
    return clip(clean(text.strip()[: 4 * most]), most)


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
