"""What kind of Linux this is: facts that several probes must know before they may conclude anything."""

from __future__ import annotations

import os
import re

from .reading import Request, exists, read_line, read_text

_GVISOR_BUILD = "#1 SMP Sun Jan 10 15:06:54 PST 2016"
"""The build that gVisor's kernel claims to be, whatever release it names."""

TEGRA_RELEASE = "/etc/nv_tegra_release"
"""Where L4T, the Linux of Jetson and DRIVE, says its release."""

_WSL_MARKS = ("/proc/sys/fs/binfmt_misc/WSLInterop", "/proc/sys/fs/binfmt_misc/WSLInterop-late", "/run/WSL")


def at_real_root(request: Request) -> bool:
    """Whether this very machine is examined, so that system calls speak of it."""
    return bool(request.get("root", "/") == "/")


def kernel_release(request: Request) -> str | None:
    """Release of the running kernel, as ``uname -r`` prints it."""
    if at_real_root(request) and hasattr(os, "uname"):
        return os.uname().release
    release = read_line(request, "/proc/sys/kernel/osrelease")
    if release:
        return release
    match = re.match(r"Linux version (\S+)", read_text(request, "/proc/version") or "")
    return match.group(1) if match else None


def wsl_mark(request: Request) -> str | None:
    """What shows that this is the Windows Subsystem for Linux, or None."""
    release = (kernel_release(request) or "").lower()
    if "microsoft" in release or "wsl" in release:
        return "/proc/sys/kernel/osrelease"
    return next((mark for mark in _WSL_MARKS if exists(request, mark)), None)


def is_gvisor(request: Request) -> bool:
    """Whether the kernel is gVisor's."""
    version = read_text(request, "/proc/version", 4096) or ""
    return "gvisor" in version.lower() or _GVISOR_BUILD in version


def tegra_mark(request: Request) -> str | None:
    """What shows that this is a Tegra system (Jetson, DRIVE), whose GPU is not a PCI device, or None."""
    if "nvidia,tegra" in (read_text(request, "/proc/device-tree/compatible", 4096) or ""):
        return "/proc/device-tree/compatible"
    if (read_line(request, "/sys/devices/soc0/family") or "").lower() == "tegra":
        return "/sys/devices/soc0/family"
    return TEGRA_RELEASE if exists(request, TEGRA_RELEASE) else None


# What is mounted where, as this process sees it.


_MOUNTINFO = "/proc/self/mountinfo"
_OCTAL = re.compile(r"\\([0-7]{3})")
_MOST = 20_000


def mount_points(request: Request) -> frozenset[str]:
    """Files and folders on which something is mounted; empty where /proc does not tell."""
    lines = (read_text(request, _MOUNTINFO) or "").splitlines()[:_MOST]
    fields = (line.split(" ", 5) for line in lines)
    return frozenset(_plain(parts[4]) for parts in fields if len(parts) > 5)


def is_mounted(path: str, points: frozenset[str]) -> bool:
    """Whether the file, or a folder above it (but not the root), is a mount of its own."""
    parts = path.split("/")
    return any("/".join(parts[:count]) in points for count in range(2, len(parts) + 1))


def _plain(text: str) -> str:
    """A path as it is: the kernel writes blanks and backslashes in it as octal numbers."""
    return _OCTAL.sub(lambda found: chr(int(found.group(1), 8)), text)
