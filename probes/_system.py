"""What kind of Linux this is: facts that several probes must know before they may conclude anything."""

from __future__ import annotations

import os
import re

from ._kit import Request, exists, read_line, read_text

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
