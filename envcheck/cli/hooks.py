"""``fleet --on-finding``: run a command for each node that fails in two fleet reports by the same rule.

What a report says is foreign: a node or a rule that is no plain word is told and left alone, and no shell reads any.
"""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from envcheck.errors import UsageError
from envcheck.fleet.engines.launch import output_of
from envcheck.fleet.record import Fleet
from envcheck.text.clean import brief
from envcheck.text.streams import say

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_RULE = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
_FIELDS = ("{node}", "{rule}", "{reason}")
_SECONDS = 60.0
_MOST = 2
"""Percent of the nodes, one node at least."""


def command_of(text: str) -> list[str]:
    """The words of a command with ``{node}``, ``{rule}`` and ``{reason}``; raise UsageError where it names no node."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--on-finding: {error}") from None
    if not words or words[0] in _FIELDS or "{node}" not in text:
        raise UsageError("--on-finding: write a command with {node} in it, as in 'kubectl cordon {node}'")
    return words


def confirmed(fleet: Fleet, earlier: Fleet) -> Iterator[tuple[str, str]]:
    """Each node that fails by a rule by which it failed before, and the rule. The same look again confirms nothing."""
    before = {(node, each.rule) for each in earlier.problems if each.status == "fail" for node in each.nodes}
    looked = {node.name: node.created for node in earlier.nodes}
    again = {node.name for node in fleet.nodes if node.created != looked.get(node.name, node.created)}
    for each in fleet.problems:
        for node in each.nodes if each.status == "fail" else ():
            if node in again and (node, each.rule) in before:
                again.discard(node)  # once, for the first rule
                yield node, each.rule


def act(fleet: Fleet, earlier: Fleet, options: Namespace) -> None:
    """Run the command for each node that is confirmed, or say what would run; none where they are too many."""
    words = command_of(options.on_finding)
    found = list(confirmed(fleet, earlier))
    percent = options.on_finding_limit or _MOST
    most = max(1, fleet.head.nodes * percent // 100)
    if len(found) > most:
        say(f"envcheck: --on-finding: {len(found)} nodes fail again, more than {most} ({percent} %): none is acted on")
        return
    for name, rule in found:
        node = name.rpartition("@")[2]
        if not _PLAIN.fullmatch(node) or not _RULE.fullmatch(rule):
            say(brief(f"envcheck: --on-finding: {name!r} or {rule!r} is no plain name: left alone"))
            continue
        argv = _filled(words, dict(zip(_FIELDS, (node, rule, f"envcheck: {rule}"), strict=True)))
        would = "would run " if options.dry_run else ""
        say(brief(f"envcheck: {node}: {would}{shlex.join(argv)}{_run(argv, options)}"))


def _filled(words: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """The words with each field's value; what a value holds is no field."""
    field = re.compile("|".join(map(re.escape, values)))
    return [field.sub(lambda found: values[found[0]], word) for word in words]


def _run(argv: Sequence[str], options: Namespace) -> str:
    """How it failed; nothing where it did not, or was not to run."""
    try:
        if not options.dry_run:
            output_of(argv, "--on-finding", called=argv[0], seconds=_SECONDS)
    except UsageError as error:
        return f" failed: {str(error).removeprefix('--on-finding: ')}"
    return ""
