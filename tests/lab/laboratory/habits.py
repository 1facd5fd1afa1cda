"""Environments as people spoil them: one command after the other, one that is cut short, a wheel for another machine, a
folder that is moved.
"""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.lab.laboratory import stacks
from tests.lab.laboratory.entry import Broken
from tests.lab.laboratory.place import Place

NUMBA = ("numba==0.61.2", "llvmlite==0.44.0")  # The smallest framework that has requirements
USES_NUMBA = "import numpy, numba; numba.njit(lambda x: x + 1)(numpy.int64(1))"


def commands(*steps: str) -> Callable[[Place], None]:
    """What was typed, word by word: ``pip install …`` or ``pip uninstall …``, with all that it brings and removes."""

    def build(place: Place) -> None:
        for step in steps:
            place.pip(*step.split())

    return build


def then(build: Callable[[Place], None], change: Callable[[Place], object]) -> Callable[[Place], None]:
    def both(place: Place) -> None:
        build(place)
        change(place)

    return both


def layers(*stacks_in_order: tuple[str, ...]) -> Callable[[Place], None]:
    """One set of wheels over the other, where what they bring is too large to be resolved once more."""

    def build(place: Place) -> None:
        for stack in stacks_in_order:
            place.install(*stack)

    return build


def of_another(requirement: str, *options: str) -> Callable[[Place], None]:
    """Unpack a wheel that was downloaded for another machine or Python, as copying a folder of packages does."""

    def build(place: Place) -> None:
        with tempfile.TemporaryDirectory() as folder:
            words = ("download", "-q", "--no-deps", "--only-binary=:all:", "--dest", folder, *options, requirement)
            subprocess.run([sys.executable, "-m", "pip", *words], check=True, capture_output=True, env=place.shell())
            (wheel,) = Path(folder).glob("*.whl")
            name = requirement.partition("=")[0].replace("-", "_")
            for old in (*place.site.glob(name), *place.site.glob(f"{name}.libs"), *place.site.glob(f"{name}-*")):
                shutil.rmtree(old)
            zipfile.ZipFile(wheel).extractall(place.site)

    return build


