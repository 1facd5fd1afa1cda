"""Calls of the CUDA driver API through cuda.bindings, with failures as exceptions that say what was called."""

from __future__ import annotations

from typing import Any

from ._find_library import find_no_library


class CudaError(Exception):
    """A call of the CUDA driver API failed; ``code`` and ``name`` are the driver's own."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name} ({code})")
        self.call, self.code, self.name = call, code, name


class Unavailable(Exception):  # noqa: N818  no fault of anybody
    """Something that a measurement needs is not here; the text says what."""


def driver() -> Any:
    """The binding; raise Unavailable where it cannot be imported."""
    find_no_library()
    try:
        from cuda.bindings import driver as binding
    except Exception as error:
        raise Unavailable(f"cuda-bindings cannot be used: {error}") from error
    return binding


def binding_name() -> str:
    """``cuda-bindings 13.0.3``, as far as it tells."""
    try:
        from cuda import bindings
    except Exception:
        return "cuda-bindings"
    return f"cuda-bindings {getattr(bindings, '__version__', '')}".rstrip()


def call(name: str, *arguments: Any) -> Any:
    """What ``name`` returned: nothing, a value, or a tuple of values; raise CudaError for any status but success."""
    try:
        status, *values = getattr(driver(), name)(*arguments)
    except RuntimeError as error:  # the binding found no such function in libcuda, or no libcuda
        raise Unavailable(str(error)) from error
    if int(status) != 0:
        raise CudaError(name, int(status), str(getattr(status, "name", "")))
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)
