"""The driver's user-space libraries on disk, real ones, link-time stubs and forward-compatibility copies."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from .common.lazy import lazy_pattern
from .common.out import Out, clean
from .common.system import is_mounted, mount_points
from .common.tree import Tree
from .files.elf.exported import Exports, constants
from .files.elf.info import elf_info
from .files.elf.library import Elf, ElfError
from .files.loader.setup import OF_THE_DRIVER, search_path

PROBE = {
    "title": "Libraries of the driver on disk",
    "seconds": 10.0,
    "fills": ["driver.installed", "driver.libraries", "driver.smi_path"],
}

_FAMILIES = ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvidia-nvvm", "libcudadebugger")
_FILE = lazy_pattern(rf"({'|'.join(_FAMILIES)})\.so(?:\.(\d[\d.]*))?")
_RELEASE = lazy_pattern(r"\d{3}\.\d{2,3}(?:\.\d{2,3})?")
_RELEASE_INSIDE = lazy_pattern(rb"\0(\d{3}\.\d{2,3}(?:\.\d{2,3})?)\0")
_STUB_OF_NVML = b"libnvidia-ml.so in GDK package is a stub library"  # The beginning of what every function of it prints
_STUB_LIBRARY = 34  # ``CUDA_ERROR_STUB_LIBRARY``: all that a stub's ``cuInit`` does is to return it

_VENDOR_FOLDERS = (
    *OF_THE_DRIVER, "/usr/lib/nvidia*", "/usr/lib64/nvidia*", "/usr/local/cuda*/compat", "/usr/local/cuda*/compat/*",
    "/usr/local/cuda*/lib64/stubs", "/usr/local/cuda*/targets/*/lib/stubs", "/usr/lib/*-linux-gnu/stubs",
    "/opt/cuda*/lib64/stubs", "/run/nvidia/driver/usr/lib/*-linux-gnu", "/run/nvidia/driver/usr/lib64",
    "/opt/nvidia/lib64",
)  # fmt: skip
"""Where distributions, container engines and toolkits put them, beside the loader's own folders."""

_SMI_FOLDERS = ("/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib", "/run/current-system/sw/bin")

_MACHINE = os.uname().machine
_LISTS = ("/etc/ld.so.conf", "/etc/ld.so.conf.d/*.conf")
_ELF64 = b"\x7fELF\x02"
_ELF32 = b"\x7fELF\x01"


def collect(tree: Tree, out: Out) -> None:
    """Send ``driver.installed``, ``driver.libraries`` and ``driver.smi_path``."""
    path = search_path(tree)
    # What the loader would try for the names that programs ask for (``libcuda.so.1``), in its order, and what leads it
    # there. The last first, so that of a path that is met twice the first meeting is kept.
    preloaded = tree.variables.get("LD_PRELOAD", "").replace(":", " ").split()
    absolute = (place for place in preloaded if place.startswith("/") and _FILE.fullmatch(os.path.basename(place)))
    places = [(place, "LD_PRELOAD") for place in absolute]
    places += [(place, "LD_LIBRARY_PATH") for place in _asked_for_in(tree, path.variable)]
    places += [(place, "cache") for name, place in path.cache if _is_asked_for(name)]
    places += [(place, "default") for place in _asked_for_in(tree, path.defaults)]
    found_by = dict(places[::-1])
    by_real_path = _by_real_path(tree, list(reversed(found_by)))
    lying: list[str] = []
    certain = True
    conda = tree.variables.get("CONDA_PREFIX", "")
    prefixed = [f"{conda}/lib", f"{conda}/lib/stubs", f"{conda}/cuda-compat"] if conda.startswith("/") else []
    patterns = [place for pattern in _VENDOR_FOLDERS for place in tree.expand(pattern)]
    for folder in dict.fromkeys([*path.variable, *path.defaults, *patterns, *prefixed]):
        names, readable = tree.folder_names(folder)
        certain = certain and readable
        lying += [f"{folder}/{name}" for name in names if _FILE.fullmatch(name)]
    for real in _by_real_path(tree, lying):
        by_real_path.setdefault(real, [])
    libraries = [library for real, found_as in by_real_path.items() if (library := _library(tree, real, found_as))]
    for library in libraries:
        # What makes the loader meet the file: a variable, or the file of ldconfig's that lists its folder.
        first = next(iter(library["found_as"]), None)
        if first in found_by:
            library["found_by"] = found_by[first]
            # The file from which ldconfig takes a folder; none where it is one of its own.
            patterns = list(_LISTS) if found_by[first] == "cache" else []
            for place in (place for pattern in patterns for place in tree.expand(pattern)):
                lines = (tree.read_text(place) or "").splitlines()
                if os.path.dirname(first) in {line.partition("#")[0].strip().rstrip("/") for line in lines}:
                    library["listed_in"] = clean(place)
                    break
    points = mount_points(tree)
    if points:
        libraries = [{**library, "mounted": is_mounted(library["path"], points)} for library in libraries]
    complete = certain and path.complete
    driver: dict[str, Any] = {"source": "file", "libraries": {"items": libraries, "complete": complete}}
    installed = any(library.get("kind") == "driver" for library in libraries)
    if installed or complete:
        driver["installed"] = installed
    folders = [entry for entry in tree.variables.get("PATH", "").split(":") if entry.startswith("/")]
    programs = (f"{folder}/nvidia-smi" for folder in dict.fromkeys([*folders, *_SMI_FOLDERS]))
    smi = next((path for path in programs if tree.is_file(path) and os.access(tree.place(path), os.X_OK)), None)
    if smi:
        driver["smi_path"] = clean(smi)
    out.fact({"driver": driver})
    tree.report_unreadable(out)
    if not libraries:
        out.absent("no library of the driver on disk")


