"""``envcheck tui`` without a terminal, and a saved report that is judged again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.calling import ROOT, envcheck


def test_without_a_terminal_it_says_so_and_ends() -> None:
    command = [sys.executable, "-m", "envcheck", "tui"]
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "needs a terminal" in done.stderr


def test_a_saved_report_keeps_its_date(tmp_path: Path) -> None:
    first = json.loads(envcheck("check", "--quiet", "--json", "--scope", "container", cwd=tmp_path).out)
    saved = tmp_path / "saved.json"
    saved.write_text(json.dumps({**first, "created": "2025-01-02T03:04:05+00:00"}))
    again = json.loads(envcheck("check", "--from", str(saved), "--json", cwd=tmp_path).out)
    assert again["created"] == "2025-01-02T03:04:05+00:00"
