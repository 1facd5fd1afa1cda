"""``envcheck fleet``: bring the reports of many nodes together, and tell which of them is different."""

from __future__ import annotations

import importlib
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import TYPE_CHECKING

from envcheck.cli.deliver import write_all
from envcheck.cli.request import read_input
from envcheck.collect.deaths import noted
from envcheck.errors import UsageError
from envcheck.fleet import saved
from envcheck.fleet.compare import compare, conclude, judged
from envcheck.fleet.engines.engine import Coming, chosen_engine
from envcheck.fleet.examine import Examined, NodeAnswer, examine, keeping, newest
from envcheck.fleet.record import circumstances, counted
from envcheck.fleet.tables import need_engine
from envcheck.pipeline.request import Request
from envcheck.text.inert import Syntax
from envcheck.text.output import parse_targets

if TYPE_CHECKING:
    from envcheck.report import Options

FORMATS: dict[str, Syntax] = {"text": "text", "jsonl": "json", "html": "markup"}
_LINES = 500
"""Times that the number of answers is written: each, unless there are more."""


def run(options: Namespace) -> int:
    """Print the fleet; the exit status says whether a node fails, departs or is slow."""
    need_engine()
    targets = parse_targets(options.output, FORMATS)
    started = time.monotonic()
    earlier = None
    if options.since:
        try:
            earlier = saved.read(read_input(options.since, saved.MOST_BYTES))
        except UsageError as error:
            raise UsageError(f"--since {options.since}: {error}") from None
    hosts = read_input(options.hosts).decode("utf-8", "replace") if options.hosts else ""
    engine, coming = chosen_engine(options, hosts)
    if options.save:
        coming = Coming(keeping(coming, options.save), coming.asked)
    watched = Watched(coming, quiet=options.quiet)
    with noted(lambda: watched.waits) as interrupted:
        judge = partial(judged, Request(variables=dict(os.environ)))  # for snapshots that come without a verdict
        nodes, facts = examine(watched.until(interrupted), judge, watched.read)
        watched.end()
        kept, left_out = newest(nodes)
        compared = compare(kept, facts, earlier, serials=options.serials)
        how = circumstances(engine, started, options.fail_on, interrupted=interrupted())
    fleet = conclude(compared, kept, how, superseded=left_out, since=earlier.head.created if earlier else None)

    def render(form: str, shown: Options) -> str:
        page: Callable[..., str] = importlib.import_module(f"envcheck.fleet.pages.{form}").render
        return page(fleet, shown)

    write_all(render, FORMATS.__getitem__, options, targets)
    return fleet.head.exit_code


class Watched:
    """Answers as they come, with their number on a terminal's stderr; Ctrl-C ends them and keeps what came."""

    def __init__(self, coming: Coming, *, quiet: bool) -> None:
        self._coming = coming
        self._shows = not quiet and sys.stderr.isatty()
        self._came = self._read = self._failed = 0
        self.waits = False
        """Whether it waits for a node now."""

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
        if self._shows:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _show(self) -> None:
        asked = len(self._coming.asked)
        if self._shows and (self._came + self._read) % (1 + asked // _LINES) == 0:
            told = [f"{self._came:,} of {asked:,} nodes" if asked else counted(self._came, "node", "nodes")]
            told += [f"{self._failed:,} without an answer" if self._failed else ""]
            told += [f"{self._read:,} read" if self._read else ""]
            sys.stderr.write(f"\r\x1b[K{', '.join(filter(None, told))} (Ctrl-C: show these)")
            sys.stderr.flush()
