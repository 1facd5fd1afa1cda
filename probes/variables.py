"""The environment variables that decide what a GPU program finds and sees."""

from __future__ import annotations

from ._kit import Out, Request, clean

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
    "TORCHINDUCTOR_",
    "PYTORCH_",
    "TRITON_",
    "SLURM_JOB_GPUS",
    "SLURM_STEP_GPUS",
    "SLURM_GPUS",
)

_LONGEST = 4096
_MOST = 512


def collect(request: Request, out: Out) -> None:
    """Send the ``variables`` section: those by the names above, long values cut. The parent masks secrets."""
    variables = request.get("variables") or {}
    chosen = sorted(name for name in variables if name in _NAMES or name.startswith(_PREFIXES))
    values = {clean(name): clean(variables[name][:_LONGEST]) for name in chosen[:_MOST]}
    out.fact({"variables": {"source": "process", "values": values, "complete": len(chosen) <= _MOST}})
