"""What is built on PyTorch: one operation of each that calls code of its own on the GPU."""

from __future__ import annotations

import importlib
from typing import Any

from ._deep import Ask, NotTriedError, Step, Subject, Where, close, equal, on_gpu, version_of

_TOLERANCE = 0.02
"""Of half precision, on numbers of about one."""
_ONLY_IMPORTED = "importing it is all that is tried of it"
_VERSION: dict[str, Ask] = {"version": version_of}


def _torch() -> Any:
    return importlib.import_module("torch")


def _halves(*shape: int) -> Any:
    """Numbers between -1 and 1, in half precision, the same on every run."""
    torch = _torch()
    count = 1
    for length in shape:
        count *= length
    return (((torch.arange(count, device="cuda") * 37) % 101).float() / 50 - 1).half().reshape(*shape)


def _here(tensor: Any) -> Where:
    return on_gpu(tensor.data_ptr(), str(tensor.device))


def _listed(tensor: Any) -> Any:
    return tensor.float().cpu().flatten().tolist()


def _suppression(torchvision: Any) -> Where:
    torch = _torch()
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]], device="cuda")
    kept = torchvision.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7], device="cuda"), 0.5)
    equal(kept.cpu().tolist(), [0, 2])
    return _here(kept)


def _spectrogram(torchaudio: Any) -> Where:
    torch = _torch()
    wave = torch.zeros(256, device="cuda")
    wave[0] = 1
    transform = torchaudio.transforms.Spectrogram(n_fft=64, center=False).cuda()
    result = transform(wave)
    expected = torchaudio.transforms.Spectrogram(n_fft=64, center=False)(wave.cpu())
    close(_listed(result), _listed(expected))
    return _here(result)


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
    return _here(result)


def _efficient_attention(_xformers: Any) -> Where:
    query = _halves(1, 32, 2, 64)
    result = importlib.import_module("xformers.ops").memory_efficient_attention(query, query, query)
    close(_listed(result), _attention(query.transpose(1, 2)), _TOLERANCE)
    return _here(result)


def _quantisation(bitsandbytes: Any) -> Where:
    numbers = _halves(64, 64)
    quantised, state = bitsandbytes.functional.quantize_blockwise(numbers)
    close(_listed(bitsandbytes.functional.dequantize_blockwise(quantised, state)), _listed(numbers), 0.05)
    return _here(quantised)


def _linear(pytorch: Any) -> Where:
    torch = _torch()
    layer = pytorch.Linear(32, 32, bias=False, params_dtype=torch.float32)
    numbers = _halves(32, 32).float()
    result = layer(numbers)
    close(_listed(result), _listed(numbers @ layer.weight.t()), _TOLERANCE)
    return _here(result)


def _gated(_operations: Any) -> Where:
    torch = _torch()
    operations = getattr(torch.ops, "_C")  # noqa: B009  the name under which vLLM registers them
    if not hasattr(operations, "silu_and_mul"):
        raise NotTriedError("this release has no operation silu_and_mul")
    numbers = _halves(4, 128)
    result = torch.empty(4, 64, dtype=numbers.dtype, device="cuda")
    operations.silu_and_mul(result, numbers)
    first, second = numbers[:, :64].float(), numbers[:, 64:].float()
    close(_listed(result), _listed(torch.nn.functional.silu(first) * second), _TOLERANCE)
    return _here(result)


ON_TORCH: dict[str, Subject] = {
    "torchvision": Subject("torchvision", (Step("its non-maximum suppression", _suppression),), _VERSION),
    "torchaudio": Subject("torchaudio", (Step("a spectrogram", _spectrogram),), _VERSION),
    "flash-attn": Subject("flash_attn", (Step("its attention", _flash_attention),), _VERSION),
    "flash-attn-3": Subject("flash_attn_interface", (Step("its attention", _flash_attention),), _VERSION),
    "xformers": Subject("xformers", (Step("its attention", _efficient_attention),), _VERSION),
    "bitsandbytes": Subject("bitsandbytes", (Step("its quantisation", _quantisation),), _VERSION),
    "transformer-engine": Subject("transformer_engine.pytorch", (Step("a linear layer", _linear),)),
    "vllm": Subject("vllm._C", (Step("its gated activation", _gated),)),
    "deepspeed": Subject("deepspeed", build=_VERSION, why_none=_ONLY_IMPORTED),
    "torch-tensorrt": Subject("torch_tensorrt", build=_VERSION, why_none=_ONLY_IMPORTED),
    "apex": Subject("apex", why_none=_ONLY_IMPORTED),
}
"""By the name of the ``Framework`` record."""
