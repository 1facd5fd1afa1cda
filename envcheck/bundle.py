"""Where the shipped folders ``matrix`` and ``probes`` are.

They lie inside the package when envcheck is installed from a wheel, and beside it in a checkout.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """Return the folder ``name`` of this installation; raise FileNotFoundError when it is not there."""
    for place in (_PACKAGE / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(f"envcheck's folder {name!r} is missing from its installation; install envcheck again")
