"""``envcheck bench --fleet``: all-reduce between nodes; and ``--fleet-node``, what each of them runs."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import NoReturn

from envcheck.cli.deliver import write_all
from envcheck.cli.request import fields, read_input
from envcheck.collect.bench import become_node
from envcheck.collect.plan import BenchRequest
from envcheck.collect.request import probe_request, working_folder
from envcheck.errors import UsageError
from envcheck.fleet.collective.report import FleetBench, judged, render
from envcheck.fleet.collective.search import GroupOutcome, Search
from envcheck.fleet.collective.together import OutOfTimeError, Together
from envcheck.fleet.engines.engine import started
from envcheck.fleet.record import circumstances
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.text.encode import encode
from envcheck.text.inert import Syntax
from envcheck.text.output import parse_targets

FORMATS: dict[str, Syntax] = {"text": "text", "json": "json"}
_TIMEOUT = 600.0
_START = 120.0
"""Seconds in which a node starts: imports from a network file system, and starts the GPUs' driver."""


def run(options: Namespace) -> int:
    """Print which nodes are slow together with others; the exit status says whether any is."""
    targets = parse_targets(options.output, FORMATS)
    if options.format not in FORMATS:
        raise UsageError(f"--fleet prints text or json, not {options.format}")
    found = _measured(options)
    write_all(
        lambda form, shown: encode(found) + "\n" if form == "json" else render(found, shown),
        FORMATS.__getitem__,
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


def _measured(options: Namespace) -> FleetBench:
    began, timeout = time.monotonic(), options.timeout or _TIMEOUT
    hosts = read_input(options.hosts).decode("utf-8", "replace") if options.hosts else ""
    unfinished, interrupted = "", False
    start = min(_START, timeout / 2)
    with started(options, hosts, start=start, timeout=timeout) as on:
        together = Together(on.crew, on.nodes, timeout)
        search = Search((), together.measure)
        try:
            together.gather(start)
            search = Search(sorted(together.members), _shown(together.measure, quiet=options.quiet))
            search.run()
        except OutOfTimeError:
            unfinished = f"--timeout {timeout:g} s was over"
        except KeyboardInterrupt:
            unfinished, interrupted = "interrupted", True
        problems = {**on.down, **together.problems}
    how = circumstances(on.engine, began, options.fail_on, interrupted=interrupted)
    return judged(search, together.members, problems, how, unfinished)


def _shown(
    measure: Callable[[Sequence[str]], GroupOutcome], *, quiet: bool
) -> Callable[[tuple[str, ...]], GroupOutcome]:
    """``measure``, announced on a terminal's stderr."""
    shows = not quiet and sys.stderr.isatty()

    def announced(group: tuple[str, ...]) -> GroupOutcome:
        if shows:
            sys.stderr.write(f"\r\x1b[Kall-reduce over {len(group)} nodes (Ctrl-C: show the results so far)")
            sys.stderr.flush()
        try:
            return measure(group)
        finally:
            if shows:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()

    return announced
