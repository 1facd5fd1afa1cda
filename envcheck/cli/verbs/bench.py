"""``envcheck bench``: measure the GPUs and their links, and rate the figures."""

from __future__ import annotations

import sys
from argparse import Namespace

import msgspec

from envcheck.cli.deliver import deliver
from envcheck.cli.request import fields, of_configuration, request_of
from envcheck.collect.plan import BenchRequest
from envcheck.errors import ExitCode
from envcheck.knowledge.performance.quantities import QUANTITIES
from envcheck.pipeline import session
from envcheck.report import FORMATS
from envcheck.report.answers.quantities import quantity_list
from envcheck.report.progress import progress
from envcheck.report.saved.baseline import save
from envcheck.rules.speed.ceilings import MEASURED
from envcheck.text.output import parse_targets, writable
from envcheck.text.streams import print_text, say


def run(options: Namespace) -> int:
    """Print the figures, and save them on request; the exit status is the report's."""
    if options.fleet or options.fleet_node:
        from envcheck.cli import between_nodes

        return between_nodes.take_part(options) if options.fleet_node else between_nodes.run(options)
    if options.list:
        print_text(quantity_list(QUANTITIES))
        return ExitCode.OK
    targets = parse_targets(options.output, FORMATS)
    if options.save_baseline:
        writable(options.save_baseline, "--save-baseline")
    _, policy = of_configuration(options)
    if policy:  # other rules do not run here, so whether their problem is absent is not asked
        policy = msgspec.structs.replace(policy, forbid=tuple(name for name in policy.forbid if name in MEASURED))
    bench = BenchRequest(**fields(BenchRequest, options))
    request = request_of(options, only=tuple(MEASURED), policy=policy, bench=bench)
    with progress(sys.stderr, quiet=options.quiet, lines=True) as on_event:
        report = session.check(request, on_event)
    options.format = "speed" if options.format == "text" and not options.verbose else options.format
    status = deliver(report, options, targets)
    if options.save_baseline and report.exit_code == ExitCode.INTERRUPTED:
        say(f"envcheck: interrupted, so {options.save_baseline} was not written")
    elif options.save_baseline:
        save(report, options.save_baseline)
    return status
