"""The frameworks that are looked for in an environment. One more framework is one reader and one entry here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _torch
from ._env_site import Site

Reader = Callable[[Site], dict[str, Any] | None]

READERS: tuple[Reader, ...] = (_torch.read,)
"""Each returns a ``Framework`` as the Snapshot describes it, or None when its framework is not there."""

DETAILED = frozenset[str]().union(_torch.DISTRIBUTIONS)
"""Normalised names of the distributions whose requirements are wanted."""


def frameworks(site: Site) -> list[dict[str, Any]]:
    """The frameworks of one environment."""
    return [found for found in (reader(site) for reader in READERS) if found is not None]
