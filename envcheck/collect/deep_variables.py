"""The environment variables of a program that tries a framework: the user's own, with what would leave traces changed.

A framework that is tried must see what the user's own program sees; so all of the user's variables stay, but for
those that say where caches lie, how much of the GPU's memory is taken in advance, and whether the network is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

NO_PREALLOCATION = {
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "FLAGS_allocator_strategy": "auto_growth",
}
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "WANDB_MODE": "disabled",
}
CACHES = (
    "CUDA_CACHE_PATH",
    "CUPY_CACHE_DIR",
    "FLASHINFER_WORKSPACE_BASE",
    "HF_HOME",
    "KERAS_HOME",
    "MPLCONFIGDIR",
    "NUMBA_CACHE_DIR",
    "PYTORCH_KERNEL_CACHE_PATH",
    "TMPDIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "TORCH_HOME",
    "TRITON_CACHE_DIR",
    "TRITON_HOME",
    "VLLM_CACHE_ROOT",
    "XDG_CACHE_HOME",
)
"""Variables that name the folder of a cache."""
TALKATIVE = {"TF_CPP_MIN_LOG_LEVEL": "0"}
"""What makes a library say why it leaves the GPU alone."""
_LASTING_CACHES = ("JAX_COMPILATION_CACHE_DIR",)
"""Set, they turn a cache on."""
_SEARCH_PATHS = ("PYTHONPATH", "LD_LIBRARY_PATH")


def child_variables(variables: Mapping[str, str], cwd: str, folder: str, visible: str | None = None) -> dict[str, str]:
    """The variables of a child whose caches lie in ``folder``, made here, and that sees the GPU ``visible`` alone.

    Search paths that are relative to the user's working folder ``cwd`` are made absolute, since the child works in
    another. ``visible`` is a value for CUDA_VISIBLE_DEVICES; None leaves the user's own.
    """
    kept = {name: value for name, value in variables.items() if name not in _LASTING_CACHES}
    for name in _SEARCH_PATHS:
        if kept.get(name):
            kept[name] = os.pathsep.join(_absolute(entry, cwd) for entry in kept[name].split(os.pathsep))
    for name in CACHES:
        place = Path(folder, name.lower())
        place.mkdir(parents=True, exist_ok=True)
        kept[name] = str(place)
    narrowed = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return {**kept, **NO_PREALLOCATION, **OFFLINE, **TALKATIVE, **narrowed, "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder for the traces of what is tried, gone afterwards; raise OSError where none can be made.

    Compiled code is loaded from it: a file system that forbids that is passed over.
    """
    import shutil  # noqa: PLC0415  it costs start-up time, and most checks try nothing
    import tempfile  # noqa: PLC0415

    folder = Path(tempfile.mkdtemp(prefix="envcheck-", dir=_place(tempfile.gettempdir())))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _place(usual: str) -> str:
    places = (usual, "/var/tmp", "/dev/shm")  # noqa: S108  a new folder of its own is made in it
    return next((place for place in places if _runs_code(place)), usual)


def _runs_code(place: str) -> bool:
    try:
        return os.access(place, os.W_OK) and not os.statvfs(place).f_flag & os.ST_NOEXEC
    except OSError:
        return False


def _absolute(entry: str, cwd: str) -> str:
    return entry if entry.startswith("$") else str(Path(cwd, entry))
