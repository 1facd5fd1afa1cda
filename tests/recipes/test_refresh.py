"""The workflow that refreshes the rows each day: the change that it opens, with a remote and ``gh`` of the test's."""

import os
import re
import subprocess
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version

from envcheck.cli.parser import parse
from envcheck.refresh.wheel_files import Release
from scripts.aging import aging
from scripts.current import lag
from tests.every import tabled
from tests.recipes.running import ROOT

WORKFLOW: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "refresh.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = WORKFLOW["jobs"]["rows"]["steps"]
GH = """\
#!/bin/sh
echo "$@" >> "$CALLS"
case "$2" in edit) [ -e "$OPEN" ];; create) touch "$OPEN";; esac
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A checkout with a folder of rows, as a runner has it."""
    place = tmp_path / "repository"
    (place / "matrix").mkdir(parents=True)
    (place / "matrix" / "a.toml").write_text("a = 1\n")
    for command in ("init -q -b main", "add .", "-c user.name=a -c user.email=a@b.c commit -q -m rows"):
        subprocess.run(["git", *command.split()], cwd=place, check=True)
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "remote")], check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    (tmp_path / "changes.txt").write_text("torch 2.16.0: new row: CUDA 13.2\nwrote matrix/torch.toml\n")
    (tmp_path / "current.txt").write_text("40 of 40 names are current\n")
    (tmp_path / "aging.txt").write_text("91 days: cuda/notes, 5 rows: Notes: https://docs.nvidia.com\n")
    return place


def open_change(repository: Path) -> list[str]:
    """What ``gh`` was called with by the step."""
    own, calls = repository.parent, repository.parent / "calls"
    calls.write_text("")
    variables = {
        "PATH": f"{own / 'bin'}:{os.environ['PATH']}", "HOME": str(own), "RUNNER_TEMP": str(own), "GH_TOKEN": "x",
        "REMOTE": str(own / "remote"), "CALLS": str(calls), "OPEN": str(own / "open"),
    }  # fmt: skip
    opens, lags = (["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]] for step in STEPS[-2:])
    done = subprocess.run(opens, cwd=repository, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for said, status in (
        ("x 1: the rows end with 0\n39 of 40 names are current", 1),
        ("40 of 40 names are current", 0),
    ):
        (own / "current.txt").write_text(f"{said}\n")
        assert subprocess.run(lags, cwd=repository, env=variables, stdout=-3, check=False).returncode == status
    return [line.split()[1] for line in calls.read_text().splitlines()]


def test_a_change_has_a_line_for_each_row_and_what_grew_old(repository: Path) -> None:
    (repository / "matrix" / "a.toml").write_text("a = 2\n")
    assert open_change(repository) == ["edit", "create"]
    text = (repository.parent / "text.md").read_text()
    assert "    torch 2.16.0: new row: CUDA 13.2\n" in text
    assert "    91 days: cuda/notes, 5 rows: " in text
    pushed = subprocess.run(
        ["git", "show", "rows:matrix/a.toml"], cwd=repository.parent / "remote", capture_output=True, check=True
    )
    assert pushed.stdout == b"a = 2\n"
    subprocess.run(["git", "switch", "-q", "main"], cwd=repository, check=True)
    (repository / "matrix" / "a.toml").write_text("a = 3\n")
    assert open_change(repository) == ["edit"]


def test_where_nothing_changed_nothing_is_opened(repository: Path) -> None:
    assert open_change(repository) == []
    assert list((repository.parent / "remote" / "refs" / "heads").iterdir()) == []


def test_what_the_steps_start_is_there() -> None:
    scripts = [step["run"] for step in STEPS if "run" in step]
    words = [line.split() for script in scripts for line in script.splitlines() if line.strip()]
    assert [parse(line[1 : line.index("|")], {}) for line in words if line[0] == "envcheck"]
    named = [word for line in words for word in line if word.startswith(("scripts/", "tests/", "gpu-envcheck"))]
    assert len(named) == 7
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    steps = [step for job in release["jobs"].values() for step in job["steps"]]
    named += [word for step in steps for word in step.get("run", "").split() if word.startswith("recipes/")]
    assert len(named) == 8
    assert all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", step["uses"]) for step in steps if "uses" in step)
    assert [word for word in named if not (ROOT / word).exists()] == []


def test_a_source_that_nobody_read_for_long_is_listed(tmp_path: Path) -> None:
    days = {"old": "2026-01-01", "older": "2025-01-01", "new": "2026-04-01", "by-wheels": "2020-01-01"}
    sources = "".join(
        f'[sources.{key}]\ntitle = "{key} of CUDA"\naddress = "https://docs.nvidia.com"\nread = "{read}"\n'
        for key, read in days.items()
    )
    rows = "".join(f'[[fragment]]\nname = "{key}"\npattern = "x"\nsource = ["old"]\n' for key in "ab")
    generated = '[generated.demo]\nsource = "by-wheels"\n'
    (tmp_path / "rows.toml").write_text(generated + sources + rows)
    told = [line.partition(" of CUDA")[0] for line in aging(tmp_path, date(2026, 4, 2), 90)]
    assert told == ["456 days: rows/older, 0 rows: older", "91 days: rows/old, 2 rows: old"]


@tabled
def test_a_name_that_the_rows_lag_behind_is_told(name: str, versions: str, told: str) -> None:
    content: dict[str, list[dict[str, Any]]] = {
        "published": [
            {"name": "a", "releases": ["1.0 1.1"]},
            {"name": "b", "releases": ["1.0", "1.1"]},
            {"name": "c", "releases": ["1.0"]},
        ],
        "release": [{"name": "a", "versions": ">=1.0,<1.2"}, {"name": "b", "versions": "==1.0"}],
        "torch": [{"version": "2.1.0"}],
        "cuda": [{"releases": ["13.4.1"]}],
    }
    assert lag(name, [Release(Version(version), ()) for version in versions.split()], content) == told
