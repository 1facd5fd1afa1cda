"""A comparison of reports as JSON; ``envcheck schema diff`` prints its schema."""

from __future__ import annotations

import msgspec

from envcheck.diff import Diff
from envcheck.report import Options
from envcheck.text.encode import encode


def render_diff(found: Diff, _options: Options) -> str:
    """``found`` as indented JSON."""
    return msgspec.json.format(encode(found), indent=2) + "\n"
