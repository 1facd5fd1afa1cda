"""Write TOML: tables of texts, numbers, lists and dates, as a configuration holds them."""

from __future__ import annotations

import json
import re
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def entries(table: dict[str, Any], above: tuple[str, ...] = ()) -> list[str]:
    """The lines of ``table``: plain values first, then the tables in it under their headings."""
    plain = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not _is_table(value)]
    lines = [f"[{_path(above)}]", *plain] if above and plain else plain
    for key, value in table.items():
        if isinstance(value, dict):
            lines += entries(value, (*above, key))
        elif _is_table(value):
            for each in value:
                lines += [f"[[{_path((*above, key))}]]", *entries(each)]
    return lines


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _path(parts: tuple[str, ...]) -> str:
    return ".".join(map(_key, parts))


def _key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _value(text)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value).replace("\x7f", "\\u007f")
    return json.dumps(value)
