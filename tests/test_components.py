from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.components import Bound, parse_components
from envcheck.errors import UsageError
from tests.every import every


def read(text: str) -> list[tuple[str, list[str]]]:
    return [(component.name, [str(bound) for bound in component.bounds]) for component in parse_components(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch==2.5.1+cu124", [("torch", ["==2.5.1+cu124"])]),
        (
            "gpu==H100,driver==550.54.14,os==linux",
            [("gpu", ["==H100"]), ("driver", ["==550.54.14"]), ("os", ["==linux"])],
        ),
        ('gpu=="RTX 5090"', [("gpu", ["==RTX 5090"])]),
        ("gpu==RTX 5090 , gpus >= 8", [("gpu", ["==RTX 5090"]), ("gpus", [">=8"])]),
        ("torch>=2.4,<2.6,driver>=550", [("torch", [">=2.4", "<2.6"]), ("driver", [">=550"])]),
        ("torch==1,", [("torch", ["==1"])]),
        ("Nvidia_CuDNN.cu12!=9.1", [("nvidia-cudnn-cu12", ["!=9.1"])]),
    ],
)
def test_reads(text: str, expected: list[tuple[str, list[str]]]) -> None:
    assert read(text) == expected


@every(["", "  ", "torch", "==2", "torch==", 'torch==2 3"', "torch=2", ",torch==1", "a==1,,b==2", "8gpus==1"])
def test_refuses_in_one_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="write NAME==VERSION"):
        parse_components(text)


def test_exact_is_only_for_a_single_equality() -> None:
    assert parse_components("torch==2.5")[0].exact == "2.5"
    assert parse_components("torch>=2.5")[0].exact is None
    assert parse_components("torch==2.5,!=2.6")[0].exact is None


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        components = parse_components(text)
    except UsageError:
        return
    assert components
    assert all(isinstance(bound, Bound) and bound.value for component in components for bound in component.bounds)
