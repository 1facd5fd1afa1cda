"""The processor, as /proc/cpuinfo describes it on x86, ARM and POWER."""

from __future__ import annotations

import os
import re

from ..kit.record import Found
from ..kit.tree import Tree

CPUINFO = "/proc/cpuinfo"

_ENOUGH = 256 * 1024
"""Bytes to read: a processor's paragraph has one or two kilobytes, and the first ones suffice."""

_ALL = 16 * 1024 * 1024

_ARM_PARTS = {
    ("0x41", "0xd03"): "Cortex-A53",
    ("0x41", "0xd07"): "Cortex-A57",
    ("0x41", "0xd08"): "Cortex-A72",
    ("0x41", "0xd0c"): "Neoverse-N1",
    ("0x41", "0xd40"): "Neoverse-V1",
    ("0x41", "0xd42"): "Cortex-A78AE",
    ("0x41", "0xd49"): "Neoverse-N2",
    ("0x41", "0xd4f"): "Neoverse-V2",
    ("0x41", "0xd83"): "Neoverse-V3AE",
    ("0x41", "0xd84"): "Neoverse-V3",
    ("0x41", "0xd85"): "Cortex-X925",
    ("0x41", "0xd87"): "Cortex-A725",
    ("0x4e", "0x003"): "NVIDIA Denver 2",
    ("0x4e", "0x004"): "NVIDIA Carmel",
    ("0xc0", "0xac3"): "Ampere-1",
    ("0xc0", "0xac4"): "Ampere-1a",
}
"""Arm's numbers of implementer and part, for processors that were seen with NVIDIA GPUs."""


def _field(text: str, name: str) -> str | None:
    match = re.search(rf"^{name}[ \t]*:[ \t]*(\S.*)$", text, re.MULTILINE)
    return match.group(1).strip() if match else None


def _arm_model(text: str) -> str | None:
    pairs = re.findall(r"^CPU implementer\s*:\s*(0x\w+)$.*?^CPU part\s*:\s*(0x\w+)$", text, re.MULTILINE | re.DOTALL)
    names = (_ARM_PARTS.get(pair, f"Arm implementer {pair[0]} part {pair[1]}") for pair in dict.fromkeys(pairs))
    return " + ".join(names) or None


def model(tree: Tree) -> Found | None:
    """Name of the processor."""
    text = tree.read_text(CPUINFO, _ENOUGH) or ""
    name = _arm_model(text) or _field(text, "model name") or _field(text, "cpu")
    return Found(name, f"file {CPUINFO}") if name else None


def flags(tree: Tree) -> frozenset[str] | None:
    """The feature flags of an x86 processor; None if they cannot be read."""
    listed = _field(tree.read_text(CPUINFO, _ENOUGH) or "", "flags")
    return frozenset(listed.split()) if listed else None


def count(tree: Tree) -> Found | None:
    """The number of processors that this process may use, or that the machine has."""
    if tree.at_real_root and hasattr(os, "sched_getaffinity"):
        return Found(len(os.sched_getaffinity(0)), "sched_getaffinity")
    listed = re.findall(r"^processor\s*:\s*\d+$", tree.read_text(CPUINFO, _ALL) or "", re.MULTILINE)
    return Found(len(listed), f"file {CPUINFO}") if listed else None
