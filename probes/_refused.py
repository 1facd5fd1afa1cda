"""What is there and could not be read: nobody knows what it holds, and it is not absent."""

from __future__ import annotations

import errno

_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_MOST = 1000

noted: dict[str, str] = {}
"""Path, as seen from inside the root, and the system's reason: permission denied, a link in a circle, an I/O error …"""


def note(path: str, error: Exception) -> None:
    """Keep that ``path`` could not be read, unless the error says that nothing is there."""
    if isinstance(error, OSError) and error.errno and error.errno not in _ABSENT and len(noted) < _MOST:
        noted.setdefault(path, error.strerror or str(error))
