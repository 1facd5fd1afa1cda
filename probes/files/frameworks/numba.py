"""Numba, and numba-cuda, which took over its CUDA target.

Contents of wheels (numba 0.68.1; numba-cuda 0.4.0 and 0.30.4): ``numba/_version.py`` has its version in a text of JSON,
``numba_cuda/VERSION`` as a line. Nothing in them is GPU code: kernels are compiled at run time with NVVM (or NVRTC)
and nvJitLink, which numba-cuda finds by cuda-pathfinder; it links by the driver where there is no nvJitLink. From 0.20
on NVRTC is asked what it compiles for before any kernel is. Some releases (0.18.1) refuse to be imported without
cuda-bindings, which they name only as extras, unless a variable turns that off. Numba by itself is a compiler for the
CPU, whether or not its old CUDA target is used, so that nothing is said of its CUDA.
"""

from __future__ import annotations

import re
from typing import Any

from ...common.lazy import lazy_pattern
from ..installations.catalog import FrameworkEntry
from ..installations.package import locate, version
from ..installations.parts import add_parts
from ..installations.pathfinder import asked_of_pathfinder, found_by_pathfinder
from ..loader.script import OpenByName
from ..python.distributions import extra_of, requirement_name
from ..python.site import Site

_VERSION = lazy_pattern(r'^[ \t]*"version":[ \t]*"([^"\n]{1,80})"', re.MULTILINE)
_IMPORT_REFUSED = lazy_pattern(r"if config\.CUDA_USE_NVIDIA_BINDING:\s+if not \([^)]*find_spec\(\"cuda\"\)")
_COMPILERS = ("nvvm", "nvrtc", "nvJitLink", "cudart")
_DRIVER = OpenByName(("libcuda.so", "libcuda.so.1"), optional=False)
_BY_THE_LOADER = OpenByName(("libnvvm.so.4", "libnvvm.so"))


def read(site: Site, _entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The installed ones of the two."""
    numba, cuda = locate(site, "numba", ("numba",)), locate(site, "numba_cuda", ("numba-cuda",))
    found = []
    if numba:
        facts = numba.gather("numba")
        match = _VERSION.search(numba.text("_version.py") or "")
        stated = version(match[1]) if match else None
        facts.add(f"file {numba.path}/_version.py", version=stated)
        numba.add_declared(facts)
        found.append(facts.record(numba.problems(stated, "_version.py", ("_version.py",))))
    if cuda is None:
        return found
    facts = cuda.gather("numba-cuda", extends="numba")
    stated = cuda.add_stated_version(facts, "VERSION")
    # The requirements on NVIDIA's bindings of each CUDA extra, if the import fails without them.
    off = str(site.tree.variables.get("NUMBA_CUDA_USE_NVIDIA_BINDING", "")).lower() in {"0", "false"}
    if cuda.wheel and not off and _IMPORT_REFUSED.search(cuda.text("numba/cuda/__init__.py") or ""):
        groups: dict[str, list[str]] = {}
        for line in cuda.wheel.get("requires") or ():
            extra = extra_of(line)
            if requirement_name(line) in ("cuda-bindings", "cuda-core") and extra and re.fullmatch(r"cu\d{2}", extra):
                groups.setdefault(extra, []).append(line.partition(";")[0].strip())
        facts.add(cuda.wheel["source"], needs_one_of=[groups[extra] for extra in sorted(groups)] or None)
    cuda.add_declared(facts)
    facts.add(f"file {cuda.path}", cpu_only=False)
    preloads = [preload for library in _COMPILERS for preload in found_by_pathfinder(site, library)]
    parts = cuda.files(r"_dispatcher\b.*\.so", "numba/cuda/cext")
    asks_nvrtc = "def get_supported_ccs" in (cuda.text("numba/cuda/cudadrv/nvrtc.py") or "")
    nvvm = asked_of_pathfinder(site, "nvvm") or [_BY_THE_LOADER]
    asks = (_DRIVER, *nvvm, *(asked_of_pathfinder(site, "nvrtc") if asks_nvrtc else ()))
    add_parts(facts, cuda, parts, preloads=preloads, asks=asks)
    return [*found, facts.record(cuda.problems(stated, "VERSION", ("VERSION",)))]
