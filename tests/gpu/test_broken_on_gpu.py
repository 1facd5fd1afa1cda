"""Broken copies of the environment on a GPU machine: the root cause is named, statically and with ``--deep``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gpu.broken_variants import VARIANTS, Laboratory, NotHereError, Result, Variant, lines

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    python = shutil.which("python3") or pytest.skip("no python3 on PATH")
    if subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode:
        pytest.skip("no PyTorch here")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    try:
        made = Laboratory(python, [sys.executable, "-m", "envcheck"], None, deep=True, gpu=True)
    except NotHereError as error:
        pytest.skip(str(error))
    yield made
    shutil.rmtree(made.folder, ignore_errors=True)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_the_cause_is_named(variant: Variant, laboratory: Laboratory) -> None:
    result: Result = laboratory.put(variant)
    if result.skipped:
        pytest.skip(result.skipped)
    said = "\n".join(lines(result))
    assert result.right_deep, said
    assert result.right_bench, said
    assert result.right_static or variant.only_deep, said