def _asked_for_in(tree: Tree, folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        yield from (f"{folder}/{name}" for name in tree.folder_names(folder)[0] if _is_asked_for(name))


def _is_asked_for(name: str) -> bool:
    match = _FILE.fullmatch(name)
    return bool(match) and "." not in (match.group(2) or "" if match else "")


def _by_real_path(tree: Tree, paths: Iterator[str] | list[str]) -> dict[str, list[str]]:
    by_real: dict[str, list[str]] = {}
    for path in dict.fromkeys(paths):
        real = tree.resolve(path)
        if real:
            by_real.setdefault(real, []).append(path)
    return by_real


def _library(tree: Tree, real: str, found_as: list[str]) -> dict[str, Any] | None:
    """The record of one file; None for a 32-bit one, which the loader passes over."""
    is_folder = tree.is_folder(real)
    start = b"" if is_folder else tree.read_bytes(real, len(_ELF64))
    if start is None or start == _ELF32:
        return None
    library: dict[str, Any] = {"source": f"file {clean(real)}", "path": clean(real)}
    # The name with one number, which ldconfig makes from the file's own soname.
    family = os.path.basename(real).partition(".so")[0]
    beside = [f"{os.path.dirname(real)}/{name}" for name in (f"{family}.so.1", f"{family}.so.4")]
    names = [path for path in (*found_as, *beside) if re.fullmatch(r".+\.so\.\d+", path)]
    soname = next((os.path.basename(path) for path in names if tree.resolve(path) == real), None)
    if soname:
        library["soname"] = soname
    head = elf_info(tree.place(real))
    if head is not None and head.machine and head.machine != _MACHINE:
        library["machine"] = head.machine
        found_as = []  # the loader passes over it
    elif head is not None and (is_folder or head.refused):
        library["refused"] = "it is a folder" if is_folder else clean(head.refused or "")
    library["found_as"] = [clean(path) for path in found_as]
    if start != _ELF64:
        return library  # an empty place-holder, or damaged
    parts = real.split("/")[:-1]
    compat = any(part == "compat" or part.startswith("cuda-compat") for part in parts)
    stub = "stubs" in parts or _answers_as_stub(tree, real)
    library["kind"] = "stub" if stub else "compat" if compat else "driver"
    version = None if stub else _version(tree, real)
    if version:
        library["version"] = version
    return library


def _answers_as_stub(tree: Tree, real: str) -> bool:
    """Whether a file is one by what it holds, wherever it lies; a driver's own has its release as number."""
    match = _FILE.fullmatch(os.path.basename(real))
    if match is None or _RELEASE.fullmatch(match.group(2) or ""):
        return False
    if match.group(1) == "libnvidia-ml":
        return _STUB_OF_NVML in (tree.read_bytes(real, 1024 * 1024) or b"")
    if match.group(1) != "libcuda":
        return False
    try:
        with Elf(tree.place(real)) as elf:
            start = Exports(elf).find("cuInit")
            code = elf.read(start.offset, start.size) if start and start.size <= 32 else b""
            return constants(code, elf.machine) == [_STUB_LIBRARY]
    except ElfError:
        return False


def _version(tree: Tree, real: str) -> str | None:
    """The release by the file's name; where the name has none (WSL), the one that libnvidia-ml holds as a text."""
    match = _FILE.fullmatch(os.path.basename(real))
    if match and _RELEASE.fullmatch(match.group(2) or ""):
        return match.group(2)
    if not match or match.group(1) != "libnvidia-ml":
        return None
    inside = set(_RELEASE_INSIDE.findall(tree.read_bytes(real, 8 * 1024 * 1024) or b""))
    return inside.pop().decode() if len(inside) == 1 else None
