"""Which GPU a framework is tried on, and whether it may be: a GPU at work is left alone."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from envcheck.compat.at_work import at_work
from envcheck.snapshot import Gpu, Snapshot

_EXCLUSIVE = ("exclusive_process", "exclusive_thread", "prohibited")
_HIDES_ALL = frozenset({"", "-1", "none", "NoDevFiles"})


class Choice(msgspec.Struct, frozen=True):
    """The GPU to try on; ``gpu`` is None where none is known, and a trial tells whether a framework finds one."""

    gpu: Gpu | None = None
    visible: str | None = None
    """For CUDA_VISIBLE_DEVICES; None: as the user has it."""
    refused: str = ""
    """Why nothing may be tried on a GPU now."""
    absent: str = ""
    """Why there is no GPU to try anything on."""

    @property
    def one_at_a_time(self) -> bool:
        """Whether it takes no second process."""
        return self.gpu is not None and self.gpu.compute_mode in _EXCLUSIVE


def choose_gpu(snapshot: Snapshot, variables: Mapping[str, str], *, force: bool = False) -> Choice:
    """The first GPU that CUDA shows under the user's ``variables`` and nobody is using; with ``force``, the first."""
    listing = snapshot.gpus
    users = variables.get("CUDA_VISIBLE_DEVICES")
    tegra = snapshot.platform is not None and bool(snapshot.platform.tegra_release)  # its GPU is on no bus
    if listing is not None and listing.complete and not listing.items and not tegra:
        return Choice(absent="there is no NVIDIA GPU here")
    if users is not None and users.strip() in _HIDES_ALL:
        return Choice(absent=f"CUDA_VISIBLE_DEVICES={users} hides every GPU")
    shown = [gpu for gpu in (listing.items if listing else ()) if gpu.cuda_ordinal is not None]
    shown.sort(key=lambda gpu: gpu.cuda_ordinal or 0)
    if not shown:
        return Choice()
    reasons = [why_not(gpu) for gpu in shown]
    free = next((gpu for gpu, reason in zip(shown, reasons, strict=True) if force or not reason), None)
    if free is None:
        return Choice(refused=f"{'; '.join(reasons[:3])}; --force tries all the same")
    return Choice(gpu=free, visible=_name_of(free, shown, users))


def _name_of(gpu: Gpu, shown: list[Gpu], users: str | None) -> str | None:
    """What makes ``gpu`` the only one visible; None where it already is, or has no name."""
    instances = gpu.mig.instances if gpu.mig and gpu.mig.enabled else None
    if instances:
        own = [name for name in (users or "").split(",") if name.strip().startswith("MIG-")]
        return own[0].strip() if own else instances[0].uuid
    return gpu.uuid if len(shown) > 1 else None


def why_not(gpu: Gpu) -> str:
    """Why nothing may be run on this GPU unasked; empty where it is free."""
    busy = _in_use(gpu)
    if gpu.compute_mode in _EXCLUSIVE and (busy or gpu.processes):
        return f"{_called(gpu)} takes no further process (compute mode {gpu.compute_mode}) and is in use"
    return f"{_called(gpu)} is busy ({busy})" if busy else ""


def _in_use(gpu: Gpu) -> str:
    memory = None if gpu.mig and gpu.mig.enabled else gpu.memory
    return at_work(gpu.utilisation, memory.used if memory else None, memory.total if memory else None)


def _called(gpu: Gpu) -> str:
    return f"GPU {gpu.index if gpu.index is not None else gpu.key}"
