"""The C compiler and Python headers for code that compiles C at run time."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from ..kit.paths import printable
from ..loader.script import started

if TYPE_CHECKING:
    from ..python.site import Site

COMPILER, NAMED, HEADERS = "C compiler", "CC", "Python.h"
_COMPILERS = ("gcc", "clang")
_PYTHON = re.compile(r"python3\.\d{1,3}t?")


def host_compiler(site: Site) -> dict[str, str]:
    """Where the compiler and the headers are, by ``COMPILER`` (``NAMED`` for one of CC's that is not there) and
    ``HEADERS``; empty where they are not.

    ``CC`` overrides the search on PATH; a value with several words is accepted as it is. Nothing is reported without
    PATH, or without a Python in a known folder.
    """
    variables = site.tree.variables
    found: dict[str, str] = {}
    named, path = variables.get("CC"), variables.get("PATH")
    if named:
        found.update({COMPILER: printable(named)} if _may_be_there(site, named, path) else {NAMED: ""})
    elif path is not None:
        found[COMPILER] = printable(_on_path(site, path, _COMPILERS))
    images = started(site).images
    program = images[0].path if images else ""
    if _PYTHON.fullmatch(os.path.basename(program)):
        place = f"{os.path.dirname(os.path.dirname(program))}/include/{os.path.basename(program)}/{HEADERS}"
        found[HEADERS] = printable(place) if site.tree.is_file(place) else ""
    return found


def _may_be_there(site: Site, named: str, path: str | None) -> bool:
    if named.startswith("/"):
        return site.tree.is_program(named) or " " in named
    return path is None or " " in named or "/" in named or bool(_on_path(site, path, (named,)))


def _on_path(site: Site, value: str, names: tuple[str, ...]) -> str:
    folders = [folder for folder in value.split(":") if folder.startswith("/")]
    places = (f"{folder}/{name}" for name in names for folder in folders)
    return next((place for place in places if site.tree.is_program(place)), "")
