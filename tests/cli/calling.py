"""Run ``envcheck`` as a user would: another process, its own environment, stdout and stderr apart."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Result(NamedTuple):
    """What a run left behind."""

    status: int
    out: str
    err: str


def envcheck(*arguments: str, cwd: Path, stdin: str | bytes = b"", **variables: str) -> Result:
    """Run the command line in ``cwd`` with nothing of the caller's environment but PATH and HOME."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    result = subprocess.run(
        [sys.executable, "-m", "envcheck", *arguments],
        cwd=cwd,
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        check=False,
        env={**kept, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **variables},
        timeout=120,
    )
    return Result(result.returncode, result.stdout.decode(), result.stderr.decode())
