"""Values as nvidia-smi writes them (``143771 MiB``, ``92.82 W``, ``N/A``), and the fields of one ``<gpu>`` element."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from envcheck.importers.formats.nvidia_smi.tree import Element
from envcheck.importers.paste import SOURCE, printable
from envcheck.model.snapshot import ApiResult

_REFUSALS = frozenset({"n/a", "[n/a]", "not supported", "[not supported]", "not available", "[not available]"})
"""What nvidia-smi prints for NVML's NOT_SUPPORTED."""

_SILENT = frozenset(
    {
        "", "no data", "requested functionality has been deprecated", "[requested functionality has been deprecated]",
        "insufficient permissions", "[insufficient permissions]",
    }
)  # fmt: skip
"""Texts that are neither a value nor "not supported"."""

_ERRORS = {
    "unknown error": (999, "NVML_ERROR_UNKNOWN"),
    "gpu is lost": (15, "NVML_ERROR_GPU_IS_LOST"),
    "gpu requires reset": (16, "NVML_ERROR_RESET_REQUIRED"),
    "timeout": (10, "NVML_ERROR_TIMEOUT"),
    "irq issue": (11, "NVML_ERROR_IRQ_ISSUE"),
}
"""What nvidia-smi prints for errors of an NVML call, and their status in NVML."""

_UNITS = {
    "": 1.0, "B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "MB": 2.0**20, "W": 1.0, "mW": 1e-3,
    "Hz": 1.0, "MHz": 1e6, "GHz": 1e9, "C": 1.0, "%": 1e-2, "x": 1.0, "us": 1e-6, "ms": 1e-3, "s": 1.0,
}  # fmt: skip
"""Factor to the base unit. Old releases of nvidia-smi wrote MB for MiB."""

_ON, _OFF = ("enabled", "yes", "active", "on"), ("disabled", "no", "not active", "off")


def is_refusal(text: str) -> bool:
    """Whether the text says that the GPU or driver does not support this."""
    return text.lower() in _REFUSALS


def error_in(text: str) -> tuple[int, str] | None:
    """NVML's status number and name, if the text is an error."""
    lowered = text.lower().strip("[]").removesuffix(".").removeprefix("err! ")
    return _ERRORS.get(lowered)


def word(text: str) -> str | None:
    """The text made printable, or None if it is no value."""
    shown = printable(text)[:200]
    return None if is_refusal(shown) or shown.lower() in _SILENT or error_in(shown) else shown


def quantity(text: str) -> float | None:
    """A number in its base unit."""
    found = re.match(r"(-?[0-9]{1,15}(?:\.[0-9]{1,6})?) ?([A-Za-z%]{0,4})$", printable(text))
    factor = _UNITS.get(found[2]) if found else None
    return float(found[1]) * factor if found and factor is not None else None


def whole(text: str) -> int | None:
    """A count or a number of bytes; never negative."""
    found = quantity(text)
    return round(found) if found is not None and found >= 0 else None


def flag(text: str) -> bool | None:
    """True for Enabled, Yes, Active and On; False for their opposites."""
    word = text.strip().lower()
    return True if word in _ON else False if word in _OFF else None


def bus_id(text: str) -> str | None:
    """A PCI bus id in the canonical form, ``0000:1b:00.0``."""
    found = re.fullmatch(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])", text.strip())
    if found is None:
        return None
    return f"{int(found[1] or '0', 16):04x}:{found[2]}:{found[3]}.{found[4]}".lower()


def device_id(text: str) -> str | None:
    """Convert ``233510DE`` or ``0x233510DE`` (device before vendor) to ``10de:2335``."""
    found = re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{4})([0-9A-Fa-f]{4})", text.strip())
    return f"{found[2]}:{found[1]}".lower() if found else None


T = TypeVar("T")

MOST_GPUS = 1024  # Most GPUs that are read; no machine has more


class Fields:
    """Reads the fields of one GPU, and records which are not supported and which calls failed."""

    def __init__(self, element: Element) -> None:
        self._element = element
        self._met: set[str] = set()
        self._refused: set[str] = set()
        self._read: set[str] = set()
        self.errors: dict[str, ApiResult] = {}

    def value(self, field: str, decode: Callable[[str], T | None], *paths: str) -> T | None:
        """The value at the first of ``paths`` that has one; ``field`` is its name in the Snapshot."""
        for path in paths:
            element = self._element.at(path)
            if element is None or element.children:
                continue
            text = element.text
            self._met.add(field)
            if is_refusal(text):
                self._refused.add(field)
            if error := error_in(text):
                code, name = error
                shown = " ".join(text.split())[:100]
                result = ApiResult(source=SOURCE, call=f"nvidia-smi {path}", code=code, name=name, text=shown)
                self.errors.setdefault(name, result)
            found = decode(text)
            if found is not None:
                self._read.add(field)
                return found
        return None

    def group(self, field: str, path: str) -> Element | None:
        """An element with children; a plain "N/A" means that the whole record ``field`` is not supported."""
        element = self._element.at(path)
        if element is not None and not element.children and is_refusal(element.text):
            self._refused.add(field)
            return None
        return element

    def not_supported(self) -> tuple[str, ...]:
        """The unsupported fields, or the record where all of its fields are unsupported."""
        refused = self._refused - self._read
        records = {field.partition(".")[0] for field in refused if "." in field}
        whole_records = {
            record
            for record in records
            if all(field in refused for field in self._met if field.startswith(f"{record}."))
        }
        single = {field for field in refused if field.partition(".")[0] not in whole_records}
        return tuple(sorted(single | whole_records))


def among(*words: str, others: Mapping[str, str] | None = None) -> Callable[[str], str | None]:
    """Decode one of some words; the Snapshot has an underline for a blank, and ``others`` by another name."""
    names = {word: word.replace(" ", "_") for word in words} | dict(others or {})
    return lambda text: names.get(text.strip().lower())


def label(index: int) -> str:
    """The label of a GPU that is known only by nvidia-smi's index."""
    return f"pasted-{index}"
