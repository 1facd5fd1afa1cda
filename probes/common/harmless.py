"""Prevent libraries from changing the machine: they create no device nodes and start no programs."""

from __future__ import annotations

import ctypes

# Keep the driver's libraries from creating device nodes in this process.
#
# Started by root where no kernel module is loaded, libcuda and libnvidia-ml make ``/dev/nvidiactl``; for any other
# user they cannot. The child that asks them takes that one power from itself and so asks as any user would. What
# nvidia-modprobe, a program of the driver with powers of its own, does for every user's first CUDA program it still
# may.

_CAPABILITY_VERSION_3 = 0x20080522
_CAP_MKNOD = 27


class _Header(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("process", ctypes.c_int)]


class _Words(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def give_up_making_devices() -> bool:
    """Drop CAP_MKNOD from this process's effective set; True if it is not in the set afterwards."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        header, words = _Header(_CAPABILITY_VERSION_3, 0), (_Words * 2)()
        if libc.capget(ctypes.byref(header), words):
            return False
        words[0].effective &= ~(1 << _CAP_MKNOD)
        return not libc.capset(ctypes.byref(header), words)
    except (OSError, AttributeError):
        return False


# Keep ``ctypes.util.find_library`` from starting programs.
#
# It runs ``/sbin/ldconfig``, then the first ``gcc``, ``objdump`` and ``ld`` on PATH, which may be the inspected
# environment's. cuda-pathfinder calls it while cuda.bindings is imported.


def find_no_library() -> None:
    """Make ``ctypes.util.find_library`` find nothing in this process; its callers then use the soname."""
    import ctypes.util

    ctypes.util.find_library = lambda name: None  # noqa: ARG005 - as callers know it
