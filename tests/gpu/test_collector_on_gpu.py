"""The collector on a machine with a GPU: without any of our dependencies it finds what a check finds."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.cli.calling import ROOT, envcheck
from tests.collect.same_snapshot import OF_A_GPU, TIMES, differences, steady
from tests.collect.test_collector import collect


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
