"""Questions with known answers: public facts, old and new, at their boundaries, by ``data/questions.txt``."""

from pathlib import Path

import pytest

from tests.documents import texts
from tests.every import every
from tests.knowledge.asking import assert_does_not_fit, assert_fits, assert_nobody_can_tell

_DOCUMENT = (Path(__file__).with_name("data") / "questions.txt").read_text(encoding="utf-8")
_ANSWER = {"fits": assert_fits, "does not fit": assert_does_not_fit, "nobody can tell": assert_nobody_can_tell}
QUESTIONS = {name: (_ANSWER[expected], text.splitlines()) for name, expected, text in texts(_DOCUMENT)}


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer(name: str) -> None:
    holds, questions = QUESTIONS[name]
    every(questions)(holds)()
