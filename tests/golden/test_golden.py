"""Every change of behaviour shows in the corpus: whoever changes it on purpose records it and reads the difference.

python -m tests.golden.rewrite
"""

from __future__ import annotations

import pytest

from tests.golden.corpus import CORPUS, differences, digest, parted, read
from tests.golden.recorders import RECORDERS
from tests.golden.reports import GROUPS, ROOT
from tests.golden.rewrite import COMMAND


@pytest.mark.parametrize("name", RECORDERS)
def test_behaviour_is_as_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = differences(RECORDERS[name]())
    assert not found, f"{found}\n\nIf all of this is meant, record it: {COMMAND}"


def test_the_open_files_have_the_hashes_of_the_compressed_ones() -> None:
    """Whoever reads the open files in review reads what is recorded."""
    for group in GROUPS:
        index = parted(read(f"reports/{group}.txt"))
        for name, text in parted(read(f"reports/{group}.xz")).items():
            if name:
                report, _, form = name.partition(": ")
                assert f"{digest(text)}  {form}\n" in index[report], name


def test_the_corpus_stays_small() -> None:
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 1_600_000
