"""Questions that nobody means to ask get an answer or one sentence, whatever operators and versions they hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.compat.load import load_matrix
from envcheck.compat.question.answer import ask
from envcheck.components import Component, parse_components
from envcheck.errors import UsageError

NAMES = (
    "cuda",
    "nvcc",
    "cuda-compat",
    "driver",
    "gpu",
    "torch",
    "python",
    "cudnn",
    "nccl",
    "tensorrt",
    "tensorrt-engine",
    "jax",
    "mxnet",
    "jetpack",
    "os",
    "machine",
    "kernel-module",
    "nothing-of-that-name",
)
VERSIONS = (
    *("0", "1", "5", "9.0", "9.1.0", "12", "12.4", "13.4", "535", "550.54.14", "9999", "2.5.1", "2.5.1+cu124"),
    *("3.12", "999999999", "9" * 5000, "1.*", "=12.4", "2.0a1", "1.2.3.4.5.6.7", "1!2", "x", "sm_90", "linux"),
)


def answered(*texts: str) -> str:
    components: list[Component] = []
    try:
        for text in texts:
            components += parse_components(text)
        return ask(load_matrix(), components).verdict
    except UsageError as error:
        return str(error)


@pytest.mark.parametrize(
    "texts",
    [
        ("cuda<9.0", "torch==2.5.1"),
        ("cuda===12.4", "mxnet<9"),
        ("cuda~=9.1.0", "mxnet<5"),
        ("driver>9999", "mxnet<5"),
        ("gpu==NoSuchGPU9999", "driver==1.2.3"),
    ],
)
def test_what_names_no_known_release_is_unknown(texts: tuple[str, ...]) -> None:
    assert answered(*texts) in ("unknown", "incompatible")


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(NAMES),
            st.sampled_from(("==", ">=", "<=", "~=", ">", "<", "!=", "===")),
            st.sampled_from(VERSIONS),
        ),
        min_size=1,
        max_size=3,
    )
)
def test_any_operator_with_any_version(asked: list[tuple[str, str, str]]) -> None:
    assert answered(*(f"{name}{operator}{version}" for name, operator, version in asked))
