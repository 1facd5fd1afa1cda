"""A libnvidia-ml in Python, below the real binding.

The binding ``pynvml`` calls attributes of its ``nvmlLib`` as C functions. ``FakeLibrary`` stands there, so that the
binding's own structures, constants and exceptions are what a probe meets: only the driver is made up.

What a GPU answers is a mapping from the C function's name to

* a value, a tuple of values or a dictionary of structure members, which go to the output arguments in order,
* ``Status(code)``, which the function returns instead,
* ``ByInput({inputs: any of these})``, chosen by the numbers that the call passes in (one number, or a tuple), or
* a function of (inputs, outputs) that fills the outputs itself and returns the status.

A function that a GPU has no answer for is "not supported".
"""

import ctypes
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from probes import nvml

NOT_SUPPORTED = 3
GPU_IS_LOST = 15

Answers = Mapping[str, Any]


@dataclass(frozen=True)
class Status:
    code: int


@dataclass(frozen=True)
class ByInput:
    answers: Mapping[Any, Any]
    otherwise: Any = Status(2)


@dataclass
class FakeLibrary:
    """``gpus`` in NVML's order; one that gives no handle is a Status. ``handles`` adds others, as MIG instances."""

    gpus: list[Answers | Status] = field(default_factory=list)
    system: Answers = field(default_factory=dict)
    handles: Mapping[int, Answers] = field(default_factory=dict)
    lacks: frozenset[str] = frozenset()  # Functions that this release of the driver does not export
    calls: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml") or name in self.lacks:
            raise AttributeError(name)

        def function(*arguments: Any) -> Any:
            self.calls.append(name)
            return self._call(name, arguments)

        return function

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        if name == "nvmlErrorString":
            return f"status {arguments[0]}".encode()
        inputs, outputs = _sorted(arguments)
        answer = self._answer(name, inputs)
        if isinstance(answer, ByInput):
            answer = answer.answers.get(inputs[0] if len(inputs) == 1 else tuple(inputs), answer.otherwise)
        if isinstance(answer, Status):
            return answer.code
        if callable(answer):
            return answer(inputs, outputs)
        _write(answer, outputs)
        return 0

    def _answer(self, name: str, inputs: list[Any]) -> Any:
        if name == "nvmlDeviceGetCount_v2" and name not in self.system:
            return len(self.gpus)
        if name == "nvmlDeviceGetHandleByIndex_v2":
            index = inputs.pop()
            gpu = self.gpus[index]
            return gpu if isinstance(gpu, Status) else Handle(index + 1)
        if not (inputs and isinstance(inputs[0], Handle)):
            return self.system.get(name, Status(0 if name == "nvmlInitWithFlags" else NOT_SUPPORTED))
        number = inputs.pop(0).number
        gpu = self.handles[number] if number in self.handles else self.gpus[number - 1]
        inputs[:] = [item.number if isinstance(item, Handle) else item for item in inputs]
        assert not isinstance(gpu, Status)
        return gpu.get(name, Status(NOT_SUPPORTED))


@dataclass(frozen=True)
class Handle:
    """A device handle: the pointer's value."""

    number: int


