"""Run a verb of envcheck in a process of its own: what it prints, and its exit status."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from envcheck.collect.starting import ISOLATED, own_path
from envcheck.errors import NoVerdictError

_START = (
    "import json, sys; sys.path[:0] = json.loads(sys.argv.pop(1)); from envcheck.cli.main import program; program()"
)


async def run_itself(arguments: Sequence[str], given: str, seconds: float) -> tuple[int, str, str]:
    """Exit status, output and errors of ``envcheck ARGUMENTS`` with ``given`` as its input; raise NoVerdictError where
    that takes longer than ``seconds``.
    """
    path = json.dumps([str(Path(__file__).parents[2]), *own_path()])
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *ISOLATED, "-X", "utf8", "-c", _START, path, *arguments), stdin=pipe, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(given.encode()), seconds)
    except asyncio.TimeoutError:  # another class before Python 3.11
        raise NoVerdictError(f"no answer within {seconds:.0f} s") from None
    finally:
        if process.returncode is None:
            process.terminate()  # upon which it ends its children
    return process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace")
