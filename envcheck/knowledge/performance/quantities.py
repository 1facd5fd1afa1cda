"""What envcheck measures: one declaration a quantity, from which its name, ceiling and place in every report derive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

from envcheck.errors import UsageError
from envcheck.text.wrap import did_you_mean

Ceiling: TypeAlias = Literal["", "multiprocessors", "sparse", "memory", "pcie", "nvlink", "library"]
"""What bounds a quantity: operations per clock of the multiprocessors, or twice as many where half of an operand is
zero (2:4 sparsity); the bandwidth of device memory, of the PCI Express link, of NVLink; what envcheck
itself got out of the library for the same work (``BenchQuantity.beside``); empty: nothing that anybody states."""

LIBRARIES = {
    "cudnn": "cuDNN", "cusparse": "cuSPARSE", "cusparselt": "cuSPARSELt", "cufft": "cuFFT", "cusolver": "cuSOLVER",
    "curand": "cuRAND", "nccl": "NCCL", "tensorrt": "TensorRT",
}  # fmt: skip
"""The libraries that are tested themselves, by the first word of their quantities: how reports call them."""
FRAMEWORKS = {
    "torch": "PyTorch", "jax": "JAX", "cupy": "CuPy", "tensorflow": "TensorFlow", "onnxruntime": "ONNX Runtime",
}  # fmt: skip
"""The frameworks that are measured at work, in the same form."""
PROCESSOR = "cpu-"  # How the names of quantities begin that the processor is measured by


class BenchQuantity(msgspec.Struct, frozen=True):
    """A quantity that ``envcheck bench`` measures."""

    name: str  # ``Measurement.name``; a library's own begin with its name, as ``--only cudnn`` expects
    title: str  # In reports, behind precision and library and before the shape
    ceiling: Ceiling = ""
    needs: str = ""  # Family of the library that does the work; empty: envcheck's own kernels, or none
    quick: bool = False  # Whether a run without ``--full`` measures it
    of_host: bool = False  # Whether the processor decides it more than the GPU does: GPUs are not compared by it
    autotuned: bool = False
    """Whether the library times its kernels when it builds, and so may run another one each time: neither GPUs nor runs
    are compared by it. Two equal H100 got unfused FP16 engines of 302 and 467 TFLOP/s."""
    beside: str = ""  # For quantities of the processor and of frameworks: the GPU's quantity for the same work
    seconds: float | None = 0.5
    """About how long ``--full`` takes on an H200, all precisions and variants together; None: never seen there."""


_WORK = {
    "gemm": ("matrix product", "gemm"),
    "convolution": ("convolution", "cudnn-convolution"),
    "attention": ("attention", "cudnn-attention"),
    "training-step": ("training step", "gemm"),
}
"""What frameworks do: its title, and the GPU's quantity for the same work."""


def _at_work(framework: str, work: str) -> BenchQuantity:
    title, beside = _WORK[work]
    return BenchQuantity(f"{framework}-{work}", title, "library", framework, beside=beside, seconds=None)


