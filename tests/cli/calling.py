"""Run ``envcheck`` as a user would: another process, its own environment, stdout and stderr apart."""

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.installed import INSTALLED

ROOT = Path(__file__).resolve().parents[2]
_OF_THE_START = ("PYTHON", "LD_", "LC_", "LANG")
"""Variables that count when a process starts: with one of them it is started and not forked."""


class Result(NamedTuple):
    """What a run left behind."""

    status: int
    out: str
    err: str


def envcheck(*arguments: str, cwd: Path, stdin: str | bytes = b"", **variables: str) -> Result:
    """Run the command line in ``cwd`` with nothing of the caller's environment but PATH and HOME."""
    whole = {**_bare(), **variables}
    given = stdin.encode() if isinstance(stdin, str) else stdin
    with tempfile.TemporaryFile() as read, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        read.write(given)
        read.seek(0)
        if any(name.startswith(_OF_THE_START) for name in variables):
            command = [sys.executable, "-m", "envcheck", *arguments]
            status = subprocess.run(
                command, cwd=cwd, stdin=read, stdout=out, stderr=err, env=whole, check=False, timeout=120
            ).returncode
        else:
            asked = json.dumps({"arguments": arguments, "cwd": str(cwd), "variables": whole})
            status = _forked(asked, [file.fileno() for file in (read, out, err)])
        for file in (out, err):
            file.seek(0)
        return Result(status, out.read().decode(), err.read().decode())


def refused(*arguments: str, cwd: Path, stdin: str | bytes = b"", **variables: str) -> str:
    """What envcheck says of wrong usage: one sentence, with exit status 2, and nothing on stdout or in ``cwd``."""
    before = sorted(cwd.iterdir())
    result = envcheck(*arguments, cwd=cwd, stdin=stdin, **variables)
    assert (result.status, result.out, result.err.count("\n"), result.err[:10]) == (2, "", 1, "envcheck: "), result
    assert sorted(cwd.iterdir()) == before
    return result.err


def _bare() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return {**kept, "PYTHONPATH": str(INSTALLED), "PYTHONDONTWRITEBYTECODE": "1"}


def _forked(asked: str, files: list[int]) -> int:
    server = _server()
    socket.send_fds(server, [asked.encode()], files)
    try:
        return int(server.recv(64))
    except TimeoutError:
        _server.cache_clear()  # its late answer is for no later call
        raise


@cache
def _server() -> socket.socket:
    """The process of ``tests.cli.server`` that serves this one."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.cli.server", str(its.fileno())]
    process = subprocess.Popen(
        command, cwd=INSTALLED, env={**_bare(), "PYTHONPATH": f"{INSTALLED}:{ROOT}"}, pass_fds=(its.fileno(),),
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    its.close()
    mine.settimeout(120)

    def end() -> None:
        mine.close()
        process.kill()
        process.wait()

    atexit.register(end)
    return mine
