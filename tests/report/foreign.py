"""Reports in which every text of the machine carries something that tries to get out of it; made for tests."""

from hypothesis import strategies as st

from envcheck.model.checks import Report
from envcheck.redact.walk import Rewriting, rewritten

ATTACKS = (
    "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>'",
    "</style></title></pre></textarea><iframe src=//x.example>", "]]><!--<!DOCTYPE x [<!ENTITY e 'e'>]>&e;&lt;&#60;-->",
    "\x1b[2J\x1b]0;owned\x07\r\n\x9b31m\x00\x08", "\u202egnp.exe\u2066\u200b\ufeff\ufffe\uffff\ud800\udcff",
    "![i](https://x.example/i.png) [l](javascript:alert(1)) <https://x.example> @ada #1 GH-2",
    "`` ` ``` ~~~ | a | b |\n# heading\n- [ ] task\n\n    code\n***bold*** <b>x</b> $x$", "שלום עולם مرحبا",
    "漢" * 400 + "x" * 3_000,
)  # fmt: skip


def carrying(report: Report, attack: str) -> Report:
    """``report`` with ``attack`` at the end of every text."""
    return rewritten(report, Rewriting(lambda text: text + attack, lambda _, value: value + attack))


attacks = st.one_of(st.sampled_from(ATTACKS[:-1]), st.text(st.characters(), max_size=60))
"""Known tricks, and any short text whatever."""
