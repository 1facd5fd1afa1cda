"""``envcheck node``: what was found a short while ago is told as it was found, and nothing else is."""

import configparser
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from envcheck.cli import kept
from envcheck.cli.main import main
from envcheck.cli.parser import parse
from envcheck.report.saved import read_report
from tests.cli.calling import ROOT, envcheck
from tests.every import cases
from tests.installed import INSTALLED

SAID = {
    "text": [1, "FAIL  GPU 3 is lost"],
    "slurm-reason": [1, "envcheck: gpu-lost gpu3\n"],
    "node-problem-detector": [1, "gpu-lost: GPU 3 is lost\n"],
}


def keep(folder: Path, age: float = 0.0, **changed: Any) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = {"boot": kept.boot(), "at": kept.since_start() - age, "said": SAID, **changed}
    (folder / kept.KEPT).write_text(json.dumps(found))
    (folder / kept.KEPT).chmod(0o600)
    return folder


def node(folder: Path, *words: str) -> tuple[int, str, str]:
    return envcheck("node", "--runtime-dir", str(folder), *words, cwd=folder)


@cases("form, told", ("text", "FAIL  GPU 3 is lost (5 min ago)\n"), ("slurm-reason", "envcheck: gpu-lost gpu3\n"))
def test_what_is_kept_is_told_with_its_exit_status(tmp_path: Path, form: str, told: str) -> None:
    assert node(keep(tmp_path / "run", 300), "--format", form) == (1, told, "")
    assert node(keep(tmp_path / "run", 300), f"--format={form}", "--max-age=301s")[:2] == (1, told)


@cases("words, age, told",
    ((), 601, "no verdict: what {} keeps is 10 min old, more than 10m"), (("--max-age", "90s"), 95, "is 95 s old"),
    (("--max-age", "0"), 1, "is 1 s old"), ((), -5, "old, more than"),
)  # fmt: skip
def test_what_is_too_old_is_no_verdict(tmp_path: Path, words: tuple[str, ...], age: float, told: str) -> None:
    """Nor is what would come from a time to come."""
    status, out, err = node(keep(tmp_path / "run", age), *words)
    assert (status, out) == (3, "")
    assert told.format(tmp_path / "run") in err


@cases("changed, told",
    ({"boot": "another"}, "before the machine started"), ({"said": {}}, "cannot be used"),
    ({"at": "x"}, "cannot be used"), ({"said": []}, "cannot be used"), ({"at": float("nan")}, "old, more than"),
)  # fmt: skip
def test_what_another_start_or_nobody_wrote_is_no_verdict(tmp_path: Path, changed: dict[str, Any], told: str) -> None:
    status, out, err = node(keep(tmp_path / "run", **changed))
    assert (status, out, told in err) == (3, "", True)


def test_nothing_kept_is_no_verdict(tmp_path: Path) -> None:
    assert node(tmp_path)[0] == 3
    assert "keeps nothing" in node(tmp_path)[2]
    assert "keeps nothing" in envcheck("node", "--runtime-dir", f"{tmp_path}/none", cwd=tmp_path).err


def test_what_others_could_write_does_not_count(tmp_path: Path) -> None:
    place = keep(tmp_path / "run")
    for path, mode in ((place, 0o770), (place, 0o707), (place / kept.KEPT, 0o606)):
        before = path.stat().st_mode
        path.chmod(mode)
        status, _, err = node(place)
        assert (status, "can be written by another user" in err) == (3, True), oct(mode)
        path.chmod(before)
    linked = tmp_path / "linked"
    linked.symlink_to(place)
    assert node(linked)[0] == 3
    (place / kept.KEPT).rename(tmp_path / "elsewhere")
    (place / kept.KEPT).symlink_to(tmp_path / "elsewhere")
    assert node(place)[0] == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_another_user_wrote_does_not_count(tmp_path: Path) -> None:
    place = keep(tmp_path / "run")
    os.chown(place / kept.KEPT, 12345, -1)
    assert node(place)[0] == 3


def test_a_look_is_kept_for_those_who_ask_later(tmp_path: Path) -> None:
    place = tmp_path / "run"
    looked = node(tmp_path, "--look", "--runtime-dir", str(place), "--format", "slurm-reason")
    assert node(place, "--format", "slurm-reason") == looked
    assert node(place, "--format", "node-problem-detector")[1]
    assert {path.name: path.stat().st_mode & 0o777 for path in (place, *place.iterdir())} == {
        "run": 0o700, "node.json": 0o600, "report.json": 0o600,
    }  # fmt: skip
    report = read_report((place / "report.json").read_bytes())
    assert {check.scope for check in report.checks} == {"node"}
    assert looked[0] == report.exit_code
    assert report.headline in node(place)[1]


