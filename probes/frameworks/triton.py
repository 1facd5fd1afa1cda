"""Triton, which compiles kernels at run time with its own ``ptxas``.

Contents of Linux wheels (2.0.0, 3.1.0, 3.4.0 and 3.9.0): ``backends/nvidia/bin/ptxas`` (in 2.0
``third_party/cuda/bin/ptxas``), from 3.9 on beside it ``ptxas-blackwell`` of a newer CUDA for the newest GPUs. Each
holds the text ``Cuda compilation tools, release 12.8, V12.8.93`` among its constants. The CUDA headers beside it are
of another version (13.1 beside a ptxas of 12.9 in 3.9.0), so they tell nothing of it. What starts a kernel is written
in C and compiled when the first one is called, by ``runtime/build.py`` (in 2.0 ``compiler.py``), which stops where it
finds neither ``CC`` nor gcc nor clang.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ..elf.library import ElfError, open_elf
from ..installations.host_compiler import host_compiler
from ..installations.package import add_declared, locate, problems
from ..installations.parts import add_parts
from ..installations.text import assigned, cuda_version, version

if TYPE_CHECKING:
    from ..python.site import Site

IMPORTS = ("triton",)
DISTRIBUTIONS = ("triton", "pytorch-triton", "triton-nightly")
ORDER = 1

_FOLDERS = ("backends/nvidia/bin", "third_party/cuda/bin", "third_party/nvidia/backend/bin")
_BUILDERS = ("runtime/build.py", "common/build.py", "compiler.py")
_STOPS, _TEXT_LIMIT = "Failed to find C compiler", 1 << 18
_RELEASE = re.compile(rb"Cuda compilation tools, release \d{1,2}\.\d{1,2}, V(\d{1,2}\.\d{1,2}\.\d{1,4})\0")
_AT_ONCE, _OVERLAP, _SEARCHED = 1 << 18, 128, 16 << 20


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The Triton that ``import triton`` would take."""
    here = locate(site, "triton", names)
    if here is None or (not here.wheels and "language" not in here.names()):
        return []  # another project of that name, such as the client of an inference server
    facts = here.gather(here.wheel["name"] if here.wheel else "triton")
    add_declared(facts, here)
    said = version(assigned(here.text("__init__.py") or "", "__version__"))
    facts.add(f"file {here.path}/__init__.py", version=said)
    assemblers = {
        path.rpartition("/")[2]: release
        for folder in _FOLDERS
        for path in here.files(r"ptxas(?:-[a-z0-9]{1,20})?", folder)
        if (release := _release(site, path))
    }
    if assemblers:
        cuda = cuda_version(assemblers.get("ptxas"))
        facts.add(f"elf {here.path}", built_for=assemblers, cuda=cuda, cpu_only=False)
    if any(_STOPS in (here.text(place, _TEXT_LIMIT) or "") for place in _BUILDERS):
        facts.add(f"file {here.path}", compiles_with=host_compiler(site))
    add_parts(facts, here, here.files(r"libtriton\b.*\.so", "_C"))
    return [facts.record(problems(here, said, "__init__.py", ("language",)))]


def _release(site: Site, path: str) -> str | None:
    """The release of an assembler, ``12.8.93``; it is near the start of its megabytes of constants."""
    tree = site.tree
    try:
        with open_elf(tree.place(path)) as elf:
            start, size = elf.sections.get(".rodata", (0, 0))
            for offset in range(0, min(size, _SEARCHED), _AT_ONCE):
                match = _RELEASE.search(elf.read(start + offset, min(_AT_ONCE + _OVERLAP, size - offset)))
                if match:
                    return match[1].decode()
    except ElfError:
        return None
    return None
