"""Compare the probes' facts with what ``nvidia-smi -q -x`` prints of the same machine, line by line.

``differences`` names every fact that is not the same. Texts that nvidia-smi prints for "not there" must be unknown
facts, and its values known ones. What changes by itself is compared with a reading before and one after the probe.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from xml.etree import ElementTree as ET

from envcheck.model.snapshot import Gpu, Snapshot

NOT_THERE = re.compile(
    r"\[?N/A\]?|Not (Supported|Found)|Requested functionality has been deprecated|\[?Unknown Error\]?"
)
MIB = 1 << 20

Convert = Callable[[str], Any]


@dataclass(frozen=True)
class Line:
    """A fact and where nvidia-smi prints it (the first of several places that a release may use)."""

    fact: str
    places: tuple[str, ...]
    convert: Convert = str
    tolerance: float = 0.0


def number(text: str) -> float:
    """``700.00 W``, ``16x``, ``1980 MHz``."""
    return float(re.match(r"-?[0-9.]+", text)[0])  # type: ignore[index]


def times(text: str, *, factor: float) -> float:
    return number(text) * factor


def enabled(text: str) -> bool:
    return {"Enabled": True, "Disabled": False, "Yes": True, "No": False}[text]


def words(text: str) -> str:
    return text.lower().replace(" ", "_").replace("-", "_")


def named(text: str, *, names: dict[str, str]) -> str:
    return names.get(text, text)


def pci_id(text: str) -> str:
    return f"{text[4:]}:{text[:4]}".lower()


def bus_id(text: str) -> str:
    domain, rest = text.lower().split(":", 1)
    return f"{int(domain, 16):04x}:{rest}"


mebibytes = partial(times, factor=MIB)
megahertz = partial(times, factor=1e6)
VIRTUALIZATION = {"None": "none", "Pass-Through": "passthrough", "VGPU": "vgpu", "Host VGPU": "host_vgpu"}
RECOVERY = {
    "None": "none", "Reset": "gpu_reset", "GPU Reset": "gpu_reset", "Reboot": "node_reboot",
    "Node Reboot": "node_reboot", "Drain P2P": "drain_p2p", "Drain and Reset": "drain_and_reset",
}  # fmt: skip

LINES = (
    Line("pci_bus_id", ("pci/pci_bus_id",), bus_id), Line("pci_device_id", ("pci/pci_device_id",), pci_id),
    Line("pci_subsystem_id", ("pci/pci_sub_system_id",), pci_id), Line("uuid", ("uuid",)),
    Line("name", ("product_name",)), Line("brand", ("product_brand",), words),
    Line("architecture", ("product_architecture",), lambda text: text.lower().split()[0]),
    Line("minor", ("minor_number",), int), Line("serial", ("serial",)), Line("vbios", ("vbios_version",)),
    Line("part_number", ("board_part_number",)), Line("gsp_firmware", ("gsp_firmware_version",)),
    Line("compute_mode", ("compute_mode",), words), Line("persistence_mode", ("persistence_mode",), enabled),
    Line("virtualization", ("gpu_virtualization_mode/virtualization_mode",), partial(named, names=VIRTUALIZATION)),
    Line("recovery_action", ("gpu_recovery_action",), partial(named, names=RECOVERY)),
    Line("addressing_mode", ("addressing_mode",), words),
    Line("memory.total", ("fb_memory_usage/total",), mebibytes, MIB),
    Line("memory.reserved", ("fb_memory_usage/reserved",), mebibytes, MIB),
    Line("bar1.total", ("bar1_memory_usage/total",), mebibytes, MIB),
    Line("ecc.enabled", ("ecc_mode/current_ecc",), enabled), Line("ecc.pending", ("ecc_mode/pending_ecc",), enabled),
    Line("ecc.retirement_pending", ("retired_pages/pending_retirement", "retired_pages/pending_blacklist"), enabled),
    Line("row_remap.corrected", ("remapped_rows/remapped_row_corr",), int),
    Line("row_remap.uncorrected", ("remapped_rows/remapped_row_unc",), int),
    Line("row_remap.pending", ("remapped_rows/remapped_row_pending",), enabled),
    Line("row_remap.failed", ("remapped_rows/remapped_row_failure",), enabled),
    Line("mig.enabled", ("mig_mode/current_mig",), enabled), Line("mig.pending", ("mig_mode/pending_mig",), enabled),
    Line("clocks.sm_max", ("max_clocks/sm_clock",), megahertz),
    Line("clocks.memory_max", ("max_clocks/mem_clock",), megahertz),
    Line("clocks.sm_application", ("applications_clocks/graphics_clock",), megahertz),
    Line("clocks.sm_application_default", ("default_applications_clocks/graphics_clock",), megahertz),
    Line("power.limit", ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit"), number),
    Line("power.limit_default", ("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
     number),
    Line("power.limit_min", ("gpu_power_readings/min_power_limit", "power_readings/min_power_limit"), number),
    Line("power.limit_max", ("gpu_power_readings/max_power_limit", "power_readings/max_power_limit"), number),
    Line("pcie.generation_max", ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",), int),
    Line("pcie.generation_device_max", ("pci/pci_gpu_link_info/pcie_gen/max_device_link_gen",), int),
    Line("pcie.width", ("pci/pci_gpu_link_info/link_widths/current_link_width",), number),
    Line("pcie.width_max", ("pci/pci_gpu_link_info/link_widths/max_link_width",), number),
)  # fmt: skip


def differences(before: ET.Element, after: ET.Element, snapshot: Snapshot) -> list[str]:
    """One line for every fact of ``snapshot`` that nvidia-smi's readings before and after it do not bear out."""
    return [*_driver(before, snapshot), *_gpus(before, after, snapshot)]


