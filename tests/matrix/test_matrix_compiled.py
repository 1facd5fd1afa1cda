"""The compiled matrix of the wheel is what the files of rows hold, no more and no less."""

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

from envcheck.bundle import COMPILED, DATE
from envcheck.errors import MatrixError
from envcheck.knowledge.compiling import ERROR_INDEX, REMEDY_INDEX, compile_folder, write_compiled
from envcheck.knowledge.copies import FORMAT
from envcheck.knowledge.error_lines import _remedy_patterns, error_lines
from envcheck.knowledge.load import load_matrix, read_compiled, read_folder
from envcheck.knowledge.matrix import TABLES, Matrix, decode
from envcheck.knowledge.patterns import Index, index_of
from tests.every import cases

ROOT = Path(__file__).resolve().parents[2]


def tables(matrix: Matrix) -> dict[str, object]:
    """All rows, in their order."""
    return {name: getattr(matrix, name) for name in ("sources", *(table.attribute for table in TABLES.values()))}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Matrix:
    file = tmp_path_factory.mktemp("compiled") / COMPILED
    write_compiled(compile_folder(ROOT / "matrix"), file)
    return read_compiled(file)


@pytest.fixture(scope="module")
def of_files() -> dict[str, object]:
    return tables(read_folder(ROOT / "matrix"))


def test_compiled_and_files_are_equal(compiled: Matrix, of_files: dict[str, object]) -> None:
    assert tables(compiled) == of_files


def test_the_compiled_indexes_are_of_these_patterns(compiled: Matrix) -> None:
    of_errors = index_of(line.pattern for line in error_lines())
    for entry, made in ((ERROR_INDEX, of_errors), (REMEDY_INDEX, _remedy_patterns()[1])):
        index = decode(compiled.given[entry], Index)
        assert index.needed == made.needed
        assert set(index.always) == set(made.always)
        assert {run: [*places] for run, places in index.by_run.items()} == dict(made.by_run)


def test_the_build_compiles_into_the_wheel_alone(tmp_path: Path, of_files: dict[str, object]) -> None:
    tree = tmp_path / "tree"
    for name in ("envcheck", "matrix", "probes", "docs/rules"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in ("pyproject.toml", "hatch_build.py", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    (tree / "README.md").write_text("constructed: the build wants a README\n")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=tree, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
    shipped = tmp_path / "unpacked" / "envcheck" / "matrix"
    assert tables(read_compiled(shipped / COMPILED)) == of_files
    assert {file.name for file in shipped.iterdir()} == {COMPILED, DATE}
    assert (shipped / DATE).read_text() == f"{max(row.read for row in load_matrix().sources.values())}\n"
    assert not {COMPILED, DATE} & {file.name for file in (tree / "matrix").iterdir()}


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
    assert (FORMAT, found) == (1, "bb4601dc038b"), (
        "the tables of rows have changed. If an envcheck without this change cannot read, or would misread, rows with "
        "it, raise FORMAT in envcheck/knowledge/copies.py; then write both here"
    )
