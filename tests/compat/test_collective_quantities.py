"""Which quantities words on the command line select, where a library has the same work as others."""

from __future__ import annotations

import pytest

from envcheck.compat.performance.quantities import library_tested, selected
from envcheck.errors import UsageError


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("all-reduce", ("nccl-all-reduce",)),
        ("reduce", ("nccl-reduce",)),
        ("nccl-reduce", ("nccl-reduce-scatter", "nccl-reduce")),
        ("gemm", ("gemm",)),
    ],
)
def test_a_word_selects_what_it_names(word: str, names: tuple[str, ...]) -> None:
    assert selected((word,)) == names


def test_a_library_selects_all_of_its_own() -> None:
    found = selected(("nccl",))
    assert len(found) == 7
    assert {library_tested(name) for name in found} == {"NCCL"}


def test_an_unknown_word_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match="all-gather"):
        selected(("nccl-all-gathr",))
