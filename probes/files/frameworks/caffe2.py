"""Caffe2: on its own as a package of conda, later within PyTorch.

``caffe2/python/caffe2_pybind11_state.so`` is the build for the CPU, ``caffe2_pybind11_state_gpu.so`` that for CUDA.
PyTorch's wheels have a folder ``caffe2`` too, and some releases of it neither of the two: then there is no Caffe2. It
has no version of its own there: PyTorch's counts.
"""

from __future__ import annotations

from typing import Any

from ..installations.catalog import FrameworkEntry
from ..installations.package import add_declared, locate, problems
from ..installations.parts import add_torch_extension, cuda_by_loads
from ..python.site import Site


def read(site: Site, entry: FrameworkEntry) -> list[dict[str, Any]]:
    """The Caffe2 that ``import caffe2`` would take."""
    here = locate(site, "caffe2", entry.distributions.split())
    states = here.files(r"caffe2_pybind11_state(?:_gpu|_hip)?\b.*\.so", "python") if here else []
    if here is None or not (states or here.wheels or here.conda):
        return []
    facts = here.gather("caffe2")
    add_declared(facts, here)
    within = [wheel for wheel in site.installed("torch", "pip") if wheel["path"].startswith(f"{here.folder}/")]
    if states and within:
        facts.add(within[0]["source"], version=within[0]["version"])
    on_gpu = [path for path in states if "_gpu" in path]
    if states:
        on_others = any("_hip" in path for path in states)
        facts.add(f"file {here.path}/python", cpu_only=not on_gpu and not on_others)
    add_torch_extension(facts, here, on_gpu or states)
    cuda_by_loads(facts)
    return [facts.record(problems(here))]
