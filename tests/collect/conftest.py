"""Probes written by the tests, run in real children, and the proof that nothing of them stays behind."""

import shutil
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envcheck import bundle
from envcheck.collect.catalog import probes_in
from envcheck.collect.gather import gather
from envcheck.model.events import Event
from envcheck.model.snapshot import ProbeRun, Snapshot
from tests.collect.trying import Machine

TEST_MARK = "ENVCHECK_TEST_OF_COLLECT"

HEALTHY = """
def collect(tree, out):
    out.progress("looking")
    out.fact({"variables": {"values": {NAME: "seen"}}})
"""


class Probes:
    """A folder of probes, and what became of them when they were run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self.parts: dict[str, Snapshot] = {}
        folder.mkdir()
        shutil.copytree(bundle.folder("probes") / "common", folder / "common", dirs_exist_ok=True)

    def add(self, name: str, body: str, *, kind: str = "file", seconds: float = 60.0, **header: object) -> None:
        """Write a probe; ``NAME`` in its body is its name."""
        fields = {"title": f"Title of {name}", "kind": kind, "seconds": seconds, "uses": "files"}
        literal = {**fields, "scopes": ["node"], "fills": ["variables"], **header}
        text = f"PROBE = {literal!r}\nNAME = {name!r}\n" + textwrap.dedent(body)
        (self.folder / f"{name}.py").write_text(text)

    def add_healthy(self, *names: str, **header: Any) -> None:
        for name in names:
            self.add(name, HEALTHY, **header)

    def run(self, request: dict[str, Any] | None = None, **options: Any) -> dict[str, ProbeRun]:
        """Gather from all probes; return their rows by name."""
        self.run_all(request, **options)
        assert all(len(part.runs) == 1 for part in self.parts.values())
        return {name: part.runs[0] for name, part in self.parts.items()}

    def run_all(self, request: dict[str, Any] | None = None, **options: Any) -> None:
        """Gather from all probes, of which some may have several rows."""
        specs = probes_in(self.folder)
        options = {"scopes": ["node"], "on_event": self.events.append, "folder": self.folder, **options}
        parts = gather(specs, request or {"root": "/"}, **options)
        assert [{run.name for run in part.runs} for part in parts] == [{spec.name} for spec in specs]
        self.parts = {part.runs[0].name: part for part in parts}

    def facts(self, name: str) -> dict[str, str]:
        """The variables that a probe sent as facts."""
        variables = self.parts[name].variables
        return variables.values if variables else {}

    def assert_healthy(self, *names: str) -> None:
        for name in names:
            run = self.parts[name].runs[0]
            assert (run.status, run.detail, self.facts(name)) == ("ok", "", {name: "seen"})


@pytest.fixture
def probes(tmp_path: Path) -> Probes:
    return Probes(tmp_path / "probes")


@pytest.fixture
def machine(probes: Probes) -> Machine:
    return Machine(probes)


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every descendant of the test inherits a mark of its own; after the test none of them may be there."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(TEST_MARK, mark)
    yield
    until = time.monotonic() + 1.0
    while marked(mark) and time.monotonic() < until:
        time.sleep(0.01)
    assert marked(mark) == []


def marked(mark: str) -> list[int]:
    """The processes that were started with the mark in their environment."""
    entry = f"{TEST_MARK}={mark}".encode()
    return [int(path.name) for path in Path("/proc").glob("[0-9]*") if entry in environment(path).split(b"\0")]


def environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
