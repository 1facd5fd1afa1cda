"""cuDNN 8 and 9 by the path of the library: its handle, its errors in its own words, and its sub-libraries.

The functions and their types are those of ``cudnn_ops_v9.h`` and ``cudnn_graph_v9.h`` (9.0 to 9.28) and of their
predecessors of 8.5 to 8.9, in which what is used here is declared alike.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p

from ..library import CudaLibrary, check, opened
from ..measurement import Bench
from ..runtime import LibraryError, Unavailable

TYPES = {"fp32": 0, "fp64": 1, "fp16": 2, "bf16": 9}
"""Members of ``cudnnDataType_t``."""
_NOT_SUPPORTED = {8: range(9, 10), 9: range(3000, 4000)}
_INCOMPLETE = {8: {14}, 9: {1002, 1008, 3009}}
"""Statuses by major release: what an engine cannot do, and sub-libraries that are missing or of another release."""
_PARTS = {8: ("ops_infer", "ops_train", "cnn_infer", "cnn_train"), 9: ("graph", "engines_runtime_compiled")}
"""Sub-libraries that every cuDNN of a major release has. Without some of them it ends the process at the first call."""
_WHOLE = {8: (), 9: ("ops", "cnn", "engines_precompiled", "heuristic")}
"""More of them, of which cuDNN 9 has all or, where it compiles every kernel itself (nvidia-cudnn-jit), none."""
_CHECKS = {8: ("OpsInfer", "OpsTrain", "CnnInfer", "CnnTrain"), 9: ("Graph", "Ops", "Cnn")}
"""Sub-libraries that compare their release with those that they need."""
_UNAVAILABLE = 3009
"""A sub-library is missing, which where cuDNN compiles every kernel itself is no fault."""


class NotSupported(Unavailable):
    """cuDNN says that it cannot do this: on this GPU, of this shape or type, or in this release."""


class Cudnn(CudaLibrary):
    """A cuDNN with a handle that works on the stream of the bench."""

    def __init__(self, bench: Bench, path: str = "") -> None:
        super().__init__(bench, "cudnn", "cuDNN", ("cublasLt", "cublas", "nvrtc"), path)
        # The major by what it exports, which needs none of its sub-libraries.
        of_8 = self.offers("cudnnBackendExecute") and self.offers("cudnnCnnInferVersionCheck")
        self.major = 9 if self.offers("cudnnGraphVersionCheck") else 8 if of_8 else 0
        if not self.major:
            raise Unavailable(f"{self.path} is not a cuDNN 8 or 9")
        self._load_parts({} if path else bench.libraries)
        self.function("cudnnGetVersion").restype = c_size_t
        self.function("cudnnGetErrorString").restype = c_char_p
        self.number = int(self.function("cudnnGetVersion")())
        # Let each sub-library compare releases; of one that is missing the function that needs it will tell.
        for part in _CHECKS[self.major]:
            status = int(self.function(f"cudnn{part}VersionCheck")())
            if status not in (0, _UNAVAILABLE):
                raise self._incomplete(f"cudnn{part}VersionCheck: {self.describe(status)}")
        with self.required():
            self.handle = self.new_handle(int(bench.device.stream))

    @property
    def version(self) -> str:
        """``9.19.0``: ``CUDNN_VERSION`` is major * 10000 + minor * 100 + patch, with 1000 instead up to cuDNN 8."""
        unit = 10000 if self.number >= 10000 else 1000
        return f"{self.number // unit}.{self.number % unit // 100}.{self.number % 100}"

    def describe(self, status: int) -> str:
        """``CUDNN_STATUS_BAD_PARAM (2000)`` and, from cuDNN 9 on, its last message."""
        name = self.function("cudnnGetErrorString")(c_int(status))
        text = f"{name.decode(errors='replace')} ({status})"
        if not self.offers("cudnnGetLastErrorString"):
            return text
        message = ctypes.create_string_buffer(1024)
        self.function("cudnnGetLastErrorString")(message, c_size_t(len(message)))
        said = " ".join(message.value.decode(errors="replace").split())
        return f"{text}: {said}" if said else text

    def ask(self, name: str, *arguments: object) -> None:
        """Call a function; raise NotSupported where cuDNN says so, else LibraryError, for any status but success."""
        status = int(self.function(name)(*arguments))
        if status == 0:
            return
        text = f"{name}: {self.describe(status)}"
        if status in _INCOMPLETE[self.major] and (self._whole or status != _UNAVAILABLE):
            raise IncompleteError(text + self._lacking, self.path)
        if status in _NOT_SUPPORTED[self.major]:
            raise NotSupported(f"cuDNN {self.version} does not support this: {text}")
        raise LibraryError(text + self._lacking, self.path)

    @contextmanager
    def required(self) -> Iterator[None]:
        """For what every cuDNN can do: one that does not support it has failed (no code for this GPU, for instance)."""
        try:
            yield
        except NotSupported as error:
            raise LibraryError(f"{error}{self._lacking}", self.path) from error

    def new_handle(self, stream: int = 0) -> c_void_p:
        """A handle for the current context, whose work goes to ``stream``."""
        handle = c_void_p()
        self.ask("cudnnCreate", byref(handle))
        self.ask("cudnnSetStream", handle, c_void_p(stream))
        return handle

    def _load_parts(self, found: dict[str, list[str]]) -> None:
        """Load sub-libraries as cuDNN does: the one that the loader finds for the environment (LD_LIBRARY_PATH comes
        before cuDNN's own RUNPATH), else from beside itself, or by name.
        """
        folder = os.path.dirname(os.path.realpath(self.path))
        before, after = "libcudnn_", f".so.{self.major}"
        names = sorted(os.listdir(folder)) if os.path.isdir(folder) else ()
        ours = [name for name in names if name.startswith(before) and name.endswith(after)]
        beside = [name[len(before) : -len(after)] for name in ours]
        self._whole = any(part in beside for part in _WHOLE[self.major])
        needed = _PARTS[self.major] + (_WHOLE[self.major] if self._whole else ())
        self._elsewhere = [f"libcudnn_{part}.so.{self.major}" for part in needed if part not in beside]
        for part in dict.fromkeys((*needed, *beside)):
            name = f"libcudnn_{part}.so.{self.major}"
            try:
                if part in needed:
                    own = os.path.join(folder, name) if part in beside else name
                    opened(next(iter(found.get(f"cudnn_{part}", [])), own))
                else:
                    check(os.path.join(folder, name))
            except OSError as error:
                raise self._incomplete(str(error)) from error

    @property
    def _lacking(self) -> str:
        """Sub-libraries that the loader took from elsewhere, maybe of another release; empty where there are none."""
        return f" (missing beside it: {', '.join(self._elsewhere)})" if self._elsewhere else ""

    def _incomplete(self, error: str) -> IncompleteError:
        """A fault of the sub-libraries, with its cause as far as it shows."""
        why = self._lacking or (" (they are of different releases)" if "undefined symbol" in error else "")
        return IncompleteError(f"cuDNN {self.major} cannot use its sub-libraries{why}: {error}", self.path)


class IncompleteError(LibraryError):
    """A sub-library is missing or of another release."""
