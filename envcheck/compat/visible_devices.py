"""How CUDA reads CUDA_VISIBLE_DEVICES: which entry selects a GPU, ends the list, or makes CUDA refuse all of it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

from envcheck.snapshot import Gpu

NO_GPU = ("", "none", "void", "NoDevFiles")
"""Values that people and schedulers set to hide every GPU."""

Kind: TypeAlias = Literal["gpu", "end", "blank", "absent", "word", "twice", "mixed", "ambiguous", "mig-off"]
"""``absent``: a GPU that does not exist; ``word``: neither index nor UUID. Both end the list, as ``end`` (a negative
index) does. The last four make CUDA refuse the whole list.
"""
REFUSED: frozenset[Kind] = frozenset({"twice", "mixed", "ambiguous", "mig-off"})
_ENDS: frozenset[Kind] = frozenset({"end", "blank", "absent", "word"})
_INDEX = re.compile(r"[+-]?[0-9]{1,30}")


class Entry(NamedTuple):
    """An entry of the list."""

    text: str
    kind: Kind


class Reading(NamedTuple):
    """The entries up to the one that ends the list, and how many GPUs they leave visible."""

    entries: tuple[Entry, ...]
    visible: int

    @property
    def problem(self) -> Entry | None:
        """The entry because of which CUDA shows fewer GPUs than were named."""
        refused = next((entry for entry in self.entries if entry.kind in REFUSED), None)
        last = self.entries[-1] if self.entries else None
        return refused or (last if last and last.kind in ("blank", "absent", "word") else None)


def hides_all(value: str) -> bool:
    """Whether the list is empty on purpose, or begins with a negative index."""
    return value in NO_GPU or value.strip().startswith("-")


def read_visible(value: str, gpus: Sequence[Gpu] | None) -> Reading:
    """Read a list for a machine with these GPUs; None where nobody knows them, and then any may exist."""
    entries = tuple(_entries(value, gpus))
    shown = sum(entry.kind == "gpu" for entry in entries)
    return Reading(entries, 0 if any(entry.kind in REFUSED for entry in entries) else shown)


def _entries(value: str, gpus: Sequence[Gpu] | None) -> Iterator[Entry]:
    texts = [text.strip() for text in value.split(",")]
    while len(texts) > 1 and not texts[-1]:
        texts.pop()  # a comma at the end takes nothing away
    by_index: bool | None = None
    met: set[Hashable] = set()
    for text in texts:
        kind, gpu = _selects(text, gpus)
        is_index = bool(_INDEX.fullmatch(text))
        if kind == "gpu" and by_index is not None and is_index != by_index:
            kind = "mixed"
        elif kind == "gpu" and gpu in met:
            kind = "twice"
        by_index = is_index
        met.add(gpu)
        yield Entry(text, kind)
        if kind in _ENDS:
            return


def _selects(text: str, gpus: Sequence[Gpu] | None) -> tuple[Kind, Hashable]:
    """What an entry is by itself, and the GPU that it selects."""
    if not text:
        return "blank", None
    if _INDEX.fullmatch(text):
        return _by_index(int(text), gpus)
    name = text.lower()
    if name.startswith("gpu-"):
        return _by_uuid(name, gpus)
    if name.startswith("mig-"):
        return _mig(name, gpus)
    return "word", None


def _by_index(number: int, gpus: Sequence[Gpu] | None) -> tuple[Kind, Hashable]:
    if number < 0:
        return "end", None
    return ("gpu" if gpus is None or number < len(gpus) else "absent"), number


def _by_uuid(name: str, gpus: Sequence[Gpu] | None) -> tuple[Kind, Hashable]:
    if gpus is None:
        return "gpu", name
    fitting = [gpu.uuid for gpu in gpus if (gpu.uuid or "").lower().startswith(name)]
    if len(fitting) > 1:
        return "ambiguous", name
    if not fitting and all(gpu.uuid for gpu in gpus):
        return "absent", name
    return "gpu", fitting[0] if fitting else name


def _mig(name: str, gpus: Sequence[Gpu] | None) -> tuple[Kind, Hashable]:
    """The older form, ``MIG-GPU-UUID/1/0``, is taken on trust where any GPU is in MIG mode."""
    modes = [gpu.mig.enabled if gpu.mig else None for gpu in gpus or ()]
    if modes and all(mode is False for mode in modes):
        return "mig-off", name
    listed = [gpu.mig.instances if gpu.mig else None for gpu in gpus or ()]
    if "/" in name or not listed or any(instances is None for instances in listed):
        return "gpu", name
    uuids = [instance.uuid for instances in listed for instance in instances or ()]
    known = any(uuid is None or uuid.lower().startswith(name) for uuid in uuids)
    return ("gpu" if known else "absent"), name
