"""The files that hold a configuration or a target, read as bytes."""

from __future__ import annotations

from envcheck.bounded import TooLargeError, read_file
from envcheck.errors import UsageError

OWN, SHARED = "envcheck.toml", "pyproject.toml"
_MOST = 1 << 20


def read_bytes(path: str, remark: str = "") -> bytes:
    """The content of a configuration or target; raise UsageError, which ends in ``remark``."""
    try:
        return read_file(path, _MOST)
    except TooLargeError as error:
        problem = str(error)
    except OSError as error:
        problem = error.strerror or str(error)
    except ValueError:  # a NUL in the name
        problem = "it is not a path"
    raise UsageError(f"cannot read the configuration {path}: {problem}{remark}")
