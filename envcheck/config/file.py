"""The files that hold a configuration or a target, read as bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from envcheck.bounded import TooLargeError, read_file, read_found
from envcheck.errors import UsageError

OWN, SHARED = "envcheck.toml", "pyproject.toml"
_MOST = 1 << 20

T = TypeVar("T")


def read_bytes(path: str) -> bytes:
    """The content of a configuration or target that was named; raise UsageError."""
    return _read(lambda: read_file(path, _MOST), path, "")


def found_bytes(path: str, remark: str) -> tuple[bytes, str]:
    """The content of a configuration that was found, and why others may have written it; raise UsageError, which ends
    in ``remark``.
    """
    return _read(lambda: read_found(path, _MOST), path, remark)


def _read(read: Callable[[], T], path: str, remark: str) -> T:
    try:
        return read()
    except TooLargeError as error:
        problem = str(error)
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError:  # a NUL in the name
        problem = "it is not a path"
    raise UsageError(f"cannot read the configuration {path}: {problem}{remark}")
