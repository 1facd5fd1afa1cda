"""The input of a child: the request, and the folders of third-party packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any


def own_path() -> list[str]:
    """The entries of ``sys.path`` that a child may import third-party packages from.

    The working folder is left out, since it may contain anything. Entries of PYTHONPATH come last, so that they cannot
    replace envcheck's own dependencies.
    """
    added: set[Path] = set()
    with suppress(OSError):  # an entry is relative to a removed working folder
        added = {Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    entries = []
    for entry in sys.path:
        is_working_folder = False
        with suppress(OSError):
            is_working_folder = Path(entry).samefile(".") and not entry.endswith("-packages")
        if Path(entry).is_absolute() and not is_working_folder:
            entries.append(entry)
    return sorted(entries, key=lambda entry: Path(entry).resolve() in added)


def probe_request(
    *, cwd: str, variables: Mapping[str, str], python: Sequence[str] = (), all_envs: bool = False, root: str = "/"
) -> dict[str, Any]:
    """The request that every probe gets, as JSON values; the ``Tree`` of probes/common/tree.py is made of it."""
    return {
        "root": root,
        "cwd": cwd,
        "python": list(python),
        "all_envs": all_envs,
        "own_prefix": sys.prefix,
        "variables": dict(variables),
    }


def working_folder() -> str:
    """The current folder, or the root if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109  a check asks before it has use for pathlib
    except OSError:
        return "/"