QUANTITIES = (
    BenchQuantity("device-memory-write", "device memory write", "memory", seconds=0.4),
    BenchQuantity("device-memory-read", "device memory read", "memory", quick=True, seconds=0.4),
    BenchQuantity("device-memory-copy", "device memory copy", "memory", quick=True, seconds=0.4),
    BenchQuantity("device-memory-triad", "device memory triad", "memory", seconds=0.4),
    BenchQuantity("gemm", "matrix product", "multiprocessors", "cublasLt", quick=True, seconds=74),
    BenchQuantity("host-to-device", "copy from host to GPU", "pcie", quick=True),
    BenchQuantity("device-to-host", "copy from GPU to host", "pcie", quick=True),
    BenchQuantity("copy-latency", "copy latency", of_host=True),
    BenchQuantity("both-directions", "both directions"),
    BenchQuantity("peer-to-peer", "copy between GPUs", "nvlink", quick=True, seconds=2),
    BenchQuantity("l2-read", "L2 read"),
    BenchQuantity("shared-memory-read", "shared memory read"),
    BenchQuantity("texture-fetch", "texture fetch"),
    BenchQuantity("atomics", "atomics"),
    BenchQuantity("latency-l1", "L1 latency"),
    BenchQuantity("latency-l2", "L2 latency"),
    BenchQuantity("latency-device-memory", "device memory latency"),
    BenchQuantity("kernel-launch", "kernel launch", of_host=True),
    BenchQuantity("launch-and-sync", "launch and sync", of_host=True),
    BenchQuantity("fma", "FMA throughput", "multiprocessors", seconds=2),
    BenchQuantity("mma", "tensor cores (mma)", "multiprocessors", seconds=3),
    BenchQuantity("cudnn-handles", "handles, made and destroyed", "", "cudnn", of_host=True, seconds=0.3),
    BenchQuantity("cudnn-convolution", "convolution", "multiprocessors", "cudnn", seconds=11),
    BenchQuantity("cudnn-attention", "attention", "multiprocessors", "cudnn", seconds=3),
    BenchQuantity("cudnn-pooling", "pooling", "memory", "cudnn", seconds=0.3),
    BenchQuantity("cudnn-softmax", "softmax", "memory", "cudnn", seconds=0.2),
    BenchQuantity("cudnn-activation", "activation", "memory", "cudnn", seconds=0.6),
    BenchQuantity("cudnn-batch-norm", "batch normalization", "memory", "cudnn", seconds=0.6),
    BenchQuantity("cudnn-lrn", "LRN", "memory", "cudnn", seconds=0.2),
    BenchQuantity("cudnn-divisive-norm", "divisive normalization", "", "cudnn", seconds=0.4),
    BenchQuantity("cudnn-transform", "tensor transform", "memory", "cudnn", seconds=0.1),
    BenchQuantity("cusparse-spmv", "SpMV", "memory", "cusparse", seconds=1.2),
    BenchQuantity("cusparse-spmm", "SpMM", "memory", "cusparse", seconds=1.0),
    BenchQuantity("cusparselt-spmm", "SpMM", "sparse", "cusparseLt", seconds=4.4),
    BenchQuantity("cufft", "transform", "memory", "cufft", seconds=4.3),
    BenchQuantity("cusolver-lu", "LU", "multiprocessors", "cusolver", seconds=0.7),
    BenchQuantity("cusolver-cholesky", "Cholesky", "multiprocessors", "cusolver", seconds=0.3),
    BenchQuantity("cusolver-qr", "QR", "multiprocessors", "cusolver", seconds=0.4),
    BenchQuantity("cusolver-svd", "SVD", "", "cusolver", seconds=1.1),
    BenchQuantity("curand-uniform", "uniform numbers", "memory", "curand", seconds=0.6),
    BenchQuantity("curand-normal", "normal numbers", "memory", "curand", seconds=0.9),
    BenchQuantity("nccl-all-reduce", "all-reduce", "", "nccl", quick=True, seconds=2),
    BenchQuantity("nccl-all-gather", "all-gather", "", "nccl", seconds=1.5),
    BenchQuantity("nccl-reduce-scatter", "reduce-scatter", "", "nccl", seconds=1.5),
    BenchQuantity("nccl-broadcast", "broadcast", "", "nccl", seconds=1.5),
    BenchQuantity("nccl-reduce", "reduce", "", "nccl", seconds=1.5),
    BenchQuantity("nccl-all-to-all", "all-to-all", "", "nccl", seconds=1.5),
    BenchQuantity("nccl-send-recv", "send-receive", "", "nccl", seconds=1.5),
    BenchQuantity(
        "tensorrt-convolution", "convolution, bias, ReLU", "multiprocessors", "tensorrt", autotuned=True, seconds=54
    ),
    *(_at_work("torch", work) for work in _WORK),
    BenchQuantity("torch-all-reduce", "all-reduce", "library", "torch", beside="nccl-all-reduce", seconds=None),
    BenchQuantity("torch-all-reduce-latency", "all-reduce of 8 bytes", "", "torch", seconds=None),
    *(_at_work("jax", work) for work in _WORK),
    *(_at_work("cupy", work) for work in ("gemm", "training-step")),
    *(_at_work("tensorflow", work) for work in _WORK),
    *(_at_work("onnxruntime", work) for work in ("gemm", "convolution", "attention")),
    BenchQuantity("cpu-gemm", "matrix product", beside="gemm", seconds=3),
    BenchQuantity("cpu-spmv", "SpMV", beside="cusparse-spmv", seconds=2),
    BenchQuantity("cpu-spmm", "SpMM", beside="cusparse-spmm", seconds=4),
    BenchQuantity("cpu-fft", "FFT", beside="cufft", seconds=4),
)
"""In reading order: what programs feel first, then the parts of the chip, then the libraries."""

_BY_NAME = {quantity.name: (place, quantity) for place, quantity in enumerate(QUANTITIES)}


def quantity_of(name: str) -> BenchQuantity | None:
    """The declaration of a quantity; None for one that a newer envcheck measured."""
    return _BY_NAME[name][1] if name in _BY_NAME else None


def place_of(name: str) -> int:
    """Where a quantity stands in reports; unknown ones come last."""
    return _BY_NAME[name][0] if name in _BY_NAME else len(QUANTITIES)


def library_tested(name: str) -> str | None:
    """``cuDNN`` for ``cudnn-convolution``; None for what tests the GPU and not a library."""
    return LIBRARIES.get(name.partition("-")[0])


def framework_tested(name: str) -> str | None:
    """``PyTorch`` for ``torch-gemm``; None for what no framework does."""
    return FRAMEWORKS.get(name.partition("-")[0])


def selected(words: Iterable[str]) -> tuple[str, ...]:
    """The names of the quantities that ``words`` select: each the one of that name, and all that it begins; where there
    is none, those of libraries that it is but for the library: ``all-reduce``.

    Raises UsageError for a word that selects none.
    """
    found: dict[str, None] = {}
    for word in words:
        names = [name for name in _BY_NAME if name == word or name.startswith(f"{word}-")]
        names = names or [name for name in _BY_NAME if name.partition("-")[2] == word and library_tested(name)]
        if not names:
            near = did_you_mean(word, _BY_NAME)
            raise UsageError(f"there is no quantity {word!r}{near or '; envcheck bench --list shows all'}")
        found |= dict.fromkeys(names)
    return tuple(found)
