"""Where the shipped folders ``matrix``, ``probes`` and ``docs/rules`` are.

They lie inside the package when envcheck is installed from a wheel, and beside it in a checkout.
"""

# ruff: noqa: PTH112, PTH113, PTH118, PTH120, PLC0415  a check starts its first child before it has use for pathlib
from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DATE = "date.txt"  # The file that the build writes beside the rows: to read these would take long for --version
COMPILED = "compiled.json"  # The file that holds all rows of an installed envcheck

PACKAGE = os.path.dirname(os.path.realpath(__file__))


def folder(name: str) -> Path:
    """Return the folder ``name`` of this installation; raise FileNotFoundError when it is not there."""
    from pathlib import Path

    return Path(place(name))


def modules_below(package: str, folders: Iterable[str]) -> list[str]:
    """The names of all modules of a package, those of its packages too, by listing its folders: ``pkgutil`` brings
    ``inspect``, and imports each package only to look for more.
    """
    found = []
    for folder in folders:
        for entry in os.scandir(folder):
            if entry.name.endswith(".py") and entry.name != "__init__.py":
                found.append(f"{package}.{entry.name[:-3]}")
            elif os.path.isfile(os.path.join(entry.path, "__init__.py")):
                inner = f"{package}.{entry.name}"
                found += [inner, *modules_below(inner, [entry.path])]
    return sorted(found)


def place(name: str) -> str:
    for parent in (PACKAGE, os.path.dirname(PACKAGE)):
        path = os.path.join(parent, name)
        if os.path.isdir(path):
            return path
    raise FileNotFoundError(f"envcheck's folder {name!r} is missing from its installation; install envcheck again")
