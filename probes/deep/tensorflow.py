"""TensorFlow at work: a matrix product, a convolution, and the GPUs that it lists."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

from ..trials.trial import OnCpuError, Step, TrialSubject, Where, attempt, close, equal, on_gpu, whole_numbers

PROBE = {
    "title": "TensorFlow, imported and run",
    "seconds": 180.0,
    "tries": ["tensorflow", "tensorflow-*", "tf-nightly*", "intel-tensorflow*"],
    "fills": ["environments.frameworks.trial", "environments.frameworks.gpu_available"],
}


def gpus(tensorflow: Any) -> list[Any]:
    config = tensorflow.config
    listing = getattr(config, "list_physical_devices", None) or config.experimental.list_physical_devices
    return list(listing("GPU"))


def matrix_product(tensorflow: Any, device: str = "/GPU:0") -> Where:
    """By cuBLAS on a GPU, and one added by a kernel of TensorFlow's own."""
    if "GPU" in device and not gpus(tensorflow):
        raise OnCpuError("TensorFlow lists no GPU, and computes on the CPU")
    matrix = whole_numbers()
    with tensorflow.device(device):
        ours = tensorflow.constant(matrix)
        result = tensorflow.matmul(ours, ours) + 1
    equal(result.numpy().ravel().tolist(), (matrix @ matrix + 1).ravel().tolist())
    return on_gpu(pointer(tensorflow, result), str(result.device))


def convolution(tensorflow: Any, device: str = "/GPU:0") -> None:
    """By cuDNN on a GPU: a box filter over ones, so that every result is the number of weights."""
    with tensorflow.device(device):
        image, weights = tensorflow.ones((1, 16, 16, 4)), tensorflow.ones((3, 3, 4, 8))
        result = tensorflow.nn.conv2d(image, weights, strides=1, padding="VALID")
    close(result.numpy().ravel().tolist(), [36.0] * (8 * 14 * 14), tolerance=0.5)


def pointer(tensorflow: Any, tensor: Any) -> int:
    """The address of the data, which a DLPack capsule begins with (``DLManagedTensor.dl_tensor.data``)."""
    capsule = tensorflow.experimental.dlpack.to_dlpack(tensor)
    of_capsule = ctypes.pythonapi.PyCapsule_GetPointer
    of_capsule.restype, of_capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p.from_address(of_capsule(capsule, b"dltensor")).value or 0


def _built_with(name: str) -> Any:
    def ask(tensorflow: Any) -> Any:
        return tensorflow.sysconfig.get_build_info().get(name)

    return ask


SUBJECT = TrialSubject(
    module="tensorflow",
    steps=(Step("a matrix product", matrix_product), Step("a convolution", convolution)),
    build={
        "version": lambda tensorflow: tensorflow.__version__,
        "built with CUDA": lambda tensorflow: tensorflow.test.is_built_with_cuda(),
        "cuda": _built_with("cuda_version"),
        "cudnn": _built_with("cudnn_version"),
    },
    answers={
        "devices": lambda tensorflow: ", ".join(device.name for device in gpus(tensorflow)),
        "TF32 in products": lambda tensorflow: (
            "on" if tensorflow.config.experimental.tensor_float_32_execution_enabled() else "off"
        ),
        "functions run eagerly": lambda tensorflow: "on" if tensorflow.config.functions_run_eagerly() else None,
    },
    available=lambda tensorflow: bool(gpus(tensorflow)),
)
collect = partial(attempt, subject=SUBJECT)
