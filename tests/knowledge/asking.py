"""Ask the matrix as the command line does."""

from envcheck.compat.answer import ask
from envcheck.compat.choose import evaluate
from envcheck.compat.question import Answer
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.model.components import Component, parse_components


def answer(question: str, matrix: Matrix | None = None) -> Answer:
    """The answer to a question whose components are separated by blanks; a comma stands for a blank in a name."""
    return ask(matrix or load_matrix(), _components(question))


def judged(question: str) -> Answer:
    """The answer without suggestions, which take most of the time of a sweep."""
    return ask(load_matrix(), _components(question), suggest=False)


def verdict(question: str, matrix: Matrix | None = None) -> FitVerdict:
    """The verdict alone."""
    return evaluate(matrix or load_matrix(), _components(question)).verdict


def _components(question: str) -> list[Component]:
    texts = [text.replace(",", " ") for text in question.split()]
    return [component for text in texts for component in parse_components(text)]


def shown(found: Answer) -> str:
    """What a failing test prints."""
    return "\n".join([found.verdict, *(f"{reason.verdict}: {reason.message}" for reason in found.reasons)])


def questions(table: str) -> list[str]:
    """The questions of a table, one a line."""
    return table.strip().splitlines()


def assert_fits(question: str) -> None:
    """The answer is compatible, and every reason is sourced."""
    found = judged(question)
    assert found.verdict == "compatible", shown(found)
    assert all(reason.sources for reason in found.reasons)


def assert_does_not_fit(question: str) -> None:
    """The answer is incompatible, and the first reason says so and is sourced."""
    found = judged(question)
    assert found.verdict == found.reasons[0].verdict == "incompatible", shown(found)
    assert found.reasons[0].sources


def assert_nobody_can_tell(question: str) -> None:
    """The answer is unknown, and says why."""
    found = judged(question)
    assert found.verdict == "unknown", shown(found)
    assert found.reasons
