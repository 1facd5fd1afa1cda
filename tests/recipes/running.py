"""Run the steps of the composite action as a runner does: an expression is replaced in ``env``, never in a script."""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.installed import INSTALLED

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: dict[str, dict[str, Any]] = {step["id"]: step for step in ACTION["runs"]["steps"] if "run" in step}
_EXPRESSION = re.compile(r"\$\{\{ (?:inputs|steps)\.([\w.-]+) \}\}")


def run(argv: Sequence[str], cwd: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program with these variables, which finds envcheck as a wheel installs it, and reads nothing."""
    own = {**variables, "PYTHONPATH": str(INSTALLED)}
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.run(
        argv, cwd=cwd, env=own, stdin=nothing, stdout=pipe, stderr=pipe, text=True, check=False, timeout=300
    )


class Ran(NamedTuple):
    """What a step left behind."""

    status: int
    out: str
    err: str
    outputs: dict[str, str]
    summary: str


def run_step(
    name: str,
    cwd: Path,
    inputs: Mapping[str, str],
    known: Mapping[str, str],
    variables: Mapping[str, str] | None = None,
) -> Ran:
    """Run the step with id ``name``; ``known`` holds the outputs of other steps, such as ``install.outputs.bin``."""
    unknown = set(inputs) - set(ACTION["inputs"])
    assert not unknown, f"the action has no input {unknown}"
    values = {key: str(given["default"]) for key, given in ACTION["inputs"].items()} | dict(inputs) | dict(known)
    step = STEPS[name]
    runner = cwd.parent / f"{cwd.name}.runner"
    (runner / "temp").mkdir(parents=True, exist_ok=True)
    script, output, summary = (runner / part for part in (f"{name}.sh", f"{name}.output", "summary.md"))
    script.write_text(step["run"], encoding="utf-8")
    output.write_text("", encoding="utf-8")
    summary.write_text("", encoding="utf-8")
    done = run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd,
        {
            **{key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ},
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(summary),
            "RUNNER_TEMP": str(runner / "temp"),
            **{key: _EXPRESSION.sub(lambda found: values[found[1]], text) for key, text in step.get("env", {}).items()},
            **(variables or {}),
        },
    )
    outputs = dict(line.split("=", 1) for line in output.read_text(encoding="utf-8").splitlines())
    return Ran(done.returncode, done.stdout, done.stderr, outputs, summary.read_text(encoding="utf-8"))
