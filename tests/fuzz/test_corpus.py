"""What once broke a reader, and a little of what might: the lab looks for more (``run.py``)."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envcheck.report import saved
from envcheck.report.saved import read_report
from tests.fuzz.targets import TARGETS, seeds
from tests.thorough import examples

CORPUS = Path(__file__).parent / "corpus"
FOUND = sorted(path for path in CORPUS.glob("*/*") if path.is_file())


@pytest.mark.parametrize("path", FOUND, ids=lambda path: f"{path.parent.name}-{path.name[:16]}")
def test_what_broke_once(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_the_seeds_are_read(target: str) -> None:
    found = seeds(target)
    assert found
    for seed in found[:2]:
        TARGETS[target](seed)


def test_the_seeds_are_what_they_stand_for() -> None:
    """Else a target would refuse all that is made from them at once."""
    for seed in seeds("reports"):
        assert read_report(seed).checks
    for seed in seeds("baselines"):
        assert saved.read_baseline(seed, "a file")


@pytest.mark.parametrize("target", [name for name in TARGETS if name not in ("reports", "elf", "fatbins")])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data())
def test_damaged_seeds(target: str, data: st.DataObject) -> None:
    """The readers of ELF files and fat binaries have tests of their own for this."""
    seed = data.draw(st.sampled_from(seeds(target)))
    at = data.draw(st.integers(0, len(seed)))
    cut = data.draw(st.integers(0, 40))
    TARGETS[target](seed[:at] + data.draw(st.binary(max_size=12)) + seed[at + cut :])
