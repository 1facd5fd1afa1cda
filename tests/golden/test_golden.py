"""Every change of behaviour shows in the corpus: whoever changes it on purpose records it and reads the difference.

python -m tests.golden.rewrite
"""

import pytest

from tests.golden import causes
from tests.golden.corpus import CORPUS, differences, digest, parted, read
from tests.golden.recorders import RECORDERS
from tests.golden.reports import ROOT
from tests.golden.rewrite import COMMAND
from tests.rules.fixes.test_remedies import placeholders


def test_no_fix_of_a_recorded_text_holds_a_placeholder() -> None:
    """It stands beside what records their causes, since both judge the same texts."""
    fixes = [(name.split("/")[0], fix) for name, _, fixes in causes.conclusions() for fix in fixes]
    assert len(fixes) > 1000
    assert {(name, fix.text) for name, fix in fixes if placeholders(fix)} == set()


@pytest.mark.parametrize("name", RECORDERS)
def test_behaviour_is_as_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = differences(RECORDERS[name]())
    assert not found, f"{found}\n\nIf all of this is meant, record it: {COMMAND}"


def test_the_open_files_have_the_hashes_of_the_compressed_ones() -> None:
    """Whoever reads the open files in review reads what is recorded."""
    packed = [file.relative_to(CORPUS) for file in CORPUS.rglob("*.xz") if file.name != causes.CASES]
    for name in map(str, packed):
        beside = read(name.replace(".xz", ".txt")) or read(name.replace(".xz", ".tsv"))
        documents = {title: text for title, text in parted(read(name)).items() if title}
        assert documents, name
        assert [title for title, text in documents.items() if digest(text) not in beside] == [], name


def test_the_corpus_stays_small() -> None:
    assert sum(file.stat().st_size for file in CORPUS.rglob("*") if file.is_file()) < 1_600_000
