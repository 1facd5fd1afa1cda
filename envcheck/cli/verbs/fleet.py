"""``envcheck fleet``: bring the reports of many nodes together, and show which ones differ.

With ``--on-finding``, run a command for each node that fails in two fleet reports by the same rule. What a report says
is foreign: a node or a rule that is no plain word is named and skipped, and no shell reads any.

And ``envcheck bench --fleet``: all-reduce between nodes; and ``--fleet-node``, what each of them runs.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator, Sequence
from functools import partial
from typing import NoReturn

from envcheck.cli.deliver import page, write_all
from envcheck.cli.request import fields, read_input
from envcheck.collect.child import noted
from envcheck.collect.plan import BenchRequest
from envcheck.collect.starting import probe_request, working_folder
from envcheck.collect.trials import become_node
from envcheck.errors import ExitCode, UsageError
from envcheck.fleet import record, store
from envcheck.fleet.collective import report as between_nodes
from envcheck.fleet.collective.search import GroupOutcome, Search
from envcheck.fleet.collective.together import OutOfTimeError, Together
from envcheck.fleet.compare import compare, conclude, judged
from envcheck.fleet.engines.engine import Coming, chosen_engine, started
from envcheck.fleet.engines.launch import output_of
from envcheck.fleet.examine import Examined, NodeAnswer, examine, keeping, newest
from envcheck.fleet.names import absent, unfolded
from envcheck.fleet.record import Fleet, circumstances, counted
from envcheck.fleet.tables import need_engine
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.report import Options
from envcheck.text.clean import brief
from envcheck.text.encode import encode
from envcheck.text.inert import Syntax
from envcheck.text.output import parse_targets
from envcheck.text.streams import print_text, say

FORMATS: dict[str, Syntax] = {"text": "text", "jsonl": "json", "html": "markup", "prometheus": "text"}
_LINES = 500  # Times that the number of answers is written: each, unless there are more


def run(options: Namespace) -> int:
    """Print the fleet; the exit status says whether a node fails, departs or is slow."""
    need_engine()
    targets = parse_targets(options.output, FORMATS)
    started = time.monotonic()
    if options.on_finding:
        command_of(options.on_finding)
    if options.store:
        with store.opened(options.store):  # before any node is asked
            pass
    earlier = None
    if options.since:
        try:
            earlier = record.read(read_input(options.since, record.MOST_BYTES))
        except UsageError as error:
            raise UsageError(f"--since {options.since}: {error}") from None
    groups = {}
    if options.configuration is not None and options.configuration.config.fleet:
        from envcheck.config.meaning import fleet_groups

        groups = fleet_groups(options.configuration)
    expected = expected_nodes(options.expect_nodes or ())
    hosts = read_input(options.hosts).decode("utf-8", "replace") if options.hosts else ""
    engine, coming = chosen_engine(options, hosts)
    if options.save:
        coming = Coming(keeping(coming, options.save), coming.asked)
    watched = Watched(coming, quiet=options.quiet)
    with noted(lambda: watched.waits) as interrupted:
        judge = partial(judged, Request(variables=dict(os.environ)), groups)
        nodes, facts = examine(watched.until(interrupted), judge, watched.read)
        watched.end()
        kept, left_out = newest(nodes)
        # Saved reports name their nodes themselves: one that could not be read may be of any node.
        unread = interrupted() or absent((node.name for node in kept if node.problem), expected)
        whole = engine != "reports" or not unread
        compared = compare(kept, facts, earlier, expected=expected, whole=whole, serials=options.serials)
        how = circumstances(engine, started, options.fail_on, interrupted=interrupted())
    if options.store:
        try:
            compared = store.remember(compared, how.created, options.store, options.store_days or store.DEFAULT_DAYS)
        except UsageError as error:  # what came is worth more than what was
            say(f"envcheck: {error}; nothing of this look was kept")
    fleet = conclude(compared, kept, how, superseded=left_out, since=earlier.head.created if earlier else None)

    def render(form: str, shown: Options) -> str | Iterator[str]:
        if form == "jsonl":
            return record.write(fleet)
        made: Callable[..., str] = importlib.import_module(f"envcheck.fleet.pages.{form}").render
        return made(fleet, shown)

    write_all(render, FORMATS.__getitem__, options, targets)
    if options.on_finding and earlier:
        act(fleet, earlier, options)
    return fleet.head.exit_code


def tell_history(options: Namespace) -> int:
    """Print what the store knows of a node."""
    if not options.store:
        raise UsageError("name the store: envcheck fleet history NODE --store FILE")
    found = store.history(options.store, options.node)
    text = encode(found) if options.format == "json" else store.render(found, page(options))
    print_text(f"{text}\n", syntax="json" if options.format == "json" else "text")
    return ExitCode.OK


def expected_nodes(listed: Sequence[str]) -> list[str]:
    """The names in lists and in files of lists, where ``#`` begins a comment; raise UsageError."""
    names: list[str] = []
    for each in listed:
        text = read_input(each).decode("utf-8", "replace") if "/" in each else each
        try:
            names += unfolded(" ".join(line.partition("#")[0] for line in text.splitlines()))
        except UsageError as error:
            raise UsageError(f"--expect-nodes: {error}") from None
    return names


