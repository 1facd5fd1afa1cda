"""Short versions: one release of each that fits is enough, and is named; none that does is not."""

from __future__ import annotations

import pytest

from tests.compat.asking import answer, assert_does_not_fit, assert_fits, assert_nobody_can_tell, questions
from tests.every import every


@every(
    [
        ("torch==2.5 torchvision==0.20", {"torch": "2.5.1+cu124, the wheel on PyPI", "torchvision": "0.20.1"}),
        ("torch==2.5 torchvision==0.20.0", {"torch": "2.5.0+cu124, the wheel on PyPI"}),
        ("torch==2.5+cu118 torchvision==0.20.0", {"torch": "2.5.0+cu118"}),
        ("torch==2.5 torchvision==0.20 torchaudio==2.5.0", {"torchvision": "0.20.0"}),
        ("cuda==12 gpu==RTX,5090", {"cuda": "12.9"}),
        ("cuda==11 gpu==H100", {"cuda": "11.8"}),
        ("nvcc==11 gcc==10", {"nvcc": "11.8"}),
        ("torch==2 python==3.9", {"torch": "2.8.0+cu128, the wheel on PyPI"}),
        ("torch==2.5.1 python==3", {"python": "3.12"}),
        ("tensorflow==2 python==3.12", {}),
        ("jetpack==6 l4t==36.4.0", {"jetpack": "6.1"}),
        ("jetpack==6 deepstream==7.1", {}),
    ]
)
def test_one_release_of_each_that_fits_is_enough(question: str, members: dict[str, str]) -> None:
    assert_fits(question)
    found = answer(question)
    assert found.assumed.items() >= members.items()
    told = " ".join(reason.message for reason in found.reasons if "for several releases" in reason.message)
    assert told
    assert all(name in told for name in members)


@pytest.mark.parametrize(
    "question",
    questions("""
torch==2.4 torchvision==0.20
torch==2.5 torchvision==0.20.0 torchaudio==2.5.1
torch==2.5 torchaudio==2.5.0 torchvision==0.20.1
cuda==13 gpu==V100
cuda==11 gpu==RTX,5090
torch==1 python==3.13
torch==2 python==2.7
"""),
)
def test_none_that_fits_is_none(question: str) -> None:
    assert_does_not_fit(question)


@pytest.mark.parametrize(
    "question",
    questions("""
torch==2 frobnicator==1.0
torch==2 xformers==0 gpu==Voodoo,3
tensorrt-engine==10 tensorrt==10.3
torch==2.7 gpu==RTX,5090 cuda==12
cuda>=12 gpu==RTX,5090
driver>=525 cuda==13.0
torch==2
"""),
)
def test_what_stays_open(question: str) -> None:
    assert_nobody_can_tell(question)


def test_the_releases_that_do_not_fit_are_told() -> None:
    found = answer("torch==2.5 torchvision==0.20.0 torchaudio==2.5.1")
    assert found.reasons[0].message == (
        "no release that torch==2.5 stands for fits: torchvision 0.20.0 needs torch 2.5.0; this is 2.5.1; "
        "torchaudio 2.5.1 needs torch 2.5.1; this is 2.5.0"
    )
    assert "torchvision 0.20.1" in found.suggestions
