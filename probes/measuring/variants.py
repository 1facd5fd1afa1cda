"""Every kernel source with the options that probes compile it with, and the first GPUs that can run it."""

from __future__ import annotations

from dataclasses import dataclass

from ..bench.chip import TENSOR, VECTOR
from .cublaslt import PRECISIONS


@dataclass(frozen=True)
class Variant:
    name: str
    options: tuple[str, ...]
    least: tuple[int, int]  # First compute capability


EVERY_GPU = (5, 0)


def variants() -> tuple[Variant, ...]:
    found = [Variant("caches", (), EVERY_GPU), Variant("collectives", (), EVERY_GPU)]
    found += [Variant("memory", (f"-DUNROLL={count}",), EVERY_GPU) for count in (1, 4)]
    found += [Variant("compute", (f"-DKIND={kind.code}",), kind.least) for kind in VECTOR.values()]
    found += [Variant("compute", ("-DMMA", f"-DKIND={kind.code}"), kind.least) for kind in TENSOR.values()]
    products: dict[tuple[str, ...], tuple[int, int]] = {}
    for precision in PRECISIONS.values():
        options = (f"-DKIND={precision.code}", f"-DRESULT={precision.result_code}")
        products[options] = min(products.get(options, precision.least), precision.least)
    return (*found, *(Variant("gemm", options, least) for options, least in products.items()))
