"""What code that writes C when a program runs compiles it with: a compiler, and the headers of its Python."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ._env_paths import is_file, printable
from ._loading_python import started

if TYPE_CHECKING:
    from ._env_site import Site

COMPILER, HEADERS = "C compiler", "Python.h"
_COMPILERS = ("gcc", "clang")
_PYTHON = re.compile(r"python3\.\d{1,3}t?")


def host_compiler(site: Site) -> dict[str, str]:
    """Where the compiler and the headers are, by ``COMPILER`` and ``HEADERS``; empty where they are not.

    A compiler that ``CC`` names counts as it stands. Without PATH, or a Python whose folder is known, nothing is said.
    """
    variables = site.request.get("variables") or {}
    found: dict[str, str] = {}
    if "CC" in variables or "PATH" in variables:
        found[COMPILER] = printable(variables.get("CC") or _on_path(site, variables.get("PATH", "")))
    images = started(site).images
    program = images[0].path if images else ""
    if _PYTHON.fullmatch(os.path.basename(program)):
        place = f"{os.path.dirname(os.path.dirname(program))}/include/{os.path.basename(program)}/{HEADERS}"
        found[HEADERS] = printable(place) if is_file(site.request, place) else ""
    return found


def _on_path(site: Site, value: str) -> str:
    folders = [folder for folder in value.split(":") if folder.startswith("/")]
    places = (f"{folder}/{name}" for name in _COMPILERS for folder in folders)
    return next((place for place in places if is_file(site.request, place)), "")
