"""Isolation between PCI devices: the IOMMU, and Access Control Services of ports."""

from __future__ import annotations

import os
import re
import struct
from typing import Any

from ..kit.tree import Tree

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

_CONFIG_SIZE = 4096
_CONFIG_OF_USERS = 64
"""Bytes of the configuration space that the kernel shows to users other than root."""

_FIRST_EXTENDED = 0x100
_ACS = 0x000D
"""Number of the extended capability Access Control Services in the PCI Express Base Specification."""
_ACS_CONTROL = 6
_REDIRECTS = 0b1100
"""Bits of its control register: P2P Request Redirect and P2P Completion Redirect."""
_MOST_CAPABILITIES = 64


def isolation(tree: Tree, place: str) -> dict[str, Any]:
    """``iommu`` and ``redirecting`` of a ``Pcie``, as far as they can be read, of the device at ``place`` in sysfs."""
    found: dict[str, Any] = {}
    treated = _iommu(tree, place)
    if treated is not None:
        found["iommu"] = treated
    ports = _ports_above(tree, place)[1:]  # traffic at the root port has reached the root anyway
    states = [_redirects(tree, port) for port in ports]
    if None not in states:
        found["redirecting"] = [os.path.basename(port) for port, state in zip(ports, states) if state]
    return found


def _iommu(tree: Tree, place: str) -> str | None:
    group = f"{place}/iommu_group"
    if not tree.lexists(group):
        return "" if tree.list_names(place) else None
    return tree.read_line(f"{tree.resolve(group)}/type")


def _ports_above(tree: Tree, place: str) -> list[str]:
    """The bridges between the root and the device, from the nesting in sysfs."""
    real = tree.resolve(place)
    ports = []
    while real:
        real = os.path.dirname(real)
        if not _ADDRESS.fullmatch(os.path.basename(real)):
            break
        ports.append(real)
    return ports[::-1]


def _redirects(tree: Tree, port: str) -> bool | None:
    """Whether a port redirects traffic between devices to the root; None if its registers cannot be read."""
    data = tree.read_bytes(f"{port}/config", _CONFIG_SIZE)
    if data is None or len(data) <= _CONFIG_OF_USERS:
        return None
    at = _FIRST_EXTENDED
    for _ in range(_MOST_CAPABILITIES):
        if at < _FIRST_EXTENDED or at + 8 > len(data):
            return False
        (header,) = struct.unpack_from("<I", data, at)
        if header & 0xFFFF == _ACS:
            (control,) = struct.unpack_from("<H", data, at + _ACS_CONTROL)
            return bool(control & _REDIRECTS)
        at = header >> 20
    return False
