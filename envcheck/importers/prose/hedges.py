"""What a line says of this machine, and what of another one, of a wish, a requirement or a question.

Lines of programs that speak of what they want have other readers, which know their forms.
"""

from __future__ import annotations

import re
from functools import cache

from envcheck.importers.prose.languages import whole_words_for
from envcheck.text.lazy import lazy_pattern


@cache
def _of_another() -> re.Pattern[str]:
    return re.compile(whole_words_for("another"), re.IGNORECASE)


@cache
def another() -> re.Pattern[str]:
    """In a sentence, what makes it one about another machine, a wish or a question."""
    return re.compile(
        r"[?\uff1f]\s*$|\b(?:if|whether|when using|once|planning|plan to|buy(?:ing)?|bought for|consider\w*|wish|would|"
        r"could|should|might|(?<!not )(?<!cannot )(?<!n't )(?<!nothing )(?<!never )"
        r"works? (?:(?:fine|well|great|ok|correctly) )?(?:on|with|in)"
        r"|worked|tested|supports?|(?<!not )(?<!n't )(?<!longer )supported|"
        r"recommend\w*|compatible with|other (?:machine|pc|box|server|computer|gpus?|card)|"
        r"another (?:machine|pc|box|server|computer|gpu|card)|colleague|friend|"
        r"previously|earlier|formerly|used to|used (?=.{1,60}\bbefore\b)|"
        r"instead of|unlike|compared?|versus|vs|than|e\.g\.|for example|such as|"
        r"(?:fixed|solved|resolved) (?:it )?(?:by|with)|"
        r"not (?:on|with|an?)|no longer|since(?! then)|until|starting (?:with|from)|release notes|changelog|"
        r"blog(?:post)?|announce\w*)\b"
        rf"|{whole_words_for('another')}",
        re.IGNORECASE,
    )


AWAY = lazy_pattern(
    r"^(?!.*\b(?:same|also|too)\b).*\b(?:another|other|different|separate) (?:virtual |conda |python )?"
    r"(?:env|venv|environment|installation)\b",
    re.IGNORECASE,
)
"""A sentence about other packages than those that fail, however it labels their versions."""
ASKED_ABOUT = lazy_pattern(
    r"\b(?:use|used|using|run|running|work|support|install) (?:it |this )?(?:on|with|under|for) (?:a |an |my |the )?"
    r"[\w -]{0,50}\?\s*$",
    re.IGNORECASE,
)
"""A question whether something runs on a GPU, which is then the one in question: "can I use it on an RTX 5090?"."""


@cache
def own() -> re.Pattern[str]:
    """What tells that a question is about something that is here: "why is my RTX 4070 not used?"."""
    return re.compile(rf"\b(?:my|our)\b|{whole_words_for('own')}", re.IGNORECASE)


_STATED_FIRST = lazy_pattern(
    r"(\W{0,4}(?:(?:hi|hello|hey)\b,? ?)?(?:I|we|my|our)\b.{1,400}),([^,?]{3,200}\?\s*)$", re.IGNORECASE
)
"""A statement and the question that follows it: "I have an RTX 3060, why is it not used?"."""
_STATED_BEFORE = lazy_pattern(r"(.{2,400}\uff0c)([^\uff0c]{2,200}[?\uff1f]\s*)$")
"""The same, with the comma of Chinese."""


@cache
def _asked_for() -> re.Pattern[str]:
    """What stands before a version that is wanted, refused or gone."""
    return re.compile(
        r"(?:requires?|required|needs?|wants?|expects?|expected|minimum|at least|up to|below|above|or|"
        r"(?:built|compiled|build|compile|made|wheels?|intended|designed|optimi[sz]ed) (?:for|against)|"
        r"(?:upgrade|update|downgrade|switch|move|go|change|install|installing|reinstall|try|trying|tried) (?:to )?|"
        r"\bfrom|older|newer|later|drop(?:ped|s)? support for|instead of|replac(?:ed|ing|e)|removed?|"
        rf"uninstall(?:ed|ing)?|sold|without|before|after|until|since|{whole_words_for('wanted')}|<|(?<![-=])>|~|!)(?:=|\s)?\s?"
        r"(?:the |a |an |my |old |new |nvidia |version |of ){0,3}[\"'`(]{0,2}$",
        re.IGNORECASE,
    )


_SENTENCE = lazy_pattern(r"(?<=[.;!?])\s+|(?<=[。\uff01\uff1f\uff1b])|\bbut\b|\bhowever\b|\balthough\b", re.IGNORECASE)
PROGRAM = lazy_pattern(
    r"^\s*(?:File \"|Traceback|at 0x|#[0-9]+ |E:|W:|raise |assert )|[A-Za-z](?:Error|Exception|Warning)\b|"
    r"\b(?:ERROR|FATAL|WARN(?:ING)?)\b|\berror:|\bundefined symbol|cannot open shared|you have|found version|"
    r"was built for"
)
"""Lines of a program that speaks of what it wants: other readers know their forms."""


def before_error(text: str) -> str:
    """What somebody says before the error that he quotes in the same line; the whole text where that is not so."""
    raised = _QUOTED_ERROR.search(text)
    return text[: raised.start()] if raised else text


_QUOTED_ERROR = lazy_pattern(r"(?<=[\w).][:;,.] )(?:[a-z_]{1,30}\.){0,4}[A-Z][A-Za-z]{2,30}(?:Error|Exception): ")


def clauses(text: str, *, listed: bool) -> list[str]:
    if listed:
        return [text]
    found: list[str] = []
    for part in filter(None, _SENTENCE.split(text)):
        stated = _STATED_FIRST.match(part) or _STATED_BEFORE.match(part)
        found += stated.groups() if stated else (part,)
    return found


def is_list(text: str) -> bool:
    """Whether a line is a label with its value, a row of a table or an object, and no sentence."""
    bare = text.strip(" \t-*•#>`|+")
    if len(bare) <= _SHORT and len(bare.split()) <= _FEW and not _ENDS.search(bare):
        # A sentence of a language without blanks between words has few of them too.
        return not _of_another().search(bare)
    return bare.startswith(("{", "[", '"', "'")) or text.count("|") >= _BARS or "\t" in text.strip() or "  " in bare


_SHORT, _FEW, _BARS = 60, 4, 2
_ENDS = lazy_pattern(r"[.?!。\uff01\uff1f]$")
"""The end of a sentence."""


def is_asked_for(part: str, start: int) -> bool:
    return _asked_for().search(part[max(0, start - 40) : start]) is not None
