"""``envcheck schema``: the JSON Schema of an output, or of the configuration."""

from __future__ import annotations

import json
from argparse import Namespace
from typing import Any

from envcheck.errors import ExitCode
from envcheck.text.streams import print_text


def run(options: Namespace) -> int:
    """Print the schema; raise UsageError where no output has the name."""
    print_text(json.dumps(_schema(options.name), indent=2) + "\n", syntax="json")
    return ExitCode.OK


def _schema(name: str) -> dict[str, Any]:
    if name == "config":
        from envcheck.config.read import schema as of_configuration

        return of_configuration()
    if name == "fleet":
        from envcheck.fleet.saved import schema as of_fleet

        return of_fleet()
    if name == "fleet-bench":
        from envcheck.fleet.collective.report import schema as of_fleet_bench

        return of_fleet_bench()
    from envcheck.report.saved.schema import schema

    return schema(name)
