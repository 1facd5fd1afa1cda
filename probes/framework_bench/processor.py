"""The processor and memory that this process may use, and the BLAS in its memory map with the threads that it runs."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
from typing import Any, NamedTuple

from ..common.system import mapped_files
from ..common.tree import Tree

_CPUINFO = "/proc/cpuinfo"
_QUOTA = "/sys/fs/cgroup/cpu.max"
_QUOTAS = re.compile(r"\s*([0-9]{1,11})\s+([0-9]{1,11})\s*$")
_MEMORY = "/proc/meminfo"
_LIMIT, _USED = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"


def processor(cpuinfo: str = _CPUINFO, quota: str = _QUOTA) -> str:
    """``Intel(R) Xeon(R) Platinum 8480C, 16 logical CPUs``: those that this process may run on."""
    count = len(os.sched_getaffinity(0))
    model = re.search(r"^(?:model name|Model|cpu model)\s*:\s*(\S.{0,100})$", _text(cpuinfo), re.MULTILINE)
    words = [model[1].strip()] if model else []
    words.append(f"{count} logical CPU{'s' if count != 1 else ''}")
    granted = _QUOTAS.match(_text(quota))  # microseconds of a period, where cgroup's cpu.max sets a limit
    limit = round(int(granted[1]) / int(granted[2]), 2) if granted and int(granted[2]) else count
    if limit < count:
        words.append(f"limited to the time of {limit:g} by its control group")
    return ", ".join(words)


def free_memory(memory: str = _MEMORY, limit: str = _LIMIT, used: str = _USED) -> int | None:
    """Bytes that this process may still take, of the machine's and of its control group's; None where nothing tells."""
    available = re.search(r"^MemAvailable:\s*(\d{1,15}) kB$", _text(memory), re.MULTILINE)
    rooms = [int(available[1]) << 10] if available else []
    most, in_use = _text(limit).strip(), _text(used).strip()
    if most.isdecimal() and in_use.isdecimal() and len(most) < 20 and len(in_use) < 20:
        rooms.append(max(0, int(most) - int(in_use)))
    return min(rooms) if rooms else None


def _text(path: str) -> str:
    return Tree({}).read_text(path, 1 << 16) or ""


class Blas(NamedTuple):
    """The library that computes matrix products."""

    name: str  # With its version, as far as known: ``OpenBLAS 0.3.31``
    threads: int | None
    path: str

    @property
    def words(self) -> str:
        """``OpenBLAS 0.3.31, 16 threads``."""
        if self.threads is None:
            return f"{self.name}, an unknown number of threads"
        return f"{self.name}, {self.threads} thread{'s' if self.threads != 1 else ''}"


class _Kind(NamedTuple):
    """How a BLAS is recognised, and which of its functions tell version and threads."""

    title: str
    file: str  # What the file's name begins with, without ``lib``
    threads: str  # Function without arguments that returns the number of threads
    version: str  # Function without arguments that returns text with the version; empty: there is none
    call: str = "plain"  # ``buffer``: its version function writes into a buffer and returns nothing


_KINDS = (
    _Kind("OpenBLAS", "scipy_openblas", "scipy_openblas_get_num_threads", "scipy_openblas_get_config"),
    _Kind("OpenBLAS", "openblas", "openblas_get_num_threads", "openblas_get_config"),
    _Kind("MKL", "mkl_rt", "MKL_Get_Max_Threads", "MKL_Get_Version_String", "buffer"),
    _Kind("BLIS", "blis", "bli_thread_get_num_threads", "bli_info_get_version_str"),
    _Kind("NVPL BLAS", "nvpl_blas", "nvpl_blas_get_max_threads", ""),
)
"""Functions of the libraries' public headers: cblas.h of OpenBLAS, mkl_service.h, blis.h, nvpl_blas_service.h."""
_SUFFIXES = ("64_", "", "64", "_64", "_")  # What builds with 64-bit integers, or NumPy's, append to OpenBLAS's names


def blas_of(module: Any, files: list[str] | None = None) -> Blas | None:
    """The BLAS that belongs to the package ``module`` of this process, by threadpoolctl, else by the memory map.

    Of several, one below the package's folder or beside it (``numpy.libs``) comes first.
    """
    beside = os.path.splitext(os.path.dirname(getattr(module, "__file__", "") or ""))[0]
    mapped = mapped_files() if files is None else files
    libraries = [path for path in mapped if ".so" in path]
    of_kinds = ((kind, path) for kind in _KINDS for path in libraries)
    named = ((kind, path) for kind, path in of_kinds if os.path.basename(path).startswith(f"lib{kind.file}"))
    candidates = _by_threadpoolctl() or [_asked(kind, path) for kind, path in named]
    candidates.sort(key=lambda found: not (beside and found.path.startswith((f"{beside}.libs/", f"{beside}/"))))
    return candidates[0] if candidates else None


def _by_threadpoolctl() -> list[Blas]:
    try:
        pools: list[dict[str, Any]] = importlib.import_module("threadpoolctl").threadpool_info()
    except Exception:
        return []
    titles = {"openblas": "OpenBLAS", "mkl": "MKL", "blis": "BLIS"}
    found = []
    for pool in pools:
        name, threads = pool.get("internal_api"), pool.get("num_threads")
        if pool.get("user_api") == "blas" and isinstance(name, str):
            path = os.path.realpath(str(pool.get("filepath", "")))
            title = _titled(titles.get(name, name), pool.get("version"))
            found.append(Blas(title, threads if isinstance(threads, int) else None, path))
    return found


def _titled(title: str, version: Any) -> str:
    found = re.search(r"\d{1,4}(?:\.\d{1,4}){1,3}", version) if isinstance(version, str) else None
    return f"{title} {found[0]}" if found else title


def _asked(kind: _Kind, path: str) -> Blas:
    try:
        library = ctypes.CDLL(path, mode=getattr(os, "RTLD_NOLOAD", 0) | os.RTLD_LAZY)
    except OSError:
        return Blas(kind.title, None, path)
    threads = _function(library, kind.threads)
    count = None if threads is None else int(threads())
    ask, version = _function(library, kind.version) if kind.version else None, b""
    if ask is not None and kind.call == "buffer":
        text = ctypes.create_string_buffer(256)
        ask.restype = None
        ask(text, ctypes.c_int(len(text)))
        version = text.value
    elif ask is not None:
        ask.restype = ctypes.c_char_p
        version = ask() or b""
    title = _titled(kind.title, version.decode("ascii", "replace"))
    return Blas(title, count if count and count > 0 else None, path)


def _function(library: Any, name: str) -> Any:
    found = (getattr(library, name + suffix, None) for suffix in _SUFFIXES)
    return next((function for function in found if function is not None), None)
