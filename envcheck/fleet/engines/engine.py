"""The engines that bring answers of nodes, the command that a node runs, and what ``bench --fleet`` starts.

An engine is one that people already run; it is imported when it is asked for.
"""

# An engine is imported when it is asked for.
# ruff: noqa: PLC0415

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.engines.launch import DEFAULT_JOBS, DEFAULT_TIMEOUT, Crew, NodeCommand, Processes, run_all
from envcheck.fleet.examine import NodeAnswer

_BY_COLLECTOR = 30.0  # Seconds in which the collector brings the facts of a node over ssh
COLLECTOR = ("python3", "-I", "-")  # -I: the folder where a node starts it may hold modules of others
NODE = ("envcheck", "bench", "--fleet-node")  # What a node runs that measures together with others


class Coming(msgspec.Struct, frozen=True):
    """Answers as they come, and who was asked."""

    answers: Iterator[NodeAnswer]
    asked: Sequence[NodeAnswer] = ()
    """What stands for each answer that an interrupt cuts off; empty where nobody knows who will answer."""

    def __iter__(self) -> Iterator[NodeAnswer]:
        return self.answers


def interruptible(answers: Iterator[NodeAnswer], nodes: Iterable[str]) -> Coming:
    return Coming(answers, [NodeAnswer(node, problem="interrupted before it answered") for node in nodes])


class NodeProgram(msgspec.Struct, frozen=True):
    """A command, and what it reads."""

    argv: tuple[str, ...]
    stdin: bytes = b""


def node_program(command: str | None) -> NodeProgram:
    """The collector; with ``command``, that, which has to print a report as JSON."""
    if command is None:
        from envcheck.collect.script import collector

        return NodeProgram(COLLECTOR, collector().encode())
    return NodeProgram(_split(command, "envcheck check --json"))


def _split(command: str, example: str) -> tuple[str, ...]:
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--command: {error}") from None
    if not argv:
        raise UsageError(f"--command is empty; it is what each node runs, as in --command '{example}'")
    return argv


def chosen_engine(options: Namespace, hosts: str = "") -> tuple[str, Coming]:
    """The engine that ``options`` name, and its answers; raise UsageError where it cannot start.

    ``hosts`` is the text of the file that ``--hosts`` names.
    """
    if options.reports:
        from envcheck.fleet.engines import reports

        return "reports", reports.answers(options.reports)
    jobs, timeout, each = options.jobs or DEFAULT_JOBS, options.timeout or DEFAULT_TIMEOUT, options.node_timeout
    program = node_program(options.command)
    if options.hosts:
        made = over_ssh(hosts, program, timeout=timeout)
        each = each or (_BY_COLLECTOR if options.command is None else None)
        answers = run_all(made, jobs=jobs, timeout=timeout, each=each)
        return "hosts", interruptible(answers, [command.node for command in made])
    if options.slurm is not None:
        from envcheck.fleet.engines import slurm

        return "slurm", slurm.answers(options.slurm, program, jobs=jobs, timeout=timeout, each=each)
    if options.ray:
        from envcheck.fleet.engines import ray

        return "ray", ray.answers(options.ray, program, timeout=timeout, each=each)
    if options.kubernetes:
        from envcheck.fleet.engines import kubernetes

        chosen = options.kubernetes, options.selector
        return "kubernetes", kubernetes.answers(*chosen, program, timeout=timeout, each=each)
    raise UsageError("name where the reports come from, such as --reports FOLDER; see envcheck fleet --help")


class StartedCrew(msgspec.Struct, frozen=True):
    engine: str
    crew: Crew
    nodes: Sequence[str]  # The nodes whose programs were started, as the engine calls them
    down: dict[str, str]  # Nodes on which none could be, and why


@contextmanager
def started(options: Namespace, hosts: str, *, start: float, timeout: float) -> Iterator[StartedCrew]:
    """Start the program of each node, within ``start`` seconds, for ``timeout``; raise UsageError where that fails.

    At the end of the block none is left. ``hosts`` is the text of the file that ``--hosts`` names.
    """
    own = options.command
    ask = NodeProgram(NODE if own is None else _split(own, shlex.join(NODE)))  # it takes orders on stdin
    if options.hosts:
        commands = over_ssh(hosts, ask, timeout=start)
        with closing(Processes(commands)) as processes:
            yield StartedCrew("hosts", processes, [command.node for command in commands], {})
    elif options.slurm is not None:
        from envcheck.fleet.engines import slurm

        made = slurm.launches(options.slurm, ask, start=start, timeout=timeout)
        try:
            with closing(Processes(made.commands)) as processes:
                yield StartedCrew("slurm", processes, [command.node for command in made.commands], made.down)
        finally:
            slurm.cancel(made.job)
    elif options.ray:
        from envcheck.fleet.engines.ray import Actors

        with closing(Actors(options.ray, ask, start)) as actors:
            yield StartedCrew("ray", actors, list(actors.nodes), actors.down)
    else:
        raise UsageError("--fleet needs what starts the nodes: --hosts FILE, --slurm or --ray ADDRESS")


_MOST = 100_000
_CONNECT = 10


def over_ssh(text: str, ask: NodeProgram, *, timeout: float) -> list[NodeCommand]:
    """Ssh to every host of ``text``, one per line; blank lines and what follows ``#`` do not count.

    Keys, users, ports and jump hosts are those of the user's configuration.
    """
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
    line = shlex.join(ask.argv)  # ssh hands one line to the shell there
    return [NodeCommand(host, ("ssh", *connect, "--", host, line), ask.stdin) for host in dict.fromkeys(hosts)]
