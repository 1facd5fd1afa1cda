"""Calls of NVML: results, unsupported facts, failures, and values in base units."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..common.record import canonical_bus_id

if TYPE_CHECKING:
    from typing import TypeAlias

Call: TypeAlias = "tuple[Any, ...]"
"""Name of a function of the binding and its arguments after the handle; a text among them names a constant."""

SUCCESS = 0
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NOT_FOUND = 6
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26

UNKNOWN_HERE = frozenset({FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH})
"""Statuses of a driver that is older than the binding; they say nothing about the GPU."""
REFUSED = frozenset({NOT_SUPPORTED, DEPRECATED})  # Statuses for what the GPU or its driver does not support

_VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""Members of ``nvmlValue_t`` in the order of ``nvmlValueType_t``."""
UNSIGNED_LONG_LONG = 3


def constant_name(nvml: ModuleType, prefix: str, value: int) -> str | None:
    """The rest of the name of the binding's first constant that starts with ``prefix`` and has the value.

    ``…_COUNT`` is an end marker whose value the next release reuses.
    """
    for name, number in vars(nvml).items():
        if name.startswith(prefix) and not name.endswith("_COUNT") and number == value:
            return name[len(prefix) :]
    return None


def api_result(nvml: ModuleType, call: str, code: int, **more: Any) -> dict[str, Any]:
    """An ``ApiResult`` of NVML, with the name and text that the binding has for the code."""
    name = "SUCCESS" if code == SUCCESS else constant_name(nvml, "NVML_ERROR_", code) or ""
    result = {"source": "nvml", "call": call, "code": code, "name": name, "text": "", **more}
    if code != SUCCESS and not result["text"]:
        with suppress(Exception):
            result["text"] = str(nvml.NVMLError(code))
    return result


def field_value(answer: Any) -> int | float | None:
    """The value of one of NVML's fields as its type says; None where the GPU refuses it."""
    if answer.nvmlReturn == SUCCESS and answer.valueType < len(_VALUE_MEMBERS):
        return getattr(answer.value, _VALUE_MEMBERS[answer.valueType])  # type: ignore[no-any-return]
    return None


def attempt(nvml: ModuleType, call: Call) -> tuple[int, Any]:
    """NVML's status and, with status 0, what the call returned.

    A function or constant that the binding lacks reads as FUNCTION_NOT_FOUND, like one that the driver lacks. Other
    exceptions of the binding (such as text that it cannot decode) are reported on stderr and treated the same way.
    """
    name, *arguments = call
    try:
        function = getattr(nvml, name)
        arguments = [getattr(nvml, item) if isinstance(item, str) else item for item in arguments]
    except AttributeError:
        return FUNCTION_NOT_FOUND, None
    try:
        return SUCCESS, function(*arguments)
    except nvml.NVMLError as error:
        return int(error.value), None
    except Exception as error:
        if type(error).__name__ != "NVMLLibraryMismatchError":
            sys.stderr.write(f"{name}: {type(error).__name__}: {error}\n")
        return FUNCTION_NOT_FOUND, None


class NvmlDevice:
    """A handle and the results of its calls.

    A lost device is not queried again: every call would wait for missing hardware.
    """

    def __init__(self, nvml: ModuleType, handle: Any) -> None:
        self.nvml = nvml
        self.handle = handle
        self.lost = False
        self.asked: list[str] = []
        self.refused: list[str] = []
        self.failures: dict[tuple[str, int], dict[str, Any]] = {}

    def attempt(self, call: Call) -> tuple[int, Any]:
        """As ``attempt`` of this module, with the handle as first argument."""
        if self.lost:
            return GPU_IS_LOST, None
        name, *arguments = call
        code, value = attempt(self.nvml, (name, self.handle, *arguments))
        self.lost = code == GPU_IS_LOST
        if self.lost:
            self.note("", name, code)
        return code, value

    def ask(self, field: str, *calls: Call) -> Any:
        """The result of the first of ``calls`` that binding and driver both have, or None.

        ``field`` is the dotted path (several, separated by blanks) that is unsupported if the GPU refuses.
        """
        self.asked += field.split()
        for call in calls:
            code, value = self.attempt(call)
            if code == SUCCESS:
                return value
            if code not in UNKNOWN_HERE:
                self.note(field, call[0], code)
                return None
        return None

    def ask_field(self, field: str, number: int, scope: int = 0) -> int | float | None:
        """The value of an NVML field (``NVML_FI_…``) as NVML types it, or None."""
        value = self.ask_typed_field(field, number, scope)
        return None if value is None else value[1]

    def ask_typed_field(self, field: str, number: int, scope: int = 0) -> tuple[int, int | float] | None:
        """As ``ask_field``, with the ``nvmlValueType_t`` before it."""
        answers = self.ask(field, ("nvmlDeviceGetFieldValues", [(number, scope)]))
        if not answers:
            return None
        answer = answers[0]
        if (value := field_value(answer)) is not None:
            return answer.valueType, value
        # An older driver answers "invalid argument" for a field that it does not know.
        if answer.nvmlReturn not in UNKNOWN_HERE | {SUCCESS, INVALID_ARGUMENT}:
            self.note(field, f"nvmlDeviceGetFieldValues({number})", answer.nvmlReturn)
        return None

    def note(self, field: str, call: str, code: int) -> None:
        """Record that a call about ``field`` failed; for a lost device, the call that detected it."""
        if code in REFUSED:
            self.refused += field.split()
        elif code != GPU_IS_LOST or all(known != code for _, known in self.failures):
            self.failures.setdefault((call, code), api_result(self.nvml, call, code))

    def not_supported(self, record: dict[str, Any]) -> list[str]:
        """The unsupported fields that ``record`` lacks; a group replaces its fields if all are unsupported."""
        refused = {field for field in self.refused if not _holds(record, field)}
        shown: list[str] = []
        for field in self.asked:
            group = field.partition(".")[0]
            whole = all(other in refused for other in self.asked if other.partition(".")[0] == group)
            name = group if whole else field
            if field in refused and name not in shown:
                shown.append(name)
        return shown


def _holds(record: dict[str, Any], field: str) -> bool:
    value: Any = record
    for name in field.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value is not None


Convert: TypeAlias = "Callable[[ModuleType, Any], Any]"

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


def number(change: Callable[[int], float]) -> Convert:
    """In other units: milliwatts as watts, megahertz as hertz."""

    def convert(nvml: ModuleType, value: Any) -> float | None:
        known = count(nvml, value)
        return None if known is None else change(known)

    return convert


mega = number(lambda value: value * 1e6)
milli = number(lambda value: value / 1000)  # unlike a factor, a divisor keeps decimal fractions exact
percent = number(lambda value: value / 100)


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
