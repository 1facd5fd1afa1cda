"""PyTorch at work: a matrix product, a kernel of its own, a convolution, and what it says of itself."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

from ..trials.libraries import decode
from ..trials.trial import Step, TrialSubject, Where, attempt, close, equal, on_gpu

PROBE = {
    "title": "PyTorch, imported and run",
    "seconds": 150.0,
    "tries": ["torch"],
    "fills": ["environments.frameworks.trial", "environments.frameworks.gpu_available"],
}


def _numbers(torch: Any, count: int, modulus: int) -> Any:
    """Small whole numbers: products of them are exact in every precision that a GPU may choose."""
    return (torch.arange(count) % modulus).float()


def matrix_product(torch: Any, device: str = "cuda") -> Where:
    """By cuBLAS on a GPU, and one added by a kernel of PyTorch's own, for which it must hold code for this GPU."""
    matrix = _numbers(torch, 64 * 64, 7).reshape(64, 64)
    result = matrix.to(device) @ matrix.to(device) + 1
    equal(result.cpu().flatten().tolist(), (matrix @ matrix + 1).flatten().tolist())
    return on_gpu(result.data_ptr(), str(result.device))


def convolution(torch: Any, device: str = "cuda") -> None:
    """By cuDNN on a GPU, which may choose an algorithm that rounds."""
    image = _numbers(torch, 4 * 16 * 16, 5).reshape(1, 4, 16, 16)
    weights = _numbers(torch, 8 * 4 * 9, 3).reshape(8, 4, 3, 3)
    convolve = torch.nn.functional.conv2d
    result = convolve(image.to(device), weights.to(device)).cpu()
    close(result.flatten().tolist(), convolve(image, weights).flatten().tolist(), tolerance=0.5)


def _nccl(torch: Any) -> str | None:
    if not torch.cuda.is_available() or not torch.distributed.is_available():
        return None
    version = torch.cuda.nccl.version()
    return ".".join(map(str, version)) if isinstance(version, tuple) else decode(version, 2)


def _on_or_none(switch: Any) -> str | None:
    return "on" if switch else None


def _quiet_switch(place: Any) -> str:
    """``on`` or ``off``; newer releases print that the switch has a new name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return "on" if place.allow_tf32 else "off"


SUBJECT = TrialSubject(
    module="torch",
    steps=(Step("a matrix product", matrix_product), Step("a convolution", convolution)),
    build={
        "version": lambda torch: torch.__version__,
        "cuda": lambda torch: torch.version.cuda,
        "hip": lambda torch: torch.version.hip,
        "C++11 ABI": lambda torch: torch.compiled_with_cxx11_abi(),
    },
    answers={
        "cudnn": lambda torch: decode(torch.backends.cudnn.version() or 0, 9),
        "nccl": _nccl,
        "gpu code": lambda torch: " ".join(torch.cuda.get_arch_list()),
        "devices": lambda torch: torch.cuda.device_count(),
        "cudnn enabled": lambda torch: None if torch.backends.cudnn.enabled else "no",
        "cudnn benchmark": lambda torch: "on" if torch.backends.cudnn.benchmark else "off",
        "deterministic algorithms": lambda torch: _on_or_none(
            torch.backends.cudnn.deterministic or torch.are_deterministic_algorithms_enabled()
        ),
        "TF32 in products": lambda torch: _quiet_switch(torch.backends.cuda.matmul),
        "TF32 in convolutions": lambda torch: _quiet_switch(torch.backends.cudnn),
        "anomaly detection": lambda torch: _on_or_none(torch.is_anomaly_enabled()),
    },
    available=lambda torch: bool(torch.cuda.is_available()),
)
collect = partial(attempt, subject=SUBJECT)
