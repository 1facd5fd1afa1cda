"""What the laboratory's tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab.laboratory.store import FOLDER, Store


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The wheels of this run, or of all runs where ``ENVCHECK_LAB_WHEELS`` names a folder."""
    kept = os.environ.get(FOLDER)
    return Store(Path(kept) if kept else tmp_path_factory.getbasetemp().parent / "laboratory")
