"""The programs on nodes that ``bench --fleet`` talks to, by the engine that starts them."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.engines.asking import node_program
from envcheck.fleet.engines.talk import Crew, Processes

# An engine is imported when it is asked for.
# ruff: noqa: PLC0415


class Started(msgspec.Struct, frozen=True):
    """A running crew."""

    engine: str
    crew: Crew
    nodes: Sequence[str]
    """The nodes whose programs were started, as the engine calls them."""
    down: dict[str, str]
    """Nodes on which none could be, and why."""


@contextmanager
def started(options: Namespace, hosts: str, *, start: float, timeout: float) -> Iterator[Started]:
    """Start the program of each node, within ``start`` seconds, for ``timeout``; raise UsageError where that fails.

    At the end of the block none is left. ``hosts`` is the text of the file that ``--hosts`` names.
    """
    ask = node_program(options.command)
    if options.hosts:
        from envcheck.fleet.engines import hosts as ssh

        commands = ssh.commands(hosts, ask, timeout=start)
        with Processes(commands) as processes:
            yield Started("hosts", processes, [command.node for command in commands], {})
    elif options.slurm is not None:
        from envcheck.fleet.engines import slurm

        made = slurm.launches(options.slurm, ask, start=start, timeout=timeout)
        try:
            with Processes(made.commands) as processes:
                yield Started("slurm", processes, [command.node for command in made.commands], made.down)
        finally:
            slurm.cancel(made.job)
    elif options.ray:
        from envcheck.fleet.engines.ray import Actors

        with Actors(options.ray, ask, start) as actors:
            yield Started("ray", actors, list(actors.nodes), actors.down)
    else:
        raise UsageError("--fleet needs what starts the nodes: --hosts FILE, --slurm or --ray ADDRESS")
