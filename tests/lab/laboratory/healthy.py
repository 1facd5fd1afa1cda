"""Environments with nothing wrong: any warning or failure in them is a false alarm."""

from tests.lab.laboratory import stacks
from tests.lab.laboratory.entry import Healthy
from tests.lab.laboratory.fit import NUMPY_1, installs, with_wheels_on_path, without_compiler
from tests.lab.laboratory.overlay import GPU_SESSION
from tests.lab.laboratory.place import Place

OLD_TORCH = (
    *(each for each in stacks.PURE if "networkx" not in each), "networkx==3.1", "sympy==1.12.1",
    "nvidia-cublas-cu11==11.10.3.66", "nvidia-cuda-nvrtc-cu11==11.7.99", "nvidia-cuda-runtime-cu11==11.7.99",
    "nvidia-cudnn-cu11==8.5.0.96", "torch==1.13.1", NUMPY_1,
)  # fmt: skip


def _ctranslate2(place: Place) -> None:
    """It has a small libcudnn of its own beside it, and finds the parts in the wheel."""
    place.install("ctranslate2==4.6.0", "pyyaml==6.0.3", "setuptools==80.9.0", stacks.NUMPY)
    place.install("nvidia-cudnn-cu12==9.10.2.21", "nvidia-cublas-cu12==12.4.5.8", "nvidia-cuda-runtime-cu12==12.4.127")
    place.lead("LD_LIBRARY_PATH", *sorted(place.site.glob("nvidia/*/lib")))


def _with_speed_variables(place: Place) -> None:
    place.install(*stacks.TORCH_12)
    place.variables.update(
        PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True,max_split_size_mb:256,garbage_collection_threshold:0.8",
        XLA_FLAGS="--xla_gpu_autotune_level=2",
        CUDA_DEVICE_ORDER="PCI_BUS_ID",
        NCCL_DEBUG="WARN",
        TOKENIZERS_PARALLELISM="false",
    )


def _with_own_paths(place: Place) -> None:
    """Folders of one's own on PYTHONPATH and by a plain .pth: all of it harmless."""
    place.install(*stacks.TORCH_12)
    own = place.folder / "src" / "mine"
    own.mkdir(parents=True)
    (own / "torch_helpers.py").write_text("")
    (place.site / "mine.pth").write_text(f"{own}\n")
    place.variables["PYTHONPATH"] = str(own.parent)
    assert place.runs("import torch, torch_helpers") == ""


def _unpacked_by_hand(place: Place) -> None:
    """Documentation and tests taken away to make an image smaller, as many Dockerfiles do it."""
    place.install(*stacks.TORCH_12)
    for folder in ("numpy/_core/tests", "sympy/core/tests", "networkx/algorithms/tests"):
        place.remove(folder)
    for file in place.site.glob("torch/include"):
        place.remove(str(file.relative_to(place.site)))


def _project_on_the_path(place: Place) -> None:
    """A project with folders whose names are of Python's and others', none of which hides anything that is used."""
    place.install(*stacks.TORCH_12)
    project = place.folder / "project"
    for name in ("test/__init__.py", "xml/notes.txt", "torch/notes.txt", "train.py"):
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    place.lead("PYTHONPATH", project)


def _other_cudnn_on_the_path(place: Place) -> None:
    """PyTorch loads its own, which has another number."""
    place.install(*stacks.TORCH_12)
    toolkit = place.beside("nvidia-cudnn-cu12==8.9.7.29", name="toolkit")
    place.lead("LD_LIBRARY_PATH", toolkit / "nvidia" / "cudnn" / "lib")


def _without_a_list(place: Place) -> None:
    """Some packagers leave no RECORD: what was shipped cannot be compared, and nothing is wrong."""
    place.install(*stacks.TORCH_12)
    place.remove("torch-2.5.1.dist-info/RECORD")


ENTRIES = (
    Healthy("PyTorch for CUDA 12.4", "healthy", installs(*stacks.TORCH_12), works="import torch"),
    Healthy("PyTorch for CUDA 13.0, uv", "healthy", installs(*stacks.TORCH_13), manager="uv", works="import torch"),
    Healthy("PyTorch for CUDA 12.4, no GPU", "no GPU", installs(*stacks.TORCH_12), assumed="", works="import torch"),
    Healthy("PyTorch for CUDA 13.0, no GPU", "no GPU", installs(*stacks.TORCH_13), assumed="", works="import torch"),
    Healthy("PyTorch for the CPU, no GPU", "no GPU", installs(*stacks.TORCH_CPU), assumed="",
        silent=(r"GPU, driver and frameworks (fit|look)",), works="import torch"),
    Healthy("JAX for CUDA 12", "healthy", installs(*stacks.JAX_12), works="import jax"),
    Healthy("JAX for CUDA 13", "healthy", installs(*stacks.JAX_13), works="import jax"),
    Healthy("CuPy with wheels", "healthy", installs(*stacks.CUPY), works="import cupy"),
    Healthy("numba-cuda[cu12]", "extras", installs(*stacks.NUMBA), works="from numba import cuda"),
    Healthy("torch 1.13.1, cu11", "sonames", installs(*OLD_TORCH), assumed="gpu==A100,driver==535.183.01,os==linux",
        works="import torch"),
    Healthy("CTranslate2 beside a newer cuDNN wheel", "shims", _ctranslate2, works="import ctranslate2"),
    Healthy("CuPy of NumPy 1 with NumPy 1", "healthy", with_wheels_on_path(*stacks.CUPY_OF_NUMPY_1, NUMPY_1),
        works="import cupy"),
    Healthy("ONNX Runtime with wheels", "healthy", with_wheels_on_path(*stacks.ONNX), works=GPU_SESSION),
    Healthy("variables with sound values", "variables", _with_speed_variables, works="import torch"),
    Healthy("project on PYTHONPATH", "paths", _project_on_the_path, works="import torch; torch.zeros"),
    Healthy("cuDNN 8 on LD_LIBRARY_PATH", "paths", _other_cudnn_on_the_path, works="import torch"),
    Healthy("no RECORD", "slim image", _without_a_list, works="import torch"),
    Healthy("PyTorch without a compiler", "slim image", without_compiler(*stacks.TORCH_12), works="import torch"),
    Healthy("folders of one's own", "paths", _with_own_paths, works="import torch"),
    Healthy("tests and headers taken away", "slim image", _unpacked_by_hand, works="import torch"),
)  # fmt: skip