def _killed_while_replacing(name: str, newer: str) -> Callable[[Place], None]:
    """pip renamed the old folders, and was unpacking the new ones: they have no metadata yet."""

    def change(place: Place) -> None:
        for old in (place.file(name), place.file(f"{name}-*.dist-info")):
            old.rename(old.with_name(f"~{old.name[1:]}"))
        half = place.beside(newer, name="newer") / name
        shutil.copytree(half, place.site / name, ignore=lambda _, names: sorted(names)[len(names) // 2 :])

    return change


def _killed_while_removing(place: Place) -> None:
    """pip had renamed all folders of the package, and deleted none."""
    for pattern in ("numpy", "numpy.libs", "numpy-*.dist-info"):
        old = place.file(pattern)
        old.rename(old.with_name(f"~{old.name[1:]}"))


def _disk_full(name: str, library: str) -> Callable[[Place], None]:
    """The last file that was written is cut off; the list of files and the installer's name were never written."""

    def change(place: Place) -> None:
        place.truncate(library, 0.4)
        shutil.rmtree(place.file(f"{name}-*.dist-info"))

    return change


def _editable(place: Place) -> None:
    """A project that was installed from its folder, which then got another name."""
    project = place.folder / "work" / "trainer"
    (project / "trainer").mkdir(parents=True)
    (project / "trainer" / "__init__.py").write_text("import numba\n")
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "trainer"\nversion = "0.1"\ndependencies = ["numba"]\n'
        '[tool.setuptools]\npackages = ["trainer"]\n'
    )
    place.pip("install", *NUMBA, "numpy==2.1.3", "setuptools==80.9.0")
    place.pip("install", "--no-build-isolation", "--no-deps", "-e", str(project))
    project.rename(project.with_name("trainer-old"))


ENTRIES = (
    Broken("numpy upgraded under numba", "orders",
        commands("install numba==0.60.0 numpy==1.26.4", "install numpy==2.3.0"),
        ("numpy-abi-mismatch", "requirement-broken"), ("numpy", "numba"), works=USES_NUMBA),
    Broken("pandas of NumPy 1, numpy upgraded", "orders",
        commands("install numba==0.61.2 pandas==2.0.3 numpy==1.26.4", "install numpy==2.2.6"), (),
        ("pandas", "numpy"), works=f"import pandas; {USES_NUMBA}"),
    Broken("scikit-learn of NumPy 1, numpy upgraded", "orders",
        commands("install numba==0.61.2 scikit-learn==1.3.2 numpy==1.26.4", "install numpy==2.2.6"), (),
        ("scikit.learn", "numpy"), works=f"import sklearn.tree; {USES_NUMBA}"),
    Broken("opencv twice, one removed", "orders",
        commands("install numba==0.61.2 numpy==2.1.3 opencv-python-headless==4.11.0.86",
            "install --no-deps opencv-python==4.11.0.86", "uninstall opencv-python"), (), ("opencv-python-headless",),
        works="import cv2; cv2.imread"),
    Broken("huggingface-hub upgraded under transformers", "orders",
        commands("install numba==0.61.2 numpy==2.1.3 transformers==4.46.3", "install huggingface-hub==1.0.1"), (),
        ("huggingface.hub", "transformers"), works="import transformers"),
    Broken("tokenizers of another release under transformers, uv", "orders",
        commands("install numba==0.61.2 numpy==2.1.3 transformers==4.46.3", "install tokenizers==0.22.1 --no-deps"), (),
        ("tokenizers", "transformers"), works="import transformers", manager="uv"),
    Broken("huggingface-hub without what diffusers imports", "orders",
        commands("install numba==0.61.2 numpy==1.26.4 diffusers==0.25.0", "install huggingface-hub==0.27.1"), (),
        ("huggingface.hub", "diffusers"), works="from diffusers.utils import dynamic_modules_utils"),
    Broken("jax upgraded under an older flax", "orders",
        commands("install flax==0.7.5 jax==0.4.24 jaxlib==0.4.24 numpy==1.26.4 scipy==1.12.0",
            "install --upgrade jax==0.7.2 jaxlib==0.7.2"), (), ("flax", "jax"), works="import flax.linen", assumed=""),
    Broken("zeros in what no framework requires", "interrupted",
        then(commands("install numba==0.61.2 numpy==2.1.3 tokenizers==0.22.1"),
            lambda place: place.rewrite("tokenizers/tokenizers.abi3.so", bytes(1 << 20))), (), ("tokenizers",),
        works="import tokenizers"),
    Broken("setuptools without pkg_resources under librosa", "orders",
        commands("install numba==0.60.0 numpy==1.26.4 librosa==0.9.2", "install setuptools==82.0.0"), (),
        ("setuptools", "librosa"), works="import librosa; librosa.util.example"),
    Broken("matplotlib of NumPy 1, numpy upgraded", "orders",
        commands("install numba==0.61.2 matplotlib==3.7.1 numpy==1.26.4", "install numpy==2.2.6"), (),
        ("matplotlib", "numpy"), works=f"import matplotlib.path; {USES_NUMBA}"),
    Broken("protobuf 3 under onnx", "orders",
        commands("install numba==0.61.2 numpy==2.1.3 onnx==1.19.0", "install protobuf==3.20.3"), (),
        ("protobuf", "onnx")),
    Broken("NCCL of CUDA 13 installed and removed", "orders",
        then(layers(stacks.TORCH_12), commands("install nvidia-nccl-cu13==2.28.9", "uninstall nvidia-nccl-cu13")), (),
        ("nccl",), works="import torch"),
    Broken("cuDNN for JAX beside PyTorch", "orders",
        layers(stacks.TORCH_12, ("nvidia-cudnn-cu12==8.9.7.29",)), (), ("cudnn",), works="import torch"),
    Broken("pip killed while it replaced numpy", "interrupted",
        then(commands("install numba==0.61.2 numpy==2.1.3"), _killed_while_replacing("numpy", "numpy==2.2.6")), (),
        ("numpy",), works=USES_NUMBA),
    Broken("pip killed while it replaced llvmlite, uv", "interrupted",
        then(commands("install numba==0.61.2 numpy==2.1.3"), _killed_while_replacing("llvmlite", "llvmlite==0.44.0")),
        (), ("llvmlite",), works=USES_NUMBA, manager="uv"),
    Broken("pip killed while it removed numpy", "interrupted",
        then(commands("install numba==0.61.2 numpy==2.1.3"), _killed_while_removing), (), ("numpy",), works=USES_NUMBA),
    Broken("disk full at numpy", "interrupted",
        then(commands("install numba==0.61.2 numpy==2.1.3"),
            _disk_full("numpy", "numpy/_core/_multiarray_umath*.so")), (), ("numpy",), works=USES_NUMBA),
    Broken("disk full at llvmlite, uv", "interrupted",
        then(commands("install numba==0.61.2 numpy==2.1.3"),
            _disk_full("llvmlite", "llvmlite/binding/libllvmlite.so")), (), ("llvmlite",), works=USES_NUMBA,
        manager="uv"),
    Broken("editable project moved", "moved", _editable, (), ("trainer",)),
    Broken("numpy for musl", "foreign", then(commands("install numba==0.61.2 numpy==2.1.3"),
        of_another("numpy==2.2.6", "--platform", "musllinux_1_2_x86_64")), (), ("numpy", "musl"), works=USES_NUMBA),
    Broken("numpy for ARM", "foreign", then(commands("install numba==0.61.2 numpy==2.1.3"),
        of_another("numpy==2.1.3", "--platform", "manylinux2014_aarch64", "--platform", "manylinux_2_17_aarch64")), (),
        ("numpy", "aarch64"), works=USES_NUMBA),
    Broken("numpy for Python 3.10", "foreign", then(commands("install numba==0.61.2 numpy==2.1.3"),
        of_another("numpy==2.1.3", "--python-version", "3.10")), (), ("numpy", r"3\.10|cp310|cpython-310"),
        works=USES_NUMBA),
    Broken("llvmlite for macOS", "foreign", then(commands("install numba==0.61.2 numpy==2.1.3"),
        of_another("llvmlite==0.44.0", "--platform", "macosx_11_0_arm64")), (), ("llvmlite",), works=USES_NUMBA),
    Broken("triton for Python 3.10", "foreign", then(layers((*stacks.TORCH_12, "setuptools==80.9.0")),
        of_another("triton==3.1.0", "--python-version", "3.10")), (), ("triton",), works="import triton._C.libtriton"),
)  # fmt: skip
