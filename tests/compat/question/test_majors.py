"""Questions of majors alone: bounded in work, so in time."""

from __future__ import annotations

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.question.candidates import Candidate
from envcheck.compat.question.choose import MOST_WORK, work
from envcheck.compat.question.question import Question
from envcheck.compat.question.reading import read_question
from envcheck.compat.question.software import candidate_fits
from envcheck.compat.relations.fit import Fit
from envcheck.components import Component, parse_components
from tests.compat.asking import answer, questions, verdict

MANY = questions("""
torch==2 torchvision==0 torchaudio==2 cuda==12
torch==2 nvcc==12 deepspeed==0 flash-attn==2 driver==470
torch==2 cuda==12 vllm==0 gpu==sm_120 driver==470
torch==2 torchvision==0 torchaudio==2 triton==3 cuda==12 nccl==2 cudnn==9
""")
MOST_JUDGED = 4 * MOST_WORK
"""Builds of releases that may be judged: some two for a unit of work, for families and for suggestions."""


def read(question: str) -> list[Component]:
    return [component for text in question.split() for component in parse_components(text)]


@pytest.mark.parametrize("question", MANY)
def test_the_work_of_trials_is_bounded(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []

    def counted(asked: Question, candidate: Candidate) -> list[Fit]:
        judged.append(candidate.label)
        return candidate_fits(asked, candidate)

    monkeypatch.setattr("envcheck.compat.question.fits.candidate_fits", counted)
    assert answer(question).verdict in ("unknown", "incompatible")
    assert 0 < len(judged) <= MOST_JUDGED


def test_a_question_of_majors_costs_more_than_one_of_releases() -> None:
    matrix = load_matrix()
    costs = [work(read(text), read_question(matrix, read(text))) for text in (MANY[0], "torch==2.5.1 cuda==12.4")]
    assert costs[0] > 10 * costs[1]


def test_families_of_two_are_still_narrowed() -> None:
    assert verdict("jax==0 jaxlib==0 cuda==12 cudnn==9") == "compatible"
    assert verdict("tensorflow==2 cuda==11 cudnn==8") == "compatible"
