"""``envcheck check --plan``: exit status, the page, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import envcheck


def test_the_report_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\ntorch==2.0.1\n")
    result = envcheck("check", "--plan", "requirements.txt", "--assume", "gpu==B200", cwd=tmp_path)
    assert result.status == 1
    assert "torch 2.0.1 has no code for B200" in result.out
    assert "requirements.txt:2" in result.out
    assert "Assumed: gpu B200, os linux, machine x86_64" in result.out


def test_a_saved_report_is_judged_again_with_its_places(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.0.1\n")
    asked = ("--assume", "gpu==B200,os==linux,machine==x86_64")
    assert envcheck("check", "--plan", "requirements.txt", *asked, "-o", "json:r.json", cwd=tmp_path).status == 1
    again = envcheck("check", "--from", "r.json", *asked, "--json", cwd=tmp_path)
    checks = {check["rule"]: check for check in json.loads(again.out)["checks"]}
    assert checks["gpu-code-missing"]["location"] == {"file": "requirements.txt", "line": 1}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--plan", "gone.txt"), "envcheck: cannot read gone.txt"),
        (("--plan", "."), "cannot read .: Is a directory"),
        (("--plan", "notes.md"), "a plan is a requirements file"),
        (("--plan", "uv.lock"), "uv.lock:1: no valid TOML"),
        (("--plan", "ok.txt", "--deep"), "--deep is about an environment that exists"),
        (("--plan", "ok.txt", "--python", "x"), "--python is about an environment that exists"),
        (("--plan", "ok.txt", "--from", "x"), "--from is about an environment that exists"),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "uv.lock").write_text("torch\n")
    (tmp_path / "notes.md").write_text("torch==2.0.1\n")
    (tmp_path / "ok.txt").write_text("torch==2.0.1\n")
    result = envcheck("check", *arguments, cwd=tmp_path)
    assert result.status == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.err.count("\n") == 1


def test_a_line_that_is_not_understood_leaves_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("tqdm\ntorch=2\n")
    result = envcheck("check", "--plan", "requirements.txt", "--assume", "gpu==B200", cwd=tmp_path)
    assert result.status == 3
    assert "line 2 may install anything" in result.out
    assert "requirements.txt:2" in result.out


def test_without_assume_the_machine_at_hand_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.0.1\n")
    result = envcheck("check", "--plan", "requirements.txt", "--json", cwd=tmp_path)
    report = json.loads(result.out)
    assert [item["key"] for item in report["snapshot"]["environments"]["items"]] == ["requirements.txt"]
    assert "platform" in {run["name"] for run in report["probes"]}


@pytest.mark.parametrize("name", ["requirements.in", "requirements.txt"])
def test_a_shared_report_keeps_the_name_of_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("torch==2.0.1\n")
    result = envcheck("check", "--plan", name, "--assume", "gpu==B200", "--json", "--redact", cwd=tmp_path)
    checks = {check["rule"]: check for check in json.loads(result.out)["checks"]}
    assert checks["gpu-code-missing"]["location"] == {"file": name, "line": 1}
    assert checks["gpu-code-missing"]["id"] == f"gpu-code-missing@{name}:torch"


def test_one_rule_alone_is_never_green_by_what_it_could_not_judge(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("requests==2.32.0\n")
    (tmp_path / "b.txt").write_text("torch==2.0.1\n")
    asked = ("--assume", "gpu==A100,driver==515.105.01", "--only", "gpu-code-missing")
    assert envcheck("check", "--plan", "a.txt", *asked, cwd=tmp_path).status == 3
    assert envcheck("check", "--plan", "b.txt", *asked, cwd=tmp_path).status == 0