def test_a_look_is_not_kept_where_others_can_write(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert node(tmp_path, "--look")[0] == 2
    assert not [*tmp_path.iterdir()]


@cases("words", ("--max-age", "10x"), ("--max-age", ""), ("--max-age", "-5"), ("--max-age",), ("--format", "json"),
    ("--look", "--max-age", "1m"), ("--nothing",), ("10m",))  # fmt: skip
def test_a_wrong_word_is_refused_as_everywhere(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert node(keep(tmp_path / "run"), *words)[0] == 2


def test_variables_count_as_everywhere(tmp_path: Path) -> None:
    asked = {"ENVCHECK_RUNTIME_DIR": str(keep(tmp_path / "run", 300)), "ENVCHECK_FORMAT": "slurm-reason"}
    assert envcheck("node", cwd=tmp_path, **asked).out == "envcheck: gpu-lost gpu3\n"
    assert envcheck("node", cwd=tmp_path, **asked, ENVCHECK_MAX_AGE="1m").status == 3
    assert envcheck("node", cwd=tmp_path, **asked, ENVCHECK_FAILON="fail").status == 2


def test_nothing_is_imported_that_a_job_would_wait_for(tmp_path: Path) -> None:
    """The parser alone takes four times as long as all the rest."""
    place = keep(tmp_path / "run")
    program = (
        "import sys; from envcheck.cli.main import main; "
        f"status = main(['node', '--runtime-dir', {str(place)!r}, '--format', 'slurm-reason']); "
        "print(status, 'msgspec' in sys.modules, 'argparse' in sys.modules)"
    )
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(INSTALLED)}
    done = subprocess.run(
        [sys.executable, "-S", "-c", program], env=variables, capture_output=True, text=True, check=True
    )
    assert done.stdout == "envcheck: gpu-lost gpu3\n1 False False\n"


def test_users_have_folders_of_their_own(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1000")
    assert kept.place_of("") == "/run/user/1000/envcheck"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert main(["node"]) == 2
    assert "--runtime-dir" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert kept.place_of("") == "/run/envcheck"


def test_the_units_look_where_the_scripts_ask() -> None:
    units = {}
    for name in ("service", "timer"):
        units[name] = configparser.ConfigParser(interpolation=None)
        units[name].read(ROOT / f"docs/fleet/systemd/envcheck-node.{name}")
    service = units["service"]["Service"]
    options = parse(shlex.split(service["ExecStart"])[1:], {})
    assert (options.verb, options.look, options.runtime_dir) == ("node", True, None)
    assert (f"/run/{service['RuntimeDirectory']}", service["RuntimeDirectoryMode"]) == (kept._ROOT, "0700")
    assert service["RuntimeDirectoryPreserve"] == "yes"  # else it goes when the look ends
    assert units["timer"]["Timer"]["OnUnitInactiveSec"] == "5min"
    for name in ("prolog", "health"):
        text = (ROOT / f"docs/fleet/slurm/{name}.sh").read_text()
        (line,) = [each for each in text.splitlines() if each.startswith("said=")]
        assert parse(shlex.split(line.partition('"$ENVCHECK" ')[2].partition(" 2>&1")[0]), {}).max_age == "10m"
        assert kept._seconds("10m") == 600


@cases("age, ended", (60, 1), (700, 0))
def test_the_prolog_of_the_pages_passes_on_what_is_kept(tmp_path: Path, age: float, ended: int) -> None:
    """What is too old lets the job run."""
    place = keep(tmp_path / "run", age)
    own = tmp_path / "envcheck"
    own.write_text(f'#!/bin/sh\nexec {sys.executable} -m envcheck "$@" --runtime-dir {place}\n')
    own.chmod(0o755)
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    variables = {"ENVCHECK": str(own), "ENVCHECK_SYS": str(tmp_path / "sys"), "PYTHONPATH": str(INSTALLED)}
    script = ROOT / "docs/fleet/slurm/prolog.sh"
    done = subprocess.run(
        ["sh", script], env={"PATH": os.environ["PATH"], "ENVCHECK_SECONDS": "60", **variables}, check=False, timeout=90
    )
    assert done.returncode == ended