class _ProgressLine:
    """A line on a terminal's stderr, overwritten by the next; an empty one clears it."""

    def __init__(self, *, quiet: bool) -> None:
        self.shows = not quiet and sys.stderr.isatty()

    def write(self, text: str) -> None:
        if self.shows:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()


class Watched:
    """Answers as they come, with their number on a terminal's stderr; Ctrl-C ends them and keeps what came."""

    def __init__(self, coming: Coming, *, quiet: bool) -> None:
        self._coming, self._line = coming, _ProgressLine(quiet=quiet)
        self._came = self._read = self._failed = 0
        self.waits = False  # Whether it waits for a node now

    def until(self, interrupted: Callable[[], bool]) -> Iterator[NodeAnswer]:
        """The answers; after an interrupt, which may break off the wait for one, what stands for the missing ones."""
        coming = iter(self._coming)
        came: set[str] = set()
        try:
            while not interrupted():
                self.waits = True
                answer = next(coming, None)
                self.waits = False
                if answer is None:
                    return
                came.add(answer.node or answer.path)
                self._came += 1
                self._failed += bool(answer.problem)
                self._show()
                yield answer
        except KeyboardInterrupt:
            pass
        finally:
            self.waits = False
            if isinstance(coming, Generator):
                coming.close()  # which ends what still runs
        yield from (each for each in self._coming.asked if (each.node or each.path) not in came)

    def read(self, _node: Examined) -> None:
        """Count a report that was read."""
        self._read += 1
        self._show()

    def end(self) -> None:
        """Clear the line."""
        self._line.write("")

    def _show(self) -> None:
        asked = len(self._coming.asked)
        if self._line.shows and (self._came + self._read) % (1 + asked // _LINES) == 0:
            counts = [f"{self._came:,} of {asked:,} nodes" if asked else counted(self._came, "node", "nodes")]
            counts += [f"{self._failed:,} without an answer" if self._failed else ""]
            counts += [f"{self._read:,} read" if self._read else ""]
            self._line.write(f"{', '.join(filter(None, counts))} (Ctrl-C: show these)")


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_RULE = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
_FIELDS = ("{node}", "{rule}", "{reason}")
_FIELD = re.compile("|".join(map(re.escape, _FIELDS)))  # What a value holds is no field
_SECONDS = 60.0
_MOST = 2  # Percent of the nodes, one node at least


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
        values = dict(zip(_FIELDS, (node, rule, f"envcheck: {rule}"), strict=True))
        argv = [_FIELD.sub(lambda found: values[found[0]], word) for word in words]  # noqa: B023  called at once
        line = f"{'would run ' if options.dry_run else ''}{shlex.join(argv)}"
        try:
            if not options.dry_run:
                output_of(argv, "--on-finding", called=argv[0], seconds=_SECONDS)
        except UsageError as error:
            line += f" failed: {str(error).removeprefix('--on-finding: ')}"
        say(brief(f"envcheck: {node}: {line}"))


_MEASURED: dict[str, Syntax] = {"text": "text", "json": "json"}
_TIMEOUT = 600.0
_START = 120.0  # Seconds in which a node starts: imports from a network file system, and starts the GPUs' driver


def measure_between_nodes(options: Namespace) -> int:
    """Print which nodes are slow together with others; the exit status says whether any is."""
    targets = parse_targets(options.output, _MEASURED)
    if options.format not in _MEASURED:
        raise UsageError(f"--fleet prints text or json, not {options.format}")
    began, timeout = time.monotonic(), options.timeout or _TIMEOUT
    hosts = read_input(options.hosts).decode("utf-8", "replace") if options.hosts else ""
    line = _ProgressLine(quiet=options.quiet)
    unfinished, interrupted = "", False
    start = min(_START, timeout / 2)
    with started(options, hosts, start=start, timeout=timeout) as on:
        together = Together(on.crew, on.nodes, timeout)

        def measure(group: tuple[str, ...]) -> GroupOutcome:
            line.write(f"all-reduce over {len(group)} nodes (Ctrl-C: show the results so far)")
            try:
                return together.measure(group)
            finally:
                line.write("")

        search = Search((), measure)
        try:
            together.gather(start)
            search = Search(sorted(together.members), measure)
            search.run()
        except OutOfTimeError:
            unfinished = f"--timeout {timeout:g} s was over"
        except KeyboardInterrupt:
            unfinished, interrupted = "interrupted", True
        problems = {**on.down, **together.problems}
    how = circumstances(on.engine, began, options.fail_on, interrupted=interrupted)
    found = between_nodes.judged(search, together.members, problems, how, unfinished)
    write_all(
        lambda form, shown: encode(found) + "\n" if form == "json" else between_nodes.render(found, shown),
        _MEASURED.__getitem__,
        options,
        targets,
    )
    return found.exit_code


def take_part(options: Namespace) -> NoReturn:
    """Become the program of a node; raise UsageError where that is impossible."""
    variables = dict(os.environ)
    python = tuple(options.python or ())
    facts = session.gather_here(Request(python=python, cwd=working_folder(), variables=variables))
    request = probe_request(cwd=working_folder(), variables=variables, python=python)
    try:
        become_node(facts, request, BenchRequest(**fields(BenchRequest, options)))
    except OSError as error:
        raise UsageError(f"--fleet-node: its program cannot be started: {error.strerror or error}") from None
