"""The requests of a process as ``Load`` records: found, refused or missing, and where other copies are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ...common.lazy import lazy_pattern
from ...common.library_names import FAMILIES, is_of_family
from ...common.paths import printable
from ...common.record import Record
from ..elf.info import ENDS_THE_PROCESS
from .setup import OF_THE_DRIVER
from .symbols import is_bound, lacking

if TYPE_CHECKING:
    from ..python.site import Site
    from .process import LoadedImage, LoaderProcess, LoadRequest
    from .script import Event

_REPORTED = lazy_pattern(r"lib(?:nvidia-\w+|nccl\w+|stdc\+\+|c|gomp|iomp5)(?:[-.][0-9a-f]{8})?\.so(?:\.|$)")
_HASH = lazy_pattern(r"[-.][0-9a-f]{8}(?=\.so(?:\.|$))")
"""The hash that auditwheel and builds of PyTorch add to a file's name: ``libcudart-e409450e.so.11.0``."""
_NUMBERED_APART = lazy_pattern(
    r"lib(?:nvshmem_\w+|{})\.so".format("|".join(each.files for each in FAMILIES if each.numbered == "apart"))
)
"""Files with numbers of their own: ``libcupti.so.2022.3.0`` of CUDA 11.8, ``libnvvm.so.4.0.0`` of every CUDA 12."""


def is_reported(name: str) -> bool:
    """Whether a library with this name is reported even if nothing is wrong with it."""
    file = name.rpartition("/")[2]
    return is_of_family(file) or _REPORTED.match(file) is not None


def version_in(path: str, soname: str | None) -> str | None:
    """The release at the end of a file's name, with at least two numbers: ``libcublas.so.12.4.5.8``.

    Two numbers stand for an interface and not for a release, unless the soname has one alone: ``libcudart.so.11.0`` is
    that of every CUDA 11, ``libnvrtc.so.11.2`` that of 11.2 to 11.8. A hash in the name of either changes nothing of
    that. Only the builtins of NVRTC are named for their release.
    """
    name = _HASH.sub("", path.rpartition("/")[2])
    match = re.search(r"\.so\.(\d+(?:\.\d+)+)$", name)
    if match is None or _NUMBERED_APART.match(name):
        return None
    if match[1].count(".") > 1 or name.startswith("libnvrtc-builtins"):
        return match[1]
    return match[1] if re.search(r"\.so\.\d+$", soname or "") else None


# Copies of a library that the loader does not find, from a few known folders; the disk is never searched.


_BELOW_A_SITE = ("torch/lib", "tensorrt_libs", "tensorrt_rtx_libs", "cutensor/lib", "cuquantum/lib", "nvpl/lib")
_PATTERNS = (
    "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda/lib64", "/opt/cuda/targets/*/lib",
    *OF_THE_DRIVER, "/usr/local/lib",
)  # fmt: skip

RECORD_LIMIT = 512
_FURTHER = 8
_NUMBERS = lazy_pattern(r"\d+")


def records(process: LoaderProcess, site: Site, events: list[Event]) -> list[Record]:
    """One record for each relevant name and file that the framework requests."""
    report = _Report(process, site)
    seen: set[tuple[int, bool]] = set()
    for event in events:
        for request in event.requests:
            key = id(request), event.optional
            if key not in seen:  # most dependencies are requested by several libraries
                seen.add(key)
                report.add(request, event)
    return report.records()


