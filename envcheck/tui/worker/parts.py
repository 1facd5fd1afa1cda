"""What each probe told, kept from one session to the next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from envcheck.snapshot import ProbeRun, Snapshot

Key: TypeAlias = tuple[str, str | None, str | None]
"""Probe, framework, GPU."""
Parts: TypeAlias = Mapping[Key, "Snapshot"]


def key_of(run: ProbeRun) -> Key:
    """What tells a run from others of its session."""
    return run.name, run.framework, run.gpu


def kept_of(parts: Parts, kinds: Iterable[str] | None) -> Parts:
    """What probes of these kinds told; None: all probes."""
    if not parts or kinds is None:
        return parts
    from envcheck.collect.catalog import all_probes

    wanted = frozenset(kinds)
    names = {spec.name for spec in all_probes() if spec.kind in wanted}
    return {key: part for key, part in parts.items() if key[0] in names}
