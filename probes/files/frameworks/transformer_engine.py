"""Transformer Engine: a core for one CUDA major, and bindings to PyTorch (or JAX) that are compiled on site.

Contents of Linux wheels (transformer-engine and transformer-engine-cu12, 2.20.2): ``transformer-engine`` only Python;
the core ``wheel_lib/libtransformer_engine.so`` (before 2.0 or so ``transformer_engine/libtransformer_engine.so``) is
of ``transformer-engine-cu12`` or ``-cu13``; the bindings ``wheel_lib/transformer_engine_torch*.so`` (or beside the
package) of ``transformer-engine-torch``, which there is as source alone. All must be of one version.
"""

from __future__ import annotations

import re
from typing import Any

from ..installations.package import add_declared, locate, problems
from ..installations.parts import add_torch_extension, cuda_by_loads
from ..python.site import Site

IMPORTS = ("transformer_engine",)
DISTRIBUTIONS = ("transformer-engine", "transformer-engine-cu12", "transformer-engine-cu13", "transformer-engine-torch")

_CORE = re.compile(r"transformer-engine-cu(\d{2})")
_BINDINGS = r"transformer_engine_torch\b.*\.so"


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The Transformer Engine that ``import transformer_engine`` would take."""
    here = locate(site, "transformer_engine", names)
    if here is None:
        return []
    facts = here.gather("transformer-engine", extends="torch")
    for wheel in sorted(here.wheels, key=lambda item: item["name"] != "transformer-engine"):
        facts.add(wheel["source"], version=wheel["version"])
    cores = {match[1]: wheel for wheel in here.wheels if (match := _CORE.fullmatch(wheel["name"]))}
    if len(cores) == 1:
        major, wheel = next(iter(cores.items()))
        facts.add(wheel["source"], cuda=major)
    add_declared(facts, here)
    parts = here.files(r"libtransformer_engine\.so", "wheel_lib") + here.files(r"libtransformer_engine\.so")
    parts += here.files(_BINDINGS, "wheel_lib") + here.files(_BINDINGS) + here.files(_BINDINGS, here.folder)
    add_torch_extension(facts, here, parts)
    cuda_by_loads(facts)
    if parts:
        facts.add(f"elf {here.path}", cpu_only=False)
    wrong = problems(here)
    if len({wheel["version"].partition("+")[0] for wheel in here.wheels}) > 1:
        parts_named = ", ".join(f"{item['name']} {item['version']}" for item in here.wheels)
        wrong.append(f"its parts are of different versions: {parts_named}")
    return [facts.record(wrong)]
