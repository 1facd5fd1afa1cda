"""Jetson and DRIVE: the L4T release of this system, and the one that a container image was made for."""

from __future__ import annotations

import re

from ..kit.record import Found
from ..kit.system import TEGRA_RELEASE, kernel_release, mount_points, tegra_mark
from ..kit.tree import Tree

_RELEASE = re.compile(r"R(\d+) \(release\), REVISION: ([\d.]+)")

_SOURCES = "/etc/apt/sources.list.d/nvidia-l4t-apt-source.list"
_BRANCH = re.compile(
    r"^[ \t]*deb[ \t][^\n#]*repo\.download\.nvidia\.com/jetson/\S+[ \t]+r(\d+(?:\.\d+)*)\s", re.MULTILINE
)


def is_tegra(tree: Tree, *, boxed: bool) -> Found | None:
    """Whether the chip is a Tegra; None if neither the device tree nor sysfs is visible.

    In a container (``boxed``), the image's own release file does not count.
    """
    mark = tegra_mark(tree)
    if mark is not None and (mark != TEGRA_RELEASE or not boxed or mark in mount_points(tree)):
        return Found(True, f"file {mark}")
    if (kernel_release(tree) or "").endswith("-tegra"):
        return Found(True, "file /proc/sys/kernel/osrelease")
    return Found(False, "file /sys/devices") if tree.list_names("/sys/devices") else None


def tegra_release(tree: Tree, *, boxed: bool) -> Found | None:
    """The L4T release; an empty string if this is not a Tegra system, None if it is unknown.

    In a container (``boxed``), the file counts only if it is mounted from the host.
    """
    tegra = is_tegra(tree, boxed=boxed)
    if tegra is None or not tegra.value:
        return Found("", tegra.source) if tegra else None
    if boxed and TEGRA_RELEASE not in mount_points(tree):
        return None
    return _of_file(tree)


def image_tegra_release(tree: Tree) -> Found | None:
    """The L4T release that this container's image was built for, from its release file or package source."""
    if TEGRA_RELEASE not in mount_points(tree):
        own = _of_file(tree)
        if own:
            return own
    found = _BRANCH.search(tree.read_text(_SOURCES, 65536) or "")
    return Found(found.group(1), f"file {_SOURCES}") if found else None


def _of_file(tree: Tree) -> Found | None:
    match = _RELEASE.search(tree.read_text(TEGRA_RELEASE, 4096) or "")
    return Found(f"{match.group(1)}.{match.group(2)}", f"file {TEGRA_RELEASE}") if match else None
