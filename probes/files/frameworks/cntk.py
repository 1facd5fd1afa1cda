"""CNTK: ``cntk`` for the CPU, ``cntk-gpu``, both filling the package ``cntk``.

Contents of Linux wheels (2.7.post2): ``cntk/VERSION`` is the version; ``cntk/libs/`` holds everything, in the GPU build
also CUDA's libraries, ``libcudart.so.10.0`` and ``libcudnn.so.7``, whose names tell the versions.
"""

from __future__ import annotations

import re
from typing import Any

from ..installations.package import add_declared, locate, owner, problems, version
from ..installations.parts import add_parts
from ..python.site import Site

IMPORTS = ("cntk",)
DISTRIBUTIONS = ("cntk-gpu", "cntk")

_BUNDLED = {
    "cuda": re.compile(r"libcudart\.so\.(\d{1,2}\.\d{1,2})"),
    "cudnn": re.compile(r"libcudnn\.so\.(\d{1,2}(?:\.\d{1,2}){0,2})"),
    "nccl": re.compile(r"libnccl\.so\.(\d{1,2}(?:\.\d{1,2}){0,2})"),
}


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The CNTK that ``import cntk`` would take."""
    here = locate(site, "cntk", names)
    if here is None:
        return []
    parts = here.files(r"(?:libCntk\.Math|Cntk\.Math)\b.*\.so", "libs")
    wheel = owner(here, parts[0] if parts else None)
    facts = here.gather(wheel["name"] if wheel else "cntk")
    stated = version((here.text("VERSION") or "").strip())
    facts.add(f"file {here.path}/VERSION", version=stated)
    add_declared(facts, here)
    libraries = sorted(here.names("libs"))
    bundled = {
        field: next((match[1] for name in reversed(libraries) if (match := pattern.fullmatch(name))), None)
        for field, pattern in _BUNDLED.items()
    }
    facts.add(f"file {here.path}/libs", **bundled)
    if here.names("libs"):
        facts.add(f"file {here.path}/libs", cpu_only=not any(bundled.values()))
    add_parts(facts, here, parts)
    return [facts.record(problems(here, stated, "VERSION", ("libs",)))]
