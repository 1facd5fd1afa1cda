"""The collector on a real machine, and broken copies of its environment, which are named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.calling import ROOT, envcheck
from tests.collect.same_snapshot import OF_A_GPU, TIMES, differences, steady
from tests.collect.test_collector import collect
from tests.gpu.broken_variants import VARIANTS, Laboratory, NotHereError, Result, Variant, lines


def test_it_finds_what_a_check_finds(tmp_path: Path) -> None:
    """The first check is not compared: it starts the GPU, where nothing keeps it started."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    same = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    envcheck("check", "--scope", "node", "--json", cwd=tmp_path, **same)
    collected = collect(tmp_path, "--python", sys.prefix, **same)
    assert collected.returncode == 0, collected.stderr
    theirs = json.loads(envcheck("check", "--from", "-", "--json", cwd=tmp_path, stdin=collected.stdout, **same).out)
    ours = json.loads(envcheck("check", "--python", sys.prefix, "--json", cwd=tmp_path, **same).out)
    moving = TIMES | OF_A_GPU
    assert list(differences(steady(ours["snapshot"], moving), steady(theirs["snapshot"], moving))) == []
    assert ours["snapshot"]["gpus"]["items"][0]["uuid"]
    assert [check["id"] for check in theirs["checks"]] == [check["id"] for check in ours["checks"]]


# --- Broken copies of the environment on a GPU machine --------------------------------------------------------------

ROOT_BROKEN = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laboratory]:
    python = shutil.which("python3") or pytest.skip("no python3 on PATH")
    if subprocess.run([python, "-c", "import torch"], check=False, capture_output=True).returncode:
        pytest.skip("no PyTorch here")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT_BROKEN), os.environ.get("PYTHONPATH")]))
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
    assert result.right_deep or result.followed, said
    assert not result.followed or not (result.after["truth"] or result.after["named"]), said
    assert result.right_bench, said
    assert result.right_static or variant.only_deep, said