class _Report:
    def __init__(self, process: LoaderProcess, site: Site) -> None:
        self._process = process
        self._site = site
        self._found: dict[tuple[str, str | None], Record] = {}
        self._users: dict[tuple[str, str | None], tuple[LoadedImage, list[LoadedImage]]] = {}
        """The image of a record, and the images linked against it."""
        self._askers: dict[tuple[str, str | None], set[str | None]] = {}
        """Real paths of the files that request it; None: a preload."""
        self._by_path: set[tuple[str, str | None]] = set()
        """Records of requests by path only; a request by name is more informative."""

    def records(self) -> list[Record]:
        """The records; a request that failed first and succeeded later counts as found."""
        for key in self._opened_in_vain():
            self._found.pop(key)
            self._users.pop(key, None)
        for key, (image, users) in self._users.items():
            record = self._found[key]
            symbols, asking = lacking(self._process, image, record["name"], dict.fromkeys(users)) or (None, "")
            if symbols is not None:
                record["missing_symbols"] = symbols
            if symbols:
                record["needed_by"] = printable(self._real(asking))
                record["source"] = f"elf {record['needed_by']}"
        found = {name for name, path in self._found if path is not None}
        every = ((path or name not in found, record) for (name, path), record in self._found.items())
        return [record for counts, record in every if counts or not record["optional"]]

    def _opened_in_vain(self) -> set[tuple[str, str | None]]:
        """What preloads opened although the framework is linked against another release, and what only that requests.

        PyTorch opens the first file that its pattern meets: of ``libcudnn.so.8`` and ``libcudnn.so.9`` in one folder
        either. Which one it uses is decided by the names that its own files need.
        """
        needed: dict[str, set[str]] = {}
        for (name, path), record in self._found.items():
            if path is not None and not record["optional"]:
                needed.setdefault(_stem(name), set()).add(name)
        optional = {key: record for key, record in self._found.items() if record["optional"]}
        preloaded = [key for key, record in optional.items() if record.get("found_by") == "preloaded"]
        vain = {key for key in preloaded if key[0] not in needed.get(_stem(key[0]), {key[0]})}
        while True:
            paths = {path for _, path in vain if path}
            further = {key for key, askers in self._askers.items() if key in optional and askers <= paths} - vain
            if not further:
                return vain
            vain |= further

    def add(self, request: LoadRequest, event: Event) -> None:
        """Add the record of a request, or merge it into the one for the same name and file."""
        lacks = request.lacks
        if request.image is not None and not lacks and not is_reported(request.name):
            return
        path = self._real(request.image.path) if request.image else None
        key = (os.path.basename(request.name), path)
        known = self._found.get(key)
        if known is None and len(self._found) >= RECORD_LIMIT:
            self._process.complete = False
            return
        if known is None or (key in self._by_path and request.by is not None):
            optional = known["optional"] if known else True
            known = self._found[key] = {**self._record(request, event, path), "optional": optional}
            (self._by_path.discard if request.by else self._by_path.add)(key)
        asker = self._asker(request, event)
        self._askers.setdefault(key, set()).add(asker and self._real(asker))
        crashes = request.refused is not None and request.refused[1].startswith(ENDS_THE_PROCESS)
        known["optional"] = known["optional"] and event.optional and not crashes
        linked = request.by is not None and request.name in request.by.head.needed
        if request.image and request.by and linked and is_bound(request.name) and _is_anothers(known):
            self._users.setdefault(key, (request.image, []))[1].append(request.by)
        if lacks:  # the record names the file that requires the most
            before = known.get("lacks", [])
            known["lacks"] = sorted({*before, *map(printable, lacks)}, key=_in_order)[:16]
            if request.by and known["lacks"][-1] not in before:
                known["needed_by"] = printable(request.by.path)
                known["source"] = f"elf {known['needed_by']}"
            kind = known["lacks"][-1].partition("_")[0]
            offered = request.image.head.version_definitions if request.image else ()
            of_kind = [version for version in offered if re.fullmatch(rf"{re.escape(kind)}_[\d.]+", version)]
            if of_kind:
                known["offers"] = printable(max(of_kind, key=_in_order))

    def _record(self, request: LoadRequest, event: Event, path: str | None) -> Record:
        asking, name = printable(self._asker(request, event) or request.name), os.path.basename(request.name)
        record: Record = {"source": f"elf {asking}", "name": printable(name), "needed_by": asking}
        record["optional"] = event.optional
        if request.image is None or path is None:
            return {**record, **self._missing(request)}
        release = self._process.system.release
        version = version_in(path, request.image.head.soname)
        if request.name == "libc.so.6" and release:
            version = f"{release[0]}.{release[1]}"
        further: dict[str, None] = {}
        for found in self._process.search.all(request.name, request.by) if "/" not in request.name else ():
            further[self._real(found.path)] = None
            if len(further) > _FURTHER:
                break
        others = [printable(one) for one in further if one != path][:_FURTHER]
        record.update(path=printable(path), found_by=request.image.found_by, version=version, others=others)
        return {name: value for name, value in record.items() if value not in (None, [])}

    def _asker(self, request: LoadRequest, event: Event) -> str | None:
        """The requesting file; None for a preload, since ``ctypes`` hides the caller."""
        if event.by and request is event.requests[0]:
            return event.by
        return request.by.path if request.by else None

    def _missing(self, request: LoadRequest) -> Record:
        """Files with its name that the loader would accept, else the first that it does not, and why."""
        process = self._process
        heads = ((path, process.search.head(path)) for path in self._all_of(request.name))
        fitting = (path for path, head in heads if head and not head.refused and not process.system.skips(head))
        if not request.refused and (copies := list(islice(fitting, 8))):
            return {"unfound": [printable(path) for path in copies]}
        heads = ((path, process.search.head(path)) for path in self._all_of(request.name))
        foreign = ((path, head) for path, head in heads if head and process.system.skips(head))
        others = ((path, f"it is for {head.machine}, {head.bits} bit") for path, head in foreign)
        refused = request.refused or next(others, None)
        if not refused:
            return {}
        by = process.search.first(request.name, request.by).by if request.refused else ""
        led = {"found_by": by} if by == "LD_LIBRARY_PATH" else {}
        return {"path": printable(self._real(refused[0])), "refused": refused[1], **led}

    def _all_of(self, name: str) -> Iterator[str]:
        if not name or "/" in name:
            return
        yield from dict.fromkeys(self._real(f"{folder}/{name}") for folder in self._site.once(_folders))

    def _real(self, path: str) -> str:
        return self._process.search.real(path)


def _folders(site: Site) -> list[str]:
    """The folders in which copies are looked for, as far as they are there."""
    tree, found = site.tree, []
    for folder in site.folders:
        found += [f"{folder}/nvidia/{name}/lib" for name in tree.folder_names(f"{folder}/nvidia")[0]]
        found += [f"{folder}/{inner}" for inner in _BELOW_A_SITE]
    found.append(f"{site.prefix}/lib")
    found += [path for pattern in (f"{site.prefix}/targets/*/lib", *_PATTERNS) for path in tree.expand(pattern)]
    return [folder for folder in dict.fromkeys(found) if tree.resolve(folder)]


def _stem(name: str) -> str:
    """The name without its version: ``libcudnn`` of ``libcudnn.so.9``."""
    return _HASH.sub("", name).partition(".so")[0]


def _is_anothers(record: Record) -> bool:
    """Whether the copy may not be the framework's own, so that looking up symbols is worth milliseconds."""
    laid_by_wheel = re.search(r"/(?:site|dist)-packages/nvidia/", record["path"]) is not None
    by_name = record.get("found_by") in ("LD_LIBRARY_PATH", "LD_PRELOAD", "cache", "default")
    return by_name or ("others" in record and not laid_by_wheel)


def _in_order(version: str) -> tuple[str, list[int]]:
    """The sort key of a version: its kind, then its numbers."""
    kind, _, rest = version.partition("_")
    return kind, [int(number[:9]) for number in _NUMBERS.findall(rest)]
