"""NVIDIA's Apex, which is compiled on installation; it has no wheels.

Its extensions lie beside the package: ``amp_C*.so``, ``apex_C*.so``, ``fused_layer_norm_cuda*.so`` and as many more
as were asked for; installed without them it is Python alone. PyPI's distribution ``apex`` is another project, without
``apex/amp``, ``apex/optimizers`` and ``apex/normalization``.
"""

from __future__ import annotations

from typing import Any

from ..installations.package import add_declared, locate, problems
from ..installations.parts import add_torch_extension, cuda_by_loads
from ..python.site import Site

IMPORTS = ("apex",)
DISTRIBUTIONS = ("apex",)

_ITS_OWN = frozenset({"amp", "optimizers", "normalization"})
_EXTENSIONS = (
    r"(?:amp_C|apex_C|syncbn|bnp|mlp_cuda|fused_\w+_cuda|fused_\w+_c|distributed_\w+_cuda|fmhalib|fast_\w+|xentropy_cuda|"
    r"scaled_\w+_cuda|generic_scaled_\w+|transducer_\w+_cuda|peer_memory_cuda|nccl_p2p_cuda|group_norm_\w+|focal_loss_cuda)"
    r"\b.*\.so"
)


def read(site: Site, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The Apex that ``import apex`` would take."""
    here = locate(site, "apex", names)
    if here is None or not _ITS_OWN & here.names():
        return []
    facts = here.gather("apex", extends="torch")
    add_declared(facts, here)
    add_torch_extension(facts, here, here.files(_EXTENSIONS, here.folder))
    cuda_by_loads(facts)
    return [facts.record(problems(here))]
