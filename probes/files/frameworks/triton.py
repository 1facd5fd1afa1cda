"""Triton, which compiles kernels at run time with its own ``ptxas``.

Contents of Linux wheels (2.0.0, 3.1.0, 3.4.0 and 3.9.0): ``backends/nvidia/bin/ptxas`` (in 2.0
``third_party/cuda/bin/ptxas``), from 3.9 on beside it ``ptxas-blackwell`` of a newer CUDA for the newest GPUs. Each
holds the text ``Cuda compilation tools, release 12.8, V12.8.93`` among its constants. The CUDA headers beside it are
of another version (13.1 beside a ptxas of 12.9 in 3.9.0), so they tell nothing of it. What starts a kernel is written
in C and compiled when the first one is called, by ``runtime/build.py`` (in 2.0 ``compiler.py``), which stops where it
finds neither ``CC`` nor gcc nor clang.
"""

from __future__ import annotations

import os
import re
from typing import Any

from ...common.lazy import lazy_pattern
from ...common.paths import printable
from ..elf.library import Elf, ElfError
from ..installations.catalog import FrameworkEntry
from ..installations.package import cuda_version, locate
from ..installations.parts import add_parts
from ..loader.script import started
from ..python.site import Site

_BUILDERS = ("runtime/build.py", "common/build.py", "compiler.py")
_STOPS, _TEXT_LIMIT = "Failed to find C compiler", 1 << 18
_RELEASE = lazy_pattern(rb"Cuda compilation tools, release \d{1,2}\.\d{1,2}, V(\d{1,2}\.\d{1,2}\.\d{1,4})\0")
_AT_ONCE, _OVERLAP, _SEARCHED = 1 << 18, 128, 16 << 20


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The Triton that ``import triton`` would take."""
    here = locate(site, "triton", entry.distributions.split())
    if here is None or (not here.wheels and "language" not in here.names()):
        return []  # another project of that name, such as the client of an inference server
    facts = here.gather(here.wheel["name"] if here.wheel else "triton")
    here.add_declared(facts)
    stated = here.add_stated_version(facts, "__init__.py")
    assemblers = {
        path.rpartition("/")[2]: release
        for folder in ("backends/nvidia/bin", "third_party/cuda/bin", "third_party/nvidia/backend/bin")
        for path in here.files(r"ptxas(?:-[a-z0-9]{1,20})?", folder)
        if (release := _release(site, path))
    }
    if assemblers:
        cuda = cuda_version(assemblers.get("ptxas"))
        facts.add(f"elf {here.path}", built_for=assemblers, cuda=cuda, cpu_only=False)
    if any(_STOPS in (here.text(place, _TEXT_LIMIT) or "") for place in _BUILDERS):
        facts.add(f"file {here.path}", compiles_with=host_compiler(site))
    add_parts(facts, here, here.files(r"libtriton\b.*\.so", "_C"))
    return [facts.record(here.problems(stated, "__init__.py", ("language",)))]


def _release(site: Site, path: str) -> str | None:
    """The release of an assembler, ``12.8.93``; it is near the start of its megabytes of constants."""
    tree = site.tree
    try:
        with Elf(tree.place(path)) as elf:
            start, size = elf.sections.get(".rodata", (0, 0))
            for offset in range(0, min(size, _SEARCHED), _AT_ONCE):
                match = _RELEASE.search(elf.read(start + offset, min(_AT_ONCE + _OVERLAP, size - offset)))
                if match:
                    return match[1].decode()
    except ElfError:
        return None
    return None


COMPILER, NAMED, HEADERS = "C compiler", "CC", "Python.h"


def host_compiler(site: Site) -> dict[str, str]:
    """Where ``COMPILER`` (``NAMED``: one of CC's, which overrides PATH, that is not there) and ``HEADERS`` are; empty
    where they are not. Nothing is reported without PATH, or without a Python in a known folder.
    """
    variables = site.tree.variables
    found: dict[str, str] = {}
    named, path = variables.get("CC"), variables.get("PATH")
    if named == "" and path is not None:
        found[NAMED] = ""  # set, and so taken for the name
    elif named:
        # All of it is one name: ``ccache gcc`` is none. A path from the current folder is accepted as it is.
        known = not named.startswith("/") and (path is None or "/" in named)
        is_there = site.tree.is_program(named) if "/" in named else bool(_on_path(site, path or "", (named,)))
        found.update({COMPILER: printable(named)} if known or is_there else {NAMED: ""})
    elif path is not None:
        found[COMPILER] = printable(_on_path(site, path, ("gcc", "clang")))
    images = started(site).images
    program = images[0].path if images else ""
    if re.fullmatch(r"python3\.\d{1,3}t?", os.path.basename(program)):
        place = f"{os.path.dirname(os.path.dirname(program))}/include/{os.path.basename(program)}/{HEADERS}"
        found[HEADERS] = printable(place) if site.tree.is_file(place) else ""
    return found


def _on_path(site: Site, value: str, names: tuple[str, ...]) -> str:
    folders = [folder for folder in value.split(":") if folder.startswith("/")]
    places = (f"{folder}/{name}" for name in names for folder in folders)
    return next((place for place in places if site.tree.is_program(place)), "")
