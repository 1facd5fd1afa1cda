"""Where a child of envcheck finds third-party packages."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def own_path() -> list[str]:
    """The entries of ``sys.path`` that a child may import third-party packages from.

    Not the working folder, which may hold anything; and what PYTHONPATH adds comes last, so that it cannot stand in
    for what envcheck was installed with.
    """
    added = _of_pythonpath()
    entries = [entry for entry in sys.path if Path(entry).is_absolute() and not _is_working_folder(entry)]
    return sorted(entries, key=lambda entry: Path(entry).resolve() in added)


def _of_pythonpath() -> frozenset[Path]:
    entries = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    try:
        return frozenset(Path(entry).resolve() for entry in entries)
    except OSError:  # an entry is relative to a working folder that is gone
        return frozenset()


def _is_working_folder(entry: str) -> bool:
    try:
        return Path(entry).samefile(".") and not entry.endswith("-packages")
    except OSError:
        return False
