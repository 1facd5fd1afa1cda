"""A machine for trials: facts about environments and GPUs that a probe tells, and deep probes."""

import os
import sys
from typing import Any

from envcheck.model.merge import merge
from envcheck.model.snapshot import Framework, ProbeRun, Snapshot, Trial

Key = tuple[str, str | None]  # Of a row: the names of its probe and of the framework
ENVIRONMENT = "/home/ada/.venv"
LOOK = """
import json, os, sys, time
ASKED = ("environment", "framework", "gpu", "no_gpu", "libraries")
def collect(tree, out):
    framework = tree.request["framework"]
    started = time.monotonic()
    time.sleep(tree.request.get("sleep", 0.05))
    try:
        import planted_package
        found = planted_package.WHERE
    except ImportError:
        found = "none"
    values = {
        "executable": sys.executable,
        "flags": f"{sys.flags.isolated}{sys.flags.no_site}{sys.flags.dont_write_bytecode}",
        "path": json.dumps(sys.path),
        "cwd": os.getcwd(),
        "listed": json.dumps(os.listdir()),
        "found": found,
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "unset"),
        "variables": json.dumps(dict(os.environ)),
        "request": json.dumps({key: tree.request[key] for key in ASKED}),
        "name": __name__,
        "start": str(started),
        "end": str(time.monotonic()),
    }
    name = framework["name"] if framework else "libraries"
    out.fact({"variables": {"values": {name + ":" + key: value for key, value in values.items()}}})
"""
SENT = """
def tell(tree, out, **trial):
    framework = {"name": tree.request["framework"]["name"], "trial": {"source": "trial", **trial}}
    environment = {"key": tree.request["environment"], "frameworks": {"items": [framework], "complete": False}}
    out.fact({"environments": {"items": [environment], "complete": False}})
"""
DEEP: dict[str, Any] = {"kind": "deep", "uses": "gpu", "scopes": ["env"], "fills": ["environments.frameworks.trial"]}
H200 = {"uuid": "GPU-1", "index": 0, "cuda_ordinal": 0, "memory": {"total": 150 << 30, "used": 4 << 20}}


def environment(*frameworks: str, **changes: Any) -> dict[str, Any]:
    items = [{"name": name, "version": "1.0"} for name in frameworks]
    python = "{}.{}.{}".format(*sys.version_info)
    base = {"key": ENVIRONMENT, "judged": True, "executable": sys.executable, "python": python}
    return {**base, "frameworks": {"items": items, "complete": True}, **changes}


class Machine:
    """A folder of probes that tell of environments and GPUs, beside the deep ones of a test."""

    def __init__(self, probes: Any) -> None:
        self.probes = probes
        self.facts: dict[str, Any] = {"gpus": {"items": [H200], "complete": True}}
        self.variables: dict[str, str] = dict(os.environ)
        self.cwd = str(probes.folder)

    def add(self, name: str, body: str, *tries: str, **header: Any) -> None:
        self.probes.add(name, SENT + body, **{**DEEP, "tries": list(tries) or ["torch"], **header})

    def run(self, *environments: dict[str, Any], force: bool = False, **options: Any) -> dict[Key, ProbeRun]:
        """Try everything; rows by (probe, framework)."""
        listing = {"items": list(environments or [environment("torch")]), "complete": True}
        facts = {**self.facts, "environments": listing}
        self.probes.add("facts", f"def collect(tree, out):\n    out.fact({facts!r})\n", scopes=["env"])
        request = {
            "root": "/", "cwd": self.cwd, "variables": self.variables, "python": [], **options.pop("request", {}),
        }  # fmt: skip
        options = {"scopes": ["env"], "deep": True, "force": force, **options}
        self.probes.run_all(request, **options)
        self.snapshot: Snapshot = merge(self.probes.parts.values())
        return {(run.name, run.framework): run for part in self.probes.parts.values() for run in part.runs}

    def seen(self, name: str = "torch") -> dict[str, str]:
        """What a probe LOOK saw when it tried ``name``."""
        values = self.snapshot.variables.values if self.snapshot.variables else {}
        return {key.partition(":")[2]: value for key, value in values.items() if key.partition(":")[0] == name}

    def framework(self, name: str = "torch", key: str = ENVIRONMENT) -> Framework:
        assert self.snapshot.environments
        (found,) = [item for item in self.snapshot.environments.items if item.key == key]
        assert found.frameworks
        (framework,) = [item for item in found.frameworks.items if item.name == name]
        return framework

    def trial(self, name: str = "torch") -> Trial:
        trial = self.framework(name).trial
        assert trial
        return trial
