"""What bus bandwidth a collective operation should have reached: by what joins the GPUs, the algorithm and the size.

    ceiling = what the links of one GPU carry in one direction:
              all its active NVLinks where a switch joins the GPUs, those to the other GPU where it is directly joined,
              its PCI Express link where there is no NVLink

Bus bandwidth is independent of the number of ranks by definition, but the share of the ceiling that NCCL reaches is
not, so bands are given by ranks. A sum inside the switch (NVLink SHARP) sends less than that definition counts: it has
bands of its own, or none.
"""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.performance.expected import (
    Ceiling,
    Expectation,
    needs_switch,
    nvlinks_between,
    on_switch,
    pcie_ceiling,
)
from envcheck.knowledge.relations.driver import architecture_name
from envcheck.knowledge.tables.hardware import CollectiveRow
from envcheck.model.snapshot import Collective, Fabric, Gpu, Measurement
from envcheck.sources import Source

_IN_SWITCH = ("nvls", "nvls_tree", "collnet", "collnet_direct", "collnet_chain")  # Algorithms that sum on the way

_WORDS = {
    "nvswitch": "over NVLink through a switch",
    "nvlink": "over NVLink from GPU to GPU",
    "pcie": "over PCI Express",
    "host": "through host memory",
    "network": "over the network",
}


def collective_expectation(
    matrix: Matrix, gpus: Sequence[Gpu], fabric: Fabric | None, measured: Measurement
) -> Expectation | str:
    """What was to be expected, or why it is not known. ``gpus`` are the machine's."""
    together = measured.collective
    if measured.value is None or together is None:
        return measured.missing or "it has no value"
    found = _joined(matrix, gpus, fabric, measured, together)
    if isinstance(found, str):
        return found
    part, link, row = found
    if row is None:
        more = ", with sums inside the switch" if _sums_in_switch(together) else ""
        return f"no band is known for {together.ranks} GPUs {_WORDS[link]}{more}: compare it with a baseline"
    if (measured.size or 0) < row.size:
        return "at this size latency decides more than bandwidth: compare it with a baseline"
    top = _ceiling(matrix, part, fabric, link, measured)
    if isinstance(top, str):
        return top
    ceiling, basis, cited = top
    return Expectation(
        ceiling=ceiling,
        basis=basis,
        low=row.low,
        high=row.high,
        wide=row.wide,
        share=measured.value / ceiling,
        rows=tuple(each.id for each in (row, *cited)),
        sources=matrix.cite(row, *cited),
    )


def latency_limit(
    matrix: Matrix, gpus: Sequence[Gpu], fabric: Fabric | None, measured: Measurement
) -> tuple[float, tuple[Source, ...]] | str:
    """The seconds that the smallest message should take at most, with what says so; or why they are not known."""
    together = measured.collective
    if together is None:
        return "who took part is not known: compare it with a baseline"
    found = _joined(matrix, gpus, fabric, measured, together)
    if isinstance(found, str):
        return found
    _, link, row = found
    if row is None or row.latency is None:
        return f"no latency is known for {together.ranks} GPUs {_WORDS[link]}: compare it with a baseline"
    return row.latency, matrix.cite(row)


def _joined(
    matrix: Matrix, gpus: Sequence[Gpu], fabric: Fabric | None, measured: Measurement, together: Collective
) -> tuple[Sequence[Gpu], str, CollectiveRow | None] | str:
    """The GPUs that took part, what joins them and the band for it, or why they cannot be judged."""
    part = [gpu for gpu in gpus if not {*gpu.identities()}.isdisjoint(together.gpus)]
    if len(part) != together.ranks:
        return "not all of the GPUs that took part are described"
    if len({gpu.compute_capability for gpu in part}) != 1:
        return "GPUs of several kinds took part"
    switched = needs_switch(matrix.model_of(part[0]), part, len(gpus))
    link = "nvswitch" if switched else link_of(part, fabric, together)
    if link is None:
        return "what joins the GPUs is not known"
    architecture = architecture_name(matrix, part[0].compute_capability)
    alike = (row for row in matrix.collectives if (row.operation, row.link) == (measured.name, link))
    of_chip = (row for row in alike if row.architecture in ("", architecture))
    of_size = (row for row in of_chip if row.least <= together.ranks <= row.most)
    rows = [row for row in of_size if row.in_switch == _sums_in_switch(together)]
    best = max(rows, key=lambda row: (bool(row.architecture), -(row.most - row.least)), default=None)
    return part, link, best


def link_of(part: Sequence[Gpu], fabric: Fabric | None, together: Collective) -> str | None:
    """``nvswitch``, ``nvlink``, ``pcie``, ``host`` or ``network``; None where that is unknown or mixed.

    NCCL's log says which way it took, the driver which wires there are. GPUs that NVLink joins are judged by it also
    where NCCL went another way, since that is a fault. On PCI Express, the way through the host is no fault.
    """
    ways = {name.partition("/")[0] for name in together.transports}
    counts = nvlinks_between(part, fabric)
    if on_switch(part):
        wires = "nvswitch"
    elif counts is None or (any(counts) and not all(counts)):
        wires = None
    else:
        wires = "nvlink" if all(counts) else "pcie"
    if not ways or not ways <= {"P2P", "NVLS", "SHM", "NET"}:
        return None
    if wires in ("nvswitch", "nvlink") or ways <= {"P2P", "NVLS"}:
        return wires
    return "network" if "NET" in ways else "host"


def _sums_in_switch(together: Collective) -> bool:
    """Whether the switch does sums. Where NCCL did not say what it chose, it may have where it has channels for it."""
    if together.algorithm is not None:
        return together.algorithm in _IN_SWITCH
    return bool(together.nvls_channels)


def _ceiling(
    matrix: Matrix, part: Sequence[Gpu], fabric: Fabric | None, link: str, measured: Measurement
) -> Ceiling | str:
    if link == "nvswitch":
        model = matrix.model_of(part[0])
        if model and model.nvlink and not on_switch(part):  # needs_switch() told it
            return model.nvlink.bandwidth, f"{model.nvlink.links} NVLinks by the data sheet", (model,)
        each = [[one.bandwidth for one in gpu.nvlinks or () if one.active] for gpu in part]
        if not all(each) or any(rate is None for rates in each for rate in rates):
            return "the speed of the NVLinks is not known"
        # The GPU with the least bandwidth delays all others.
        ceiling, count = min((sum(rate or 0.0 for rate in rates), len(rates)) for rates in each)
        return ceiling, f"{count} NVLinks of each GPU to a switch, by NVML", ()
    if link == "nvlink":
        counts = nvlinks_between(part, fabric)
        if len(part) != 2 or not counts:
            return "how rings share NVLinks between more than two GPUs is not known: compare it with a baseline"
        speeds = [one.bandwidth for one in part[0].nvlinks or () if one.active and one.bandwidth]
        if not speeds:
            return "the speed of the NVLinks is not known"
        return counts[0] * min(speeds), f"{counts[0]} NVLinks between the GPUs, by NVML", ()
    if link == "network":
        return "what the network carries is not known: compare it with a baseline"
    return pcie_ceiling(matrix, measured)
