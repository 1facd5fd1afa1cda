"""The lock file of the project that a virtual environment lies in."""

import venv
from pathlib import Path

import pytest

from probes.common.tree import Tree
from probes.files.python.interpreter import locate
from probes.files.python.layout import read_layout
from tests.every import cases


@pytest.fixture
def project(tmp_path: Path) -> Path:
    venv.create(tmp_path / ".venv", symlinks=True)
    return tmp_path


def lock_file(project: Path) -> str | None:
    tree = Tree({"root": "/", "cwd": str(project)})
    prefix = str(project / ".venv")
    return read_layout(tree, locate(tree, prefix), prefix).lock_file


@cases("name", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock")
def test_it_lies_beside_the_environment(project: Path, name: str) -> None:
    assert lock_file(project) is None
    (project / name).touch()
    assert lock_file(project) == str(project / name)
