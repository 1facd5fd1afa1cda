"""Let uv resolve requirements: the one thing that asks an index, and only where the user said so."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from envcheck.errors import NoVerdictError, UsageError
from envcheck.text.clean import brief


def resolve(requirements: str, options: Sequence[str], seconds: float) -> list[str]:
    """The pins that ``uv pip compile`` makes of requirements; raise UsageError without uv, NoVerdictError without an
    answer.
    """
    program = shutil.which("uv")
    if program is None:
        raise UsageError("--resolve: there is no uv on PATH; install it (pip install uv), or leave --resolve out")
    command = [program, "pip", "compile", "-", "--quiet", "--no-header", "--no-annotate", *options]
    try:
        done = subprocess.run(command, input=requirements, capture_output=True, text=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoVerdictError(f"--resolve: {brief(str(error))}") from None
    if done.returncode:
        told = " ".join(done.stderr.split())
        raise NoVerdictError(f"--resolve: uv finds no set: {brief(told)}")
    return [line for line in done.stdout.splitlines() if line and not line.startswith(("#", "-", " "))]
