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
"""Cubins and PTX made when the wheel was built: ``gemm-KIND1-RESULT1.sm_90.cubin``, ``caches.compute_50.ptx``."""
STANDARD = "--std=c++17"

Argument = tuple[int | float, Any]
"""A value and its ctypes type."""


def pointer(address: int) -> Argument:
    return address, ctypes.c_void_p


def number(value: int) -> Argument:
    """A 64-bit integer."""
    return value, ctypes.c_longlong


_COMPILED: dict[tuple[str, ...], bytes] = {}
"""What this process compiled: the GPUs of a machine are mostly alike."""


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
            return self._prepared(prepared_name(name, options))
        key = (self._nvrtc.path, name, self._architecture(), *options)
        if key not in _COMPILED:
            _COMPILED[key] = self._compiled(self._nvrtc, name, options)
        return _COMPILED[key]

    def _compiled(self, nvrtc: Nvrtc, name: str, options: Sequence[str]) -> bytes:
        with open(os.path.join(FOLDER, f"{name}.cu"), encoding="utf-8") as file:
            source = file.read()
        try:
            return nvrtc.cubin(source, f"{name}.cu", self._architecture(), (STANDARD, *options))
        except CompileError as error:
            raise Unavailable(f"{self.words} does not compile {name}.cu: {str(error)[:300]}") from error

    def _architecture(self) -> str:
        major, minor = self.capability
        return f"sm_{major}{minor}"

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
        """The cubin of this GPU's major for the nearest minor, else the newest PTX that is not newer than the GPU."""
        major, minor = self.capability
        wanted = 10 * major + minor
        cubins = [number for number in _prepared_for(name, ".sm_", ".cubin") if number // 10 == major]
        nearest = max((number for number in cubins if number <= wanted), default=None)
        if nearest is not None:
            return _read(f"{name}.sm_{nearest}.cubin")
        newest = max((number for number in _prepared_for(name, ".compute_", ".ptx") if number <= wanted), default=None)
        if newest is not None:
            return _read(f"{name}.compute_{newest}.ptx") + b"\0"
        why = "; ".join(self._reasons) or "no NVRTC was found"
        raise Unavailable(f"no code of {name} for sm_{wanted}: {why}, and none was prepared")


def prepared_name(name: str, options: Sequence[str]) -> str:
    """``gemm-KIND1-RESULT1`` for ``gemm`` with ``-DKIND=1 -DRESULT=1``."""
    return "-".join([name, *(option.removeprefix("-D").replace("=", "") for option in options)])


def _read(name: str) -> bytes:
    with open(os.path.join(PREPARED, name), "rb") as file:
        return file.read()


def _prepared_for(name: str, before: str, after: str) -> list[int]:
    """The numbers between ``before`` and ``after`` in the names of what was prepared of ``name``."""
    names = os.listdir(PREPARED) if os.path.isdir(PREPARED) else []
    start = name + before
    parts = [entry[len(start) : -len(after)] for entry in names if entry.startswith(start) and entry.endswith(after)]
    return [int(part) for part in parts if part.isdecimal()]


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
