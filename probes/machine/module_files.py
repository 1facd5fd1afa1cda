"""The files of NVIDIA's kernel module, and configuration that blocks loading it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from ..kit.record import Found
from ..kit.tree import Tree

BASES = ("/lib/modules", "/run/booted-system/kernel-modules/lib/modules")
"""Folders of kernel modules; the second is NixOS's."""

_MODULE_FILE = re.compile(r"(?:nvidia(?:-(?:current|tesla|legacy|open|\d+(?:xx)?))*|nvgpu)\.ko(?:\.(?:xz|zst|gz|bz2))?")
"""nvidia.ko, Debian's nvidia-current.ko and nvidia-tesla-470.ko, Tegra's nvgpu.ko; not nvidia-uvm.ko or its like."""

_FOLDERS = ("updates", "extra", "weak-updates", "extramodules", "kernel/drivers/video", "kernel/drivers/gpu/nvgpu")
"""Folders that installers use, searched if modules.dep does not list the module (depmod was not run)."""

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
"""Configuration folders in order of precedence: a file hides later ones of the same name."""

_NAME = r"nvidia(?:[-_]current(?:[-_]open)?)?"
_FORBIDS = re.compile(
    rf"^[ \t]*(?:blacklist[ \t]+{_NAME}[ \t]*(?:#.*)?"
    rf"|alias[ \t]+{_NAME}[ \t]+off\b.*"
    rf"|install[ \t]+{_NAME}[ \t]+\S*/(?:false|true)\b.*)$",
    re.MULTILINE,
)


def module_folder(tree: Tree, release: str) -> str | None:
    """The folder of a kernel's modules, if it can be listed."""
    for base in BASES:
        names, certain = tree.folder_names(f"{base}/{release}")
        if names and certain:
            return f"{base}/{release}"
    return None


def find_module(tree: Tree, folder: str) -> str | None:
    """Path of NVIDIA's module file in the folder of a kernel's modules."""
    listed = tree.read_text(f"{folder}/modules.dep", _DEPENDENCIES_LIMIT) or ""
    for line in re.findall(r"^([^:\n]*\b(?:nvidia|nvgpu)[^:\n/]*\.ko[^:\n]*):", listed, re.MULTILINE):
        path = f"{folder}/{line}"
        if _MODULE_FILE.fullmatch(os.path.basename(path)) and tree.is_file(path):
            return path
    return next(_search(tree, folder), None)


def _search(tree: Tree, folder: str) -> Iterator[str]:
    branded = [f"kernel/{name}" for name in tree.folder_names(f"{folder}/kernel")[0] if name.startswith("nvidia")]
    pending = [f"{folder}/{name}" for name in (*_FOLDERS, *branded)][::-1]
    for _ in range(_MAX_FOLDERS):
        if not pending:
            return
        place = pending.pop()
        for name in tree.folder_names(place)[0]:
            path = f"{place}/{name}"
            if _MODULE_FILE.fullmatch(name) and tree.is_file(path):
                yield path
            elif ".ko" not in name and tree.is_folder(path) and tree.link_target(path) is None:
                pending.append(path)


def other_kernels(tree: Tree, release: str | None) -> tuple[str, ...]:
    """Kernels other than the running one with a module file."""
    names = [name for name in tree.folder_names(BASES[0])[0] if name != release][-_MAX_KERNELS:]
    return tuple(name for name in names if find_module(tree, f"{BASES[0]}/{name}"))


def forbidden_by(tree: Tree) -> Found | None:
    """The configuration file that prevents the module from being loaded automatically."""
    seen: set[str] = set()
    for folder in _CONFIGURATION:
        for name in tree.folder_names(folder)[0]:
            if not name.endswith(".conf") or name in seen:
                continue
            seen.add(name)
            real = tree.resolve(f"{folder}/{name}")
            if real and _FORBIDS.search(tree.read_text(real, 65536) or ""):
                return Found(f"{folder}/{name}", f"file {folder}/{name}")
    line = tree.read_line("/proc/cmdline") or ""
    lists = re.findall(r"(?:^|\s)(?:modprobe\.|module_)blacklist=(\S+)", line)
    named = any("nvidia" in names.split(",") for names in lists)
    return Found("/proc/cmdline", "file /proc/cmdline") if named else None
