"""``envcheck bench``: measure the GPUs and their links, and rate the figures; or list what can be measured."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable

import msgspec

from envcheck.cli.deliver import deliver
from envcheck.cli.request import fields, of_configuration, request_of
from envcheck.collect.plan import BenchRequest
from envcheck.errors import ExitCode
from envcheck.knowledge.performance.quantities import QUANTITIES, BenchQuantity, framework_tested
from envcheck.pipeline import session
from envcheck.report import FORMATS
from envcheck.report.progress import progress
from envcheck.report.saved import save_baseline
from envcheck.rules.catalog import measured_rules
from envcheck.text.output import parse_targets, writable
from envcheck.text.streams import print_text, say
from envcheck.text.wrap import clip, width


def run(options: Namespace) -> int:
    """Print the figures, and save them on request; the exit status is the report's."""
    if options.fleet or options.fleet_node:
        from envcheck.cli.verbs.fleet import measure_between_nodes, take_part

        return take_part(options) if options.fleet_node else measure_between_nodes(options)
    if options.list:
        print_text(quantity_list(QUANTITIES))
        return ExitCode.OK
    targets = parse_targets(options.output, FORMATS)
    if options.save_baseline:
        writable(options.save_baseline, "--save-baseline")
    _, policy = of_configuration(options)
    only = measured_rules()
    if policy:  # other rules do not run here, so whether their problem is absent is not asked
        policy = msgspec.structs.replace(policy, forbid=tuple(name for name in policy.forbid if name in only))
    request = request_of(options, only=only, policy=policy, bench=BenchRequest(**fields(BenchRequest, options)))
    with progress(sys.stderr, quiet=options.quiet, lines=True) as on_event:
        report = session.check(request, on_event)
    options.format = "speed" if options.format == "text" and not options.verbose else options.format
    status = deliver(report, options, targets)
    if options.save_baseline and report.exit_code == ExitCode.INTERRUPTED:
        say(f"envcheck: interrupted, so {options.save_baseline} was not written")
    elif options.save_baseline:
        save_baseline(report, options.save_baseline)
    return status


_COLUMNS = 80


def quantity_list(quantities: Iterable[BenchQuantity]) -> str:
    """A line for each quantity: its name, what it is, the library that it needs, and the seconds that it takes."""
    rows = [
        (
            each.name,
            each.title,
            each.needs or "-",
            "quick" if each.quick else "asked" if framework_tested(each.name) else "full",
            f"{each.seconds:g} s" if each.seconds else "-",
        )
        for each in quantities
    ]
    head = ("NAME", "QUANTITY", "LIBRARY", "RUN", "TIME")
    room = [max(width(row[column]) for row in (head, *rows)) for column in range(len(head))]
    table = ("  ".join(f"{text:<{space}}" for text, space in zip(row, room, strict=True)) for row in (head, *rows))
    notes = ("RUN quick: measured with and without --full; asked: with --frameworks.", "TIME: with --full, on an H200.")
    return "\n".join(clip(line, _COLUMNS) for line in (*map(str.rstrip, table), "", *notes)) + "\n"
