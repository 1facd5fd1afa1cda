"""xFormers.

Contents of Linux wheels (0.0.28.post3 and 0.0.35): ``version.py`` assigns ``__version__``; ``cpp_lib.json`` (in builds
on site too) says what ``_C.so`` was built with, ``{"version": {"cuda": 1208, "hip": null, "torch": "2.10.0+cu128"},
"env": {"TORCH_CUDA_ARCH_LIST": "7.5 8.0+PTX 8.0 9.0a"}}``. The metadata of 0.0.28 pins torch by ``==``; 0.0.35 keeps
to the part of PyTorch's interface that does not change and asks for ``>=``.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..installations.package import (
    Installation,
    add_declared,
    add_stated_version,
    cuda_of_number,
    locate,
    problems,
    version,
)
from ..installations.parts import add_torch_extension, cuda_by_loads
from ..python.site import Site

IMPORTS = ("xformers",)
DISTRIBUTIONS = ("xformers",)

_BUILD = "cpp_lib.json"
_ARCH = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?")


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The xFormers that ``import xformers`` would take."""
    here = locate(site, "xformers", names)
    if here is None:
        return []
    facts = here.gather("xformers", extends="torch")
    stated = add_stated_version(facts, here, "version.py")
    build = _build(here)
    torch = version(build.get("torch"))
    if build:
        cuda, hip = cuda_of_number(build.get("cuda")), version(build.get("hip"))
        cpu_only = not cuda and not hip if "cuda" in build else None
        built_for = {"torch": torch} if torch else None
        facts.add(f"file {here.path}/{_BUILD}", cuda=cuda, hip=hip, cpu_only=cpu_only, built_for=built_for)
    add_declared(facts, here)
    parts = here.files(r"_C(?:_\w+)?(?:\.[\w-]+)?\.so")
    add_torch_extension(facts, here, parts)
    if build.get("targets"):
        facts.add(f"file {here.path}/{_BUILD}", gpu_code=build["targets"])
    cuda_by_loads(facts)
    return [facts.record(problems(here, stated, "version.py", ("version.py",)))]


def _build(here: Installation) -> dict[str, Any]:
    """The build's own facts, with its list of architectures as targets."""
    try:
        stated = json.loads(here.text(_BUILD) or "")
    except (ValueError, RecursionError):
        return {}
    parts = [stated.get(key) for key in ("version", "env")] if isinstance(stated, dict) else []
    versions, variables = (part if isinstance(part, dict) else {} for part in (parts or [{}, {}]))
    listed = variables.get("TORCH_CUDA_ARCH_LIST")
    return {**versions, "targets": _targets(listed) if isinstance(listed, str) else []}


def _targets(listed: str) -> list[str]:
    """``sm_80 compute_80`` of ``8.0+PTX``."""
    found: dict[str, None] = {}
    for match in _ARCH.finditer(listed[:500]):
        number = f"{match[1]}{match[2]}{match[3]}"
        found[f"sm_{number}"] = None
        if match[4]:
            found[f"compute_{number}"] = None
    return list(found)
