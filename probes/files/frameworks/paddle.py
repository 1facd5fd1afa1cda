"""PaddlePaddle.

Contents of Linux wheels (paddlepaddle-gpu 1.7.0.post107 and 2.6.2, paddlepaddle 3.3.1): ``version/__init__.py`` (in 1.x
``version.py``, with less in it) assigns ``full_version``, and ``cuda_version`` and ``cudnn_version`` as texts,
``'False'`` in a build for the CPU; later also ``nccl_version``, ``tensorrt_version`` and ``compiled_cuda_archs``. The
compiled parts are ``base/libpaddle.so`` (before 2.5 ``fluid/core_avx.so`` and the like) with ``libs/libphi*.so``. A
build that names no wheels of NVIDIA's opens CUDA's libraries by the names that a toolkit for developers has,
``libcublas.so`` and ``libcudnn.so``, the latter also in ``/usr/local/cuda/lib64`` (seen of 2.6.2 by calling the
functions of ``libphi.so`` that load them).
"""

from __future__ import annotations

from typing import Any

from ..installations.catalog import FrameworkEntry
from ..installations.package import assigned, cuda_version, digits_as_version, locate, version
from ..installations.parts import add_parts, asks_for_cuda, cuda_by_loads
from ..loader.script import OpenByName
from ..python.site import Site

_CUDNN = ("libcudnn.so", "/usr/local/cuda/lib64/libcudnn.so")


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The PaddlePaddle that ``import paddle`` would take."""
    here = locate(site, "paddle", entry.distributions.split())
    if here is None:
        return []
    libraries = here.files(r"libphi\w*\.so", "libs")
    parts = libraries + here.files(r"libpaddle\.so", "base") + here.files(r"(?:core_(?:no)?avx|libpaddle)\.so", "fluid")
    wheel = here.owner(parts[-1] if parts else None)
    facts = here.gather(wheel["name"] if wheel else "paddlepaddle")
    place = "version/__init__.py" if "version" in here.names() else "version.py"
    text = here.text(place) or ""
    stated = version(assigned(text, "full_version"))
    if stated:
        cuda, hip = assigned(text, "cuda_version"), version(assigned(text, "hip_version"))
        cudnn = version(assigned(text, "cudnn_version"))
        xpu = {assigned(text, "xpu_version"), assigned(text, "xpu_xre_version")} - {None, "False"}
        archs = assigned(text, "compiled_cuda_archs")
        numbers = [str(arch) for arch in archs if str(arch).isdigit()] if isinstance(archs, list) else []
        facts.add(
            f"file {here.path}/{place}",
            version=stated,
            cuda=cuda_version(cuda),
            cudnn=cudnn if cudnn and cudnn.strip("0.") else None,  # not ``'0'``
            tensorrt=version(assigned(text, "tensorrt_version")),
            hip=hip,
            cpu_only=None if cuda is None else cuda == "False" and not hip and not xpu,
            gpu_code=[f"sm_{number}" for number in numbers[:100]] or None,
        )
    here.add_declared(facts)
    if wheel and wheel["name"].endswith("-gpu"):
        digits = wheel["version"].partition(".post")[2]
        facts.add(wheel["source"], cpu_only=False)
        if digits.isdigit() and len(digits) in {2, 3}:
            # CUDA 10.7 would be wrong: ``.post107`` means CUDA 10 with cuDNN 7, ``.post112`` CUDA 11.2.
            facts.add(wheel["source"], cuda=digits[:-1] if digits.endswith("7") else digits_as_version(digits))
    asks: list[OpenByName] = []
    by_wheels = any(line.startswith("nvidia-") for line in facts.known("requires") or ())
    if parts and not by_wheels and facts.known("cuda") and not facts.known("cpu_only"):
        by = parts[-1].rpartition("/")[2]
        asks = [OpenByName(names, by=by, optional=False) for names in (("libcublas.so",), _CUDNN)]
    add_parts(facts, here, parts, asks=asks)
    cuda_by_loads(facts)
    linked = asks_for_cuda(facts) if parts else None
    facts.add(f"elf {here.path}", cpu_only=None if linked is None else not linked)
    return [facts.record(here.problems(stated, place))]
