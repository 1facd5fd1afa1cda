"""The environment variables that decide what a GPU program finds and sees."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from .kit.out import Out, clean
from .kit.tree import Tree, refused

PROBE = {
    "title": "Environment variables",
    "kind": "file",
    "early": False,
    "seconds": 2.0,
    "uses": "files",
    "scopes": ["node", "container", "env"],
    "fills": ["variables"],
}

_NAMES = frozenset(
    {
        "PATH",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "CONDA_PREFIX",
        "CONDA_DEFAULT_ENV",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONNOUSERSITE",
        "PYTHONUSERBASE",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MALLOC_PERTURB_",
        "LD_AUDIT",
        "LD_BIND_NOW",
        "LD_DEBUG",
        "PYTHONDEVMODE",
        "PYTHONFAULTHANDLER",
        "PYTHONMALLOC",
        "PYTHONOPTIMIZE",
        "PYTHONSAFEPATH",
        "DISABLE_PTXAS_OPT",
        "PTXAS_OPTIONS",
        "BNB_CUDA_VERSION",
        "CUPTI_PATH",
        "CC",
        "NVCC",
        "GLOO_SOCKET_IFNAME",
        "KERAS_BACKEND",
        "GPU_DEVICE_ORDINAL",
        "KUBERNETES_SERVICE_HOST",
        "WSL_DISTRO_NAME",
        "container",
        "RANK",
        "LOCAL_RANK",
        "WORLD_SIZE",
        "LOCAL_WORLD_SIZE",
        "MASTER_ADDR",
        "MASTER_PORT",
    }
)

_PREFIXES = (
    "CUDA_",
    "CUDNN_",
    "CUPY_",
    "CUBLAS_",
    "CUBLASLT_",
    "NVIDIA_",
    "NCCL_",
    "NVSHMEM_",
    "UCX_",
    "XLA_",
    "JAX_",
    "TF_",
    "TORCH_",
    "TORCHDYNAMO_",
    "TORCHINDUCTOR_",
    "TRANSFORMER_ENGINE_",
    "NVTE_",
    "PYTORCH_",
    "TRITON_",
    "NUMBA_",
    "ORT_",
    "VLLM_",
    "FLAGS_",
    "KMP_",
    "PJRT_",
    "SLURM_JOB_GPUS",
    "SLURM_STEP_GPUS",
    "SLURM_GPUS",
)

_SEARCH_PATHS = ("PATH", "LD_LIBRARY_PATH")
"""A folder of these that is not there is passed over, and that is usual."""
_SEPARATORS = re.compile(r"[\s:;,=]+")

_LONGEST = 4096
_MOST = 512


def collect(tree: Tree, out: Out) -> None:
    """Send the ``variables`` section: those by the names above, long values cut. The parent masks secrets."""
    variables = tree.variables
    chosen = sorted(name for name in variables if name in _NAMES or name.startswith(_PREFIXES))
    values = {clean(name): clean(variables[name][:_LONGEST]) for name in chosen[:_MOST]}
    facts = {"source": "process", "values": values, "complete": len(chosen) <= _MOST}
    listed = [variables[name] for name in chosen[:_MOST] if name not in _SEARCH_PATHS]
    paths = dict.fromkeys(path for value in listed for path in _paths_in(value))
    told = [{"path": clean(path), "leads_to": _kind_at(tree, path)} for path in list(paths)[:_MOST]]
    out.fact({"variables": {**facts, "paths": told}})
    tree.report_unreadable(out)


def _paths_in(value: str) -> Iterator[str]:
    """What may be a path: the whole value, which may hold blanks, and its parts between the usual separators."""
    value = value[:_LONGEST]
    parts = [*([] if ":" in value else [value]), *_SEPARATORS.split(value)]
    yield from (part for part in parts if part.startswith(("/", "./", "../")))


def _kind_at(tree: Tree, path: str) -> str:
    """What is at a path; relative ones count from the folder in which programs are started."""
    place = tree.place(os.path.normpath(os.path.join(tree.cwd, path)))
    try:
        if not os.path.exists(place):
            os.stat(place)  # raises: nothing there, or nothing that may be seen
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    except (OSError, ValueError) as error:
        refused(path, error)
        return "unknown"
    if os.path.isdir(place):
        return "folder"
    return "program" if os.path.isfile(place) and os.access(place, os.X_OK) else "file"
