"""What must hold of every row: typed, named once, sourced, dated; wrong data is refused in one sentence."""

import ast
import datetime as dt
import re
from pathlib import Path

import pytest

from envcheck.bundle import folder
from envcheck.errors import MatrixError
from envcheck.importers.wording import wording
from envcheck.knowledge.load import load_matrix, matrix_date, read_folder
from envcheck.knowledge.matrix import TABLES
from envcheck.knowledge.relations.libraries import SPOKEN_OF
from envcheck.knowledge.tables import Row, SourceRow
from tests.every import cases, every, tabled
from tests.syntax import calls

MATRIX = load_matrix()
ROWS: list[Row] = [row for table in TABLES.values() for row in getattr(MATRIX, table.attribute)]
SOURCE = """
[sources.page]
title = "A page"
address = "https://example.org/page"
read = "2026-11-20"
"""


def test_every_table_has_rows() -> None:
    assert {name for name, table in TABLES.items() if not getattr(MATRIX, table.attribute)} == set()


@every(MATRIX.sources.values())
def test_a_source_can_be_looked_up_and_was_read(source: SourceRow) -> None:
    own = ("benchmarks/results/", "docs/rules", "tests/rules/", "tests/probes/", "tests/importers/")
    assert source.address.startswith(("https://", "PyPI ", "Debian ", *own))
    assert dt.date(2026, 1, 1) <= dt.date.fromisoformat(source.read)


def test_every_source_is_used() -> None:
    assert set(MATRIX.sources) == {key for row in ROWS for key in row.source}


def test_pypi_is_named_and_not_linked() -> None:
    addresses = [source.address for source in MATRIX.sources.values()]
    assert [address for address in addresses if "pypi" in address.lower().removeprefix("pypi ")] == []


def test_the_matrix_is_as_new_as_its_newest_source() -> None:
    assert matrix_date() == max(source.read for source in MATRIX.sources.values())


@tabled
def test_a_wrong_row_is_refused_by_file_and_place(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "rows.toml").write_text(SOURCE + text)
    with pytest.raises(MatrixError) as caught:
        read_folder(tmp_path)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


@cases(
    "change, complaint",
    (('read = "2026-11-20"', 'read = "20.11.2026"'), "source rows/page: it needs a title"),
    (('title = "A page"', 'title = ""'), "source rows/page: it needs a title"),
    (('title = "A page"', "title = 1"), "source rows/page: Expected `str`"),
    (('title = "A page"', 'name = "A page"'), "source rows/page: "),
)
def test_a_wrong_source_is_refused(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    (tmp_path / "rows.toml").write_text(SOURCE.replace(*change) + '[[driver]]\nbranch = 550\nsource = "page"\n')
    with pytest.raises(MatrixError) as caught:
        read_folder(tmp_path)
    assert complaint in str(caught.value)


PROJECT = '{"name":"a","source":{"title":"A","address":"PyPI a","read":"2026-11-20"},"wheels":[]}'


@cases(
    "line, complaint",
    *(
        (line, "pypi.jsonl: line 2: not a project as 'envcheck matrix refresh' writes it: ")
        for line in (
            "{", "", "[" * 100_000, "[]", "5", '{"name":"b"}', PROJECT.replace("[]", "5"), PROJECT.replace("[]", "[5]"),
            PROJECT.replace('"a"', "[]"), '{"name":"b","source":5}',
        )
    ),
    (PROJECT.replace("[]", f"[{'{},' * 400_000}]"), "pypi.jsonl: more than 400,000 keys and items"),
    (PROJECT, "pypi.jsonl: line 2: a has another line, or rows that are none of releases, wheels, "),
    (PROJECT.replace('"a"', '"b"').replace("wheels", "errors"), "pypi.jsonl: line 2: b has another line, or rows that"),
    (PROJECT.replace('"a"', '"b"').replace("[]", '[{"versions":5}]'), "pypi.jsonl: [[wheel]] number 1 (name = 'b')"),
    (PROJECT.replace('"a"', '"cuda-toolkit"'), "pypi.jsonl: line 2: cuda-toolkit stands for the component cuda, whose"),
    (PROJECT.replace('"a"', '"b"').replace("2026-11-20", "today"), "source pypi.jsonl/b: it needs a title, an"),
    (PROJECT.replace('"a"', '"b"').replace("PyPI a", ""), "source pypi.jsonl/b: it needs a title, an address"),
)  # fmt: skip
def test_a_wrong_line_of_a_project_is_refused(tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "pypi.jsonl").write_text(f"{PROJECT}\n")
    assert read_folder(tmp_path).sources["pypi.jsonl/a"].read == "2026-11-20"
    (tmp_path / "generated" / "pypi.jsonl").write_text(f"{PROJECT}\n{line}\n")
    with pytest.raises(MatrixError) as caught:
        read_folder(tmp_path)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_without_rows_is_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match="no TOML file"):
        read_folder(tmp_path)


def test_the_checkout_holds_no_compiled_matrix() -> None:
    assert [path.name for path in folder("matrix").glob("*.json")] == []


def test_code_and_patterns_name_the_fragments_that_there_are() -> None:
    patterns = [text for row in MATRIX.errors for text in (*row.lines, row.beside, row.unless)]
    patterns += [row.pattern for row in MATRIX.fragments]
    named = {name for text in patterns for name in re.findall(r"\{\{([a-z-]+)\}\}", text)}
    asked = _asked_for("fragment_in", "matches_fragment", "lines_with")
    assert len(asked) > 20
    assert (named | asked) - {f"{kind}-family" for kind in SPOKEN_OF} == {row.name for row in MATRIX.fragments}


def test_code_names_the_wordings_that_there_are_and_each_compiles() -> None:
    named = {
        name for row in MATRIX.wordings for text in row.patterns for name in re.findall(r"\{\{([a-z-]+)\}\}", text)
    }
    every = {row.name for row in MATRIX.wordings}
    assert [name for name in every if not wording(name).pattern] == []
    asked = _asked_for("wording", "text_of")
    assert len(asked) > 50
    assert asked <= every <= asked | named


def _asked_for(*functions: str) -> set[str]:
    """The texts with which code calls these functions."""
    return {
        text.value
        for _, call in calls(Path(__file__).parents[2] / "envcheck", *functions, *map("facts.{}".format, functions))
        for text in call.args[:1]
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    }
