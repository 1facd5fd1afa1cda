"""TensorFlow, read as files.

Contents of Linux wheels (looked at: 1.4 to 2.22, nightly builds, CPU and Intel's builds):
``python/platform/build_info.py`` assigns ``build_info``, a dictionary (or an ``OrderedDict`` of pairs) with
``is_cuda_build`` and, in most releases, ``cuda_version``, ``cudnn_version`` (the major alone) and
``cuda_compute_capabilities``; 2.22 names only the first. Before 2.3 they were separate names:
``cuda_version_number``. 1.15, 2.0 and 2.1 keep the package in ``tensorflow_core``. CUDA's libraries are opened when
they are first used, by ``libtensorflow_framework.so.2``, whose search path leads into NVIDIA's wheels; which wheels
those are, the extra ``and-cuda`` of the metadata tells.
"""

from __future__ import annotations

from typing import Any

from ..installations.catalog import FrameworkEntry
from ..installations.package import TEXT_LIMIT, assigned, cuda_version, locate, mapping, targets
from ..installations.parts import add_parts, unknown_flags
from ..loader.script import OpenByName
from ..python.distributions import cuda_major, extra_of, libraries_of, sonames
from ..python.site import Site

_INFO = "python/platform/build_info.py"
_FRAMEWORK = r"libtensorflow_framework\.so(?:\.\d+)?"
_EXTRAS = frozenset({"and-cuda", "cuda", None})


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The TensorFlow that ``import tensorflow`` would take."""
    here = locate(site, "tensorflow", entry.distributions.split())
    if here is None or (not here.wheels and here.conda is None and "python" not in here.names()):
        return []
    name = here.wheel["name"] if here.wheel else "tensorflow"
    facts = here.gather(name)
    # In some releases the package's own files lie in ``tensorflow_core`` beside it.
    core = f"{here.folder}/tensorflow_core"
    apart = here.path is not None and "python" not in here.names() and "python" in site.names(core)
    folder = core if apart else here.path
    if folder:
        text = site.tree.read_text(f"{folder}/{_INFO}", TEXT_LIMIT) or ""
        build = mapping(text, "build_info") or {
            "is_cuda_build": assigned(text, "is_cuda_build"),
            "is_rocm_build": assigned(text, "is_rocm_build"),
            "cuda_version": assigned(text, "cuda_version_number"),
            "cudnn_version": assigned(text, "cudnn_version_number"),
        }
        on_gpu = True in {build.get("is_cuda_build"), build.get("is_rocm_build")}
        facts.add(
            f"file {folder}/{_INFO}",
            cpu_only=False if on_gpu else True if build.get("is_cuda_build") is False else None,
            cuda=cuda_version(build.get("cuda_version")),
            cudnn=cuda_version(build.get("cudnn_version")),
            gpu_code=targets(build.get("cuda_compute_capabilities")),
        )
    if name == "tensorflow-rocm":
        facts.add(here.wheel["source"] if here.wheel else "", cpu_only=False)
    here.add_declared(facts)
    # The CUDA major version from the wheels of the extra, if the build does not name its own.
    wheel = here.wheel
    lines = [line for line in (wheel or {}).get("requires") or () if extra_of(line) in _EXTRAS]
    if wheel and facts.known("cpu_only") is False:
        facts.add(wheel["source"], cuda=cuda_major(lines))
    kinds = ((_FRAMEWORK, ""), (r"libtensorflow_cc\.so(?:\.\d+)?", ""), (r"_pywrap_tensorflow_internal\.so", "/python"))
    parts = [path for pattern, inner in kinds for path in here.files(pattern, f"{folder}{inner}")] if folder else []
    facts.add(f"file {folder}", unknown_flags=unknown_flags(site.tree, parts))
    by = next((path.rpartition("/")[2] for path in parts if "_framework" in path), None)
    # The libraries that it opens: those of the extra's wheels, else those of its own versions.
    cuda, cudnn, opened = facts.known("cuda"), facts.known("cudnn"), libraries_of(lines)
    if cuda and not opened:
        major, _, minor = cuda.partition(".")
        opened = [sonames(library, major, minor or "0") for library in ("cudart", "cublas", "cublasLt")]
        opened += [sonames("cudnn", cudnn)] if cudnn else []
    asks = [OpenByName(names, by=by) for names in (("libcuda.so.1",), *opened)] if cuda else []
    if facts.known("gpu_code") and parts:  # the build names it; listing it from a gigabyte of code would take long
        facts.add(f"file {folder}", binaries=parts)
        parts = [path for path in parts if "libtensorflow_cc" not in path]
    add_parts(facts, here, parts, asks=asks)
    return [facts.record(here.problems(needs=("python",) if folder == here.path else ()))]
