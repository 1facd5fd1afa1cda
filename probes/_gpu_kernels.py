"""The micro-kernels of ``kernels/``: compiled for the GPU at hand, loaded, and launched."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

from ._gpu_call import Unavailable, call
from ._gpu_device import Device
from ._gpu_nvrtc import CompileError, Nvrtc

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels")
PREPARED = os.path.join(FOLDER, "prepared")
"""Cubins and PTX made when the wheel was built: ``NAME.sm_90.cubin``, ``NAME.compute_75.ptx``."""
SPECIFIC_FROM = 9
"""From this major on there are instructions that only the ``a`` variant of an architecture has."""

Argument = tuple[int | float, Any]
"""A value and its ctypes type."""


def pointer(address: int) -> Argument:
    return address, ctypes.c_void_p


def number(value: int) -> Argument:
    """A 64-bit integer."""
    return value, ctypes.c_longlong


class Kernel:
    """A loaded function."""

    def __init__(self, device: Device, handle: Any) -> None:
        self._device, self._handle = device, handle

    def launch(self, grid: int | tuple[int, int], block: int, *arguments: Argument, shared: int = 0) -> None:
        """Queue it on the device's stream with one-dimensional blocks and ``shared`` bytes of dynamic shared memory."""
        columns, rows = grid if isinstance(grid, tuple) else (grid, 1)
        values = tuple(value for value, _ in arguments)
        types = tuple(kind for _, kind in arguments)
        stream = self._device.stream
        call("cuLaunchKernel", self._handle, columns, rows, 1, block, 1, 1, shared, stream, (values, types), 0)

    def blocks_per_sm(self, block: int, shared: int = 0) -> int:
        """How many of its blocks one multiprocessor holds at a time."""
        return int(call("cuOccupancyMaxActiveBlocksPerMultiprocessor", self._handle, block, shared))


class Compiler:
    """Compiles kernels with the first NVRTC of ``paths`` that knows the GPU, else takes what was prepared."""

    def __init__(self, paths: Sequence[str], capability: tuple[int, int]) -> None:
        self.capability = capability
        self._reasons: list[str] = []
        self._nvrtc = self._first(paths)

    @property
    def words(self) -> str:
        """What compiles: ``NVRTC 13.0``, or ``prepared cubin``."""
        return f"NVRTC {self._nvrtc.version}" if self._nvrtc else "prepared code"

    def module(self, name: str, options: Sequence[str] = ()) -> bytes:
        """Code of ``kernels/NAME.cu`` for this GPU; raise Unavailable where there is neither compiler nor code."""
        if self._nvrtc is None:
            return self._prepared(name)
        with open(os.path.join(FOLDER, f"{name}.cu"), encoding="utf-8") as file:
            source = file.read()
        try:
            return self._nvrtc.cubin(source, f"{name}.cu", self._architecture(), ("--std=c++17", *options))
        except CompileError as error:
            raise Unavailable(f"{self.words} does not compile {name}.cu: {str(error)[:300]}") from error

    def _architecture(self) -> str:
        major, minor = self.capability
        return f"sm_{major}{minor}{'a' if major >= SPECIFIC_FROM else ''}"

    def _first(self, paths: Sequence[str]) -> Nvrtc | None:
        wanted = self.capability[0] * 10 + self.capability[1]
        for path in paths:
            try:
                nvrtc = Nvrtc(path)
                known = nvrtc.architectures()
            except Unavailable as error:
                self._reasons.append(str(error))
                continue
            if not known or wanted in known:
                return nvrtc
            self._reasons.append(f"NVRTC {nvrtc.version} ({path}) does not compile for sm_{wanted}")
        return None

    def _prepared(self, name: str) -> bytes:
        """An exact cubin, else the newest PTX that is not newer than the GPU."""
        major, minor = self.capability
        for variant in (f"sm_{major}{minor}a.cubin", f"sm_{major}{minor}.cubin"):
            found = _file(f"{name}.{variant}")
            if found:
                return found
        older = sorted((ptx for ptx in _ptx_of(name) if ptx <= major * 10 + minor), reverse=True)
        if older:
            return _file(f"{name}.compute_{older[0]}.ptx") + b"\0"
        why = "; ".join(self._reasons) or "no NVRTC was found"
        raise Unavailable(f"no code of {name} for sm_{major}{minor}: {why}, and none was prepared")


def _file(name: str) -> bytes:
    try:
        with open(os.path.join(PREPARED, name), "rb") as file:
            return file.read()
    except OSError:
        return b""


def _ptx_of(name: str) -> list[int]:
    if not os.path.isdir(PREPARED):
        return []
    start, end = f"{name}.compute_", ".ptx"
    names = [entry for entry in os.listdir(PREPARED) if entry.startswith(start) and entry.endswith(end)]
    return [int(entry[len(start) : -len(end)]) for entry in names]


class Module:
    """Loaded code."""

    def __init__(self, device: Device, code: bytes) -> None:
        self._device = device
        self._module = call("cuModuleLoadData", code)
        self._kernels: dict[str, Kernel] = {}

    def kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = Kernel(self._device, call("cuModuleGetFunction", self._module, name.encode()))
        return self._kernels[name]
