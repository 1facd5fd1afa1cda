"""Where the shipped folders ``matrix``, ``probes`` and ``docs/rules`` are.

They lie inside the package when envcheck is installed from a wheel, and beside it in a checkout.
"""

# ruff: noqa: PTH112, PTH118, PTH120, PLC0415  a check starts its first child before it has use for pathlib
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

_PACKAGE = os.path.dirname(os.path.realpath(__file__))


def folder(name: str) -> Path:
    """Return the folder ``name`` of this installation; raise FileNotFoundError when it is not there."""
    from pathlib import Path

    return Path(place(name))


def place(name: str) -> str:
    for parent in (_PACKAGE, os.path.dirname(_PACKAGE)):
        path = os.path.join(parent, name)
        if os.path.isdir(path):
            return path
    raise FileNotFoundError(f"envcheck's folder {name!r} is missing from its installation; install envcheck again")
