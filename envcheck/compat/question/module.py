"""The open kernel module and the driver releases that have one."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.question.candidates import Candidate
from envcheck.compat.question.judgement import Judgement
from envcheck.compat.question.needs import judge_needs
from envcheck.compat.question.question import Question
from envcheck.compat.question.rows import rows_of
from envcheck.compat.tables import Tables

_OPEN = "kernel-module-open"


def judge_module(tables: Tables, question: Question) -> Iterator[Judgement]:
    """Whether the named driver has the named flavour; every Linux driver has the proprietary one."""
    if question.flavour == "open" and question.drivers:
        for row in rows_of(tables, _OPEN):
            candidate = Candidate("kernel-module", "the open kernel module", (row,))
            yield from judge_needs(tables, question, candidate, row)
