"""A child that starts before its order is known serves the same as any, and outlives nobody."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from envcheck import bundle
from envcheck.cli import main
from envcheck.collect import gather as gathering
from envcheck.collect import starting
from envcheck.collect.catalog import all_probes
from envcheck.collect.starting import EARLY_PROBES, ISOLATED, Launch, Started, start
from tests.every import cases
from tests.known import known

PROBES = str(bundle.folder("probes"))
REQUEST: dict[str, Any] = {
    "root": "/", "cwd": "/", "python": [sys.executable], "all_envs": False, "own_prefix": sys.prefix, "variables": {},
}  # fmt: skip
LAUNCH = Launch(sys.executable, REQUEST)
EARLY_PROBE, CUDA, NVML = EARLY_PROBES


@pytest.fixture(autouse=True)
def none_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cores(monkeypatch, 2)
    yield
    starting.end_early()


def cores(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(count)))


def ended(started: Started) -> tuple[int, bytes]:
    """Its return code after its order was closed, and what it printed."""
    for descriptor in (started.order, started.facts):
        os.close(descriptor)
    code = started.process.wait(60)
    with closing(os.fdopen(started.noise, "rb")) as noise:
        return code, noise.read()


@cases("tell", partial(starting.send_early, machine=True), lambda _request: None)
def test_a_check_takes_the_child_that_waits(tell: Callable[[dict[str, Any]], None]) -> None:
    starting.start_early()
    tell(REQUEST)
    assert len(starting._waiting) == 1
    specs = [spec for spec in all_probes() if spec.name in ("environments", "libraries")]
    parts = gathering.gather(specs, REQUEST, scopes=("node", "container", "env"))
    assert not starting._waiting
    assert [one.executable for one in known(parts[0].environments).items] == [sys.executable]
    assert [part.runs[0].status for part in parts] == ["ok", "ok"]


def test_its_probe_is_the_first_of_those_that_run_together() -> None:
    specs = [spec for spec in all_probes() if spec.kind == "file" and not spec.early and "node" not in spec.scopes]
    assert specs[0].name == EARLY_PROBE


def test_another_folder_or_another_first_probe_is_not_for_it() -> None:
    starting.start_early()
    assert starting.take_early("/elsewhere", EARLY_PROBE, LAUNCH) is None
    assert starting.take_early(PROBES, "libraries", LAUNCH) is None
    taken = known(starting.take_early(PROBES, EARLY_PROBE, LAUNCH))
    assert starting.take_early(PROBES, EARLY_PROBE, LAUNCH) is None
    assert ended(taken) == (0, b"")


def test_one_that_was_asked_another_request_is_not_taken() -> None:
    starting.start_early()
    starting.send_early({**REQUEST, "cwd": "/elsewhere"}, machine=True)
    assert starting.take_early(PROBES, EARLY_PROBE, LAUNCH) is None
    assert starting._waiting


@cases("machine", True, False)
def test_where_cores_are_many_cuda_starts_early_too(monkeypatch: pytest.MonkeyPatch, *, machine: bool) -> None:
    cores(monkeypatch, 16)
    monkeypatch.setattr(starting, "_SIGNS", ("/nowhere", "/"))
    starting.start_early()
    starting.send_early(REQUEST, machine=machine)
    sent = {probe: child.started.sent_probe for probe, child in starting._waiting.items()}
    assert sent == {EARLY_PROBE: EARLY_PROBE, CUDA: CUDA if machine else "", NVML: ""}
    ordered = {probe: child.started.ordered for probe, child in starting._waiting.items()}
    assert ordered == {EARLY_PROBE: True, CUDA: machine, NVML: machine}
    pid = starting._waiting[CUDA].started.process.pid
    taken = known(starting.take_early(PROBES, CUDA, LAUNCH))
    assert taken.process.pid == pid
    os.kill(pid, signal.SIGKILL)
    assert ended(taken)[0] == -signal.SIGKILL


def test_without_a_sign_of_a_driver_cuda_does_not_start_early(monkeypatch: pytest.MonkeyPatch) -> None:
    cores(monkeypatch, 16)
    monkeypatch.setattr(starting, "_SIGNS", ("/nowhere",))
    starting.start_early()
    assert [*starting._waiting] == [EARLY_PROBE]
    assert starting.waits(EARLY_PROBE)
    assert not starting.waits(CUDA)


def test_an_order_longer_than_a_pipe_arrives() -> None:
    request = {**REQUEST, "variables": {"LONG": "x" * 200_000, "NO_UTF_8": "\udcff"}}
    starting.start_early()
    starting.send_early(request, machine=True)
    specs = [spec for spec in all_probes() if spec.name in ("environments", "libraries")]
    parts = gathering.gather(specs, request, scopes=("node", "container", "env"))
    assert [part.runs[0].status for part in parts] == ["ok", "ok"]


def test_a_check_asks_what_it_told_the_early_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken: list[Started | None] = []

    def noted(*order: Any) -> Started | None:
        taken.append(starting.take_early(*order))
        return taken[-1]

    monkeypatch.setattr(gathering, "take_early", noted)
    monkeypatch.chdir(tmp_path)
    for options in ((), ("--python", sys.executable, "--timeout", "60"), ("--all-envs",)):
        main.main(["check", "--format", "summary", "-q", *options])
        (child,) = [child for child in taken if child]
        assert child.sent_probe == EARLY_PROBE
        taken.clear()


def test_telling_none_is_no_fault() -> None:
    starting.send_early(REQUEST, machine=True)
    assert not starting._waiting


def test_a_child_in_another_environment_is_not_one_of_these() -> None:
    assert LAUNCH.is_plain
    others: list[dict[str, Any]] = [{"interpreter": "/other"}, {"variables": {}}, {"cwd": "/tmp"}, {"flags": ("-B",)}]
    assert not any(LAUNCH._replace(**other).is_plain for other in others)


def test_probes_that_cannot_be_imported_ahead_do_not_end_it(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise SystemError('broken')\n")
    assert ended(start(sys.executable, ISOLATED, os.environ, "/", str(tmp_path), "broken", "missing")) == (0, b"")


def test_one_that_nobody_needs_is_ended() -> None:
    starting.start_early()
    (waiting,) = starting._waiting.values()
    starting.end_early()
    assert not starting._waiting
    assert waiting.started.process.returncode == -signal.SIGKILL


@cases("arguments", ("--only", "no-such-rule"), ("--assume", "gpu==H100", "-q"), ())
def test_none_waits_after_a_check(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["check", "--format", "summary", *arguments])
    assert not starting._waiting
    capsys.readouterr()


def test_where_no_child_can_be_started_none_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    starting.start_early()
    assert not starting._waiting
