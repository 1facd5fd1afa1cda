"""``--slurm``: one srun for each node that sinfo lists, with the user's own partition, account and other options.

A job for all nodes at once would not start while one of them is down; with one for each, that node alone gives no
answer. Within an allocation (``salloc``, ``sbatch``) its own nodes are asked, by steps that overlap.
"""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
from argparse import ArgumentError, ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.engines.engine import Coming, NodeProgram, interruptible
from envcheck.fleet.engines.launch import NodeCommand, output_of, run_all
from envcheck.fleet.examine import NodeAnswer
from envcheck.text.clean import brief

_CHOOSING = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)  # srun's options that choose nodes
for _names in (("-p", "--partition"), ("-w", "--nodelist"), ("-x", "--exclude")):
    _CHOOSING.add_argument(*_names, action="append", default=[])
_USABLE, _FLAGS = ("idle", "mixed", "allocated", "completing", "planned", "reserved"), "~#!%$@^-+"
"""States, less these flags, in which a job may start now or soon; ``*`` says that the node does not respond."""
_SECONDS = 30.0


def answers(options: str, ask: NodeProgram, *, jobs: int, timeout: float, each: float | None) -> Coming:
    """Ask every node that the ``options`` of srun select; a node that Slurm calls down answers with Slurm's reason."""
    made = launches(options, ask, start=min(timeout, each or timeout), timeout=timeout)
    down = [NodeAnswer(node, problem=why) for node, why in made.down.items()]

    def from_nodes() -> Iterator[NodeAnswer]:
        try:
            yield from down
            yield from run_all(made.commands, jobs=jobs, timeout=timeout, each=each)
        finally:
            cancel(made.job)

    return interruptible(from_nodes(), [*made.down, *(command.node for command in made.commands)])


class Launches(msgspec.Struct, frozen=True):
    """One srun for each usable node."""

    commands: tuple[NodeCommand, ...]
    down: dict[str, str]  # The other nodes, and Slurm's reason
    job: str  # The name of the jobs; empty within an allocation, whose steps end with their srun


def launches(options: str, ask: NodeProgram, *, start: float, timeout: float) -> Launches:
    """One srun for each node that ``options`` select, which waits ``start`` seconds for it and runs for ``timeout``.

    Raises UsageError where Slurm does not say which nodes there are.
    """
    try:
        chosen, others = _CHOOSING.parse_known_args(shlex.split(options))
    except (ValueError, ArgumentError) as error:
        raise UsageError(f"--slurm: {error}") from None
    within = "SLURM_JOB_ID" in os.environ
    only: set[str] = _hosts(chosen.nodelist) if within else set()
    without = _hosts(chosen.exclude)
    allocated = _expanded(os.environ.get("SLURM_JOB_NODELIST", "")) if within else []
    listed = dict.fromkeys(allocated, ("allocated", ""))
    if not listed:  # state and reason of each node, by sinfo
        asked = (*_repeated("-p", chosen.partition), *_repeated("-n", chosen.nodelist))  # as sinfo calls them
        for line in _output(("sinfo", "--noheader", "--Node", "--format=%N|%T|%E", *asked)).splitlines():
            node, _, rest = line.partition("|")
            state, _, reason = rest.partition("|")
            if node:
                listed.setdefault(node, (state.strip(), reason.strip()))
    nodes = {node: state for node, state in listed.items() if (not only or node in only) and node not in without}
    if not nodes:
        raise UsageError("--slurm: Slurm lists no node for these options")
    name = "" if within else f"envcheck-fleet-{secrets.token_hex(4)}"
    minutes = f"--time={int(timeout) // 60 + 2}"
    how = ("--overlap",) if within else (f"--immediate={max(1, int(start))}", f"--job-name={name}")
    kept = (*_repeated("-p", chosen.partition), *_repeated("-x", chosen.exclude), *others)  # each srun gets one node
    common = ("srun", minutes, *kept, "--nodes=1", "--ntasks=1", "--unbuffered", *how)
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
    return _output(("scontrol", "show", "hostnames", listed)).split() if listed else []


def _repeated(option: str, values: Sequence[str]) -> list[str]:
    return [part for value in values for part in (option, value)]


def _hosts(listed: Sequence[str]) -> set[str]:
    """The nodes that an option of srun names; a file of names (with a slash) is left to srun."""
    return {name for value in listed if "/" not in value for name in _expanded(value)}


def _output(argv: Sequence[str]) -> str:
    """What one of Slurm's programs prints; raise UsageError where it fails."""
    return output_of(argv, "--slurm", called=argv[0], seconds=_SECONDS).decode("utf-8", "replace")
