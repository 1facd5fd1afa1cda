"""``--hosts``: ssh to each host of a file. Keys, users, ports and jump hosts are those of the user's configuration."""

from __future__ import annotations

from envcheck.errors import UsageError
from envcheck.fleet.engines.engine import Coming, NodeProgram, coming
from envcheck.fleet.engines.launch import NodeCommand, run_all

_MOST = 100_000
_CONNECT = 10


def answers(text: str, ask: NodeProgram, *, jobs: int, timeout: float) -> Coming:
    """Ask every host of ``text``."""
    made = commands(text, ask, timeout=timeout)
    return coming(run_all(made, jobs=jobs, timeout=timeout), [command.node for command in made])


def commands(text: str, ask: NodeProgram, *, timeout: float) -> list[NodeCommand]:
    """Ssh to every host of ``text``, one a line; blank lines and what follows ``#`` do not count."""
    hosts: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        host = line.partition("#")[0].strip()
        if host.startswith("-") or len(host.split()) > 1 or not host.isprintable():
            raise UsageError(f"--hosts: line {number} is not a host name, optionally with user@ before it")
        hosts += [host] if host else []
        if len(hosts) > _MOST:
            raise UsageError(f"--hosts: more than {_MOST:,} hosts")
    if not hosts:
        raise UsageError("--hosts: the file names no host")
    connect = ("-o", "BatchMode=yes", "-o", f"ConnectTimeout={max(1, min(_CONNECT, int(timeout)))}")
    # ssh hands one line to the shell there.
    return [NodeCommand(host, ("ssh", *connect, "--", host, ask.line), ask.stdin) for host in dict.fromkeys(hosts)]
