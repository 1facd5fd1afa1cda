"""What was true of a GPU during a run: as a cause in words, and as evidence."""

from __future__ import annotations

from envcheck.knowledge.performance.quantities import quantity_of
from envcheck.model.checks import Evidence
from envcheck.model.snapshot import Conditions, Gpu, Measurement, Pcie, RowRemap
from envcheck.rules.facts.measurements import NEAR_IDLE, OFTEN, POWER_CAP, THROTTLES, lowered_limit
from envcheck.rules.gpu.links import TRANSLATED, on_switch

MEMORY = ("device-memory-read", "device-memory-write", "device-memory-copy", "device-memory-triad")
_LINKS = ("host-to-device", "device-to-host", "peer-to-peer")
_FULL = 0.9  # Share of the highest memory clock from which it counts as full
_COUNTED = (
    ("pcie-replays", "pcie", "the PCI Express link sent {} packets again (replays)"),
    ("pcie-errors", "pcie", "the PCI Express link reported {} errors (AER)"),
    ("ecc-uncorrected", "chip", "{} memory errors could not be corrected (ECC)"),
    ("ecc-corrected", "chip", "ECC corrected {} memory errors"),
    ("rows-remapped", "chip", "{} rows of its memory were replaced by spare ones"),
    ("nvlink-errors", "nvlink", "NVLinks reported {} errors"),
)
"""The counters of ``Conditions.rose``, what depends on them, and what it means that they rose."""


def causes(gpu: Gpu, measured: Measurement) -> tuple[str, ...]:
    """What was true during a slow run, as text, in the order in which it is to be looked at."""
    run, pcie, known = measured.conditions or Conditions(), gpu.pcie or Pcie(), quantity_of(measured.name)
    kind: str = "nvlink" if measured.collective else known.ceiling if known else ""
    if kind == "nvlink" and ("PCIe" in (measured.variant or "") or not any(each.active for each in gpu.nvlinks or ())):
        kind = "peers"
    ways = {"pcie": ("pcie",), "nvlink": ("nvlink",), "peers": ("pcie", "peers")}.get(kind, ("chip",))
    down = sum(link.active is False for link in gpu.nvlinks or ()) if on_switch(gpu) else 0
    remap, others = gpu.row_remap or RowRemap(), run.used_by_others or 0.0
    redirected, translated = bool(pcie.redirecting), pcie.iommu in TRANSLATED
    conditions = (
        *((way, name in run.rose, words.format(run.rose.get(name))) for name, way, words in _COUNTED),
        ("nvlink", down, f"{down} of {len(gpu.nvlinks or ())} NVLinks are down"),
        ("peers", redirected, "ACS sends what goes from GPU to GPU up to the root"),
        ("peers", translated and not redirected, "the IOMMU translates the addresses of what goes from GPU to GPU"),
        ("chip", remap.pending, "a row of its memory waits for a reset to be replaced"),
        (ways[0], run.xids, f"the driver reported Xid {', '.join(map(str, run.xids))}"),
        (ways[0], others / 100 >= OFTEN, f"another program used the GPU in {others:.0f}% of the time"),
    )
    return (*held_back(gpu, measured), *(words for way, true, words in conditions if true and way in ways))


def held_back(gpu: Gpu, measured: Measurement) -> tuple[str, ...]:
    """What held clocks and link down during a run, the most certain first."""
    conditions = measured.conditions
    if conditions is None:
        return ()
    found = [words for reason, words in THROTTLES.items() if conditions.throttle.get(reason, 0) >= OFTEN]
    if lowered := lowered_limit(conditions):
        found.append(f"its power limit is {lowered[0]:.0f} W, below the default of {lowered[1]:.0f} W")
    on_link = measured.name in _LINKS  # which copy engines serve, at any clock
    if not on_link and (stuck := near_idle(gpu, conditions)):
        found.append(stuck)
    memory, fastest = conditions.memory_clock, gpu.clocks.memory_max if gpu.clocks else None
    if measured.name in MEMORY and memory and fastest and memory.high < _FULL * fastest:
        found.append(f"the memory clock stayed at {memory.high / 1e6:.0f} of {fastest / 1e6:.0f} MHz")
    if measured.name not in ("host-to-device", "device-to-host") or gpu.pcie is None:
        return tuple(found)
    width, most = conditions.pcie_width, gpu.pcie.width_max
    if width and most and width < most:
        found.append(f"the PCI Express link has {width} of {most} lanes")
    generation, highest = conditions.pcie_generation, gpu.pcie.generation_max
    if generation and highest and generation < highest:
        found.append(f"the PCI Express link stayed at generation {generation} of {highest} under load")
    return tuple(found)


def near_idle(gpu: Gpu, conditions: Conditions) -> str:
    """In words that the clock never left the neighbourhood of idle; empty where it did."""
    clock, highest = conditions.sm_clock, gpu.clocks.sm_max if gpu.clocks else None
    if not clock or not highest or clock.high >= NEAR_IDLE * highest:
        return ""
    capped = " at the power cap" if conditions.throttle.get(POWER_CAP, 0) >= OFTEN else ""
    return f"the SM clock stayed at {clock.high / 1e6:.0f} of {highest / 1e6:.0f} MHz under load{capped}"


def condition_evidence(conditions: Conditions | None) -> tuple[Evidence, ...]:
    if conditions is None:
        return ()
    parts = []
    if conditions.sm_clock:
        parts.append(f"SM clock {conditions.sm_clock.median / 1e6:.0f} MHz")
    if conditions.power:
        parts.append(f"power {conditions.power.high:.0f} W")
    if conditions.power_limit:
        parts.append(f"limit {conditions.power_limit:.0f} W")
    if conditions.temperature:
        parts.append(f"{conditions.temperature.high:.0f} C")
    throttled = [f"{why} in {share:.0%} of samples" for why, share in conditions.throttle.items() if share >= OFTEN]
    rose = [f"{name} +{count}" for name, count in conditions.rose.items()]
    text = ", ".join([*parts, *throttled, *rose])
    return (Evidence("during the run", text, conditions.source or "nvml"),) if text else ()
