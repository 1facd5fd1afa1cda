"""What refuses an nvcc names its source; the NumPy that Numba accepts."""

from __future__ import annotations

from tests.every import every
from tests.knowledge.asking import answer, judged, shown


def test_the_refusal_of_pytorch_names_its_source() -> None:
    found = answer("nvcc==12.4 torch==2.5.1+cu118 deepspeed==0.15.0")
    titles = [source.title for source in found.reasons[0].sources]
    assert any("_check_cuda_version" in title for title in titles)
    assert any("assert_no_cuda_mismatch" in title for title in titles)
    assert found.suggestions == ("nvcc 11.8", "torch 2.5.1+cu124")


# --- The NumPy that Numba accepts when it is imported ---------------------------------------------------------------

# Release, the least NumPy and the greatest minor of NumPy; read in the wheels on PyPI on 2026-11-23.
AT_IMPORT = """
0.54.0 1.17 1.20
0.54.1 1.17 1.20
0.55.0 1.18 1.21
0.55.1 1.18 1.21
0.55.2 1.18 1.22
0.56.0 1.18 1.22
0.56.2 1.18 1.23
0.56.4 1.18 1.23
0.57.0 1.21 1.24
0.57.1 1.21 1.24
0.58.0 1.22 1.25
0.58.1 1.22 1.26
0.59.0 1.22 1.26
0.59.1 1.22 1.26
0.60.0 1.22 2.0
0.61.0 1.24 2.1
0.61.2 1.24 2.2
0.62.0 1.22 2.3
0.62.1 1.22 2.3
0.63.0 1.22 2.3
0.63.1 1.22 2.3
0.64.0 1.22 2.4
0.65.0 1.22 2.4
0.65.1 1.22 2.4
0.66.0 1.22 2.4
0.67.0 1.22 2.5
0.68.0 1.22 2.5
0.68.1 1.22 2.5
"""
ROWS = [line.split() for line in AT_IMPORT.strip().splitlines()]


def minor_after(text: str, step: int) -> str:
    """The first release of the minor so many after a minor."""
    major, minor = map(int, text.split("."))
    return f"{major}.{minor + step}.0"


@every([tuple(row) for row in ROWS])
def test_what_the_import_refuses_does_not_fit(release: str, least: str, greatest: str) -> None:
    for numpy, wanted in (
        (minor_after(least, -1), "incompatible"),
        (minor_after(least, 0), "compatible"),
        (minor_after(greatest, 0), "compatible"),
        (minor_after(greatest, 1), "incompatible"),
    ):
        found = judged(f"numba=={release} numpy=={numpy}")
        assert found.verdict == wanted, shown(found)
