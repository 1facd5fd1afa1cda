"""The full report of nvidia-smi: the XML of ``-q -x`` and the text of ``-q``, whole or in sections, as one small tree.

Only the root element of XML goes to the parser, never what stands before it: without a document type declaration there
are no entities to expand and nothing outside the text to fetch. Depth and number of elements are bounded. What was read
before a document breaks off is kept. The text has the same contents as labels, indented by their depth: most convert to
element names letter by letter ("FB Memory Usage" is ``fb_memory_usage``), the others are listed here by their parent.
"""

from __future__ import annotations

import re

import msgspec

_DEEPEST_ELEMENT = 32
_MOST_ELEMENTS = 200_000


class Element(msgspec.Struct):
    """An element: its text, attributes and children, and whether its end tag was found."""

    name: str
    attributes: dict[str, str] = {}
    children: list[Element] = []
    pieces: list[str] = []
    whole: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces).strip()

    def at(self, path: str) -> Element | None:
        """The first descendant at ``a/b/c``."""
        here: Element | None = self
        for step in path.split("/"):
            here = next((child for child in here.children if child.name == step), None) if here else None
        return here

    def all(self, name: str) -> list[Element]:
        """The children with this name."""
        return [child for child in self.children if child.name == name]


class _Refused(Exception):  # noqa: N818
    """The document is larger or deeper than any tool's output."""


class _XmlBuilder:
    def __init__(self) -> None:
        self.root: Element | None = None
        self._open: list[Element] = []
        self._count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if self._count > _MOST_ELEMENTS or len(self._open) >= _DEEPEST_ELEMENT:
            raise _Refused("it has more elements, or deeper ones, than nvidia-smi writes")
        element = Element(name, dict(attributes))
        if self._open:
            self._open[-1].children.append(element)
        elif self.root is None:
            self.root = element
        self._open.append(element)

    def end(self, _name: str) -> None:
        self._open.pop().whole = True

    def data(self, text: str) -> None:
        if self._open:
            self._open[-1].pieces.append(text)


def parse(text: str, root: str) -> tuple[Element | None, str]:
    """The element ``root`` of ``text`` as far as it can be read, and its problem (empty: none)."""
    start = text.find(f"<{root}")
    if start < 0:
        return None, f"there is no <{root}> element"
    end = text.find(f"</{root}>", start)
    document = text[start:] if end < 0 else text[start : end + len(root) + 3]
    from xml.parsers import expat  # noqa: PLC0415  # nosec - see above; few texts have a document

    builder = _XmlBuilder()
    parser = expat.ParserCreate()
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(document, True)
    except expat.ExpatError as error:
        line = text.count("\n", 0, start) + error.lineno
        cut = "is cut off" if end < 0 else f"is malformed ({expat.ErrorString(error.code)})"
        return builder.root, f"the document {cut} at line {line}"
    except _Refused as reason:
        return None, f"the document was refused: {reason}"
    return builder.root, ""


_CLOCKS = {"graphics": "graphics_clock", "sm": "sm_clock", "memory": "mem_clock", "video": "video_clock"}

_ELEMENTS: dict[str, dict[str, str]] = {
    "gpu": {
        "gpu_uuid": "uuid", "serial_number": "serial", "mig_device": "mig_devices/mig_device",
        "gpu_link_info": "pci/pci_gpu_link_info",  # quoted without the section above it
    },
    "mig_mode": {"current": "current_mig", "pending": "pending_mig"},
    "ecc_mode": {"current": "current_ecc", "pending": "pending_ecc"},
    "pci": {
        "bus_id": "pci_bus_id", "device_id": "pci_device_id", "sub_system_id": "pci_sub_system_id",
        "gpu_link_info": "pci_gpu_link_info", "replays_since_reset": "replay_counter",
    },
    "pci_gpu_link_info": {"pcie_generation": "pcie_gen", "link_width": "link_widths"},
    "pcie_gen": {
        "max": "max_link_gen", "current": "current_link_gen", "device_max": "max_device_link_gen",
        "device_current": "device_current_link_gen", "host_max": "max_host_link_gen",
    },
    "link_widths": {"max": "max_link_width", "current": "current_link_width"},
    "utilization": {"gpu": "gpu_util", "memory": "memory_util"},
    "volatile": {"sram_uncorrectable_sec_ded": "sram_uncorrectable_secded"},
    "aggregate": {"sram_uncorrectable_sec_ded": "sram_uncorrectable_secded"},
    "retired_pages": {
        "single_bit_ecc": "multiple_single_bit_retirement/retired_count",
        "double_bit_ecc": "double_bit_retirement/retired_count", "pending_page_blacklist": "pending_blacklist",
        "pending": "pending_retirement",
    },
    "remapped_rows": {
        "correctable_error": "remapped_row_corr", "uncorrectable_error": "remapped_row_unc",
        "pending": "remapped_row_pending", "remapping_failure_occurred": "remapped_row_failure",
    },
    "temperature": {
        "gpu_current_temp": "gpu_temp", "gpu_shutdown_temp": "gpu_temp_max_threshold",
        "gpu_slowdown_temp": "gpu_temp_slow_threshold", "gpu_max_operating_temp": "gpu_temp_max_gpu_threshold",
        "memory_current_temp": "memory_temp",
    },
    "gpu_power_readings": {"instantaneous_power_draw": "instant_power_draw"},
    "clocks": _CLOCKS,
    "max_clocks": _CLOCKS,
    "applications_clocks": _CLOCKS,
    "default_applications_clocks": _CLOCKS,
    "processes": {"process_id": "process_info/pid"},
    "process_info": {"used_gpu_memory": "used_memory"},
}  # fmt: skip


def element_path(parent: str, label: str) -> str:
    """The path below ``parent`` of the XML element that the text labels ``label``."""
    name = re.sub(r"[^a-z0-9]+", "_", label.lower()).strip("_")
    return _ELEMENTS.get(parent, {}).get(name, name)
