r"""Keep what is printed from commanding a build server, which reads its logs for ``::error::``, ``##vso[…]`` and such.

Everything that envcheck prints or writes for readers passes through ``inert`` once it is rendered, so that no renderer
has to think of it. One character of such a command is escaped: visibly in text, without effect for a parser in JSON,
XML and HTML. What holds no command stays as it is.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from envcheck.text.lazy import lazy_pattern

Syntax: TypeAlias = Literal["text", "markdown", "json", "markup", "workflow"]
"""``workflow`` is text whose lines are annotations for GitHub: those commands stay, and no other does."""

_ESCAPES: dict[Syntax, str] = {
    "text": r"\x{:02x}",
    "workflow": r"\x{:02x}",
    "markdown": r"\x{:02x}",
    "json": r"\u{:04x}",
    "markup": "&#{};",
}

_LINE = lazy_pattern(r"(?:[\x00-\x20\x7f]|\x1b\[[\d;]*[mK]|[^\x00-\x7f])*:(?=:)")
"""``::error::`` of GitHub and Forgejo. Readers skip blanks before it, some colours too or characters without weight."""
_ANNOTATION = lazy_pattern(r"::(?:error|warning|notice) (?:file=[^:,\n]+,(?:line=\d+,)?)?title=[^:,\n]+::")
"""A line as the format ``github`` writes it."""
_ANYWHERE = lazy_pattern(r"#(?=#(?:\[|vso|teamcity))", re.IGNORECASE)
"""``##[group]``, ``##vso[task.…]``, ``##teamcity[…]``."""
_SECTION = lazy_pattern(r"section_(?:start|end):(?=\d)")  # GitLab's


def inert(text: str, syntax: Syntax = "text") -> str:
    """``text``, which is written in ``syntax``, without a command for a build server."""

    def escaped(match: re.Match[str]) -> str:
        return match[0][:-1] + _ESCAPES[syntax].format(ord(match[0][-1]))

    def commands(line: str) -> bool:
        return bool(_LINE.match(line)) and not (syntax == "workflow" and _ANNOTATION.match(line))

    if "##" in text:
        text = _ANYWHERE.sub(escaped, text)
    if "section_" in text:
        text = _SECTION.sub(escaped, text)
    if "::" in text:
        text = "".join(_LINE.sub(escaped, line, 1) if commands(line) else line for line in text.splitlines(True))
    return text
