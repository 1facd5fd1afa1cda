"""What links carry in one direction: PCI Express by generation and lanes, NVLink by the links that join the GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.tables import GpuRow, LinkRow, Row

if TYPE_CHECKING:
    from envcheck.model.snapshot import Fabric, Gpu, Measurement

Ceiling: TypeAlias = tuple[float, str, tuple[Row, ...]]
"""Per second, where it comes from in words, and the rows that it rests on."""


def pcie_ceiling(matrix: Matrix, measured: Measurement) -> Ceiling | str:
    """What the PCI Express link of the run carries in one direction, or why that is unknown."""
    conditions = measured.conditions
    generation, width = (conditions.pcie_generation, conditions.pcie_width) if conditions else (None, None)
    row: LinkRow | None = next((link for link in matrix.links if link.generation == generation), None)
    if row is None or not width:
        return "the generation or width of the PCI Express link is not known"
    return row.lane * width, f"PCI Express {generation} x{width}", (row,)


def on_switch(part: Sequence[Gpu]) -> bool:
    """Whether NVLinks join each of these GPUs to a switch."""
    return all(any(link.active and link.remote_kind == "switch" for link in gpu.nvlinks or ()) for gpu in part)


def nvlinks_between(part: Sequence[Gpu], fabric: Fabric | None) -> list[int] | None:
    """How many NVLinks join each pair of these GPUs; None where that is not known of every pair."""
    ids = {gpu.pci_bus_id for gpu in part}
    links = [link for link in (fabric.links if fabric else None) or () if {link.first, link.second} <= ids]
    counts = [link.nvlinks for link in links if link.nvlinks is not None]
    pairs = len(part) * (len(part) - 1) // 2
    return counts if len(counts) == pairs else None


def peer_ceiling(
    model: GpuRow | None, gpu: Gpu, gpus: Sequence[Gpu], fabric: Fabric | None, measured: Measurement
) -> Ceiling | str:
    """What NVLink carries from a GPU to another one: by the links of this pair, not by all that the model has."""
    if "NVLink" not in (measured.variant or ""):
        return "copies between GPUs over PCI Express have no listed ceiling: compare them with a baseline"
    ways = 2 if "both" in (measured.variant or "") else 1
    sheet = model.nvlink if model else None
    pair = [gpu, *(other for other in gpus if other.uuid == measured.peer and other.uuid != gpu.uuid)]
    if on_switch(pair):
        count = min(sum(bool(link.active) for link in each.nvlinks or ()) for each in pair)
    elif known := nvlinks_between(pair, fabric):
        (count,) = known
    else:
        ends = {other.pci_bus_id for other in pair[1:]} - {None}
        count = sum(bool(link.active) and link.remote_pci_bus_id in ends for link in gpu.nvlinks or ())
    if not count:
        return "the number of NVLinks between the GPUs is not known: compare it with a baseline"
    named = f"{count} link{'s' if count > 1 else ''}"
    if model is not None and sheet is not None:
        return ways * count * sheet.bandwidth / sheet.links, f"NVLink {sheet.version}, {named}", (model,)
    rates = [link.bandwidth for link in gpu.nvlinks or () if link.active and link.bandwidth]
    if not rates:
        return "the NVLink bandwidth of this GPU is not listed"
    return ways * count * min(rates), f"NVLink, {named}, by NVML", ()
