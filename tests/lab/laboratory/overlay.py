"""Two packages in one place, and ways by which another package is imported than the one that is installed."""

import shutil
from collections.abc import Callable

from tests.lab.laboratory import stacks
from tests.lab.laboratory.damage import DAMAGED
from tests.lab.laboratory.entry import Broken
from tests.lab.laboratory.place import Place

GPU_SESSION = "import onnxruntime; assert 'CUDAExecutionProvider' in onnxruntime.get_available_providers()"


def _onnx_half_removed(place: Place) -> None:
    """The CPU package was put over the GPU one, then removed: with it went the files that both have."""
    _onnx_overlaid(place)
    place.uv("pip", "uninstall", "--python", str(place.prefix), "onnxruntime")


def _onnx_overlaid(place: Place) -> None:
    place.install(*stacks.ONNX)
    place.lead("LD_LIBRARY_PATH", *sorted(place.site.glob("nvidia/*/lib")))
    place.install("onnxruntime==1.20.1")


def _onnx_half_removed_the_other_way(place: Place) -> None:
    place.install("onnxruntime==1.20.1")
    place.install(*stacks.ONNX)
    place.uv("pip", "uninstall", "--python", str(place.prefix), "onnxruntime-gpu")


def _cupy_overlaid(place: Place) -> None:
    place.install(*stacks.CUPY)
    place.install("cupy-cuda11x==13.6.0", "fastrlock==0.8.3")


def _cupy_half_removed(place: Place) -> None:
    _cupy_overlaid(place)
    place.uv("pip", "uninstall", "--python", str(place.prefix), "cupy-cuda11x")


def _older_torch(place: Place) -> str:
    """A folder outside with another torch: what decides what is imported, without the libraries."""
    place.install(*stacks.TORCH_12)
    other = place.folder / "other"
    (other / "torch").mkdir(parents=True)
    record = other / "torch-2.1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.1.0\n")
    (record / "RECORD").write_text("torch/__init__.py,,\ntorch/version.py,,\n")
    (other / "torch" / "__init__.py").write_text("from .version import __version__\nfrom torch._C import *\n")
    (other / "torch" / "version.py").write_text("__version__ = '2.1.0+cu121'\ncuda = '12.1'\nhip = None\n")
    return str(other)


def _by_pythonpath(place: Place) -> None:
    place.variables["PYTHONPATH"] = _older_torch(place)


def _by_path_file(place: Place) -> None:
    """A ``.pth`` whose line is run and puts the folder first."""
    other = _older_torch(place)
    (place.site / "zz_team.pth").write_text(f"import sys; sys.path.insert(0, {other!r})\n")


def _checkout_on_pythonpath(place: Place) -> None:
    """A source tree of PyTorch, whose torch/ holds no compiled part."""
    place.install(*stacks.TORCH_12)
    source = place.folder / "src" / "pytorch"
    (source / "torch").mkdir(parents=True)
    (source / "torch" / "__init__.py").write_text("from torch._C import *\n")
    place.variables["PYTHONPATH"] = str(source)


def _numpy_by_pythonpath(place: Place) -> None:
    place.install(*stacks.CUPY)
    place.lead("PYTHONPATH", place.beside("numpy==1.26.4", name="legacy"))


def stray(name: str, text: str = "") -> Callable[[Place], None]:
    """A file of somebody's project whose name is taken, and PYTHONPATH leads to the project."""

    def build(place: Place) -> None:
        place.install(*stacks.TORCH_12)
        file = place.folder / "project" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
        place.lead("PYTHONPATH", place.folder / "project")

    return build


def _ml_dtypes_by_pythonpath(place: Place) -> None:
    """A requirement of JAX, older than it needs, before the one that JAX was installed with."""
    place.install(*stacks.JAX_12)
    place.lead("PYTHONPATH", place.beside("ml-dtypes==0.4.1", name="pythonpath"))


