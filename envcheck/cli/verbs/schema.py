"""``envcheck schema``: the JSON Schema of an output, or of the configuration."""

from __future__ import annotations

import json
from argparse import Namespace

from envcheck.exitcode import ExitCode
from envcheck.report.saved.schema import schema
from envcheck.text.streams import tell


def run(options: Namespace) -> int:
    """Print the schema; raise UsageError where no output has the name."""
    if options.name == "config":
        from envcheck.config.model import schema as of_configuration

        tell(json.dumps(of_configuration(), indent=2) + "\n", syntax="json")
        return ExitCode.OK
    if options.name == "fleet":
        from envcheck.fleet.saved import schema as of_fleet

        tell(json.dumps(of_fleet(), indent=2) + "\n", syntax="json")
        return ExitCode.OK
    if options.name == "fleet-bench":
        from envcheck.fleet.collective.record import schema as of_fleet_bench

        tell(json.dumps(of_fleet_bench(), indent=2) + "\n", syntax="json")
        return ExitCode.OK
    tell(json.dumps(schema(options.name), indent=2) + "\n", syntax="json")
    return ExitCode.OK
