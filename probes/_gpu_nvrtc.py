"""NVRTC, CUDA's run-time compiler, by the path of its library (NVRTC documentation, CUDA Toolkit).

It is called through ctypes and not through cuda.bindings, which speaks to one CUDA major alone and chooses the library
itself: here it is the examined environment's own, of whatever version.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ._gpu_call import Unavailable

SUCCESS = 0
LOG_LIMIT = 4000


class CompileError(Exception):
    """NVRTC refused a source; the text is its log."""


class Nvrtc:
    """An NVRTC library; raises Unavailable when it cannot be loaded."""

    def __init__(self, path: str) -> None:
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise Unavailable(f"NVRTC cannot be loaded: {error}") from error
        if not hasattr(self._library, "nvrtcGetCUBIN"):
            raise Unavailable(f"{path} compiles no cubins (NVRTC does since CUDA 11.1)")
        self.path = path

    @property
    def version(self) -> str:
        """``13.0``."""
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
        text = source.encode()
        self._check("nvrtcCreateProgram", ctypes.byref(program), text, name.encode(), 0, None, None)
        try:
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            with _own_locale():
                status = self._library.nvrtcCompileProgram(program, len(options), given)
            if status != SUCCESS:
                raise CompileError(self._log(program) or f"nvrtcCompileProgram: status {status}")
            return self._output(program, kind)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _log(self, program: ctypes.c_void_p) -> str:
        return self._output(program, "ProgramLog").rstrip(b"\0").decode("utf-8", "replace")[:LOG_LIMIT]

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
