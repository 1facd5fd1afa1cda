"""NCCL's own log: over what it connected the GPUs, which algorithm it chose, and its last words before a failure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from ...kit.figures import Fields

SUBSYSTEMS = "INIT,ENV,GRAPH"
CHOICES = "INIT,ENV,GRAPH,TUNING"
"""With a line for each operation, which takes NCCL a microsecond or so."""
_MOST = 4 << 20
"""Bytes of one log that are read: the last ones."""
_TAIL = 30
_LINE = 300
_VIA = re.compile(
    r" Channel \d+(?:/\d+)? : \d+\[[^\]]{1,20}\] -> \d+\[[^\]]{1,20}\](?: \[\w+\])?"
    r" via ([A-Za-z0-9]+)(?:/([\w ]{1,20}))?"
)
_CHANNELS = re.compile(r" (\d+) coll channels(?:, (\d+) collnet channels)?, (\d+) nvls channels")
_CHOICE = re.compile(r" (\w+): (\d+) Bytes -> Algo (\w+) proto (\w+)")


def log_variables(environment: Mapping[str, str], folder: str, *, choices: bool) -> dict[str, str]:
    """Variables that make NCCL write its log into ``folder``; what the environment sets itself stays."""
    wanted = {
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": CHOICES if choices else SUBSYSTEMS,
        "NCCL_DEBUG_FILE": os.path.join(folder, "nccl.%p.log"),
    }
    if environment.get("NCCL_DEBUG"):
        wanted.pop("NCCL_DEBUG")
        wanted.pop("NCCL_DEBUG_SUBSYS")
    if environment.get("NCCL_DEBUG_SUBSYS"):
        wanted.pop("NCCL_DEBUG_SUBSYS", None)
    if environment.get("NCCL_DEBUG_FILE"):
        wanted.pop("NCCL_DEBUG_FILE")
    return wanted


def read_logs(folder: str) -> list[str]:
    """The lines of every log in the folder."""
    lines: list[str] = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _MOST))
            lines += file.read(_MOST).decode("utf-8", "replace").splitlines()
    return lines


def connections(lines: list[str]) -> Fields:
    """``transports`` (``P2P/CUMEM``, ``SHM/direct`` …), most frequent first, and numbers of channels."""
    counts: dict[str, int] = {}
    found: Fields = {}
    for line in lines:
        via = _VIA.search(line)
        if via:
            words = "/".join(filter(None, via.groups())).strip()
            counts[words] = counts.get(words, 0) + 1
        channels = _CHANNELS.search(line)
        if channels:
            found["channels"], found["nvls_channels"] = int(channels[1]), int(channels[3])
    found["transports"] = sorted(counts, key=lambda each: -counts[each])
    return found


def choices(lines: list[str]) -> dict[tuple[str, int], tuple[str, str]]:
    """(function, bytes) → algorithm and protocol, in NCCL's words."""
    return {(chosen[1], int(chosen[2])): (chosen[3], chosen[4]) for line in lines if (chosen := _CHOICE.search(line))}


def told(lines: list[str]) -> list[str]:
    """What helps to find a failure's cause: warnings, else the last lines; bounded."""
    warnings = [line for line in lines if " NCCL WARN " in line]
    return [line[:_LINE] for line in (warnings or lines)[-_TAIL:]]
