"""Torch-TensorRT.

Contents of Linux wheels (2.5.0 and 2.14.0): ``_version.py`` assigns ``__version__``, ``__cuda_version__`` and
``__tensorrt_version__``; the metadata keeps torch within one minor release (``torch<2.15.0,>=2.14.0``) and names
TensorRT's wheels for one CUDA major. The compiled parts are ``lib/libtorchtrt*.so`` and ``_C*.so``; TensorRT is
imported before them.
"""

from __future__ import annotations

from typing import Any

from ..installations.package import add_declared, assigned, cuda_version, locate, problems, version
from ..installations.parts import add_torch_extension
from ..owners.requirements import pinned
from ..python.site import Site
from .tensorrt import tensorrt_preloads

IMPORTS = ("torch_tensorrt",)
DISTRIBUTIONS = ("torch-tensorrt",)


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The Torch-TensorRT that ``import torch_tensorrt`` would take."""
    here = locate(site, "torch_tensorrt", names)
    if here is None:
        return []
    facts = here.gather("torch-tensorrt", extends="torch")
    text = here.text("_version.py") or ""
    said, tensorrt = (version(assigned(text, name)) for name in ("__version__", "__tensorrt_version__"))
    cuda = cuda_version(assigned(text, "__cuda_version__"))
    facts.add(f"file {here.path}/_version.py", version=said, cuda=cuda, tensorrt=tensorrt)
    add_declared(facts, here)
    torch = pinned((here.wheel or {}).get("requires") or (), "torch")
    built_for = {name: value for name, value in (("torch", torch), ("tensorrt", tensorrt)) if value}
    facts.add(here.wheel["source"] if here.wheel else f"file {here.path}/_version.py", built_for=built_for or None)
    parts = [*here.files(r"libtorchtrt(?:_\w+)?\.so", "lib"), *here.files(r"_C\b.*\.so")]
    add_torch_extension(facts, here, parts, preloads=tensorrt_preloads(site))
    if parts:
        facts.add(f"elf {here.path}", cpu_only=False)
    return [facts.record(problems(here, said, "_version.py", ("_version.py",)))]
