"""ONNX Runtime at work: two models of a few bytes under the CUDA provider, and whether it fell back to the CPU."""

from __future__ import annotations

import ctypes
import os
from functools import partial
from typing import Any

from ..trials.onnx_models import convolution_model, product_model
from ..trials.trial import OnCpuError, Step, TrialSubject, Where, attempt, close, equal, module, on_gpu, whole_numbers

PROBE = {
    "title": "ONNX Runtime, imported and run",
    "seconds": 150.0,
    "tries": ["onnxruntime", "onnxruntime-*", "ort-*"],
}

PROVIDER = "CUDAExecutionProvider"
NEEDED = "needs"  # The answer that names what a program must call before its session, so that this uses the GPU

_needed: list[str] = []


def session_for(runtime: Any, model: bytes, options: dict[str, str] | None = None) -> Any:
    """A session under the CUDA provider; raise OnCpuError when it was left out.

    A wheel that finds CUDA's libraries in other wheels only when it is told to look there is told, after it was seen
    that it does not look by itself. ``options`` are the provider's.
    """
    available = runtime.get_available_providers()
    if PROVIDER not in available:
        raise OnCpuError(f"this build has no {PROVIDER}: it has {', '.join(available)}")
    providers = [(PROVIDER, options or {}), "CPUExecutionProvider"]
    session = runtime.InferenceSession(model, providers=providers)
    if PROVIDER in session.get_providers():
        return session
    reason = _why_left_out(runtime)
    if hasattr(runtime, "preload_dlls"):
        runtime.preload_dlls()
        session = runtime.InferenceSession(model, providers=providers)
        if PROVIDER in session.get_providers():
            _needed.append("onnxruntime.preload_dlls()")
            return session
    raise OnCpuError(f"{PROVIDER} was left out and the CPU computes: {reason}")


def _why_left_out(runtime: Any) -> str:
    """What the dynamic loader says against the provider's library."""
    folder = os.path.join(os.path.dirname(runtime.__file__), "capi")
    try:
        ctypes.CDLL(os.path.join(folder, "libonnxruntime_providers_shared.so"), mode=ctypes.RTLD_GLOBAL)
        ctypes.CDLL(os.path.join(folder, "libonnxruntime_providers_cuda.so"))
    except OSError as error:
        return str(error)
    return "its library can be loaded; what it printed says more"


def matrix_product(runtime: Any) -> Where:
    """By cuBLAS, the result left in the GPU's memory."""
    session, matrix = session_for(runtime, product_model(64)), whole_numbers()
    binding = session.io_binding()
    binding.bind_cpu_input("X", matrix)
    binding.bind_output("Y", "cuda")
    session.run_with_iobinding(binding)
    result = binding.get_outputs()[0]
    equal(binding.copy_outputs_to_cpu()[0].ravel().tolist(), (matrix @ matrix).ravel().tolist())
    return on_gpu(int(result.data_ptr()), f"{result.device_name()} ({', '.join(session.get_providers())})")


def convolution(runtime: Any) -> None:
    """By cuDNN: a box filter over ones."""
    numpy = module("numpy")
    session = session_for(runtime, convolution_model(4, 8, 16, 3))
    (result,) = session.run(None, {"X": numpy.ones((1, 4, 16, 16), "float32")})
    close(result.ravel().tolist(), [36.0] * (8 * 14 * 14), tolerance=0.5)


SUBJECT = TrialSubject(
    module="onnxruntime",
    steps=(Step("a matrix product", matrix_product), Step("a convolution", convolution)),
    build={
        "version": lambda runtime: runtime.__version__,
        "providers": lambda runtime: ", ".join(runtime.get_available_providers()),
        "device": lambda runtime: runtime.get_device(),
    },
    answers={NEEDED: lambda _: ", ".join(dict.fromkeys(_needed))},
)
collect = partial(attempt, subject=SUBJECT)