def _by_user_site(place: Place) -> None:
    """An environment that sees the system's packages also sees the user's own, which an old project left there."""
    place.install(*stacks.JAX_12)
    settings = place.prefix / "pyvenv.cfg"
    settings.write_text(
        settings.read_text().replace("include-system-site-packages = false", "include-system-site-packages = true")
    )
    other = place.beside("ml-dtypes==0.4.1", "numpy==1.26.4", name="user")
    user = place.home / ".local" / "lib" / place.site.parent.name / "site-packages"
    user.parent.mkdir(parents=True)
    shutil.copytree(other, user)
    place.remove("ml_dtypes", "ml_dtypes-*")


def _jitlink_by_bare_name(place: Place) -> None:
    """The libraries of another program's installation: no version in any name, and no package near."""
    place.install(*stacks.TORCH_12)
    older = place.beside("nvidia-nvjitlink-cu12==12.1.105", name="older")
    folder = place.folder / "opt" / "solver" / "lib"
    folder.mkdir(parents=True)
    shutil.copy(older / "nvidia/nvjitlink/lib/libnvJitLink.so.12", folder)
    shutil.rmtree(older)
    place.lead("LD_LIBRARY_PATH", folder)


def _jitlink_preloaded(place: Place) -> None:
    _jitlink_by_bare_name(place)
    folder = place.variables.pop("LD_LIBRARY_PATH")
    place.variables["LD_PRELOAD"] = f"{folder}/libnvJitLink.so.12"


ENTRIES = (
    Broken("onnxruntime over onnxruntime-gpu", "overlay", _onnx_overlaid, ("onnxruntime-cpu-and-gpu",),
        works=GPU_SESSION),
    Broken("onnxruntime-gpu half removed", "overlay", _onnx_half_removed,
        ("onnxruntime-cpu-and-gpu", "damaged-distribution", *DAMAGED), ("onnxruntime-gpu",), works=GPU_SESSION),
    Broken("onnxruntime half removed", "overlay", _onnx_half_removed_the_other_way, DAMAGED, ("onnxruntime",),
        works="import onnxruntime; onnxruntime.get_available_providers()"),
    Broken("cupy-cuda11x over cupy-cuda12x", "overlay", _cupy_overlaid, ("cupy-multiple-packages",)),
    Broken("cupy-cuda12x half removed", "overlay", _cupy_half_removed,
        ("cupy-multiple-packages", "damaged-distribution", *DAMAGED), ("cupy-cuda12x",)),
    Broken("PYTHONPATH with another torch", "redirection", _by_pythonpath, (), ("PYTHONPATH", "/other"),
        works="import torch"),
    Broken(".pth with another torch", "redirection", _by_path_file, (), (r"zz_team\.pth",), goal="words",
        works="import torch"),
    Broken("PYTHONPATH with a source tree", "redirection", _checkout_on_pythonpath, (), ("PYTHONPATH", "src/pytorch"),
        works="import torch"),
    Broken("PYTHONPATH with an older NumPy", "redirection", _numpy_by_pythonpath, (), ("PYTHONPATH", "/legacy"),
        works="import cupy"),
    Broken("PYTHONPATH with a torch.py", "redirection", stray("torch.py"), (), ("PYTHONPATH", "/project"),
        works="import torch; torch.zeros"),
    Broken("PYTHONPATH with a random.py", "redirection", stray("random.py"), (), ("PYTHONPATH", r"/project/random\.py"),
        works="import torch"),
    Broken("PYTHONPATH with a folder numpy", "redirection", stray("numpy/__init__.py"), (),
        ("PYTHONPATH", "/project/numpy"), works="import numpy; numpy.zeros"),
    Broken("PYTHONPATH with an older ml-dtypes", "redirection", _ml_dtypes_by_pythonpath, (),
        ("PYTHONPATH|/pythonpath/", "ml.dtypes"), works="import jax"),
    Broken("user site with NumPy 1 and ml-dtypes", "redirection", _by_user_site, (), (r"\.local|user site|ml.dtypes",),
        works="import jax"),
    Broken("older libnvJitLink by bare name", "shadowing", _jitlink_by_bare_name,
        ("nvjitlink-mismatch", "library-shadowed"), (r"libnvJitLink\.so\.12", "opt/solver"), works="import torch"),
    Broken("older libnvJitLink preloaded", "shadowing", _jitlink_preloaded, (),
        (r"libnvJitLink\.so\.12", "LD_PRELOAD|opt/solver"), works="import torch"),
)  # fmt: skip