def _driver(smi: ET.Element, snapshot: Snapshot) -> Iterator[str]:
    assert snapshot.driver
    for fact, place in (("release", "driver_version"), ("cuda", "cuda_version")):
        ours, theirs = getattr(snapshot.driver, fact), smi.findtext(place)
        if ours != theirs:
            yield f"driver.{fact}: {ours!r}, nvidia-smi: {theirs!r}"


def _gpus(before: ET.Element, after: ET.Element, snapshot: Snapshot) -> Iterator[str]:
    assert snapshot.gpus
    ours = {gpu.key: gpu for gpu in snapshot.gpus.items}
    theirs, later = ({bus_id(gpu.attrib["id"]): gpu for gpu in smi.findall("gpu")} for smi in (before, after))
    if list(ours) != list(theirs):
        yield f"GPUs: {list(ours)}, nvidia-smi: {list(theirs)}"
    for key in ours.keys() & theirs.keys() & later.keys():
        for line in _gpu(ours[key], theirs[key], later[key]):
            yield f"{key} {line}"


def _gpu(gpu: Gpu, before: ET.Element, after: ET.Element) -> Iterator[str]:
    for line in LINES:
        yield from _line(gpu, before, line)
    for check in (_ecc_errors, _retired_pages, _temperatures, _throttle, _fabric, _mig_devices):
        yield from check(gpu, before, after)
    for path in gpu.not_supported:
        if fact_at(gpu, path) is not None:
            yield f"{path}: known and not supported at once"
    for error in gpu.errors:
        yield f"{error.call}: {error.code} {error.name}"


def fact_at(gpu: Gpu, path: str) -> Any:
    value: Any = gpu
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def printed(smi: ET.Element, *places: str) -> str | None:
    """What nvidia-smi prints at the first of ``places`` that it has; None where that says that nothing is there."""
    text = next((found.strip() for place in places if (found := smi.findtext(place)) is not None), None)
    return None if text is None or NOT_THERE.fullmatch(text) else text


def _line(gpu: Gpu, smi: ET.Element, line: Line) -> Iterator[str]:
    text = printed(smi, *line.places)
    ours, theirs = fact_at(gpu, line.fact), None if text is None else line.convert(text)
    same = ours == theirs if None in (ours, theirs) or not line.tolerance else abs(ours - theirs) <= line.tolerance
    if not same:
        yield f"{line.fact}: {ours!r}, nvidia-smi: {theirs!r} ({text or 'not there'})"


def _summed(smi: ET.Element, place: str, *, uncorrected: bool) -> int | None:
    counts = [
        int(item.text or "")
        for item in smi.findall(f"{place}/*")
        if item.tag.startswith(("sram_", "dram_"))
        and ("uncorrectable" in item.tag) is uncorrected
        and re.fullmatch(r"[0-9]+", item.text or "")
    ]
    return sum(counts) if counts else None


def _ecc_errors(gpu: Gpu, before: ET.Element, after: ET.Element) -> Iterator[str]:
    for period in ("volatile", "aggregate"):
        for kind in ("corrected", "uncorrected"):
            low, high = (
                _summed(smi, f"ecc_errors/{period}", uncorrected=kind == "uncorrected") for smi in (before, after)
            )
            yield from _between(f"ecc.{period}_{kind}", fact_at(gpu, f"ecc.{period}_{kind}"), low, high)


def _between(fact: str, ours: Any, low: Any, high: Any, slack: float = 0.0) -> Iterator[str]:
    if None in (ours, low, high):
        if not ours == low == high:
            yield f"{fact}: {ours!r}, nvidia-smi: {low!r} before and {high!r} after"
    elif not min(low, high) - slack <= ours <= max(low, high) + slack:
        yield f"{fact}: {ours!r}, nvidia-smi: {low!r} before and {high!r} after"


