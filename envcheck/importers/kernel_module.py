"""Facts about kernel modules from ``/proc/driver/nvidia/version``, ``lsmod``, ``mokutil --sb-state``."""

from __future__ import annotations

import re

from envcheck.importers.kit.paste import SOURCE, Paste
from envcheck.importers.kit.protocol import Rank, any_line, each_line
from envcheck.snapshot import Kernel, KernelModule, Snapshot

NAME = "kernel modules"
RANK = Rank.OUTPUT

_VERSION = re.compile(
    r"NVRM(?: version)?: (?:loading )?NVIDIA UNIX (Open )?[^\n]{0,60}?\b([0-9]{2,4}(?:\.[0-9]{1,4}){1,2})\b"
)
_LSMOD = re.compile(r"(nouveau|nova_core|nvidia)\s{1,40}[0-9]{4,10}\s{1,40}[0-9]{1,4}(?:\s|$)")
_SECURE_BOOT = re.compile(r"SecureBoot (enabled|disabled)$")
_LONGEST_LINE = 500


def recognise(paste: Paste) -> bool:
    return any_line(paste, _read_line)


def read(paste: Paste) -> Snapshot:
    return each_line(paste, _read_line)


def _read_line(line: str) -> Snapshot | None:
    text = line.strip()[:_LONGEST_LINE]
    if found := _VERSION.search(text):
        module = KernelModule(
            source=SOURCE, loaded=True, version=found[2], flavour="open" if found[1] else "proprietary"
        )
        return Snapshot(kernel=Kernel(source=SOURCE, nvidia=module))
    if found := _LSMOD.match(text):
        return Snapshot(kernel=_in_use(found[1]))
    if found := _SECURE_BOOT.match(text):
        return Snapshot(kernel=Kernel(source=SOURCE, secure_boot=found[1] == "enabled"))
    return None


def _in_use(module: str) -> Kernel:
    if module == "nvidia":
        return Kernel(source=SOURCE, nvidia=KernelModule(source=SOURCE, loaded=True))
    nouveau = module == "nouveau"
    return Kernel(source=SOURCE, nouveau_loaded=True if nouveau else None, nova_loaded=None if nouveau else True)
