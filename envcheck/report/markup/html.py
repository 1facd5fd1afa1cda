"""HTML that is safe by construction: all but the tags made here is cleaned, cut and escaped. And its style sheet."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable
from html import escape

from envcheck.text.clean import clean

LONGEST = 800
"""Characters of one foreign text that are shown."""

_PAGE = re.compile(r"https://[A-Za-z0-9.-]+(?::\d+)?(?:[/?#][A-Za-z0-9._~:/?#\[\]@!$&()*+,;=%-]*)?")
_VOID = frozenset({"meta", "br", "hr"})


class Markup(str):
    """HTML that was made by ``tag``."""

    __slots__ = ()


def tag(name: str, /, *children: str | Markup, **attributes: str) -> Markup:
    """An element; the names of attributes are ours (``class_`` is ``class``), their values may be anybody's."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(value), quote=True)}"'
        for key, value in attributes.items()
        if value
    )
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{join(children)}</{name}>")


def join(children: Iterable[str | Markup]) -> Markup:
    """Several in a row."""
    return Markup("".join(child if isinstance(child, Markup) else text(child) for child in children))


def text(foreign: str, most: int = LONGEST) -> Markup:
    """``foreign`` as text."""
    left_out = len(foreign) - most
    shown = clean(foreign[:most]) + (f" … ({left_out:,} more characters)" if left_out > 0 else "")
    return Markup(escape(shown, quote=True))


def link(title: str, address: str) -> Markup:
    """A link to a page, where ``address`` is one that can be trusted to be no more than that; else both as text."""
    if not is_page(address):
        return join([title, f" ({address})" if address else ""])
    return tag("a", title, href=address, rel="noreferrer noopener")


def is_page(address: str) -> bool:
    """Whether ``address`` is a plain https address and no more."""
    return len(address) <= LONGEST and _PAGE.fullmatch(address) is not None


