"""PyTorch's own Python files: the build in ``torch/version.py``, and what ``import torch`` loads, in its order."""

from __future__ import annotations

import ast
import re
import warnings
from typing import Literal, NamedTuple

from ...common.lazy import lazy_pattern
from ...common.tree import Tree
from ..loader.script import OpenByName, Preload
from ..python.site import Site
from .package import locate

# ``torch/version.py``, which PyTorch's build writes: literals, taken from its syntax tree and never run.

_VERSION = lazy_pattern(r"[0-9][0-9A-Za-z.+_-]{0,80}")


class VersionFile(NamedTuple):
    """The contents of the file; ``cpu_only`` is None unless it mentions CUDA, ``problem`` is why it is insufficient."""

    path: str = ""
    there: bool = False
    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    cpu_only: bool | None = None
    problem: str | None = None


def read_version_file(tree: Tree, package: str) -> VersionFile:
    path = f"{package}/version.py"
    if not tree.lexists(path):
        return VersionFile()
    text = tree.read_text(path, 65536)
    literals = _literals(text) if text is not None else None
    version = (literals or {}).get("__version__")
    if literals is None or version is None:
        what = "it is not a file that may be read" if text is None else "it is not Python"
        problem = what if literals is None else "it assigns no plain __version__"
        return VersionFile(path=path, there=True, problem=problem)
    found = VersionFile(path, there=True, version=version, cuda=literals.get("cuda"), hip=literals.get("hip"))
    if "cuda" not in literals:
        return found._replace(problem="it does not say for which CUDA it was built")
    return found._replace(cpu_only=found.cuda is None and not any(map(literals.get, ("hip", "rocm", "xpu"))))


def _literals(text: str) -> dict[str, str | None] | None:
    """Top-level names that are assigned once, to a version string or None; None if the file cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about invalid escapes in foreign text do not matter
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    literals: dict[str, str | None] = {}
    assigned: list[str] = []
    for statement in tree.body:
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            continue
        literal = statement.value.value if isinstance(statement.value, ast.Constant) else ...
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for name in [target.id for target in targets if isinstance(target, ast.Name)]:
            assigned.append(name)
            if literal is None or (isinstance(literal, str) and _VERSION.fullmatch(literal)):
                literals[name] = literal
    return {name: value for name, value in literals.items() if assigned.count(name) == 1}


# What ``import torch`` loads, in its order, as its own ``torch/__init__.py`` says.
#
# Looked at: seventeen releases from 1.13.1 to 2.15.0. First ``libtorch_global_deps.so``; where that fails for want of
# one of CUDA's libraries, those of NVIDIA's wheels are loaded from below the search path, and it is tried again. From
# 2.6 on, where it succeeds and cudart was mapped with it, some of them (from 2.10 on all) are loaded too, up to the
# first that is not there; from 2.14 on the rest is loaded all the same. Then ``torch._C``, which needs the rest.
# Folder and pattern of each stand in the file as two texts: ``"cublas": "libcublas.so.*[0-9]"``, ``("nccl",
# "libnccl.so.*[0-9]")``, and in 1.13 as ``'cublas', 'lib', 'libcublas.so.11'``.


_START, _LOAD, _END = "def _preload_cuda_deps", "def _load_global_deps", "USE_RTLD_GLOBAL_WITH_LIBTORCH"
_PLACES, _FAILED = "def _get_cuda_dep_paths", "except OSError as err"
_PAIR = lazy_pattern(
    r"""["']([a-z_]{2,20})["']\s*(?:[:,]|\]\s*=)\s*(?:["']lib["']\s*,\s*)?["'](lib[\w-]{2,40}\.so[.*\[\]0-9-]{0,20})["']"""
    r"""(\s*,\s*required=False)?"""
)
_MAPPED = lazy_pattern(r"""if\s+["']([\w/.]{3,80})["']\s+not\s+in\s+_maps""")
_GLOBAL = "libtorch_global_deps.so"


class Torch(NamedTuple):
    """The PyTorch of an environment, for frameworks that extend it; without ``parts`` if there is none."""

    path: str | None = None
    cuda: str | None = None
    parts: tuple[str, ...] = ()
    preloads: tuple[Preload, ...] = ()
    asks: tuple[OpenByName, ...] = ()


def torch_of(site: Site) -> Torch:
    """The PyTorch that an import would take; read once for all readers."""
    return site.once(_torch)


def _torch(site: Site) -> Torch:
    here = locate(site, "torch", ())
    if here is None or here.path is None:
        return Torch()
    cuda = read_version_file(site.tree, here.path).cuda
    parts = (*here.files(r"libtorch_global_deps\.so", "lib"), *here.files(r"_C(?:\.[\w-]+)*\.so"))
    lazy = here.files(r"libtorch_(?:cuda_linalg|nvshmem)\.so|libcaffe2_nvrtc\.so", "lib")
    asks = tuple(OpenByName((path,), by="libtorch_cuda.so") for path in lazy)
    return Torch(here.path, cuda, parts, tuple(_preloads(site, here.path, cuda)), asks)


def _preloads(site: Site, path: str, cuda: str | None) -> list[Preload]:
    """The wheels' libraries that its file names, each with its folders and its condition."""
    text = site.tree.read_text(f"{path}/__init__.py", 1 << 18) or ""
    start, middle = text.find(_START), text.find(_LOAD)
    end = text.find(_END, middle)
    if not 0 <= start < middle < end:
        return []
    condition = _MAPPED.search(text, middle, end)
    failure = text.find(_FAILED, middle, end)
    on_success = text[condition.end() : failure] if condition and condition.end() < failure else ""
    listed, failed = _PAIR.findall(text, start, middle), _PAIR.findall(text, failure, end)
    for_all = re.search(r"_preload_cuda_deps\(\s*(required=False)?\s*\)", on_success)
    mapped = _PAIR.findall(on_success) or (listed if for_all else [])
    # The subfolders of the search path that it searches; ``{}`` stands for the library's own folder.
    code = text[max(0, text.find(_PLACES)) : middle]
    folders = ["nvidia/{}/lib"]
    if re.search(r"""f["']cu\{""", code) and cuda:
        folders.append(f"nvidia/cu{cuda.partition('.')[0]}/lib")
    if re.search(r"""path\.join\(path,\s*lib_folder""", code):
        folders.append("{}/lib")

    def preload(found: tuple[str, str, str], when: Literal["failed", "mapped"]) -> Preload:
        folder, name, optional = found
        places = tuple(place.format(folder) for place in folders)
        if when == "failed":  # a missing library ends the import; what else it would load is still recorded
            return Preload((name,), places, after=_GLOBAL, when=when)
        required = not (optional or (for_all and for_all[1]))
        substring = condition[1] if condition else ""
        return Preload((name,), places, after=_GLOBAL, when=when, mapped=substring, required=required)

    return [*(preload(pair, "failed") for pair in listed + failed), *(preload(pair, "mapped") for pair in mapped)]
