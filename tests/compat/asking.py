"""Ask the matrix as the command line does."""

from __future__ import annotations

from envcheck.compat.load import tables
from envcheck.compat.question import ask
from envcheck.compat.question.answer import Answer
from envcheck.compat.tables import Tables
from envcheck.components import parse_components


def answer(question: str, matrix: Tables | None = None) -> Answer:
    """The answer to a question whose components are separated by blanks; a comma stands for a blank in a name."""
    texts = [text.replace(",", " ") for text in question.split()]
    return ask(matrix or tables(), [component for text in texts for component in parse_components(text)])


def shown(found: Answer) -> str:
    """What a failing test prints."""
    return "\n".join([found.verdict, *(f"{reason.verdict}: {reason.message}" for reason in found.reasons)])
