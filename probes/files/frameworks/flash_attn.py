"""FlashAttention: ``flash-attn`` (version 2) and ``flash-attn-3``, compiled on site or taken from their release pages.

A release's wheel says in its version what it was built for, ``2.7.4.post1+cu12torch2.5cxx11abiFALSE`` (``cu12`` is a
CUDA major, ``cu123`` would be 12.3); one compiled on site has no label. ``flash_attn/__init__.py`` assigns
``__version__`` without it. The compiled part lies beside the package: ``flash_attn_2_cuda*.so``; that of version 3 is
``flash_attn_3/_C*.so`` or ``flash_attn_3_cuda*.so``. Neither is on PyPI as a wheel.
"""

from __future__ import annotations

from typing import Any

from ..installations.package import Installation, add_declared, add_stated_version, label, locate, problems
from ..installations.parts import add_torch_extension, cuda_by_loads
from ..python.site import Site

IMPORTS = ("flash_attn", "flash_attn_3")
DISTRIBUTIONS = ("flash-attn", "flash-attn-3")


def read(site: Site, _names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The installed ones of the two."""
    second, third = locate(site, "flash_attn", ("flash-attn",)), locate(site, "flash_attn_3", ("flash-attn-3",))
    return [
        *([_read(second, "flash-attn", _beside(second, 2))] if second else []),
        *([_read(third, "flash-attn-3", _beside(third, 3) + third.files(r"_C\b.*\.so"))] if third else []),
    ]


def _beside(here: Installation, major: int) -> list[str]:
    return here.files(rf"flash_attn_{major}_cuda\b.*\.so", here.folder) if here.folder else []


def _read(here: Installation, name: str, parts: list[str]) -> dict[str, Any]:
    facts = here.gather(name, extends="torch")
    wheel = here.wheel
    built = label(wheel["version"]) if wheel else {}
    if wheel:
        torch = {"torch": built["torch"]} if "torch" in built else None
        facts.add(wheel["source"], version=wheel["version"], cuda=built.get("cuda"), built_for=torch)
    stated = add_stated_version(facts, here, "__init__.py")
    add_declared(facts, here)
    add_torch_extension(facts, here, parts)
    cuda_by_loads(facts)
    if parts:
        facts.add(f"elf {here.path}", cpu_only=False)
    return facts.record(problems(here, stated, "__init__.py"))
