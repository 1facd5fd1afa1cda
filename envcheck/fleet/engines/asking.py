"""What a node is asked to run: the collector on stdin, which needs nothing installed, or a command of the user's."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from envcheck.errors import UsageError
from envcheck.fleet.examine import Answer

COLLECTOR = ("python3", "-I", "-")
"""-I: the folder where a node starts it may hold modules of others."""
NODE = ("envcheck", "bench", "--fleet-node")
"""What a node runs that measures together with others."""


class Coming(msgspec.Struct, frozen=True):
    """Answers as they come, and who was asked."""

    answers: Iterator[Answer]
    asked: Sequence[Answer] = ()
    """What stands for each answer that an interrupt cuts off; empty where nobody knows who will answer."""

    def __iter__(self) -> Iterator[Answer]:
        """The answers."""
        return self.answers


def coming(answers: Iterator[Answer], nodes: Iterable[str]) -> Coming:
    """The ``answers`` of ``nodes``."""
    return Coming(answers, [Answer(node, problem="interrupted before it answered") for node in nodes])


class Ask(msgspec.Struct, frozen=True):
    """A command, and what it reads."""

    argv: tuple[str, ...]
    stdin: bytes = b""

    @property
    def line(self) -> str:
        """As a line for a shell."""
        return shlex.join(self.argv)


def asked(command: str | None) -> Ask:
    """The collector; with ``command``, that, which has to print a report as JSON."""
    if command is None:
        from envcheck.collect.script import collector  # noqa: PLC0415  other commands need none

        return Ask(COLLECTOR, collector().encode())
    return Ask(_split(command, "envcheck check --json"))


def node_program(command: str | None) -> Ask:
    """What a node of ``bench --fleet`` runs; it takes orders on stdin."""
    return Ask(NODE if command is None else _split(command, shlex.join(NODE)))


def _split(command: str, example: str) -> tuple[str, ...]:
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"--command: {error}") from None
    if not argv:
        raise UsageError(f"--command is empty; it is what each node runs, as in --command '{example}'")
    return argv
