"""What the shipped matrix wants regenerated is there, and cites the distribution itself."""

from functools import cache
from pathlib import Path

import pytest

from envcheck.knowledge.compiling import row_files
from envcheck.refresh import release_rows, run
from envcheck.refresh.document import Document, Project, Projects, Work, find_work, is_generated
from tests.every import every

MATRIX = Path(__file__).resolve().parents[2] / "matrix"
pytestmark = pytest.mark.lab  # all rows are read as they would be edited


SOURCES_ALONE = {
    "causal-conv1d", "flash-attn", "hqq", "llama-cpp-python", "mamba-ssm", "tensorrt-llm", "torch-cluster",
    "torch-scatter", "torch-sparse", "torch-spline-conv", "ucx-py-cu12",
}  # fmt: skip
"""Projects of which PyPI has no wheels, only source archives."""


@cache
def documents() -> list[Document | Projects]:
    """The files of rows that are changed: read by a test, not by each worker that collects this."""
    files = [path for path in row_files(MATRIX) if path.suffix != ".toml" or is_generated(path)]
    return [Document(path) if path.suffix == ".toml" else Projects(path) for path in files]


@cache
def works() -> list[Work | Project]:
    return find_work(documents(), ())


def test_what_the_wheels_tell_of_torch_and_its_neighbours_is_regenerated() -> None:
    assert {"torch", "vllm", "xformers", "torchvision", "jax-cuda12-plugin"} <= {work.name for work in works()}


def test_what_file_names_tell_stands_apart_from_other_rows() -> None:
    for document in documents():
        if isinstance(document, Document):
            assert not document.rows("wheel")
            assert not document.rows("requirement")


@every(documents)
def test_a_file_of_the_matrix_can_be_changed_without_a_trace(document: Document | Projects) -> None:
    assert document.text == document.path.read_bytes().decode()


@every(works)
def test_a_marker_names_a_source_on_pypi_and_rows_that_cite_it(work: Work | Project) -> None:
    if isinstance(work, Work) and str(work.source["address"]).startswith("https://"):
        table = work.name if work.document.rows(work.name) else release_rows.TABLE
        assert any(work.generated.source in row["source"] for row in work.document.rows(table))
        return
    assert str(work.source["address"]).startswith("PyPI ")
    if isinstance(work, Project):
        assert work.line["published"]
        assert work.line.get("wheels") or work.name in SOURCES_ALONE
        return
    table = run.TORCH if work.name == run.TORCH else release_rows.TABLE
    rows = [row for row in work.document.rows(table) if table == run.TORCH or row["name"] == work.name]
    citing = [row for row in rows if work.generated.source in row["source"]]
    assert citing
    assert bool(work.generated.needs) == (table != run.TORCH)
    named = {key for row in citing for key in row.get("needs", {})}
    assert set(work.generated.needs) <= named
