"""Environments that one more command spoiled: a newer framework under what was built for the older one, the same
framework for another CUDA, a copy of the folder.
"""

import shutil
from collections.abc import Callable

from tests.lab.laboratory import stacks
from tests.lab.laboratory.entry import Broken
from tests.lab.laboratory.habits import NUMBA, USES_NUMBA, commands, layers, then
from tests.lab.laboratory.overlay import GPU_SESSION
from tests.lab.laboratory.place import Place

OWN_PIP = (
    "import subprocess, sys; pip = sys.prefix + '/bin/pip'; "
    "assert sys.prefix in subprocess.run([pip, '--version'], capture_output=True, text=True, check=True).stdout"
)
"""The program pip of an environment, which must be the one of this environment."""

JAX_13_LOADS = """
import ctypes, importlib.util, pathlib, nvidia.cudnn, jax_cuda13_plugin
assert importlib.util.find_spec("jax_plugins.xla_cuda12") is None
nvidia = pathlib.Path(nvidia.cudnn.__path__[0]).parent
for name in ("cu13/lib/libcublasLt.so.13", "cu13/lib/libcublas.so.13", "nccl/lib/libnccl.so.2"):
    ctypes.CDLL(str(nvidia / name), mode=ctypes.RTLD_GLOBAL)
assert ctypes.CDLL(str(nvidia / "cudnn/lib/libcudnn.so.9")).cudnnGetVersion() >= 91200
"""
"""What the plug-in preloads, in the release that it was built for at least; JAX starts one plug-in for CUDA."""

IMAGES = ("torchvision==0.19.1", "torchaudio==2.4.1", "pillow==11.0.0")  # For PyTorch 2.4.1


def _elsewhere(place: Place, *, copied: bool) -> None:
    new = place.folder / "project" / place.prefix.name
    new.parent.mkdir()
    if copied:
        shutil.copytree(place.prefix, new, symlinks=True)
    else:
        place.prefix.rename(new)
    place.prefix, place.python = new, new / "bin" / "python"


def moved(place: Place) -> None:
    _elsewhere(place, copied=False)


def copied(place: Place) -> None:
    _elsewhere(place, copied=True)


def _onnx_by_requirement(place: Place) -> None:
    """Another package asks for the CPU's package, which pip puts over that for GPUs."""
    place.install(*stacks.ONNX)
    place.lead("LD_LIBRARY_PATH", *sorted(place.site.glob("nvidia/*/lib")))
    place.pip("install", "magika==0.6.2", "onnxruntime==1.20.1")


def and_removed(build: Callable[[Place], None], name: str) -> Callable[[Place], None]:
    return then(build, commands(f"uninstall {name}"))


CUDNN_13 = layers(stacks.TORCH_12, ("nvidia-cudnn-cu13==9.19.0.56",))

ENTRIES = (
    Broken("venv moved", "moved", then(commands(f"install {' '.join(NUMBA)} numpy==2.1.3"), moved),
        ("environment-moved",), (r"\.venv",), works=f"{OWN_PIP}; {USES_NUMBA}"),
    Broken("venv copied", "moved", then(commands(f"install {' '.join(NUMBA)} numpy==2.1.3"), copied),
        ("environment-moved",), (r"\.venv",), works=f"{OWN_PIP}; {USES_NUMBA}"),
    Broken("venv of uv moved", "moved", then(commands(f"install {' '.join(NUMBA)} numpy==2.1.3 pip==25.3"), moved),
        ("environment-moved",), (r"\.venv",), works=f"{OWN_PIP}; {USES_NUMBA}", manager="uv"),
    Broken("torch upgraded under torchvision, torchaudio and xFormers", "upgrades",
        layers((*stacks.TORCH_12, *IMAGES, "xformers==0.0.28.post1")), (), ("torchaudio|torchvision",),
        works="import torch, torchvision, torchaudio, xformers.ops; torchvision.ops.nms"),
    Broken("torch upgraded under torchvision, uv", "upgrades", layers((*stacks.TORCH_12, *IMAGES)), (),
        ("torchaudio|torchvision",), works="import torchvision, torchaudio", manager="uv"),
    Broken("xFormers upgraded, torch with it", "upgrades",
        layers((*stacks.TORCH_12, *IMAGES, "xformers==0.0.28.post3")), (), ("torchaudio|torchvision",),
        works="import torchvision, torchaudio"),
    Broken("xFormers upgraded without torch", "upgrades", layers((*stacks.TORCH_12, "xformers==0.0.29.post3")), (),
        ("xformers", "torch")),
    Broken("JAX for CUDA 12, then for CUDA 13", "upgrades", layers(stacks.JAX_12_THEN_13), (),
        ("jax-cuda1[23]",), works=JAX_13_LOADS),
    Broken("JAX for CUDA 13, then for CUDA 12, older driver, uv", "upgrades", layers(stacks.JAX_13_THEN_12), (),
        ("jax-cuda1[23]",), assumed="gpu==H100,driver==550.54.14,os==linux", manager="uv"),
    Broken("TensorFlow, then torch moved its cuDNN", "upgrades",
        then(commands("install tensorflow==2.18.1"), layers(("nvidia-cuda-nvcc-cu12==12.5.82", *stacks.TORCH_12))), (),
        (r"lib\w+\.so|cuDNN", "tensorflow|TensorFlow"), left_unmet="requires `nvidia-"),
    Broken("onnxruntime over onnxruntime-gpu by a requirement", "upgrades", _onnx_by_requirement,
        ("onnxruntime-cpu-and-gpu",), works=f"{GPU_SESSION}; import magika",
        left_unmet="requires `onnxruntime>"),
    Broken("cuDNN for CUDA 13 over cuDNN for CUDA 12", "upgrades", CUDNN_13, (), ("cudnn",), works=""),
    Broken("cuDNN for CUDA 13 installed and removed", "upgrades", and_removed(CUDNN_13, "nvidia-cudnn-cu13"), (),
        ("cudnn",), works="import torch"),
)  # fmt: skip
