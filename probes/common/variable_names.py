"""Names of environment variables that GPU programs, or what starts them, read: no others are reported."""

from __future__ import annotations

_NAMES = frozenset({
    "PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "VIRTUAL_ENV", "PYTHONPATH",
    "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
    "MALLOC_PERTURB_", "LD_AUDIT", "LD_BIND_NOW", "LD_DEBUG", "PYTHONDEVMODE", "PYTHONFAULTHANDLER", "PYTHONMALLOC",
    "PYTHONOPTIMIZE", "PYTHONSAFEPATH", "DISABLE_PTXAS_OPT", "PTXAS_OPTIONS", "BNB_CUDA_VERSION", "CUPTI_PATH", "CC",
    "NVCC", "GLOO_SOCKET_IFNAME", "KERAS_BACKEND", "GPU_DEVICE_ORDINAL", "KUBERNETES_SERVICE_HOST", "WSL_DISTRO_NAME",
    "container", "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
})  # fmt: skip

_PREFIXES = (
    "CUDA_", "CUDNN_", "CUPY_", "CUBLAS_", "CUBLASLT_", "NVIDIA_", "NCCL_", "NVSHMEM_", "UCX_", "XLA_", "JAX_", "TF_",
    "TORCH_", "TORCHDYNAMO_", "TORCHINDUCTOR_", "TRANSFORMER_ENGINE_", "NVTE_", "PYTORCH_", "TRITON_", "NUMBA_", "ORT_",
    "VLLM_", "FLAGS_", "KMP_", "PJRT_", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS",
)  # fmt: skip


def matters(name: str) -> bool:
    """Whether its value is reported."""
    return name in _NAMES or name.startswith(_PREFIXES)
