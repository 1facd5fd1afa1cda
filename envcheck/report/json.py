"""The whole report as JSON: the keys of the contract, base units, null for unknown."""

from __future__ import annotations

import msgspec

from envcheck.checks import Report
from envcheck.report import Format, Options
from envcheck.text.encode import encode

FORMAT = Format(shows="the whole report", suffix="json", syntax="json")


def render(report: Report, _options: Options) -> str:
    """``report`` as indented JSON."""
    return msgspec.json.format(encode(report), indent=2) + "\n"
