"""The answer of ``envcheck matrix check``, or a page of ``matrix show``, as indented JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from envcheck.text.encode import encode


def render(value: Any) -> str:
    """``value`` as JSON, ending in a newline."""
    return msgspec.json.format(encode(value), indent=2) + "\n"
