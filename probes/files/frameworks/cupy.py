"""CuPy: one distribution for each CUDA, all filling the package ``cupy``.

Contents of Linux wheels (cupy-cuda101 6.0 and 9.6, cupy-cuda11x 13.6, cupy-cuda12x 12.0, 13.3 and 14.2, cupy-cuda13x
14.2): ``cupy/_version.py`` assigns ``__version__``. ``cupy/.data/_wheel.json`` (not in 6.0) says ``"cuda": "12.x"``
and with which NCCL, cuTENSOR and cuDNN it was built. Kernels are compiled at run time by NVRTC, except those of
Thrust, CUB and the random generators, in ``cupy/cuda/{thrust,cub}*.so`` and ``cupy/random/_generator_api*.so``. The
bindings in ``cupy_backends/cuda/libs/`` need CUDA's libraries by name and have no search path of their own: up to 13
the loader must find them; from 14 on they are loaded by cuda-pathfinder first (``_submodules`` in
``cupy_backends/cuda/libs/__init__.py``). From 13 on NVRTC is opened when it is first called: by its name, from 14 on as
cuda-pathfinder finds it, of whatever CUDA. Every kernel includes headers of CUDA, which CuPy brings up to 13.
"""

from __future__ import annotations

import re
from typing import Any

from ...common.lazy import lazy_pattern
from ...common.paths import printable
from ..installations.catalog import FrameworkEntry
from ..installations.package import TEXT_LIMIT, cuda_version, digits_as_version, locate, version
from ..installations.parts import add_parts, asked_by_name, cuda_by_loads
from ..installations.pathfinder import asked_of_pathfinder, found_by_pathfinder
from ..loader.script import OpenByName, Preload
from ..python.site import Site

_WHEEL = ".data/_wheel.json"
_FORK = lazy_pattern(r"cupy-(?:cuda\w+|rocm-[\w-]+)|amd-cupy|cupy")
_NEEDED = r"(?:driver|runtime|nvrtc|cublas|curand|cusolver|cusparse)\b.*\.so"
_OWN = r"(?:cub|thrust|cufft|cublas|curand|cusolver|cusparse)\b.*\.so"


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The CuPy that ``import cupy`` would take."""
    others = {item["name"] for item in site.distributions if _FORK.fullmatch(item["name"])}
    names = entry.distributions.split()
    here = locate(site, "cupy", [*names, *sorted(others.difference(names))])
    if here is None:
        return []
    build = here.json(_WHEEL)
    core = next(iter(here.files(r"core\b.*\.so", "_core")), None)
    wheel = here.brought_by(core, f"cupy-cuda{cuda_version(build.get('cuda')) or ''}x")
    name = wheel["name"] if wheel else "cupy"
    facts = here.gather(name)
    stated = here.add_stated_version(facts, "_version.py")
    if wheel:
        facts.add(wheel["source"], version=wheel["version"])
    built_with = (build.get(library) for library in ("nccl", "cudnn"))
    nccl, cudnn = (part.get("version") if isinstance(part, dict) else None for part in built_with)
    facts.add(
        f"file {here.path}/{_WHEEL}", cuda=cuda_version(build.get("cuda")), nccl=version(nccl), cudnn=version(cudnn)
    )
    here.add_declared(facts)
    match = re.fullmatch(r"cupy-cuda(\d{2,3})x?", name)
    if wheel:
        facts.add(wheel["source"], cuda=digits_as_version(match[1]) if match else None)
    rocm = "rocm" in name or name == "amd-cupy"
    facts.add(f"file {here.path}" if here.path else wheel["source"] if wheel else "", cpu_only=False)
    if not rocm:
        backends = f"{here.folder}/cupy_backends/cuda"
        parts = [path for folder in ("api", "libs") for path in here.files(_NEEDED, f"{backends}/{folder}")]
        parts += here.files(_OWN, "cuda") + here.files(r"_generator_api\b.*\.so", "random")
        text = here.site.tree.read_text(f"{backends}/libs/__init__.py", TEXT_LIMIT) or ""
        listed = re.search(r"_submodules\s*=\s*\(([^)]{0,400})\)", text)
        by_pathfinder = re.findall(r"'(\w{2,20})'", listed[1]) if listed and "load_nvidia_dynamic_lib" in text else []
        preloads = [] if by_pathfinder else [Preload(("libcutensor.so.*[0-9]",), ("cutensor/lib",))]
        for library in (*by_pathfinder, *(("nvrtc", "cufft") if by_pathfinder else ())):
            preloads += found_by_pathfinder(here.site, library)
        asks = asked_of_pathfinder(here.site, "nvrtc") if by_pathfinder else []
        if not asks:  # by the name in its binding for CuPy's CUDA: CuPy computes almost nothing without NVRTC
            major = str(facts.known("cuda") or "").partition(".")[0]
            bindings = here.files(r"nvrtc\b.*\.so", f"{backends}/libs")
            named = [ask for path in bindings for ask in asked_by_name(here, path)]
            own = (ask for ask in named if re.fullmatch(rf"libnvrtc\.so\.{major}\b.*", ask.names[0]))
            asks = [ask._replace(optional=False) for ask in own]
        asks += [OpenByName((path,)) for path in here.files(r"(?:cudnn|nccl|cutensor)\b.*\.so", f"{backends}/libs")]
        add_parts(facts, here, parts, preloads=preloads, asks=asks)
        cuda_by_loads(facts)
        if here.names("_core/include/cupy") and "_cuda" not in here.names("_core/include/cupy"):
            facts.add(f"file {here.path}", compiles_with={"CUDA headers": printable(_headers(site))})
    wrong = here.problems(stated, "_version.py", ("_version.py",))
    beside = sorted({f"{wheel['name']} {wheel['version']}" for wheel in here.wheels if wheel["name"] != name})
    if beside:
        wrong.append(f"{', '.join(beside)} was installed into the same package")
    return [facts.record(wrong)]


def _headers(site: Site) -> str:
    tops = [f"{folder}/nvidia/{name}" for folder in site.folders for name in ("cu*", "cuda_runtime")]
    tops += [site.tree.variables.get(name) or "/usr" for name in ("CUDA_PATH", "CUDA_HOME")]
    tops += [site.prefix, f"{site.prefix}/targets/*", "/usr/local/cuda*", "/usr/lib/cuda", "/opt/cuda"]
    return next((path for top in tops for path in site.tree.expand(f"{top}/include/vector_types.h")), "")
