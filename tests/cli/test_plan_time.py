"""``--timeout`` bounds the reading of plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from envcheck import plans
from envcheck.cli.main import main


def test_a_plan_that_takes_longer_to_read_leaves_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = plans._reader

    def endless(path: str) -> None:
        while reader(path):
            pass

    monkeypatch.setattr(plans, "_reader", endless)
    (tmp_path / "requirements.txt").write_text("torch==2.5.1\n")
    asked = ["check", "--plan", str(tmp_path / "requirements.txt"), "--assume", "gpu==H100,driver==550.54.14"]
    assert main([*asked, "--timeout", "0.2"]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "--timeout 0.2 s" in told.err
