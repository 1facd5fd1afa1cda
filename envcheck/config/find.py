"""Find the configuration: every check looks for one, so this imports nothing until a file is there.

Whoever may write to the working folder writes it. So it has a limit, it starts nothing, and the report names it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from envcheck.config.file import OWN, SHARED, read_bytes

if TYPE_CHECKING:
    from envcheck.config.read import Configuration

_WITHOUT = "--no-config does without it"


def find(folder: str) -> Configuration | None:
    """The configuration of the nearest folder, from ``folder`` up, that has one: ``envcheck.toml`` first.

    A ``pyproject.toml`` without ``[tool.envcheck]`` is none. Raises UsageError for one that cannot be read or is wrong.
    """
    place = os.path.realpath(folder)
    while True:
        for name in (OWN, SHARED):
            path = f"{place.rstrip('/')}/{name}"
            if os.path.lexists(path) and (found := _configuration(path, name)):
                return found
        above = os.path.dirname(place)  # noqa: PTH120  a path of text costs less
        if above == place:
            return None
        place = above


def _configuration(path: str, name: str) -> Configuration | None:
    data = read_bytes(path, f"; {_WITHOUT}")
    if name == SHARED and b"envcheck" not in data:
        return None
    from envcheck.config.read import in_file  # noqa: PLC0415  as above

    return in_file(path, data, _WITHOUT)
