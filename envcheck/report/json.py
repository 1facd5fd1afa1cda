"""A report, a comparison or an answer of the matrix as JSON: the keys of the contract, base units, null for unknown."""

from __future__ import annotations

from typing import Any

import msgspec

from envcheck.report import Format, Options
from envcheck.text.encode import encode

FORMAT = Format(shows="the whole report", suffix="json", syntax="json")


def render(value: Any, _options: Options | None = None) -> str:
    """``value`` as indented JSON, ending in a newline."""
    return msgspec.json.format(encode(value), indent=2) + "\n"