def _retired_pages(gpu: Gpu, before: ET.Element, _after: ET.Element) -> Iterator[str]:
    kinds = ("multiple_single_bit_retirement", "double_bit_retirement")
    counts = [printed(before, f"retired_pages/{kind}/retired_count") for kind in kinds]
    theirs = None if None in counts else sum(int(text) for text in counts if text)
    if fact_at(gpu, "ecc.retired_pages") != theirs:
        yield f"ecc.retired_pages: {fact_at(gpu, 'ecc.retired_pages')!r}, nvidia-smi: {theirs!r}"


THRESHOLDS = {
    "temperature.shutdown": ("gpu_temp_max_threshold", "gpu_temp_max_tlimit_threshold"),
    "temperature.slowdown": ("gpu_temp_slow_threshold", "gpu_temp_slow_tlimit_threshold"),
    "temperature.gpu_max": ("gpu_temp_max_gpu_threshold", "gpu_temp_max_gpu_tlimit_threshold"),
}
DEGREES_BETWEEN_READINGS = 15.0
DEGREES_OF_ROUNDING = 2.0


def _temperatures(gpu: Gpu, before: ET.Element, after: ET.Element) -> Iterator[str]:
    for fact, place in (("temperature.gpu", "gpu_temp"), ("temperature.memory", "memory_temp")):
        low, high = (
            None if text is None else number(text)
            for text in (printed(smi, f"temperature/{place}") for smi in (before, after))
        )
        yield from _between(fact, fact_at(gpu, fact), low, high, DEGREES_BETWEEN_READINGS)
    for fact, (absolute, relative) in THRESHOLDS.items():
        theirs = _threshold(gpu, before, absolute, relative)
        ours = fact_at(gpu, fact)
        refused = ours is None and any(name in ("temperature", fact) for name in gpu.not_supported)
        if theirs is not None and not refused and (ours is None or abs(ours - theirs) > DEGREES_OF_ROUNDING):
            yield f"{fact}: {ours!r}, nvidia-smi: {theirs!r}"


def _threshold(gpu: Gpu, smi: ET.Element, absolute: str, relative: str) -> float | None:
    """A threshold in degrees; newer GPUs print how far it lies from the one of the GPU's normal work.

    What they print as the present distance counts from the hottest part, which need not be the one of ``gpu_temp``.
    """
    text = printed(smi, f"temperature/{absolute}")
    if text is not None:
        return number(text)
    base = fact_at(gpu, "temperature.gpu_max")
    normal, own = (printed(smi, f"temperature/{place}") for place in (THRESHOLDS["temperature.gpu_max"][1], relative))
    if base is None or normal is None or own is None:
        return None
    return float(base) + number(normal) - number(own)


COUNTERS = {
    "sw_power_cap": "sw_power_cap", "sync_boost": "sync_boost", "sw_thermal_slowdown": "sw_therm_slowdown",
    "hw_thermal_slowdown": "hw_therm_slowdown", "hw_power_brake_slowdown": "hw_power_brake",
}  # fmt: skip
SECONDS_OF_ROUNDING = 1e-5


def _throttle(gpu: Gpu, before: ET.Element, after: ET.Element) -> Iterator[str]:
    seconds = fact_at(gpu, "throttle.seconds") or {}
    for name, place in COUNTERS.items():
        texts = [
            printed(smi, f"clocks_event_reasons_counters/clocks_event_reasons_counters_{place}")
            for smi in (before, after)
        ]
        low, high = (None if text is None else number(text) / 1e6 for text in texts)
        if before.find("clocks_event_reasons_counters") is not None:
            yield from _between(f"throttle.seconds {name}", seconds.get(name), low, high, SECONDS_OF_ROUNDING)
    for name in fact_at(gpu, "throttle.reasons") or ():
        if name.startswith("0x"):
            yield f"throttle.reasons: {name} has no name"


def _fabric(gpu: Gpu, before: ET.Element, _after: ET.Element) -> Iterator[str]:
    state, status = (printed(before, f"fabric/{place}") for place in ("state", "status"))
    ours = gpu.fabric.state if gpu.fabric else None
    if (None if ours == "not_supported" else ours) != (None if state is None else words(state)):
        yield f"fabric.state: {ours!r}, nvidia-smi: {state!r}"
    if status is not None and gpu.fabric and (status == "Success") != (gpu.fabric.status == 0):
        yield f"fabric.status: {gpu.fabric.status} {gpu.fabric.status_name}, nvidia-smi: {status!r}"


def _mig_devices(gpu: Gpu, before: ET.Element, _after: ET.Element) -> Iterator[str]:
    devices = before.findall("mig_devices/mig_device")
    ours = (gpu.mig.instances if gpu.mig else None) or ()
    if len(ours) != len(devices):
        yield f"mig.instances: {len(ours)}, nvidia-smi: {len(devices)}"
