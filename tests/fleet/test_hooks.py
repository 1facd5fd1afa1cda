"""What is run for a node that fails twice, and when nothing is."""

import json
from pathlib import Path
from typing import Any

import pytest

from envcheck.cli.verbs.fleet import command_of
from envcheck.errors import UsageError
from tests.cli.calling import Result, envcheck
from tests.every import cases
from tests.fleet.made import healthy
from tests.fleet.test_fleet import write

COMMAND = "{folder}/hook --name={{node}} {{reason}}"
HOOK = """#!/bin/sh
printf '%s|' "$@" >> {folder}/ran
echo >> {folder}/ran
case $1 in *bad*) echo no such node >&2; exit 3;; esac
"""
LOST = {
    "id": "gpu-lost@3", "rule": "gpu-lost", "scope": "node", "layer": "hardware", "status": "fail",
    "subject": {"key": "GPU 3"}, "title": "GPU 3 is lost", "message": "", "decided_by": "measured",
}  # fmt: skip


def lost(report: dict[str, Any], *, name: str = "", rule: str = "gpu-lost") -> None:
    report |= {"verdict": "fail", "exit_code": 1, "checks": [{**LOST, "rule": rule}, *report["checks"]]}
    report["host"] = name or report["host"]


class Site:
    """A folder of reports, looked at twice, and the command that is run."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder, self.reports = folder, folder / "reports"
        self.reports.mkdir()
        (folder / "hook").write_text(HOOK.format(folder=folder))
        (folder / "hook").chmod(0o755)
        self.made = healthy(nodes)
        for report in self.made:
            report["measurements"], report["snapshot"]["environments"] = [], None

    def look(self, when: str, *more: str) -> Result:
        for report in self.made:
            report["created"] = f"2026-11-29T{when}:00Z"
        for number, report in enumerate(self.made):
            (self.reports / f"{number}.json").write_text(json.dumps(report))
        return envcheck("fleet", "--reports", "reports", "-q", "-o", "jsonl:fleet.jsonl", *more, cwd=self.folder)

    def act(self, when: str, *more: str) -> Result:
        return self.look(when, "--since", "fleet.jsonl", "--on-finding", COMMAND.format(folder=self.folder), *more)

    @property
    def ran(self) -> list[str]:
        ran = self.folder / "ran"
        return ran.read_text().splitlines() if ran.exists() else []


def test_a_node_that_fails_twice_is_acted_on(tmp_path: Path) -> None:
    site = Site(tmp_path, 4)
    lost(site.made[1])
    site.look("10:00")
    told = site.act("10:05")
    assert site.ran == ["--name=node00001|envcheck: gpu-lost|"]
    assert f"envcheck: node00001: {tmp_path}/hook --name=node00001 'envcheck: gpu-lost'\n" in told.err
    assert told.status == 1


def test_once_is_not_enough(tmp_path: Path) -> None:
    """Nor is another rule, nor the same report again."""
    site = Site(tmp_path, 4)
    site.look("10:00")
    lost(site.made[1])
    site.act("10:05")
    site.act("10:05")
    site.made[1]["checks"][0]["rule"] = "gpu-hot"
    site.act("10:10")
    assert site.ran == []
    site.act("10:15")
    assert site.ran == ["--name=node00001|envcheck: gpu-hot|"]


@cases("words, ran", ((), 0), (("--on-finding-limit", "50"), 2), (("--on-finding-limit", "49"), 0))
def test_of_too_many_none_is_acted_on(tmp_path: Path, words: tuple[str, ...], ran: int) -> None:
    site = Site(tmp_path, 4)
    for report in site.made[:2]:
        lost(report)
    site.look("10:00")
    told = site.act("10:05", *words)
    assert len(site.ran) == ran
    assert ("none is acted on" in told.err) is (ran == 0)


def test_a_dry_run_only_says_what_would_run(tmp_path: Path) -> None:
    site = Site(tmp_path, 4)
    lost(site.made[1])
    site.look("10:00")
    told = site.act("10:05", "--dry-run")
    assert site.ran == []
    assert "envcheck: node00001: would run " in told.err


def test_what_is_no_plain_name_is_left_alone(tmp_path: Path) -> None:
    site = Site(tmp_path, 9)
    plain = dict.fromkeys(("-rf", "a b", "$(reboot)", "{rule}", "a/b", "n1\n"), "gpu-lost")
    for report, (name, rule) in zip(site.made, {**plain, "n2": "gpu lost", "n3": "--all"}.items(), strict=False):
        lost(report, name=name, rule=rule)
    site.look("10:00")
    told = site.act("10:05", "--on-finding-limit", "100")
    assert site.ran in ([], ["--name=n1|envcheck: gpu-lost|"])
    assert told.err.count("left alone") == 8 - len(site.ran)


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    site = Site(tmp_path, 4)
    lost(site.made[1], name="bad")
    site.look("10:00")
    assert f"'envcheck: gpu-lost' failed: {tmp_path}/hook: no such node\n" in site.act("10:05").err
    (tmp_path / "hook").unlink()
    assert "cannot be started: No such file" in site.act("10:10").err


@cases("text", "", "kubectl cordon", "'unclosed {node}", "{node} now")
def test_a_command_without_a_node_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--on-finding"):
        command_of(text)


@cases("words", ("--on-finding", "x {node}"), ("--dry-run",), ("--on-finding-limit", "3"))
def test_without_an_earlier_look_nothing_is_acted_on(tmp_path: Path, words: tuple[str, ...]) -> None:
    told = envcheck("fleet", "--reports", str(write(tmp_path, healthy(1))), *words, cwd=tmp_path)
    assert (told.status, "needs --" in told.err) == (2, True)
