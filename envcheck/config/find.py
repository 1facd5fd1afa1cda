"""Find the configuration: every check looks for one, so this imports nothing until a file is there.

It counts only where nobody but the user and root can have written it: it sets findings aside and names files to write.
It has a limit, it starts nothing, and the report names it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from envcheck.bounded import TooLargeError, read_file, read_found
from envcheck.errors import UsageError

if TYPE_CHECKING:
    from envcheck.config.read import Configuration


OWN, SHARED = "envcheck.toml", "pyproject.toml"
_MOST = 1 << 20
_WITHOUT = "--no-config does without it"

T = TypeVar("T")


def find(folder: str) -> Configuration | None:
    """The configuration of the nearest folder, from ``folder`` up, that has one: ``envcheck.toml`` first.

    A ``pyproject.toml`` without ``[tool.envcheck]`` is none. Raises UsageError for one that cannot be read, is wrong,
    or may be somebody else's.
    """
    place = os.path.realpath(folder)
    while True:
        if found := in_folder(place):
            return found
        above = os.path.dirname(place)  # noqa: PTH120  a path of text costs less
        if above == place:
            return None
        place = above


def in_folder(place: str) -> Configuration | None:
    """The configuration in the folder ``place``, an absolute path; raise UsageError as ``find``."""
    for name in (OWN, SHARED):
        path = f"{place.rstrip('/')}/{name}"
        if not os.path.lexists(path):
            continue
        data, doubt = _read(read_found, path, f"; {_WITHOUT}")
        if name == SHARED and b"envcheck" not in data:
            continue
        from envcheck.config.read import in_file  # noqa: PLC0415  as above

        configuration = None if doubt and name == OWN else in_file(path, data, _WITHOUT)
        if doubt and (configuration or name == OWN):
            import shlex  # noqa: PLC0415  as above

            raise UsageError(
                f"{path} is used only if you name it, because {doubt}: --config {shlex.quote(path)} uses it; {_WITHOUT}"
            )
        if configuration:
            return configuration
    return None


def read_bytes(path: str) -> bytes:
    """The content of a configuration or target that was named; raise UsageError."""
    return _read(read_file, path)


def _read(read: Callable[[str, int], T], path: str, remark: str = "") -> T:
    """What ``read`` returns; raise UsageError, which ends in ``remark``."""
    try:
        return read(path, _MOST)
    except TooLargeError as error:
        problem = str(error)
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError:  # a NUL in the name
        problem = "it is not a path"
    raise UsageError(f"cannot read the configuration {path}: {problem}{remark}")
