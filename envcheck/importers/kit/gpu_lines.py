"""Lines of ``nvidia-smi -L`` (which collect_env quotes): ``GPU 0: NVIDIA H100 (UUID: GPU-…)`` and their MIG devices."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from envcheck.importers.kit.paste import SOURCE
from envcheck.snapshot import Gpu, Listing, Mig, MigInstance

_GPU = re.compile(
    r"GPU ([0-9]{1,3}): ?(?![^(\n]{0,60}\b(?:AMD|Intel|ATI|Radeon)\b)"
    r"(\S[^(\n]{0,100})(?:\(UUID: (GPU-[0-9a-fA-F-]{8,40})\))?"
)
_MIG = re.compile(r"MIG ([0-9]{1,2}[cg]\.\S{1,40})\s+Device\s+([0-9]{1,2})(?::|$)(?:\s*\(UUID: (MIG-[^)\s]{1,100})\))?")
_KIND = re.compile(r" \[(?:Discrete|Integrated)\]$")
"""What fastfetch adds."""
MOST_GPUS = 1024
"""Most GPUs that are read; no machine has more."""


def label(index: int) -> str:
    """The label of a GPU that is known only by nvidia-smi's index."""
    return f"pasted-{index}"


def is_gpu_line(line: str) -> bool:
    """Whether this is a line of ``nvidia-smi -L``."""
    line = line.strip()
    return bool(_GPU.match(line) or _MIG.match(line))


def listing(lines: Iterable[str]) -> Listing[Gpu] | None:
    """The GPUs in these lines, or None if there are none."""
    gpus: dict[int, Gpu] = {}
    last: int | None = None
    for line in lines:
        gpu, instance = _GPU.match(line.strip()), _MIG.match(line.strip())
        if gpu and len(gpus) < MOST_GPUS:
            last = int(gpu[1])
            name = _KIND.sub("", gpu[2].strip())
            gpus.setdefault(last, Gpu(source=SOURCE, label=label(last), index=last, name=name, uuid=gpu[3]))
        elif instance and last is not None:
            mig = gpus[last].mig
            known = mig.instances or () if mig else ()
            new = MigInstance(source=SOURCE, uuid=instance[3], name=instance[1])
            if len(known) < 8 and not (new.uuid and new.uuid in {other.uuid for other in known}):
                mig = Mig(source=SOURCE, enabled=True, instances=(*known, new))
                gpus[last] = msgspec.structs.replace(gpus[last], mig=mig)
    return by_index(gpus)


def by_index(gpus: Mapping[int, Gpu]) -> Listing[Gpu] | None:
    """The GPUs by nvidia-smi's index, or None if there are none; complete if the numbers run from 0."""
    if not gpus:
        return None
    return Listing(items=tuple(gpus.values()), complete=sorted(gpus) == list(range(len(gpus))))
