"""The micro-kernels of ``kernels/``: compiled by NVRTC for the GPU at hand, loaded, and launched."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

from .device import Device, call
from .library import opened
from .runtime import Unavailable

# NVRTC, CUDA's run-time compiler, by the path of its library (NVRTC documentation, CUDA Toolkit).
#
# It is called through ctypes and not through cuda.bindings, which speaks to one CUDA major alone and chooses the
# library itself: here it is the examined environment's own, of whatever version.

SUCCESS = 0


class CompileError(Exception):
    """NVRTC refused a source; the text is its log."""


class Nvrtc:
    """An NVRTC library; raises Unavailable when it cannot be loaded."""

    def __init__(self, path: str) -> None:
        try:
            self._library = opened(path)
        except OSError as error:
            raise Unavailable(f"NVRTC cannot be loaded: {error}") from error
        if not hasattr(self._library, "nvrtcGetCUBIN"):
            raise Unavailable(f"{path} compiles no cubins (NVRTC does since CUDA 11.1)")
        self.path = path

    @property
    def version(self) -> str:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"

    def architectures(self) -> tuple[int, ...]:
        """What it compiles for, as numbers such as 90; empty where it is too old (before 11.2) to say."""
        count = ctypes.c_int()
        if not hasattr(self._library, "nvrtcGetNumSupportedArchs"):
            return ()
        self._check("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        numbers = (ctypes.c_int * count.value)()
        self._check("nvrtcGetSupportedArchs", numbers)
        return tuple(numbers)

    def cubin(self, source: str, name: str, architecture: str, options: Sequence[str] = ()) -> bytes:
        """Compile for a real architecture such as ``sm_90a``; raise CompileError with NVRTC's log."""
        return self._compiled(source, name, [f"--gpu-architecture={architecture}", *options], "CUBIN")

    def ptx(self, source: str, name: str, architecture: str, options: Sequence[str] = ()) -> bytes:
        """Compile for a virtual architecture such as ``compute_50``."""
        return self._compiled(source, name, [f"--gpu-architecture={architecture}", *options], "PTX")

    def _compiled(self, source: str, name: str, options: list[str], kind: str) -> bytes:
        program = ctypes.c_void_p()
        self._check("nvrtcCreateProgram", ctypes.byref(program), source.encode(), name.encode(), 0, None, None)
        try:
            given = (ctypes.c_char_p * len(options))(*map(str.encode, options))
            with _own_locale():
                status = self._library.nvrtcCompileProgram(program, len(options), given)
            if status != SUCCESS:
                log = self._output(program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace")[:4000]
                raise CompileError(log or f"nvrtcCompileProgram: status {status}")
            return self._output(program, kind)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _output(self, program: ctypes.c_void_p, kind: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(f"nvrtcGet{kind}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        self._check(f"nvrtcGet{kind}", program, data)
        return data.raw

    def _check(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != SUCCESS:
            raise Unavailable(f"{function} of {self.path}: status {status}")


@contextmanager
def _own_locale() -> Iterator[None]:
    """NVRTC leaves the thread in the locale "C", in which Python's files are no longer UTF-8."""
    uselocale = ctypes.CDLL(None).uselocale
    uselocale.argtypes, uselocale.restype = [ctypes.c_void_p], ctypes.c_void_p
    before = uselocale(None)
    try:
        yield
    finally:
        uselocale(before)


FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "kernels")
PREPARED = os.path.join(FOLDER, "prepared")
"""Cubins and PTX made when the wheel was built: ``gemm-KIND1-RESULT1.sm_90.cubin``, ``caches.compute_50.ptx``."""
STANDARD = "--std=c++17"

Argument = tuple[int | float, Any]  # A value and its ctypes type


def pointer(address: int) -> Argument:
    return address, ctypes.c_void_p


def number(value: int) -> Argument:
    """A 64-bit integer."""
    return value, ctypes.c_longlong


_COMPILED: dict[tuple[str, ...], bytes] = {}  # What this process compiled: the GPUs of a machine are mostly alike
_UNDER_WAY: dict[tuple[str, ...], Thread] = {}  # What is being compiled ahead


class CompiledKernel:
    def __init__(self, device: Device, handle: Any) -> None:
        self._device, self._handle = device, handle

    def launch(self, grid: int | tuple[int, int], block: int, *arguments: Argument, shared: int = 0) -> None:
        """Queue it on the device's stream with one-dimensional blocks and ``shared`` bytes of dynamic shared memory."""
        columns, rows = grid if isinstance(grid, tuple) else (grid, 1)
        values = tuple(value for value, _ in arguments)
        types = tuple(kind for _, kind in arguments)
        stream = self._device.stream
        call("cuLaunchKernel", self._handle, columns, rows, 1, block, 1, 1, shared, stream, (values, types), 0)

    def blocks_per_sm(self, block: int) -> int:
        """How many of its blocks one multiprocessor holds at a time."""
        return int(call("cuOccupancyMaxActiveBlocksPerMultiprocessor", self._handle, block, 0))


class Compiler:
    """Compiles kernels with the first NVRTC of ``paths`` that knows the GPU, else takes what was prepared."""

    def __init__(self, paths: Sequence[str], capability: tuple[int, int]) -> None:
        major, minor = capability
        self._number, self._architecture = 10 * major + minor, f"sm_{major}{minor}"
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
        key = self._key(self._nvrtc, name, options)
        if key in _UNDER_WAY:
            _UNDER_WAY.pop(key).join()
        if key not in _COMPILED:
            _COMPILED[key] = self._compiled(self._nvrtc, name, options)
        return _COMPILED[key]

    def ahead(self, *modules: tuple[str, ...]) -> None:
        """Compile what will be needed, each a name and its options, while other things are done.

        An error occurs again, and is reported, when the module is asked for.
        """
        nvrtc = self._nvrtc
        if nvrtc is None:
            return

        def compile_quietly(key: tuple[str, ...], name: str, options: Sequence[str]) -> None:
            with suppress(Exception):
                _COMPILED[key] = self._compiled(nvrtc, name, options)

        for name, *options in modules:
            key = self._key(nvrtc, name, options)
            if key not in _COMPILED and key not in _UNDER_WAY:
                _UNDER_WAY[key] = Thread(target=compile_quietly, args=(key, name, options), daemon=True)
                _UNDER_WAY[key].start()

    def _key(self, nvrtc: Nvrtc, name: str, options: Sequence[str]) -> tuple[str, ...]:
        return (nvrtc.path, name, self._architecture, *options)

    def _compiled(self, nvrtc: Nvrtc, name: str, options: Sequence[str]) -> bytes:
        with open(os.path.join(FOLDER, f"{name}.cu"), encoding="utf-8") as file:
            source = file.read()
        try:
            return nvrtc.cubin(source, f"{name}.cu", self._architecture, (STANDARD, *options))
        except CompileError as error:
            raise Unavailable(f"{self.words} does not compile {name}.cu: {str(error)[:300]}") from error

    def _first(self, paths: Sequence[str]) -> Nvrtc | None:
        for path in paths:
            try:
                nvrtc = Nvrtc(path)
                known = nvrtc.architectures()
            except Unavailable as error:
                self._reasons.append(str(error))
                continue
            if not known or self._number in known:
                return nvrtc
            self._reasons.append(f"NVRTC {nvrtc.version} ({path}) does not compile for {self._architecture}")
        return None

    def _prepared(self, name: str) -> bytes:
        """The cubin of this GPU's major for the nearest minor, else the newest PTX that is not newer than the GPU."""
        wanted = self._number
        cubins = [number for number in _prepared_for(name, ".sm_", ".cubin") if number // 10 == wanted // 10]
        nearest = max((number for number in cubins if number <= wanted), default=None)
        if nearest is not None:
            return _read(f"{name}.sm_{nearest}.cubin")
        newest = max((number for number in _prepared_for(name, ".compute_", ".ptx") if number <= wanted), default=None)
        if newest is not None:
            return _read(f"{name}.compute_{newest}.ptx") + b"\0"
        why = "; ".join(self._reasons) or "no NVRTC was found"
        raise Unavailable(f"no code of {name} for {self._architecture}: {why}, and none was prepared")


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
    def __init__(self, device: Device, code: bytes) -> None:
        self._device = device
        self._module = call("cuModuleLoadData", code)
        self._kernels: dict[str, CompiledKernel] = {}

    def kernel(self, name: str) -> CompiledKernel:
        if name not in self._kernels:
            self._kernels[name] = CompiledKernel(self._device, call("cuModuleGetFunction", self._module, name.encode()))
        return self._kernels[name]
