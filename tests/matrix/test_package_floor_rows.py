"""What refuses an nvcc names its source; the NumPy that Numba accepts."""

from pathlib import Path

from tests.documents import lines_of
from tests.every import every
from tests.knowledge.asking import answer, judged, shown


def test_the_refusal_of_pytorch_names_its_source() -> None:
    found = answer("nvcc==12.4 torch==2.5.1+cu118 deepspeed==0.15.0")
    titles = [source.title for source in found.reasons[0].sources]
    assert any("_check_cuda_version" in title for title in titles)
    assert any("assert_no_cuda_mismatch" in title for title in titles)
    assert found.suggestions == ("nvcc 11.8", "torch 2.5.1+cu124")


# --- The NumPy that Numba accepts when it is imported ---------------------------------------------------------------
AT_IMPORT = lines_of((Path(__file__).with_name("data") / "numba_numpy.txt").read_text(encoding="utf-8"))
ROWS = [line.split() for line in AT_IMPORT]


def minor_after(text: str, step: int) -> str:
    """The first release of the minor so many after a minor."""
    major, minor = map(int, text.split("."))
    return f"{major}.{minor + step}.0"


@every(
    ("0.47.0", "1.17.5", "1.18.0"),
    ("0.50.1", "1.18.5", "1.19.0"),
    ("0.52.0", "1.19.5", "1.20.0"),
    ("0.53.1", "1.20.3", "1.22.4"),
)
def test_a_numpy_that_numba_only_does_not_name_is_left_open(release: str, named: str, newer: str) -> None:
    """Up to 0.53 neither metadata nor import sets an end: NumPy 1.24 does, which lacks what Numba asks for."""
    for numpy, wanted in ((named, "compatible"), (newer, "unknown"), ("1.23.5", "unknown"), ("1.24.0", "incompatible")):
        found = judged(f"numba=={release} numpy=={numpy}")
        assert found.verdict == wanted, shown(found)


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
