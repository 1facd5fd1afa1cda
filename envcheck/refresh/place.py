"""The folder to write: the matrix of a checkout, or a named one; never that of an installed package."""

from __future__ import annotations

import os
from pathlib import Path

from envcheck.bundle import folder
from envcheck.compat.compiling import COMPILED, toml_files
from envcheck.errors import UsageError


def folder_to_write(named: str | None) -> Path:
    """The folder whose rows are regenerated. Raises UsageError if none may be changed."""
    place = Path(named) if named else _own()
    if not place.is_dir():
        raise UsageError(f"--matrix {named}: there is no such folder")
    if _is_installed(place):
        raise UsageError(
            f"{place} belongs to an installed package, which is never changed; name a folder with --matrix"
        )
    for path in (place, *toml_files(place)):
        if not os.access(path, os.W_OK):
            raise UsageError(f"no permission to write {path}")
    return place


def _own() -> Path:
    try:
        return folder("matrix")
    except FileNotFoundError as error:
        raise UsageError(str(error)) from None


def _is_installed(place: Path) -> bool:
    """Whether a folder is inside a Python package, or contains files that only a wheel has."""
    real = place.resolve()
    return (real / COMPILED).exists() or (real.parent / "__init__.py").exists() or "site-packages" in real.parts
