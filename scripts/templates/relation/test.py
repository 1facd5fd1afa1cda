"""The relation ``example_thing``: all three verdicts, with the sources of the rows that decided."""

import pytest

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.example_thing import example_thing
from envcheck.model.versions import ComputeCapability


@pytest.mark.parametrize(
    ("gpu", "verdict"),
    [((9, 0), "compatible"), ((8, 7), "incompatible"), ((99, 0), "unknown")],
)
def test_the_row_decides(gpu: tuple[int, int], verdict: str) -> None:
    fit = example_thing(load_matrix(), ComputeCapability(*gpu))
    assert fit.verdict == verdict
    assert bool(fit.sources) == (verdict != "unknown")
