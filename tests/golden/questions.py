"""Questions to the matrix and their answers."""

import shlex

from envcheck.compat.answer import ask
from envcheck.errors import UsageError
from envcheck.knowledge.load import load_matrix
from envcheck.model.components import parse_components
from tests.golden.corpus import digest, joined, read

KINDS = ("releases", "torch", "wheels")
_SUGGESTED = 10  # Each tenth question is answered with suggestions, which take most of the time


def answers(kind: str) -> dict[str, str]:
    """The verdict of each recorded question, a line each with the hash of its answer, and beside that the answers."""
    questions = [line.partition("\t")[0] for line in read(f"answers/{kind}.tsv").splitlines()]
    found = {text: answer(text, suggest=not place % _SUGGESTED) for place, text in enumerate(questions)}
    lines = [f"{text}\t{told.partition(chr(10))[0]}\t{digest(told)}\n" for text, told in found.items()]
    return {f"answers/{kind}.tsv": "".join(lines), f"answers/{kind}.xz": joined(found)}


def answer(text: str, *, suggest: bool) -> str:
    """The answer to a question as it is typed: first its verdict, then reasons, suggestions and assumptions."""
    try:
        found = ask(
            load_matrix(),
            [component for word in shlex.split(text) for component in parse_components(word)],
            suggest=suggest,
        )
    except UsageError as error:
        return f"refused\n{error}"
    lines = [
        *(f"{reason.verdict}: {reason.message} ({len(reason.sources)} sources)" for reason in found.reasons),
        *(f"suggested: {each}" for each in found.suggestions),
        *(f"assumed: {name} {value}" for name, value in sorted(found.assumed.items())),
    ]
    return "\n".join([found.verdict, *lines])
