"""What the measurements of sparse products, transforms, solvers and random numbers share."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int
from typing import ClassVar

from ..arrays import Array, Arrays
from ..library import CudaLibrary
from ..measurement import Bench, Plan

PLAN = Plan(samples=7, sample_seconds=0.01, warmup_seconds=0.02, least_runs=2, enough=0.5)
TRIAL = Plan(samples=2, sample_seconds=0.003, warmup_seconds=0.0, enough=0.02)
"""For the choice between algorithms."""

DATA_TYPES = {"fp32": 0, "fp64": 1, "fp16": 2, "int8": 3, "int32": 10, "bf16": 14}
"""Members of ``cudaDataType``."""


def drawing() -> random.Random:
    """A generator that no run had before."""
    return random.Random(os.urandom(16))  # noqa: S311  no secret


class MathLibrary(CudaLibrary):
    """A library whose functions begin with the name of its family."""

    prefix: ClassVar[str]
    """What the names of its statuses begin with."""
    statuses: ClassVar[Mapping[int, str]]
    """The names by number, without the prefix: most releases have no words of their own for them."""

    @property
    def version(self) -> str:
        """``12.0.4``."""
        parts = [c_int() for _ in range(3)]
        for number, part in enumerate(parts):
            self.ask(f"{self.family}GetProperty", number, byref(part))
        return ".".join(str(part.value) for part in parts)

    def describe(self, status: int) -> str:
        """``CUSPARSE_STATUS_ARCH_MISMATCH (4): architecture mismatch``, by its own functions if it has them."""
        name = self._said(f"{self.family}GetErrorName", status)
        if not name and status in self.statuses:
            name = f"{self.prefix}{self.statuses[status]}"
        known = f"{name} ({status})" if name else f"status {status}"
        meaning = self._said(f"{self.family}GetErrorString", status)
        return f"{known}: {meaning}" if meaning else known

    def _said(self, function: str, status: int) -> str:
        if not self.offers(function):
            return ""
        called = self.function(function)
        called.restype = c_char_p
        return (called(status) or b"").decode("utf-8", "replace")


class Workshop:
    """The GPU of a bench, its arrays, and where random numbers come from."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.device = bench, bench.device
        self.arrays = Arrays(bench)
        self.draw = drawing()

    @contextmanager
    def random(self, kind: str, count: int) -> Iterator[Array]:
        """Uniform in [-1, 1); drawn on the host where nothing is timed: that needs no compiler."""
        if self.bench.timing:
            with self.arrays.random(kind, count) as array:
                yield array
        else:
            with self.arrays.holding(kind, [self.draw.uniform(-1, 1) for _ in range(count)]) as array:
                yield array

    @contextmanager
    def workspace(self, size: int) -> Iterator[int]:
        """The address of ``size`` bytes; 0 for none."""
        if size == 0:
            yield 0
            return
        with self.arrays.empty("int8", size) as array:
            yield array.address
