"""What the laboratory's tests share."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.laboratory.store import FOLDER, Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The wheels of this run, some 15 GB with what is unpacked of them; or of all runs, where a variable says where."""
    kept = os.environ.get(FOLDER)
    if kept:
        yield Store(Path(kept))
        return
    folder = tmp_path_factory.mktemp("wheels")
    yield Store(folder)
    shutil.rmtree(folder, ignore_errors=True)
