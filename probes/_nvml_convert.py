"""NVML's values as the Snapshot wants them: base units, names for numbers, None for what NVML leaves open."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ._bus_id import canonical_bus_id
from ._nvml_ask import constant_name

Convert = Callable[[ModuleType, Any], Any]

_NOT_AVAILABLE = frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
"""NVML's marks for "no value" in an unsigned number of 32 and of 64 bits."""


def text(_nvml: ModuleType, value: Any) -> str | None:
    """Text, which some releases of the binding return as bytes; None for an empty one."""
    decoded = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return decoded.strip("\0 ") or None


def count(_nvml: ModuleType, value: Any) -> int | None:
    return None if value is None or value in _NOT_AVAILABLE else int(value)


def flag(nvml: ModuleType, value: Any) -> bool | None:
    known = count(nvml, value)
    return None if known is None else bool(known)


def scaled(factor: float) -> Convert:
    """Multiply by ``factor``: milliwatts to watts, megahertz to hertz."""

    def convert(nvml: ModuleType, value: Any) -> float | None:
        known = count(nvml, value)
        return None if known is None else known * factor

    return convert


def divided(divisor: float) -> Convert:
    """Divide by ``divisor``, which keeps decimal fractions exact where a factor would not."""

    def convert(nvml: ModuleType, value: Any) -> float | None:
        known = count(nvml, value)
        return None if known is None else known / divisor

    return convert


def degrees(_nvml: ModuleType, value: Any) -> float | None:
    return None if value in _NOT_AVAILABLE else float(value)


def choice(names: dict[int, str], *, closed: bool = False) -> Convert:
    """The name of a number; an unknown one stays a number as text, or is None where the set of names is ``closed``."""

    def convert(_nvml: ModuleType, value: Any) -> str | None:
        return names.get(value, None if closed else str(value))

    return convert


def constant(prefix: str, names: dict[int, str] | None = None) -> Convert:
    """The lower-case name of the binding's constant with this value (``names`` go first), or the number as text."""

    def convert(nvml: ModuleType, value: Any) -> str | None:
        name = (names or {}).get(value) or (constant_name(nvml, prefix, value) or str(value)).lower()
        return None if name == "unknown" or value in _NOT_AVAILABLE else name

    return convert


def bus_id(nvml: ModuleType, value: Any) -> str | None:
    return canonical_bus_id(text(nvml, value) or "")


def pci_id(_nvml: ModuleType, value: Any) -> str | None:
    """NVML's ``0x233510DE`` (device, then vendor) as ``10de:2335``; None for 0."""
    return f"{value & 0xFFFF:04x}:{value >> 16:04x}" if value else None


def capability(_nvml: ModuleType, value: Any) -> str:
    return "{}.{}".format(*value)


def performance_state(_nvml: ModuleType, value: Any) -> str | None:
    return f"P{value}" if value < 16 else None
