"""Frameworks that stand for themselves and are tried in a few lines."""

from __future__ import annotations

from typing import Any

from ._deep import Ask, NotTriedError, OnCpuError, Step, Subject, Where, equal, module, on_gpu, version_of

_VERSION: dict[str, Ask] = {"version": version_of}


def _matrix() -> Any:
    numpy = module("numpy")

    return (numpy.arange(64 * 64) % 7).astype("float32").reshape(64, 64)


def _paddle_product(paddle: Any) -> Where:
    if not paddle.device.is_compiled_with_cuda():
        raise OnCpuError("this PaddlePaddle is built without CUDA")
    paddle.set_device("gpu:0")
    matrix = _matrix()
    ours = paddle.to_tensor(matrix)
    result = paddle.matmul(ours, ours)
    equal(result.numpy().ravel().tolist(), (matrix @ matrix).ravel().tolist())
    if hasattr(result, "data_ptr"):
        return on_gpu(int(result.data_ptr()), str(result.place))
    return _by_its_word("gpu", str(result.place))


def _mxnet_product(mxnet: Any) -> Where:
    matrix = _matrix()
    ours = mxnet.nd.array(matrix, ctx=mxnet.gpu(0))
    result = mxnet.nd.dot(ours, ours)
    equal(result.asnumpy().ravel().tolist(), (matrix @ matrix).ravel().tolist())
    return _by_its_word("gpu", str(result.context))


def _by_its_word(word: str, device: str) -> Where:
    if word not in device.lower():
        raise OnCpuError(f"the result is on {device}")
    return Where(device, "the framework says that the result is there")


def _translation_copy(ctranslate2: Any) -> Where:
    """A copy to the GPU and back: what more it computes needs a model."""
    numpy = module("numpy")

    if ctranslate2.get_cuda_device_count() == 0:
        raise OnCpuError("CTranslate2 counts no CUDA device")
    view = ctranslate2.StorageView
    if not hasattr(view, "to_device"):
        raise NotTriedError("what it computes needs a model; it counts a CUDA device")
    numbers = numpy.arange(64, dtype="float32")
    ours = view.from_array(numbers).to_device(ctranslate2.Device.cuda)
    equal(numpy.array(ours.to_device(ctranslate2.Device.cpu)).tolist(), numbers.tolist())
    return on_gpu(int(ours.__cuda_array_interface__["data"][0]), str(ours.device))


def _llama_offload(llama_cpp: Any) -> Where:
    if not llama_cpp.llama_supports_gpu_offload():
        raise OnCpuError("llama.cpp says that it cannot offload to a GPU: it is built for the CPU, or finds none")
    raise NotTriedError("what it computes needs a model; it says that it can offload to a GPU")


OTHERS: dict[str, Subject] = {
    "paddlepaddle": Subject("paddle", (Step("a matrix product", _paddle_product),), _VERSION),
    "mxnet": Subject("mxnet", (Step("a matrix product", _mxnet_product),), _VERSION),
    "ctranslate2": Subject("ctranslate2", (Step("a copy to the GPU and back", _translation_copy),), _VERSION),
    "llama-cpp-python": Subject("llama_cpp", (Step("a question about its build", _llama_offload),), _VERSION),
}
"""By what the name of the ``Framework`` record begins with."""
