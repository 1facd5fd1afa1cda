"""``--slurm``: one srun for each node that sinfo lists, with the user's own partition, account and other options.

A job for all nodes at once would not start while one of them is down; with one for each, that node alone gives no
answer. Within an allocation (``salloc``, ``sbatch``) its own nodes are asked, by steps that overlap.
"""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.engines.engine import Coming, NodeProgram, coming
from envcheck.fleet.engines.launch import NodeCommand, output_of, run_all
from envcheck.fleet.examine import NodeAnswer
from envcheck.text.clean import brief

_FOR_SINFO = {"-p": "-p", "--partition": "-p", "-w": "-n", "--nodelist": "-n"}
"""Options of srun that choose nodes, and what sinfo calls them."""
_ONLY = ("-w", "--nodelist")
_WITHOUT = ("-x", "--exclude")
_USABLE, _FLAGS = ("idle", "mixed", "allocated", "completing", "planned", "reserved"), "~#!%$@^-+"
"""States, less these flags, in which a job may start now or soon; ``*`` says that the node does not respond."""
_SECONDS = 30.0


def answers(options: str, ask: NodeProgram, *, jobs: int, timeout: float) -> Coming:
    """Ask every node that the ``options`` of srun select; a node that Slurm calls down answers with Slurm's reason."""
    made = launches(options, ask, start=timeout, timeout=timeout)
    down = [NodeAnswer(node, problem=why) for node, why in made.down.items()]

    def asked() -> Iterator[NodeAnswer]:
        try:
            yield from down
            yield from run_all(made.commands, jobs=jobs, timeout=timeout)
        finally:
            cancel(made.job)

    return coming(asked(), [*made.down, *(command.node for command in made.commands)])


class Launches(msgspec.Struct, frozen=True):
    """One srun for each usable node."""

    commands: tuple[NodeCommand, ...]
    down: dict[str, str]
    """The other nodes, and Slurm's reason."""
    job: str
    """The name of the jobs; empty within an allocation, whose steps end with their srun."""


def launches(options: str, ask: NodeProgram, *, start: float, timeout: float) -> Launches:
    """One srun for each node that ``options`` select, which waits ``start`` seconds for it and runs for ``timeout``.

    Raises UsageError where Slurm does not say which nodes there are.
    """
    try:
        own = shlex.split(options)
    except ValueError as error:
        raise UsageError(f"--slurm: {error}") from None
    within = "SLURM_JOB_ID" in os.environ
    only: set[str] = _hosts(own, _ONLY) if within else set()
    without = _hosts(own, _WITHOUT)
    allocated = _expanded(os.environ.get("SLURM_JOB_NODELIST", "")) if within else []
    listed = dict.fromkeys(allocated, ("allocated", "")) or _listed(own)
    nodes = {node: told for node, told in listed.items() if (not only or node in only) and node not in without}
    if not nodes:
        raise UsageError("--slurm: Slurm lists no node for these options")
    name = "" if within else f"envcheck-fleet-{secrets.token_hex(4)}"
    minutes = f"--time={int(timeout) // 60 + 2}"
    how = ("--overlap",) if within else (f"--immediate={max(1, int(start))}", f"--job-name={name}")
    common = ("srun", minutes, *_without_nodes(own), "--nodes=1", "--ntasks=1", "--unbuffered", *how)
    commands, down = [], {}
    for node, (state, reason) in nodes.items():
        if state.rstrip(_FLAGS) in _USABLE:
            commands.append(NodeCommand(node, (*common, f"--nodelist={node}", *ask.argv), ask.stdin))
        else:
            why = f": {reason}" if reason not in ("", "none") else ""
            down[node] = brief(f"Slurm says {state}{why}")
    return Launches(tuple(commands), down, name)


def cancel(job: str) -> None:
    """End the jobs of this name that are still there: ending srun does not always end its job."""
    if job:
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(("scancel", "--quiet", f"--name={job}"), timeout=_SECONDS, capture_output=True, check=False)


def _expanded(listed: str) -> list[str]:
    """The names in a list such as ``n[1-4]``."""
    return _told(("scontrol", "show", "hostnames", listed)).split() if listed else []


def _hosts(own: Sequence[str], options: Sequence[str]) -> set[str]:
    """The nodes that these options of srun name; a file of names (with a slash) is left to srun."""
    listed = [value for _, value in _values(own, options) if value and "/" not in value]
    return {name for value in listed for name in _expanded(value)}


def _listed(own: Sequence[str]) -> dict[str, tuple[str, str]]:
    """State and reason of each node that sinfo lists."""
    chosen = [part for option, value in _values(own, tuple(_FOR_SINFO)) for part in (_FOR_SINFO[option], value)]
    found: dict[str, tuple[str, str]] = {}
    for line in _told(("sinfo", "--noheader", "--Node", "--format=%N|%T|%E", *chosen)).splitlines():
        name, _, rest = line.partition("|")
        state, _, reason = rest.partition("|")
        if name:
            found.setdefault(name, (state.strip(), reason.strip()))
    return found


def _values(own: Sequence[str], options: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Those of ``options`` that are given, with their values."""
    for place, part in enumerate(own):
        option, equals, value = part.partition("=")
        if option in options:
            yield option, value if equals else (own[place + 1] if place + 1 < len(own) else "")
        elif part[:2] in options and not part.startswith("--"):
            yield part[:2], part[2:]


def _without_nodes(own: Sequence[str]) -> list[str]:
    """``own`` without the choice of nodes: each srun gets one."""
    kept = []
    parts = iter(own)
    for part in parts:
        if part in _ONLY:
            next(parts, None)  # its value
        elif not part.startswith(("-w", "--nodelist=")):
            kept.append(part)
    return kept


def _told(argv: Sequence[str]) -> str:
    """What one of Slurm's programs prints; raise UsageError where it fails."""
    return output_of(argv, "--slurm", called=argv[0], seconds=_SECONDS).decode("utf-8", "replace")
