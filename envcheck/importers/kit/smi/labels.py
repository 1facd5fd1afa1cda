"""Labels of ``nvidia-smi -q`` that differ from the element names of its XML.

Most labels convert to element names letter by letter ("FB Memory Usage" is ``fb_memory_usage``); the others are listed
here by their parent element.
"""

from __future__ import annotations

import re

_CLOCKS = {"graphics": "graphics_clock", "sm": "sm_clock", "memory": "mem_clock", "video": "video_clock"}

_ELEMENTS: dict[str, dict[str, str]] = {
    "gpu": {"gpu_uuid": "uuid", "serial_number": "serial", "mig_device": "mig_devices/mig_device"},
    "mig_mode": {"current": "current_mig", "pending": "pending_mig"},
    "ecc_mode": {"current": "current_ecc", "pending": "pending_ecc"},
    "pci": {
        "bus_id": "pci_bus_id",
        "device_id": "pci_device_id",
        "sub_system_id": "pci_sub_system_id",
        "gpu_link_info": "pci_gpu_link_info",
        "replays_since_reset": "replay_counter",
    },
    "pci_gpu_link_info": {"pcie_generation": "pcie_gen", "link_width": "link_widths"},
    "pcie_gen": {
        "max": "max_link_gen",
        "current": "current_link_gen",
        "device_max": "max_device_link_gen",
        "device_current": "device_current_link_gen",
        "host_max": "max_host_link_gen",
    },
    "link_widths": {"max": "max_link_width", "current": "current_link_width"},
    "utilization": {"gpu": "gpu_util", "memory": "memory_util"},
    "volatile": {"sram_uncorrectable_sec_ded": "sram_uncorrectable_secded"},
    "aggregate": {"sram_uncorrectable_sec_ded": "sram_uncorrectable_secded"},
    "retired_pages": {
        "single_bit_ecc": "multiple_single_bit_retirement/retired_count",
        "double_bit_ecc": "double_bit_retirement/retired_count",
        "pending_page_blacklist": "pending_blacklist",
        "pending": "pending_retirement",
    },
    "remapped_rows": {
        "correctable_error": "remapped_row_corr",
        "uncorrectable_error": "remapped_row_unc",
        "pending": "remapped_row_pending",
        "remapping_failure_occurred": "remapped_row_failure",
    },
    "temperature": {
        "gpu_current_temp": "gpu_temp",
        "gpu_shutdown_temp": "gpu_temp_max_threshold",
        "gpu_slowdown_temp": "gpu_temp_slow_threshold",
        "gpu_max_operating_temp": "gpu_temp_max_gpu_threshold",
        "memory_current_temp": "memory_temp",
    },
    "gpu_power_readings": {"instantaneous_power_draw": "instant_power_draw"},
    "clocks": _CLOCKS,
    "max_clocks": _CLOCKS,
    "applications_clocks": _CLOCKS,
    "default_applications_clocks": _CLOCKS,
    "processes": {"process_id": "process_info/pid"},
    "process_info": {"used_gpu_memory": "used_memory"},
}

_REASONS = {"idle": "gpu_idle", "display_clock_setting": "display_clocks_setting"}
_COUNTERS = {
    "sw_power_capping": "sw_power_cap",
    "sw_thermal_slowdown": "sw_therm_slowdown",
    "hw_thermal_slowdown": "hw_therm_slowdown",
    "hw_power_braking": "hw_power_brake",
}
_PREFIXED: dict[str, tuple[str, dict[str, str]]] = {
    "clocks_event_reasons": ("clocks_event_reason_", _REASONS),
    "clocks_throttle_reasons": ("clocks_throttle_reason_", _REASONS),
    "clocks_event_reasons_counters": ("clocks_event_reasons_counters_", _COUNTERS),
}


def element_path(parent: str, label: str) -> str:
    """The path below ``parent`` of the XML element that the text labels ``label``."""
    name = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    if parent in _PREFIXED:
        prefix, others = _PREFIXED[parent]
        return f"{prefix}{others.get(name, name)}"
    return _ELEMENTS.get(parent, {}).get(name, name)