def _sorted(arguments: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The arguments that go into a C function, as numbers and handles, and those that it writes to."""
    inputs: list[Any] = []
    outputs: list[Any] = []
    for argument in arguments:
        if hasattr(argument, "_obj"):
            outputs.append(argument._obj)
        elif isinstance(argument, ctypes.Array):
            outputs.append(argument)
        elif isinstance(argument, ctypes._Pointer):
            inputs.append(Handle(ctypes.cast(argument, ctypes.c_void_p).value or 0))
        elif isinstance(argument, int):
            inputs.append(argument)
        elif isinstance(argument, ctypes._SimpleCData):
            inputs.append(argument.value)
        elif isinstance(argument, ctypes.Structure):
            # A structure by value is what a binding passes by mistake; a real library would read a pointer there.
            raise AssertionError(f"structure by value: {argument}")
    if outputs and isinstance(outputs[0], ctypes.Array) and outputs[0]._type_ is ctypes.c_char:
        inputs = [item for item in inputs if not isinstance(item, int)]
    return inputs, outputs


def _write(answer: Any, outputs: list[Any]) -> None:
    if isinstance(answer, Handle):
        ctypes.cast(ctypes.byref(outputs[0]), ctypes.POINTER(ctypes.c_void_p))[0] = answer.number
        return
    values = answer if isinstance(answer, tuple) else (answer,)
    assert len(values) == len(outputs), (answer, outputs)
    for value, output in zip(values, outputs, strict=True):
        if isinstance(value, dict):
            for member, part in value.items():
                if hasattr(output, member):
                    setattr(output, member, part)
        elif isinstance(value, str):
            output.value = value.encode()
        else:
            output.value = value


@dataclass(frozen=True)
class Typed:
    """The value of a numbered field, with its ``nvmlValueType_t``: 1 is a 32-bit, 3 a 64-bit unsigned number."""

    kind: int
    value: float


def numbered(values: Mapping[Any, Typed | Status]) -> Callable[[Any, Any], int]:
    """``nvmlDeviceGetFieldValues``; a key is the field's number, or its number and scope. Unknown ones are invalid."""

    def answer(_inputs: Any, outputs: Any) -> int:
        for entry in outputs[0]:
            found = values.get((entry.fieldId, entry.scopeId), values.get(entry.fieldId, Status(2)))
            if isinstance(found, Status):
                entry.nvmlReturn = found.code
                continue
            entry.valueType = found.kind
            setattr(entry.value, {0: "dVal", 1: "uiVal", 3: "ullVal", 5: "siVal"}[found.kind], found.value)
        return 0

    return answer


def listed(items: list[Mapping[str, int]]) -> Callable[[Any, Any], int]:
    """A call for a list of structures, which is asked for its length first."""

    def answer(_inputs: Any, outputs: Any) -> int:
        count, *array = outputs
        if items and not array:
            count.value = len(items)
            return 7
        count.value = len(items)
        for target, item in zip(array[0] if array else [], items, strict=False):
            for member, value in item.items():
                setattr(target, member, value)
        return 0

    return answer


def addresses(pages: list[int]) -> Callable[[Any, Any], int]:
    """``nvmlDeviceGetRetiredPages``."""

    def answer(_inputs: Any, outputs: Any) -> int:
        count, *array = outputs
        count.value = len(pages)
        for place, page in enumerate(pages if array else []):
            array[0][place] = page
        return 0

    return answer


def fabric(status: int, state: int, health: int) -> Callable[[Any, Any], int]:
    """``nvmlDeviceGetGpuFabricInfoV``, which looks at the version and the size that the caller states."""

    def answer(_inputs: Any, outputs: Any) -> int:
        raw = (ctypes.c_uint32 * 9).from_address(ctypes.addressof(outputs[0]))
        if raw[0] != 36 | 2 << 24:
            return 25
        raw[5], raw[6], raw[7], raw[8] = status, 0, state, health
        return 0

    return answer


def binding(library: object, place: str | None = None) -> ModuleType:
    """A fresh copy of ``pynvml`` (the installed one, or the file at ``place``) that calls ``library``."""
    if place is None:
        found = PathFinder.find_spec("pynvml")
        assert found
        place = found.origin
    assert place
    assert Path(place).name == "pynvml.py"
    spec = importlib.util.spec_from_file_location("pynvml", place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynvml", module)  # it looks itself up while it is imported
        spec.loader.exec_module(module)
    module.nvmlLib = library  # type: ignore[attr-defined]
    return module


def install(patch: pytest.MonkeyPatch, module: ModuleType) -> None:
    """Make ``module`` the binding that the probe imports, over a library that the loader finds."""
    patch.setitem(sys.modules, "pynvml", module)
    patch.setattr(nvml, "why_not_loadable", lambda soname: None)
