"""Extensions of PyTorch, and smaller frameworks, each imported and put to work in a process of its own."""

from __future__ import annotations

import math
from typing import Any

from ..common.out import Out
from ..common.tree import Tree
from ..trials.trial import (
    Ask,
    NotTriedError,
    OnCpuError,
    Step,
    TrialSubject,
    Where,
    attempt,
    close,
    equal,
    module,
    on_gpu,
    version_of,
    whole_numbers,
)

PROBE = {
    "title": "Extensions and smaller frameworks, imported and run",
    "seconds": 180.0,
    "tries": [
        "torchvision", "torchaudio", "flash-attn", "flash-attn-3", "xformers", "bitsandbytes", "transformer-engine*",
        "vllm", "deepspeed", "torch-tensorrt", "apex", "paddlepaddle*", "mxnet*", "ctranslate2", "llama-cpp-python",
    ],
}  # fmt: skip


def collect(tree: Tree, out: Out) -> None:
    """Send how it went, as the trial of the framework that the request names."""
    name = tree.request["framework"]["name"]
    longest = max((start for start in SUBJECTS if name.startswith(start)), key=len, default=None)
    if longest is None:
        out.absent(f"it is not known how to try {name}")
        return
    attempt(tree, out, SUBJECTS[longest])


# Of an extension of PyTorch, one operation that calls code of its own on the GPU.

_TOLERANCE = 0.02  # Error of half precision on numbers of about one
_ONLY_IMPORTED = "only its import is tested"
_VERSION: dict[str, Ask] = {"version": version_of}


def _halves(*shape: int) -> Any:
    """Numbers between -1 and 1, in half precision, the same on every run."""
    torch = module("torch")
    return (((torch.arange(math.prod(shape), device="cuda") * 37) % 101).float() / 50 - 1).half().reshape(*shape)


def _where(tensor: Any) -> Where:
    return on_gpu(tensor.data_ptr(), str(tensor.device))


def _listed(tensor: Any) -> Any:
    return tensor.float().cpu().flatten().tolist()


def _suppression(torchvision: Any) -> Where:
    torch = module("torch")
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], device="cuda")
    kept = torchvision.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7], device="cuda"), 0.5)
    equal(kept.cpu().tolist(), [0, 2])
    return _where(kept)


def _spectrogram(torchaudio: Any) -> Where:
    wave = module("torch").zeros(256, device="cuda")
    wave[0] = 1
    transform = torchaudio.transforms.Spectrogram(n_fft=64, center=False).cuda()
    result = transform(wave)
    expected = torchaudio.transforms.Spectrogram(n_fft=64, center=False)(wave.cpu())
    close(_listed(result), _listed(expected))
    return _where(result)


def _attention(query: Any) -> Any:
    """What attention of a tensor to itself comes to, as (batch, heads, sequence, size), in single precision."""
    scores = (query.float() @ query.float().transpose(-1, -2)) / query.shape[-1] ** 0.5
    result = scores.softmax(-1) @ query.float()
    return _listed(result.transpose(1, 2).contiguous())


def _flash_attention(flash_attn: Any) -> Where:
    query = _halves(1, 32, 2, 64)
    result = flash_attn.flash_attn_func(query, query, query)
    result = result[0] if isinstance(result, tuple) else result
    close(_listed(result), _attention(query.transpose(1, 2)), _TOLERANCE)
    return _where(result)


def _efficient_attention(_xformers: Any) -> Where:
    query = _halves(1, 32, 2, 64)
    result = module("xformers.ops").memory_efficient_attention(query, query, query)
    close(_listed(result), _attention(query.transpose(1, 2)), _TOLERANCE)
    return _where(result)


def _quantisation(bitsandbytes: Any) -> Where:
    numbers = _halves(64, 64)
    quantised, state = bitsandbytes.functional.quantize_blockwise(numbers)
    close(_listed(bitsandbytes.functional.dequantize_blockwise(quantised, state)), _listed(numbers), 0.05)
    return _where(quantised)


def _linear(pytorch: Any) -> Where:
    layer = pytorch.Linear(32, 32, bias=False, params_dtype=module("torch").float32)
    numbers = _halves(32, 32).float()
    result = layer(numbers)
    close(_listed(result), _listed(numbers @ layer.weight.t()), _TOLERANCE)
    return _where(result)


