"""``envcheck schema``: the JSON Schema of an output, or of the configuration."""

from __future__ import annotations

import importlib
import json
from argparse import Namespace

from envcheck.errors import ExitCode
from envcheck.text.streams import print_text

_OTHERS = {
    "config": "envcheck.config.read",
    "fleet": "envcheck.fleet.saved",
    "fleet-bench": "envcheck.fleet.collective.report",
}
"""What is no output of ``envcheck.report``: the module whose ``schema`` describes it."""


def run(options: Namespace) -> int:
    """Print the schema."""
    if options.name in _OTHERS:
        found = importlib.import_module(_OTHERS[options.name]).schema()
    else:
        from envcheck.report.saved.schema import schema

        found = schema(options.name)
    print_text(json.dumps(found, indent=2) + "\n", syntax="json")
    return ExitCode.OK
