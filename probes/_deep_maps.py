"""The CUDA libraries that this process has in its memory map."""

from __future__ import annotations

import os
from typing import Any

from ._deep_versions import version_of_loaded
from ._library_families import family_of

_ANSWERS = frozenset({"cudnn_graph", "cudnn_ops_infer"})
"""The parts of cuDNN that know its version (and, before release 8, the whole of it did)."""


def mapped_files(maps: str = "/proc/self/maps") -> list[str]:
    """The files in the memory map, each once."""
    try:
        with open(maps, encoding="utf-8", errors="surrogateescape") as lines:
            columns = [line.rstrip("\n").split(None, 5) for line in lines]
    except OSError:
        return []
    return list(dict.fromkeys(line[5] for line in columns if len(line) == 6 and line[5].startswith("/")))


def loaded_libraries() -> list[dict[str, Any]]:
    """The CUDA libraries in the map as ``Loaded``, with the versions that they answer.

    The map is read first, and nothing is asked that would load more: ``libcudnn.so`` passes the question on to a part
    of itself, and ends the process when it cannot load that.
    """
    named = [(path, name.family) for path in mapped_files() for name in [family_of(os.path.basename(path))] if name]
    families = {family for _, family in named}
    return [_loaded(path, family, asked=family != "cudnn" or bool(families & _ANSWERS)) for path, family in named]


def _loaded(path: str, family: str, *, asked: bool) -> dict[str, Any]:
    text = os.path.realpath(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    version = version_of_loaded(path, family) if asked else None
    record = {"path": text, "family": family, "source": "memory map"}
    return {**record, "version": version, "read": {"version": "the library itself"}} if version else record
