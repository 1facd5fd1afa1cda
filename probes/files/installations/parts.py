"""The compiled parts of a framework: their GPU code, the libraries that a process would load, XLA's flags."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...common.lazy import lazy_pattern
from ...common.tree import Tree, refused
from ..elf.library import constants
from ..gpu_code.targets import gpu_targets
from ..loader.report import records
from ..loader.script import OpenByName, Preload, called, imported, started
from ..loader.symbols import unresolved
from ..python.site import Gathered, Site
from .torch_files import torch_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..loader.process import LoaderProcess
    from .package import Installation

__all__ = ["OpenByName", "Preload", "examined"]

Met: TypeAlias = "dict[tuple[tuple[Preload, ...], tuple[str, ...]], LoaderProcess]"
"""Processes after preloads and parts were imported, for parts that are imported later."""


def examined(
    site: Site,
    parts: Sequence[str],
    *,
    preloads: Sequence[Preload] = (),
    asks: Sequence[OpenByName] = (),
    extends: Sequence[str] = (),
) -> dict[str, Any]:
    """What ``binaries``, ``gpu_code``, ``loads``, ``loads_complete``, ``looks_in_wheels`` and ``unresolved`` of a
    ``Framework`` are.

    ``parts`` are paths, as the examined machine sees them, of compiled files that its import loads, in that order.
    ``extends`` are those of the framework that is imported before it, with that one's ``preloads`` among ``preloads``.
    ``gpu_code`` is missing where no part has any or not all could be read, ``loads`` where the search of this Python's
    loader is not known at all.
    """
    facts: dict[str, Any] = {"binaries": list(parts)}
    targets = _gpu_code(site.tree, parts)
    if targets:
        facts["gpu_code"] = targets
    parts, preloads = tuple(parts), tuple(preloads)
    process = (_process_before(site, preloads, tuple(extends)) if extends else started(site)).copy()
    if process.system.problem:
        return {**facts, "loads_complete": False}
    events, before = imported(process, site, parts, preloads, first=not extends)
    if not extends:
        site.once(_no_processes)[preloads, parts] = process.copy()
    missing = unresolved(process, events) if extends else None
    if missing is not None:
        facts["unresolved"] = missing
    events += called(process, site, tuple(asks), parts, events, before)
    loads = {"loads": records(process, site, events), "loads_complete": process.complete}
    # Whether a preload, or the search path of a loaded file, leads to folders of NVIDIA's wheels.
    led = any(folder.startswith("nvidia/") for preload in preloads for folder in preload.folders)
    paths = (path for image in process.images for path in (*image.head.rpath, *(image.head.runpath or ())))
    led = led or any(path.startswith("$ORIGIN/") and "/nvidia/" in path for path in paths)
    return {**facts, **loads, "looks_in_wheels": led}


def lacking_in_torch(site: Site, parts: Sequence[str]) -> list[str] | None:
    """The ``unresolved`` symbols of parts that are loaded into a process with PyTorch."""
    torch = torch_of(site)
    process = _process_before(site, torch.preloads, torch.parts).copy()
    if process.system.problem:
        return None
    events, _ = imported(process, site, tuple(parts), torch.preloads, first=False)
    return unresolved(process, events)


def _process_before(site: Site, preloads: tuple[Preload, ...], extends: tuple[str, ...]) -> LoaderProcess:
    """The process before the import of the parts, which all extensions of one framework share."""
    processes = site.once(_no_processes)
    if (preloads, extends) not in processes:
        processes[preloads, extends] = process = started(site).copy()
        imported(process, site, extends, preloads, first=True)
    return processes[preloads, extends]


def _no_processes(_site: Site) -> Met:
    return {}


def _gpu_code(tree: Tree, parts: Sequence[str]) -> list[str] | None:
    """All targets of the parts; None unless all are known."""
    found: dict[str, None] = {}
    for path in parts:
        inside = tree.resolve(path)
        code = gpu_targets(tree.place(inside)) if inside else None
        if code is None or not code.complete:
            return None
        found.update(dict.fromkeys(code.targets))
    return list(found)


_FIELDS = {"cudart": "cuda", "cublas": "cuda", "cudnn": "cudnn", "nvinfer": "tensorrt"}
_NUMBERED = lazy_pattern(rf"lib({'|'.join(_FIELDS)})(?:[-.][0-9a-f]{{8}})?\.so\.(\d{{1,2}})(?:\.\d+)*")
_CUDA = lazy_pattern(r"lib(?:cuda|cudart|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvrtc|nvinfer)\b")
_OPENED = lazy_pattern(rb"lib(?:cuda|cublas|cublasLt|cudnn|nccl|nvrtc|curand|cufft)\.so\.\d{1,2}(?:\.\d)?")
_NAME_LIMIT = 64


def add_parts(
    facts: Gathered,
    here: Installation,
    parts: Sequence[str],
    *,
    preloads: Sequence[Preload] = (),
    asks: Sequence[OpenByName] = (),
    extends: Sequence[str] = (),
) -> None:
    """Add the contents and requests of ``parts`` (in load order); an empty list if there are none."""
    if here.path is None:
        return
    if not parts:
        facts.add(f"file {here.path}", binaries=[])
        return
    facts.add(f"elf {here.path}", **examined(here.site, parts, preloads=preloads, asks=asks, extends=extends))


def cuda_by_loads(facts: Gathered) -> None:
    """The major versions of CUDA and related libraries, from the libraries that the parts request."""
    for load in facts.known("loads") or ():
        match = _NUMBERED.fullmatch(load["name"])
        if match:
            facts.add(load["source"], **{_FIELDS[match[1]]: match[2]})


def asks_for_cuda(facts: Gathered) -> bool | None:
    """Whether the parts request CUDA or contain code for it; None if they could not be read."""
    if facts.known("loads") is None and facts.known("gpu_code") is None:
        return None
    named = any(_CUDA.match(load["name"]) for load in facts.known("loads") or ())
    return named or bool(facts.known("gpu_code"))


def asked_by_name(here: Installation, path: str) -> list[OpenByName]:
    """The CUDA libraries whose full file names are among the constants of a part, since its code opens them."""
    data, names = constants(here.site.tree, path) or b"", dict[str, None]()
    at = data.find(b".so.")  # search for a rare string first: the constants of a library are many megabytes
    while at >= 0:
        start, end = data.rfind(b"\0", max(0, at - _NAME_LIMIT), at) + 1, data.find(b"\0", at, at + _NAME_LIMIT)
        if _OPENED.fullmatch(data, start, max(start, end)):
            names[data[start:end].decode()] = None
        at = data.find(b".so.", at + 1)
    return [OpenByName((name,), by=path.rpartition("/")[2]) for name in names]


_ALWAYS = "--xla_dump_to"  # A flag that every XLA has: without it this is no XLA, or names are stored differently
_LIMIT = 3 << 30  # Most bytes of libraries that are searched; with more, nothing is concluded


def unknown_flags(tree: Tree, libraries: Sequence[str]) -> list[str] | None:
    """The flags, with their dashes, whose names are in no library; None if none are set or not all could be read."""
    value = tree.variables.get("XLA_FLAGS", "")
    wanted = list(dict.fromkeys(re.findall(r"(?:^|\s)(--[a-z]\w{2,120})", value)))[:32]
    if not wanted or not libraries or not all(map(tree.is_file, libraries)):
        return None
    left, room = {flag: flag[2:].encode() for flag in (_ALWAYS, *wanted)}, _LIMIT
    for path in libraries:
        try:
            with open(tree.place(path), "rb") as file:
                room -= os.fstat(file.fileno()).st_size
                if room < 0:
                    return None
                end = b""
                while left and (chunk := file.read(8 << 20)):
                    text = end + chunk
                    left = {flag: name for flag, name in left.items() if name not in text}
                    end = text[-128:]
        except OSError as error:
            refused(path, error)
            return None
    return None if _ALWAYS in left else list(left)
