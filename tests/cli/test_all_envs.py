"""``--all-envs`` from the command line to the report, and the application without a terminal."""

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

from tests.cli.calling import ROOT, envcheck


def environments(tmp_path: Path, *arguments: str, **variables: str) -> list[dict[str, Any]]:
    result = envcheck("check", "--json", "--scope", "env", *arguments, cwd=tmp_path, HOME=str(tmp_path), **variables)
    listing = json.loads(result.out)["snapshot"]["environments"]
    assert listing["complete"]
    return [item for item in listing["items"] if item["key"].startswith(str(tmp_path))]


def test_every_environment_is_listed_and_the_first_is_judged(tmp_path: Path) -> None:
    tmp_path = tmp_path.resolve()
    first, second, third = tmp_path / ".venv", tmp_path / "project" / "venv", tmp_path / ".virtualenvs" / "old"
    for place in (first, second, third):
        venv.create(place, symlinks=True)
    found = environments(tmp_path, "--all-envs")
    assert [item["key"] for item in found if item["judged"]] == [str(first)]
    assert {item["key"]: item["why"] for item in found} == {
        str(first): "./.venv", str(second): "--all-envs", str(third): "--all-envs",
    }  # fmt: skip
    assert environments(tmp_path, ENVCHECK_ALL_ENVS="1") == found
    assert [item["key"] for item in environments(tmp_path)] == [str(first)]
    named = environments(tmp_path, "--all-envs", "--python", str(third))
    assert [item["key"] for item in named] == [str(third), str(first), str(second)]
    assert [item["judged"] for item in named] == [True, False, False]


# --- ``envcheck tui`` without a terminal, and a saved report that is judged again -----------------------------------
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
