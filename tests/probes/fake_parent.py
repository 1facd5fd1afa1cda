"""The least that can stand for the program that starts probes: one probe in one process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from envcheck.model.merge import merge
from envcheck.model.snapshot import Driver, Gpu, Snapshot

CHILD = """
import importlib, sys
sys.path[:0] = {path!r}
from probes.common.out import Out
from probes.common.tree import Tree
for name in {blocked!r}:
    sys.modules[name] = None
out = Out({probe!r}, lambda line: (sys.stdout.buffer.write(line), sys.stdout.buffer.flush()))
importlib.import_module("probes." + {probe!r}).collect(Tree({request!r}), out)
out.done()
sys.stderr.write("numpy" if "numpy" in sys.modules else "")
"""


@dataclass(frozen=True)
class Ran:
    """What a probe contributed, how it ended, and what it wrote to stderr."""

    snapshot: Snapshot
    status: str
    noise: str
    detail: str

    @property
    def driver(self) -> Driver:
        assert self.snapshot.driver
        return self.snapshot.driver

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        return self.snapshot.gpus.items if self.snapshot.gpus else ()


def run_child(
    probe: str,
    *,
    path: Sequence[Path] = (),
    variables: Mapping[str, str | None] | None = None,
    blocked: tuple[str, ...] = (),
    more: Mapping[str, object] | None = None,
) -> Ran:
    """Run a probe with ``path`` before every other place of import and without the modules ``blocked``.

    ``variables`` are set in its environment, or taken away where the value is None. ``more`` is put into the request.
    """
    request = {"root": "/", "variables": {}, **(more or {})}
    code = CHILD.format(path=[*map(str, path), *sys.path], probe=probe, blocked=blocked, request=request)
    environment = {key: value for key, value in {**os.environ, **(variables or {})}.items() if value is not None}
    command = [sys.executable, "-I", "-c", code]
    child = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=120)
    noise = child.stderr.decode("utf-8", "replace")
    assert child.returncode == 0, noise
    messages = [json.loads(line) for line in child.stdout.splitlines()]
    facts = [msgspec.convert(message["fact"], Snapshot) for message in messages if "fact" in message]
    done = messages[-1]["done"]
    return Ran(merge(facts), done["status"], noise, done.get("detail", ""))
