"""Where the files of NVIDIA's kernel module lie, and what forbids loading it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from ..kit.links import folder_names, is_file, resolve
from ..kit.reading import Request, below, read_line, read_text
from ..kit.record import Found

BASES = ("/lib/modules", "/run/booted-system/kernel-modules/lib/modules")
"""The second is NixOS's."""

_MODULE_FILE = re.compile(r"(?:nvidia(?:-(?:current|tesla|legacy|open|\d+(?:xx)?))*|nvgpu)\.ko(?:\.(?:xz|zst|gz|bz2))?")
"""nvidia.ko, Debian's nvidia-current.ko and nvidia-tesla-470.ko, Tegra's nvgpu.ko; not nvidia-uvm.ko or its like."""

_FOLDERS = ("updates", "extra", "weak-updates", "extramodules", "kernel/drivers/video", "kernel/drivers/gpu/nvgpu")
"""Where installers put it, searched when modules.dep does not name it (depmod was not run)."""

_DEPENDENCIES_LIMIT = 16 * 1024 * 1024
_MAX_FOLDERS = 400
_MAX_KERNELS = 8

_CONFIGURATION = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)
"""In the order of their precedence: a file hides those of the same name that come later."""

_NAME = r"nvidia(?:[-_]current(?:[-_]open)?)?"
_FORBIDS = re.compile(
    rf"^[ \t]*(?:blacklist[ \t]+{_NAME}[ \t]*(?:#.*)?"
    rf"|alias[ \t]+{_NAME}[ \t]+off\b.*"
    rf"|install[ \t]+{_NAME}[ \t]+\S*/(?:false|true)\b.*)$",
    re.MULTILINE,
)


def module_folder(request: Request, release: str) -> str | None:
    """The folder of a kernel's modules, if it is there and can be listed."""
    for base in BASES:
        names, certain = folder_names(request, f"{base}/{release}")
        if names and certain:
            return f"{base}/{release}"
    return None


def find_module(request: Request, folder: str) -> str | None:
    """Path of NVIDIA's module file in the folder of a kernel's modules."""
    listed = read_text(request, f"{folder}/modules.dep", _DEPENDENCIES_LIMIT) or ""
    for line in re.findall(r"^([^:\n]*\b(?:nvidia|nvgpu)[^:\n/]*\.ko[^:\n]*):", listed, re.MULTILINE):
        path = f"{folder}/{line}"
        if _MODULE_FILE.fullmatch(os.path.basename(path)) and is_file(request, path):
            return path
    return next(_search(request, folder), None)


def _search(request: Request, folder: str) -> Iterator[str]:
    branded = [f"kernel/{name}" for name in folder_names(request, f"{folder}/kernel")[0] if name.startswith("nvidia")]
    pending = [f"{folder}/{name}" for name in (*_FOLDERS, *branded)][::-1]
    for _ in range(_MAX_FOLDERS):
        if not pending:
            return
        place = pending.pop()
        for name in folder_names(request, place)[0]:
            path = f"{place}/{name}"
            if _MODULE_FILE.fullmatch(name) and is_file(request, path):
                yield path
            elif ".ko" not in name and os.path.isdir(below(request, path)) and not os.path.islink(below(request, path)):
                pending.append(path)


def other_kernels(request: Request, release: str | None) -> tuple[str, ...]:
    """The kernels, other than the running one, for which a module file lies here."""
    names = [name for name in folder_names(request, BASES[0])[0] if name != release][-_MAX_KERNELS:]
    return tuple(name for name in names if find_module(request, f"{BASES[0]}/{name}"))


def forbidden_by(request: Request) -> Found | None:
    """The configuration that keeps modprobe from loading the module on its own."""
    seen: set[str] = set()
    for folder in _CONFIGURATION:
        for name in folder_names(request, folder)[0]:
            if not name.endswith(".conf") or name in seen:
                continue
            seen.add(name)
            real = resolve(request, f"{folder}/{name}")
            if real and _FORBIDS.search(read_text(request, real, 65536) or ""):
                return Found(f"{folder}/{name}", f"file {folder}/{name}")
    line = read_line(request, "/proc/cmdline") or ""
    lists = re.findall(r"(?:^|\s)(?:modprobe\.|module_)blacklist=(\S+)", line)
    named = any("nvidia" in names.split(",") for names in lists)
    return Found("/proc/cmdline", "file /proc/cmdline") if named else None
