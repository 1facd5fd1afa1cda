"""How much of a machine was measured, and what was left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envcheck.snapshot import Gpu, Measurement, ProbeRun
from envcheck.text.ranges import ranges

_TIMED = ("bench.gemm", "bench.memory", "bench.chip")
"""Probes of every measuring run; a deep check, which lets libraries work on one GPU, never starts them."""


class Coverage(msgspec.Struct, frozen=True):
    """The GPUs of a machine by what became of them, and the figures without a value."""

    measured: tuple[Gpu, ...]
    in_use: tuple[Gpu, ...]
    """Asked for, and not measured since others use them."""
    failed: tuple[Gpu, ...]
    """Asked for, and without any figure: every measurement failed, or could not be made."""
    hidden: tuple[Gpu, ...]
    """Not shown by CUDA, though others are."""
    not_asked: tuple[Gpu, ...]
    missing: tuple[Measurement, ...]
    """Figures of any GPU, or pair, or of the processor, that could not be taken."""

    @property
    def refused(self) -> tuple[Gpu, ...]:
        """Those that were asked for and have no figure."""
        return (*self.in_use, *self.failed)

    @property
    def gpus(self) -> int:
        """How many there are."""
        return len(self.measured) + len(self.refused) + len(self.hidden) + len(self.not_asked)

    @property
    def whole(self) -> bool:
        """Whether every GPU was measured."""
        return self.gpus == len(self.measured)

    def told(self) -> str:
        """``1 of 2 GPUs measured, GPU 0 in use``."""
        count = f"{len(self.measured)} of {self.gpus}" if not self.whole else f"{self.gpus}"
        total = f"{count} GPU{'s' if self.gpus != 1 else ''} measured"
        return ", ".join([total, *(f"{numbers(gpus)} {why}" for gpus, why in self.left_out if gpus)])

    @property
    def left_out(self) -> tuple[tuple[tuple[Gpu, ...], str], ...]:
        """The GPUs without a figure, by the reason in words."""
        return (
            (self.in_use, "in use"),
            (self.failed, "without a figure"),
            (self.hidden, "hidden from CUDA"),
            (self.not_asked, "not asked for"),
        )


def coverage(gpus: Iterable[Gpu], measurements: Sequence[Measurement], runs: Iterable[ProbeRun]) -> Coverage:
    """What was measured of ``gpus``, by the figures and by how the measuring probes ended."""
    known = [gpu for gpu in gpus if gpu.index is not None or gpu.cuda_ordinal is not None]
    have = {uuid for each in measurements if _was_done(each) for uuid in _gpus_of(each) if uuid}
    tried = [run for run in runs if run.name in _TIMED and run.gpu]
    in_use = {run.gpu for run in tried if run.status == "skipped"}
    ran = {run.gpu for run in tried}
    shown = any(gpu.cuda_ordinal is not None for gpu in known)
    places: dict[str, list[Gpu]] = {}
    for gpu in known:
        if gpu.uuid in have:
            place = "measured"
        elif gpu.uuid in in_use:
            place = "in_use"
        elif gpu.uuid in ran:
            place = "failed"
        else:
            place = "hidden" if shown and gpu.cuda_ordinal is None else "not_asked"
        places.setdefault(place, []).append(gpu)
    return Coverage(
        measured=tuple(places.get("measured", ())),
        in_use=tuple(places.get("in_use", ())),
        failed=tuple(places.get("failed", ())),
        hidden=tuple(places.get("hidden", ())),
        not_asked=tuple(places.get("not_asked", ())),
        missing=tuple(each for each in measurements if not _was_done(each)),
    )


def numbers(gpus: Sequence[Gpu]) -> str:
    """``GPU 0``, ``GPUs 0-3, 5``; bus ids where no index is known."""
    indices = sorted(gpu.index for gpu in gpus if gpu.index is not None)
    names = [*ranges(indices), *(gpu.key for gpu in gpus if gpu.index is None)]
    return f"GPU{'s' if len(gpus) > 1 else ''} {', '.join(names)}"


def _was_done(measured: Measurement) -> bool:
    return measured.value is not None or measured.verification is not None


def _gpus_of(measured: Measurement) -> tuple[str | None, ...]:
    """UUIDs of the GPUs that took part."""
    return (measured.gpu, measured.peer, *(measured.collective.gpus if measured.collective else ()))