def _gated(_operations: Any) -> Where:
    torch = module("torch")
    operations = getattr(torch.ops, "_C")  # noqa: B009  the name under which vLLM registers them
    if not hasattr(operations, "silu_and_mul"):
        raise NotTriedError("this release has no operation silu_and_mul")
    numbers = _halves(4, 128)
    result = torch.empty(4, 64, dtype=numbers.dtype, device="cuda")
    operations.silu_and_mul(result, numbers)
    first, second = numbers[:, :64].float(), numbers[:, 64:].float()
    close(_listed(result), _listed(torch.nn.functional.silu(first) * second), _TOLERANCE)
    return _where(result)


def _paddle_product(paddle: Any) -> Where:
    if not paddle.device.is_compiled_with_cuda():
        raise OnCpuError("this PaddlePaddle is built without CUDA")
    paddle.set_device("gpu:0")
    matrix = whole_numbers()
    ours = paddle.to_tensor(matrix)
    result = paddle.matmul(ours, ours)
    equal(result.numpy().ravel().tolist(), (matrix @ matrix).ravel().tolist())
    if hasattr(result, "data_ptr"):
        return on_gpu(int(result.data_ptr()), str(result.place))
    return _by_its_word(str(result.place))


def _mxnet_product(mxnet: Any) -> Where:
    matrix = whole_numbers()
    ours = mxnet.nd.array(matrix, ctx=mxnet.gpu(0))
    result = mxnet.nd.dot(ours, ours)
    equal(result.asnumpy().ravel().tolist(), (matrix @ matrix).ravel().tolist())
    return _by_its_word(str(result.context))


def _by_its_word(device: str) -> Where:
    if "gpu" not in device.lower():
        raise OnCpuError(f"the result is on {device}")
    return Where(device, "the framework says that the result is there")


def _translation_copy(ctranslate2: Any) -> Where:
    """A copy to the GPU and back: what more it computes needs a model."""
    if ctranslate2.get_cuda_device_count() == 0:
        raise OnCpuError("CTranslate2 counts no CUDA device")
    view = ctranslate2.StorageView
    if not hasattr(view, "to_device"):
        raise NotTriedError("what it computes needs a model; it counts a CUDA device")
    numpy = module("numpy")
    numbers = numpy.arange(64, dtype="float32")
    ours = view.from_array(numbers).to_device(ctranslate2.Device.cuda)
    equal(numpy.array(ours.to_device(ctranslate2.Device.cpu)).tolist(), numbers.tolist())
    return on_gpu(int(ours.__cuda_array_interface__["data"][0]), str(ours.device))


def _llama_offload(llama_cpp: Any) -> Where:
    if not llama_cpp.llama_supports_gpu_offload():
        raise OnCpuError("llama.cpp says that it cannot offload to a GPU: it is built for the CPU, or finds none")
    raise NotTriedError("what it computes needs a model; it says that it can offload to a GPU")


SUBJECTS: dict[str, TrialSubject] = {
    "torchvision": TrialSubject("torchvision", (Step("its non-maximum suppression", _suppression),), _VERSION),
    "torchaudio": TrialSubject("torchaudio", (Step("a spectrogram", _spectrogram),), _VERSION),
    "flash-attn": TrialSubject("flash_attn", (Step("its attention", _flash_attention),), _VERSION),
    "flash-attn-3": TrialSubject("flash_attn_interface", (Step("its attention", _flash_attention),), _VERSION),
    "xformers": TrialSubject("xformers", (Step("its attention", _efficient_attention),), _VERSION),
    "bitsandbytes": TrialSubject("bitsandbytes", (Step("its quantisation", _quantisation),), _VERSION),
    "transformer-engine": TrialSubject("transformer_engine.pytorch", (Step("a linear layer", _linear),)),
    "vllm": TrialSubject("vllm._C", (Step("its gated activation", _gated),)),
    "deepspeed": TrialSubject("deepspeed", build=_VERSION, why_none=_ONLY_IMPORTED),
    "torch-tensorrt": TrialSubject("torch_tensorrt", build=_VERSION, why_none=_ONLY_IMPORTED),
    "apex": TrialSubject("apex", why_none=_ONLY_IMPORTED),
    "paddlepaddle": TrialSubject("paddle", (Step("a matrix product", _paddle_product),), _VERSION),
    "mxnet": TrialSubject("mxnet", (Step("a matrix product", _mxnet_product),), _VERSION),
    "ctranslate2": TrialSubject("ctranslate2", (Step("a copy to the GPU and back", _translation_copy),), _VERSION),
    "llama-cpp-python": TrialSubject("llama_cpp", (Step("a question about its build", _llama_offload),), _VERSION),
}
"""By what the name of the ``Framework`` record begins with."""
