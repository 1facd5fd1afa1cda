"""JSON that any reader takes and any terminal survives."""

from __future__ import annotations

from typing import Any

import msgspec

from envcheck.text.lazy import lazy_pattern

_UNPRINTABLE = lazy_pattern("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""Characters that steer a terminal or the direction of text; JSON itself asks only for those below U+0020."""


def encode(value: Any) -> str:
    """``value`` as JSON on one line; characters that steer a terminal are escaped, which readers undo."""
    try:
        encoded = msgspec.json.encode(value)
    except UnicodeEncodeError:
        # A file name need not be valid text; JSON must be.
        encoded = msgspec.json.encode(_valid(msgspec.to_builtins(value)))
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", encoded.decode())


def _valid(value: Any) -> Any:
    r"""``value`` with what is not a text written out, as in ``\udcff``."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_valid(key): _valid(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_valid(inner) for inner in value]
    return value
