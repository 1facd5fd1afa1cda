"""A child that starts before its order is known serves the same as any, and outlives nobody."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from envcheck import bundle, cli
from envcheck.collect import early
from envcheck.collect.catalog import all_probes
from envcheck.collect.child import Launch
from envcheck.collect.gather import gather
from envcheck.collect.starting import ISOLATED, Started, start

PROBES = str(bundle.folder("probes"))
REQUEST: dict[str, Any] = {
    "root": "/",
    "cwd": "/",
    "python": [sys.executable],
    "all_envs": False,
    "own_prefix": sys.prefix,
    "variables": {},
}


@pytest.fixture(autouse=True)
def none_waits() -> Iterator[None]:
    yield
    early.end()


def ended(started: Started) -> tuple[int, bytes]:
    """Its return code after its order was closed, and what it printed."""
    for descriptor in (started.order, started.facts):
        os.close(descriptor)
    code = started.process.wait(60)
    with closing(os.fdopen(started.noise, "rb")) as noise:
        return code, noise.read()


def test_a_check_takes_the_child_that_waits() -> None:
    early.begin()
    (waiting,) = early._waiting
    specs = [spec for spec in all_probes() if spec.name in early.PROBES]
    parts = gather(specs, REQUEST, scopes=("node", "container", "env"))
    assert not early._waiting
    assert waiting[1].process.returncode == 0
    environments = parts[0].environments
    assert environments is not None
    assert [one.executable for one in environments.items] == [sys.executable]
    assert [part.runs[0].status for part in parts] == ["ok", "ok"]


def test_its_probes_are_those_that_run_together() -> None:
    specs = [spec for spec in all_probes() if spec.kind == "file" and not spec.early and "node" not in spec.scopes]
    assert [spec.name for spec in specs[: len(early.PROBES)]] == list(early.PROBES)


def test_another_folder_or_another_first_probe_is_not_for_it() -> None:
    early.begin()
    assert early.take("/elsewhere", early.PROBES[0]) is None
    assert early.take(PROBES, early.PROBES[1]) is None
    taken = early.take(PROBES, early.PROBES[0])
    assert taken is not None
    assert early.take(PROBES, early.PROBES[0]) is None
    assert ended(taken) == (0, b"")


def test_a_child_in_another_environment_is_not_one_of_these() -> None:
    assert Launch(sys.executable, {}).is_plain
    for launch in (
        Launch("/usr/bin/other", {}),
        Launch(sys.executable, {}, variables={}),
        Launch(sys.executable, {}, cwd="/"),
        Launch(sys.executable, {}, flags=("-B",)),
    ):
        assert not launch.is_plain


def test_probes_that_cannot_be_imported_ahead_do_not_end_it(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise SystemError('broken')\n")
    assert ended(start(sys.executable, ISOLATED, os.environ, None, str(tmp_path), "broken", "missing")) == (0, b"")


def test_one_that_nobody_needs_is_ended() -> None:
    early.begin()
    (waiting,) = early._waiting
    early.end()
    assert not early._waiting
    assert waiting[1].process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("arguments", [("--only", "no-such-rule"), ("--assume", "gpu==H100", "-q"), ()])
def test_none_waits_after_a_check(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["check", "--format", "summary", *arguments])
    assert not early._waiting
    capsys.readouterr()


def test_where_no_child_can_be_started_none_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    early.begin()
    assert not early._waiting
