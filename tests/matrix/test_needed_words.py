"""The words without which a pattern is not tried: leaving it out changes nothing."""

import json
import re
from pathlib import Path

import pytest

from envcheck.importers.formats.error_lines import is_error
from envcheck.importers.prose.mentions import mentions_in
from envcheck.importers.wording import text_of, wording
from envcheck.knowledge import error_lines
from envcheck.knowledge.compiling import FAILURE_INDEX, compile_folder, write_compiled
from envcheck.knowledge.load import load_matrix, read_compiled
from envcheck.knowledge.matrix import Matrix, decode
from envcheck.knowledge.patterns import Index
from envcheck.text.lazy import has_needed, lazy_pattern
from tests.golden.causes import CASES
from tests.golden.corpus import read

ROOT = Path(__file__).parents[2]
EACH = 7  # Of the texts one in so many


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    place = tmp_path_factory.mktemp("rows") / "matrix.json"
    write_compiled(compile_folder(ROOT / "matrix"), place)
    return read_compiled(place)


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [text for _, text in map(json.loads, read(CASES).splitlines()[::EACH])]


def test_a_pattern_is_compiled_for_lines_with_its_words_alone() -> None:
    pattern = lazy_pattern("(?i)driver [0-9]+", needed=(("driver ",),))
    assert (pattern.search("CUDA 12"), pattern.match("none"), [*pattern.finditer("")]) == (None, None, [])
    assert "search" not in vars(pattern)
    found = pattern.search("Driver 570")
    assert found is not None
    assert (found[0], "search" in vars(pattern)) == ("Driver 570", True)


def test_a_letter_beyond_ascii_is_no_reason_to_leave_a_pattern_out() -> None:
    assert lazy_pattern("(?i)system", needed=(("system",),)).search("\u017fystem")


def test_no_wording_matches_a_line_without_its_words(compiled: Matrix, texts: list[str]) -> None:
    lines = [line[:400] for line in dict.fromkeys("\n".join(texts).split("\n")) if line.isascii()][::EACH]
    lowered = [(line, line.lower()) for line in lines]
    needed = {name: compiled.needed_words[text_of(name)] for name in (row.name for row in load_matrix().wordings)}
    assert sum(map(bool, needed.values())) > len(needed) // 2
    for name, words in needed.items():
        pattern = re.compile(wording(name).pattern)
        assert not [line for line, low in lowered if not has_needed(words, low) and pattern.search(line)], name


def test_the_lines_of_a_text_are_read_alike(
    compiled: Matrix, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    index = decode(compiled.given[FAILURE_INDEX], Index)
    monkeypatch.setattr(error_lines, "_compiled_index", lambda _entry: index)
    for text in texts[::EACH]:
        lowered = text.lower()
        for line in text.split("\n"):
            assert (is_error(line, lowered), mentions_in(line, lowered)) == (is_error(line), mentions_in(line)), line
