"""``envcheck fleet``: bring the reports of many nodes together, and tell which of them is different."""

from __future__ import annotations

import importlib
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from envcheck.cli.asking import read_input
from envcheck.cli.deliver import write_all
from envcheck.collect.interrupt import noted
from envcheck.errors import UsageError
from envcheck.fleet import saved
from envcheck.fleet.compare import compare
from envcheck.fleet.conclude import conclude, judged
from envcheck.fleet.engines import chosen_engine
from envcheck.fleet.examine import Answer, Examined, examine
from envcheck.fleet.keep import keeping
from envcheck.fleet.newest import newest
from envcheck.fleet.overall import circumstances
from envcheck.fleet.tables import need_engine
from envcheck.pipeline.request import Request
from envcheck.text.inert import Syntax
from envcheck.text.output import parse_targets

if TYPE_CHECKING:
    from envcheck.fleet.record import Fleet
    from envcheck.report import Options

FORMATS: dict[str, Syntax] = {"text": "text", "jsonl": "json", "html": "markup"}
_MOST_BYTES = saved.MOST_BYTES


def run(options: Namespace) -> int:
    """Print the fleet; the exit status says whether a node fails, departs or is slow."""
    need_engine()
    targets = parse_targets(options.output, FORMATS)
    started = time.monotonic()
    earlier = _earlier(options.since) if options.since else None
    hosts = read_input(options.hosts).decode("utf-8", "replace") if options.hosts else ""
    engine, coming = chosen_engine(options, hosts)
    watched = Watched(keeping(coming, options.save) if options.save else coming, quiet=options.quiet)
    with noted(lambda: watched.waits) as interrupted:
        nodes, facts = examine(watched.until(interrupted), partial(judged, _request()), watched.read)
        watched.end()
        kept, left_out = newest(nodes)
        compared = compare(kept, facts, earlier, serials=options.serials)
        how = circumstances(engine, started, options.fail_on, interrupted=interrupted())
    fleet = conclude(compared, kept, how, superseded=left_out, since=earlier.head.created if earlier else None)
    write_all(partial(_rendered, fleet), FORMATS.__getitem__, options, targets)
    return fleet.head.exit_code


class Watched:
    """Answers as they come, with their number on a terminal's stderr; Ctrl-C ends them and keeps what came."""

    def __init__(self, coming: Iterable[Answer], *, quiet: bool) -> None:
        self._coming = coming
        self._shows = not quiet and sys.stderr.isatty()
        self._next = 0.0
        self._came = self._read = self._failed = 0
        self.waits = False
        """Whether it waits for a node now."""

    def until(self, interrupted: Callable[[], bool]) -> Iterator[Answer]:
        """The answers up to an interrupt, which may also break off the wait for the next one."""
        coming = iter(self._coming)
        try:
            while not interrupted():
                self.waits = True
                answer = next(coming, None)
                self.waits = False
                if answer is None:
                    return
                self._came += 1
                self._failed += bool(answer.problem)
                self._show()
                yield answer
        except KeyboardInterrupt:
            return
        finally:
            self.waits = False
            if isinstance(coming, Generator):
                coming.close()  # which ends what still runs

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
        now = time.monotonic()
        if self._shows and now >= self._next:
            self._next = now + 0.1
            failed = f", {self._failed:,} without an answer" if self._failed else ""
            sys.stderr.write(f"\r\x1b[K{self._came:,} nodes answered, {self._read:,} read{failed} (Ctrl-C: show these)")
            sys.stderr.flush()


def _rendered(fleet: Fleet, form: str, shown: Options) -> str:
    render: Callable[..., str] = importlib.import_module(f"envcheck.fleet.pages.{form}").render
    return render(fleet, shown)


def _earlier(name: str) -> Fleet:
    try:
        return saved.read(read_input(name, _MOST_BYTES))
    except UsageError as error:
        raise UsageError(f"--since {name}: {error}") from None


def _request() -> Request:
    """How snapshots are judged that come without a verdict."""
    return Request(variables=dict(os.environ))
