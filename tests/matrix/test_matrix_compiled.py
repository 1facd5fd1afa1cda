"""The compiled matrix of the wheel is what the files of rows hold, no more and no less."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from envcheck.bundle import COMPILED
from envcheck.errors import MatrixError
from envcheck.knowledge.compiling import ERROR_INDEX, REMEDY_INDEX
from envcheck.knowledge.copies import FORMAT
from envcheck.knowledge.error_lines import _remedy_patterns, error_lines
from envcheck.knowledge.load import read_compiled, read_folder
from envcheck.knowledge.matrix import TABLES, Matrix, decode
from envcheck.knowledge.patterns import Index, index_of
from tests.every import cases
from tests.installed import ROWS

ROOT = Path(__file__).resolve().parents[2]


def tables(matrix: Matrix) -> dict[str, object]:
    """All rows, in their order."""
    return {name: getattr(matrix, name) for name in ("sources", *(table.attribute for table in TABLES.values()))}


@pytest.fixture(scope="module")
def compiled() -> Matrix:
    """As it was compiled where this session started."""
    return read_compiled(ROWS / COMPILED)


def test_compiled_and_files_are_equal(compiled: Matrix) -> None:
    assert tables(compiled) == tables(read_folder(ROOT / "matrix"))


def test_the_compiled_indexes_are_of_these_patterns(compiled: Matrix) -> None:
    of_errors = index_of(line.pattern for line in error_lines())
    for entry, made in ((ERROR_INDEX, of_errors), (REMEDY_INDEX, _remedy_patterns()[1])):
        index = decode(compiled.given[entry], Index)
        assert index.needed == made.needed
        assert set(index.always) == set(made.always)
        assert {run: [*places] for run, places in index.by_run.items()} == dict(made.by_run)


def test_rows_of_one_name_are_decoded_alone(tmp_path: Path) -> None:
    """A row of another name that could not be decoded is not noticed; asked for, it is."""
    compiled = tmp_path / COMPILED
    row = b'{"source": ["a/b"], "name": "jax", "versions": "==1"}'
    compiled.write_bytes(b'{"release": {"jax": [%s], "tensorflow": [{"name": 5}]}}' % row)
    matrix = read_compiled(compiled)
    assert [each.versions for each in matrix.rows_of("jax")] == ["==1"]
    assert matrix.rows_of("torch") == ()
    assert list(matrix.releases_by_name) == ["jax", "tensorflow"]
    with pytest.raises(MatrixError, match="the compiled matrix is damaged"):
        matrix.rows_of("tensorflow")


@cases("content", b"", b"{", b"[]", b'{"driver": [{"branch": "five"}]}', b'{"sources": 5}', b'{"release": []}')
def test_a_damaged_compiled_matrix_is_said_to_be_so(tmp_path: Path, content: bytes) -> None:
    compiled = tmp_path / COMPILED
    compiled.write_bytes(content)
    with pytest.raises(MatrixError, match="the compiled matrix is damaged"):
        tables(read_compiled(compiled))


def test_the_format_is_raised_with_what_older_envchecks_cannot_read() -> None:
    """Rows of a format are read by every envcheck that has it, also by one that was installed a year ago."""
    schemas, parts = msgspec.json.schema_components([table.row for table in TABLES.values()])
    fields = {name: {key: part[key] for key in part if key != "description"} for name, part in parts.items()}
    found = hashlib.sha256(msgspec.json.encode([[*TABLES], schemas, fields], order="sorted")).hexdigest()[:12]
    assert (FORMAT, found) == (1, "765f324dfbef"), (
        "the tables of rows have changed. If an envcheck without this change cannot read, or would misread, rows with "
        "it, raise FORMAT in envcheck/knowledge/copies.py; then write both here"
    )
