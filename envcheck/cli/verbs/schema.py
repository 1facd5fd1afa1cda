"""``envcheck schema``: the JSON Schema of an output."""

from __future__ import annotations

import json
from argparse import Namespace

from envcheck.exitcode import ExitCode
from envcheck.report.saved.schema import schema
from envcheck.text.streams import tell


def run(options: Namespace) -> int:
    """Print the schema; raise UsageError where no output has the name."""
    tell(json.dumps(schema(options.name), indent=2) + "\n", syntax="json")
    return ExitCode.OK
