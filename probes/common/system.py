"""What kind of Linux this is; mounts; mapped and loadable files."""

from __future__ import annotations

import ctypes
import os
import re

from .lazy import lazy_pattern
from .tree import Tree

_GVISOR_BUILD = "#1 SMP Sun Jan 10 15:06:54 PST 2016"
"""The build string of gVisor's kernel, in every release that it claims to be."""

TEGRA_RELEASE = "/etc/nv_tegra_release"  # The file with the release of L4T, the Linux of Jetson and DRIVE

_WSL_MARKS = ("/proc/sys/fs/binfmt_misc/WSLInterop", "/proc/sys/fs/binfmt_misc/WSLInterop-late", "/run/WSL")


def kernel_release(tree: Tree) -> str | None:
    """Release of the running kernel, as ``uname -r`` prints it."""
    if tree.at_real_root and hasattr(os, "uname"):
        return os.uname().release
    release = tree.read_line("/proc/sys/kernel/osrelease")
    if release:
        return release
    match = re.match(r"Linux version (\S+)", tree.read_text("/proc/version") or "")
    return match.group(1) if match else None


def wsl_mark(tree: Tree) -> str | None:
    """Evidence that this is the Windows Subsystem for Linux, or None."""
    release = (kernel_release(tree) or "").lower()
    if "microsoft" in release or "wsl" in release:
        return "/proc/sys/kernel/osrelease"
    return next((mark for mark in _WSL_MARKS if tree.lexists(mark)), None)


def is_gvisor(tree: Tree) -> bool:
    version = tree.read_text("/proc/version", 4096) or ""
    return "gvisor" in version.lower() or _GVISOR_BUILD in version


def tegra_mark(tree: Tree) -> str | None:
    """Evidence that this is a Tegra system (Jetson, DRIVE), whose GPU is not a PCI device, or None."""
    if "nvidia,tegra" in (tree.read_text("/proc/device-tree/compatible", 4096) or ""):
        return "/proc/device-tree/compatible"
    if (tree.read_line("/sys/devices/soc0/family") or "").lower() == "tegra":
        return "/sys/devices/soc0/family"
    return TEGRA_RELEASE if tree.lexists(TEGRA_RELEASE) else None


_OCTAL = lazy_pattern(r"\\([0-7]{3})")


def mapped_files(maps: str = "/proc/self/maps") -> list[str]:
    """The files in the memory map of this process, each once."""
    try:
        with open(maps, encoding="utf-8", errors="surrogateescape") as lines:
            columns = [line.rstrip("\n").split(None, 5) for line in lines]
    except OSError:
        return []
    return list(dict.fromkeys(line[5] for line in columns if len(line) == 6 and line[5].startswith("/")))


def mapped(stem: str, maps: str = "/proc/self/maps") -> str | None:
    """Real path of the first mapped file whose name is ``stem`` or starts with ``stem.``; None if there is none."""
    for path in mapped_files(maps):
        name = os.path.basename(path)
        if name == stem or name.startswith(f"{stem}."):
            return os.path.realpath(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return None


def why_not_loadable(soname: str) -> str | None:
    """The dynamic loader's error for ``soname``; None if it loads it."""
    try:
        ctypes.CDLL(soname)
    except OSError as error:
        return str(error)
    return None


def is_missing(soname: str, complaint: str) -> bool:
    """Whether the loader found no such file, as opposed to an unusable one (messages of glibc and musl)."""
    return bool(re.search(rf"{re.escape(soname)}: (cannot open shared object file: )?No such file[^()]*$", complaint))


def mount_points(tree: Tree) -> frozenset[str]:
    """Files and folders that are mount points; empty if /proc is not available."""
    lines = (tree.read_text("/proc/self/mountinfo") or "").splitlines()[:20_000]
    fields = (line.split(" ", 5) for line in lines)
    # Without the kernel's octal escapes for blanks and backslashes.
    return frozenset(_OCTAL.sub(lambda found: chr(int(found[1], 8)), parts[4]) for parts in fields if len(parts) > 5)


def is_mounted(path: str, points: frozenset[str]) -> bool:
    """Whether the file, or a folder above it other than the root, is a mount point."""
    parts = path.split("/")
    return any("/".join(parts[:count]) in points for count in range(2, len(parts) + 1))
