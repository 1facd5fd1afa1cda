"""Environments that their upkeep spoiled: an upgrade without requirements, a Python that was replaced, a folder that
was tidied, two frameworks for different CUDA.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.lab.laboratory import stacks
from tests.lab.laboratory.entry import Broken
from tests.lab.laboratory.habits import NUMBA, USES_NUMBA, layers
from tests.lab.laboratory.place import Place, rewrite


def _python_replaced(place: Place) -> None:
    """The system got the next minor release: the environment's link leads to it, its packages are those of the old."""
    place.pip("install", *NUMBA, "numpy==2.1.3")
    newer = next((found for number in (12, 13) if (found := _base(number)) and number != _minor(place)), None)
    if newer is None:
        pytest.skip("there is no other Python")
    for link in (place.prefix / "bin").glob("python*"):
        link.unlink()
    for name in ("python", "python3"):
        (place.prefix / "bin" / name).symlink_to(newer)
    settings = place.prefix / "pyvenv.cfg"
    lines = [
        f"home = {newer.parent}" if line.startswith("home") else line for line in settings.read_text().splitlines()
    ]
    settings.write_text("\n".join([*lines, ""]))


def _upgraded_by_a_newer_python(place: Place) -> None:
    """``venv --upgrade`` by the next minor release: its packages lie in the folder of the old."""
    _python_replaced(place)
    program = place.prefix / "bin" / "python"
    subprocess.run([program.resolve(), "-m", "venv", "--upgrade", place.prefix], check=True, capture_output=True)


def _without_right_to_run(place: Place) -> None:
    """A copy of the interpreter by way of a file system that knows no permissions."""
    place.pip("install", *NUMBA, "numpy==2.1.3")
    program = (place.prefix / "bin" / "python").resolve()
    for link in (place.prefix / "bin").glob("python*"):
        link.unlink()
        shutil.copy(program, link)
        link.chmod(0o644)


def _minor(place: Place) -> int:
    return int(place.site.parent.name.rpartition(".")[2])


def _base(minor: int) -> Path | None:
    found = shutil.which(f"python3.{minor}")
    versions = sorted(Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python3.{minor}"))
    return versions[0] if versions else Path(found).resolve() if found else None


def _into_target(place: Place) -> None:
    """``pip install --target`` into site-packages: the newer release is put there, the older one's record stays."""
    place.pip("install", *NUMBA, "numpy==2.1.3")
    place.pip("install", "--target", str(place.site), "--upgrade", "numpy==2.3.3")


def _tests_deleted(place: Place) -> None:
    """``find -name 'test*' -exec rm -r``, to make an image smaller: others import numpy.testing."""
    place.pip("install", *NUMBA, "numpy==2.1.3")
    place.remove("numpy/testing", "numpy/*/tests")


def _without_lib(place: Place) -> None:
    """A copy by a tool that leaves out what .gitignore names: Python's template has ``lib/``."""
    place.install(*stacks.TORCH_12)
    place.remove("torch/lib", "nvidia/*/lib")


def _stripped(place: Place) -> None:
    """``strip`` over all libraries, to make an image smaller: what tools for wheels have changed does not bear it."""
    place.pip("install", *NUMBA, "numpy==2.1.3")
    for library in place.site.glob("numpy.libs/*.so*"):
        copy = rewrite(library, library.read_bytes())
        if not shutil.which("strip"):
            pytest.skip("there is no strip")
        subprocess.run(["strip", copy], check=True, capture_output=True)


def _synced(place: Place) -> None:
    """``uv sync`` without ``--extra gpu``: the plug-in that was there is removed."""
    place.install(*stacks.JAX_12)
    names = [each.partition("==")[0] for each in stacks.JAX_12 if "cuda12" in each or each.startswith("nvidia-")]
    place.uv("pip", "uninstall", "--python", str(place.prefix), *names)
    (place.folder / "uv.lock").write_text("version = 1\n")
    (place.folder / "pyproject.toml").write_text(
        '[project]\nname = "train"\nversion = "0.1"\ndependencies = ["jax"]\n'
        '[project.optional-dependencies]\ngpu = ["jax[cuda12]"]\n'
    )


ENTRIES = (
    Broken("torch upgraded with --no-deps", "upkeep", layers(stacks.TORCH_12, ("torch==2.6.0",)), (), ("torch",),
        works="import torch"),
    Broken("jax upgraded with --no-deps", "upkeep", layers(stacks.JAX_12, ("jax==0.7.2",)), (), ("jaxlib",),
        works="import jax"),
    Broken("numpy by pip install --target", "upkeep", _into_target, (), ("numpy", "2.3.3"), works=USES_NUMBA),
    Broken("Python replaced under the venv", "upkeep", _python_replaced, (), (r"3\.1[123]",), works=USES_NUMBA,
        assumed=""),
    Broken("venv upgraded by a newer Python", "upkeep", _upgraded_by_a_newer_python, ("environment-broken",),
        (r"3\.1[123]",), works=USES_NUMBA, assumed=""),
    Broken("Python without the right to run", "upkeep", _without_right_to_run, ("environment-broken",),
        ("not executable",), works=USES_NUMBA, fix="^chmod ", assumed=""),
    Broken("folders named test deleted", "upkeep", _tests_deleted, (), ("numpy",),
        works=f"import numpy.testing; {USES_NUMBA}"),
    Broken("folders named lib left out", "upkeep", _without_lib, (), ("torch",), works="import torch"),
    Broken("libraries stripped", "upkeep", _stripped, (), ("numpy",), works=USES_NUMBA),
    Broken("uv sync without the extra", "upkeep", _synced, ("cpu-only-build",), ("jax",), manager="uv"),
    Broken("PyTorch for CUDA 13, then JAX for CUDA 12", "upkeep",
        layers(stacks.TORCH_13, stacks.JAX_7_FOR_12), (), ("cudnn|nccl|jax",), works="import torch"),
)  # fmt: skip
