"""CuPy at work: a matrix product, a kernel that is compiled on the spot, and a Fourier transform."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..trials.libraries import decode
from ..trials.trial import Step, TrialSubject, Where, attempt, close, equal, on_gpu, whole_numbers

PROBE = {
    "title": "CuPy, imported and run",
    "seconds": 150.0,
    "tries": ["cupy", "cupy-*"],
    "fills": ["environments.frameworks.trial", "environments.frameworks.gpu_available"],
}


def matrix_product(cupy: Any) -> Where:
    """By cuBLAS."""
    matrix = whole_numbers()
    ours = cupy.asarray(matrix)
    result = cupy.matmul(ours, ours)
    equal(cupy.asnumpy(result).ravel().tolist(), (matrix @ matrix).ravel().tolist())
    return on_gpu(int(result.data.ptr), f"cuda:{result.device.id}")


def compiled_kernel(cupy: Any) -> None:
    """By NVRTC, at run time."""
    kernel = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = x * 2 + y", "envcheck_trial")
    numbers = cupy.arange(256, dtype="float32")
    equal(kernel(numbers, numbers).tolist(), [3.0 * number for number in range(256)])


def fourier_transform(cupy: Any) -> None:
    """By cuFFT: of a single one, which is one everywhere."""
    impulse = cupy.zeros(64, dtype="complex64")
    impulse[0] = 1
    close(cupy.abs(cupy.fft.fft(impulse)).tolist(), [1.0] * 64)


def _runtime(cupy: Any) -> str:
    number = cupy.cuda.runtime.runtimeGetVersion()
    return f"{number // 1000}.{number % 1000 // 10}"


def _nccl(cupy: Any) -> str | None:
    nccl = getattr(cupy.cuda, "nccl", None)  # left out of builds, and where the library is not found
    return decode(int(nccl.get_version()), 2) if nccl is not None and hasattr(nccl, "get_version") else None


SUBJECT = TrialSubject(
    module="cupy",
    steps=(
        Step("a matrix product", matrix_product),
        Step("a kernel compiled at run time", compiled_kernel),
        Step("a Fourier transform", fourier_transform),
    ),
    build={"version": lambda cupy: cupy.__version__},
    answers={"cuda": _runtime, "nccl": _nccl, "devices": lambda cupy: cupy.cuda.runtime.getDeviceCount()},
    available=lambda cupy: bool(cupy.cuda.is_available()),
)
collect = partial(attempt, subject=SUBJECT)
