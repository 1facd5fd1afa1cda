"""llama-cpp-python, which is mostly compiled on installation, for the CPU unless requested otherwise.

Its build puts llama.cpp's libraries into ``llama_cpp/lib/`` (before 0.2.90 or so straight into ``llama_cpp/``):
``libllama.so``, ``libggml-base.so``, ``libggml-cpu.so``, and one for each other device, ``libggml-cuda.so``. Before
those were apart, all was in ``libggml.so`` or ``libllama.so``. ``__init__.py`` assigns ``__version__``.
"""

from __future__ import annotations

import re
from typing import Any

from ..installations.package import add_declared, add_stated_version, locate, problems
from ..installations.parts import add_parts, asks_for_cuda, cuda_by_loads
from ..python.site import Site

IMPORTS = ("llama_cpp",)
DISTRIBUTIONS = ("llama-cpp-python",)

_ON_OTHERS = re.compile(r"libggml-(?:hip|vulkan|sycl|musa|cann|opencl|kompute|metal)\.so")
_PARTS = r"lib(?:ggml(?:-base|-cpu|-cuda)?|llama)\.so"


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The llama-cpp-python that ``import llama_cpp`` would take."""
    here = locate(site, "llama_cpp", names)
    if here is None:
        return []
    facts = here.gather("llama-cpp-python")
    stated = add_stated_version(facts, here, "__init__.py")
    add_declared(facts, here)
    folder = "lib" if "lib" in here.names() else ""
    parts = here.files(_PARTS, folder)
    add_parts(facts, here, parts)
    cuda_by_loads(facts)
    if parts:
        others = any(_ON_OTHERS.fullmatch(name) for name in here.names(folder))
        with_cuda = any(path.endswith("libggml-cuda.so") for path in parts) or asks_for_cuda(facts)
        cpu_only = False if with_cuda or others else None if with_cuda is None else True
        facts.add(f"file {here.path}/{folder}".rstrip("/"), cpu_only=cpu_only)
    return [facts.record(problems(here, stated, "__init__.py", ("llama.py",)))]
