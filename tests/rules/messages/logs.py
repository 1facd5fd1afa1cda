"""Logs of real lines in their real order: which line is the cause, what only follows from it, and what only frightens."""

# ruff: noqa: E501  lines as the programs print them

from pathlib import Path
from typing import NamedTuple

from tests.documents import texts


class Log(NamedTuple):
    """A log and the problem that it shows."""

    cause: str
    lines: tuple[str, ...]


def _logs(name: str) -> dict[str, Log]:
    found = texts((Path(__file__).with_name("data") / name).read_text(encoding="utf-8"))
    return {name: Log(cause, tuple(text.split("\n"))) for name, cause, text in found}


COMPOSED = _logs("composed.txt")
CONSEQUENCES = _logs("consequences.txt")
"""Pairs of lines: the first names the cause, the second what only follows from it."""
HEALTHY = _logs("healthy_logs.txt")
"""Logs of machines on which all is well."""
NOISE = (
    "2024-05-01 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see slightly different numerical results",
    "E0000 00:00:1715000000.000000   12345 cuda_dnn.cc:8310] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered",
    "E0000 00:00:1715000000.000000   12345 cuda_blas.cc:1418] Unable to register cuBLAS factory: Attempting to register factory for plugin cuBLAS when one has already been registered",
    "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
    "FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead.",
    "I tensorflow/compiler/xla/stream_executor/cuda/cuda_gpu_executor.cc:995] successful NUMA node read from SysFS had negative value (-1), but there must be at least one NUMA node, so returning NUMA node zero",
    "[TRT] [W] CUDA lazy loading is not enabled. Enabling it can significantly reduce device memory usage",
    " [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.",
    "W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT",
    "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    "ERROR: pip's dependency resolver does not currently take into account all the packages that are installed.",
)
"""Lines that look like failures and are none."""