def document(title: str, content: Markup, style: str = "", script: str = "") -> str:
    """A whole document that loads nothing; of scripts, the policy lets ``script`` alone run, by its digest."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    scripts = f"script-src 'sha256-{digest}'; " if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {scripts}base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title[:120]),
        Markup(f"<style>{STYLE}{style}</style>"),
    )
    body = tag("body", tag("main", content), *([Markup(f"<script>{script}</script>")] if script else []))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def chip(status: str, sign: str, word: str) -> Markup:
    """A status by its sign and word; the colour says it a third time."""
    return tag("span", tag("i", sign, aria_hidden="true"), f" {word}", class_=f"chip {status}")


STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2330; --soft: #5b6577; --line: #dfe3ea; --well: #f0f2f6;
  --pass: #1a7f43; --pass-bg: #e3f5ea; --warn: #8a5a00; --warn-bg: #fdf1d3; --fail: #b3261e; --fail-bg: #fde7e5;
  --unknown: #6d3fb0; --unknown-bg: #efe7fb; --note: #1f5fa8; --note-bg: #e4effb; --skipped: #5b6577;
  --skipped-bg: #eceff3; --bar: #d9dee7; --band: #b9c3d3;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f131a; --card: #171d27; --ink: #e4e9f1; --soft: #98a3b5; --line: #2a3340; --well: #10151d;
    --pass: #58c98a; --pass-bg: #12301f; --warn: #f0b545; --warn-bg: #35290c; --fail: #ff8a80; --fail-bg: #3d1715;
    --unknown: #c19df0; --unknown-bg: #2a1d40; --note: #7db7f2; --note-bg: #13283f; --skipped: #98a3b5;
    --skipped-bg: #222a36; --bar: #2a3340; --band: #465265;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
main { max-width: 1040px; margin: 0 auto; padding: 28px 20px 48px; }
h1 { font-size: 25px; line-height: 1.25; margin: 10px 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 13px; text-transform: uppercase; letter-spacing: 0.08em; color: var(--soft); margin: 34px 0 10px; }
h3 { font-size: 16px; margin: 0; }
p { margin: 6px 0; }
a { color: var(--note); text-underline-offset: 2px; }
h1, h3, p, li, td, th, dd, summary { overflow-wrap: anywhere; }
code, pre, .rule, .mono { font: 13px/1.5 ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, monospace; }
code, .value, td, dd, .rule { unicode-bidi: isolate; overflow-wrap: anywhere; }
pre {
  margin: 8px 0; padding: 11px 14px; background: var(--well); border: 1px solid var(--line); border-radius: 8px;
  white-space: pre-wrap; overflow-wrap: anywhere; user-select: all;
}
.meta { color: var(--soft); font-size: 13.5px; }
.rule { color: var(--soft); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 18px 20px; }
.card + .card { margin-top: 12px; }
.hero { border-left: 6px solid var(--tone); padding: 20px 24px; }
.chip {
  display: inline-block; padding: 1px 10px; border-radius: 999px; font-weight: 650; font-size: 12.5px;
  white-space: nowrap; color: var(--tone); background: var(--tint);
}
.chip i { font-style: normal; font-weight: 800; }
.hero > .chip { font-size: 14px; padding: 3px 14px; }
.pass { --tone: var(--pass); --tint: var(--pass-bg); } .warn { --tone: var(--warn); --tint: var(--warn-bg); }
.fail { --tone: var(--fail); --tint: var(--fail-bg); } .note { --tone: var(--note); --tint: var(--note-bg); }
.unknown { --tone: var(--unknown); --tint: var(--unknown-bg); }
.skipped { --tone: var(--skipped); --tint: var(--skipped-bg); }
.finding { border-left: 4px solid var(--tone); }
.finding header { display: flex; gap: 10px; align-items: baseline; flex-wrap: wrap; }
.finding header h3 { flex: 1 1 300px; }
dl { display: grid; grid-template-columns: 74px 1fr; gap: 5px 14px; margin: 12px 0 0; }
dt { color: var(--soft); font-size: 13px; padding-top: 1px; } dd { margin: 0; }
dd p:first-child { margin-top: 0; }
.risk { color: var(--warn); font-size: 13.5px; }
.tower { display: flex; flex-direction: column; gap: 6px; }
.floor {
  display: grid; grid-template-columns: 108px 104px 1fr; gap: 4px 16px; align-items: center; padding: 12px 18px;
  background: var(--card); border: 1px solid var(--line); border-left: 6px solid var(--tone); border-radius: 9px;
}
.floor b { font-weight: 650; }
.floor > .chip { justify-self: start; }
.floor.fail { background: var(--fail-bg); } .floor.warn { background: var(--warn-bg); }
.floor.unknown { background: var(--unknown-bg); }
.floor.fail .chip, .floor.warn .chip, .floor.unknown .chip { background: var(--card); }
.ground { color: var(--soft); font-size: 12.5px; text-align: center; padding-top: 2px; }
.figures { display: grid; gap: 7px; margin-top: 12px; }
.figure {
  display: grid; grid-template-columns: minmax(200px, 1.3fr) 104px minmax(140px, 1.4fr) 190px; gap: 2px 14px;
  align-items: center; font-size: 14px;
}
.figure .value { text-align: right; font-weight: 650; font-variant-numeric: tabular-nums; white-space: nowrap; }
.figure .share { color: var(--soft); font-size: 13px; font-variant-numeric: tabular-nums; }
.figure .share .chip { margin-left: 4px; }
.plain { columns: 2 320px; column-gap: 34px; margin: 16px 0 0; padding: 12px 0 0; border-top: 1px solid var(--line); }
.plain > div { display: flex; gap: 10px; justify-content: space-between; font-size: 14px; break-inside: avoid; }
.plain .value { font-weight: 650; white-space: nowrap; font-variant-numeric: tabular-nums; }
.plain .share { color: var(--soft); font-size: 13px; }
.bar { width: 100%; height: 15px; display: block; }
.bar .all { fill: var(--bar); } .bar .band { fill: var(--band); } .bar .got { fill: var(--tone); }
.bar .edge { fill: var(--ink); }
.legend { color: var(--soft); font-size: 13px; margin-top: 14px; }
details { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin-top: 10px; }
summary { cursor: pointer; padding: 11px 18px; font-weight: 600; }
details > .inside { padding: 0 18px 14px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; }
td, th { text-align: left; vertical-align: top; padding: 6px 10px 6px 0; border-top: 1px solid var(--line); }
tr:first-child > td { border-top: 0; }
.wide { overflow-x: auto; margin-bottom: 18px; }
.wide td, .wide th { min-width: 84px; overflow-wrap: break-word; } .wide thead th { border-top: 0; }
.wide td:nth-child(n + 3) { min-width: 108px; }
td.word { width: 108px; } td.name { width: 34%; }
ul { margin: 6px 0; padding-left: 20px; }
footer { margin-top: 34px; color: var(--soft); font-size: 13px; }
@media (max-width: 720px) {
  .floor, .figure { grid-template-columns: 1fr auto; }
  .floor > span:last-child, .figure > .bar, .figure > .share { grid-column: 1 / -1; }
  dl { grid-template-columns: 1fr; gap: 0; } dt { margin-top: 8px; }
  .wide td, .wide th { min-width: 56px; } .wide td:nth-child(n + 3) { min-width: 80px; }
}
@media print {
  body { background: #fff; } main { padding: 0; } .wide { overflow: visible; }
  .card > *, .floor { break-inside: avoid; } h1, h2, h3 { break-after: avoid; }
}
"""
