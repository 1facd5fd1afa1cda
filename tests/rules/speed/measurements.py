"""Measurements for tests: figures as an H200 gave them, changed where a test says so."""

from typing import Any

from envcheck.model.snapshot import Conditions, Measurement, Span, Verification
from tests.rules.machines import but, h200

UUID = h200().uuid
LIBRARY = "/srv/venv/lib/python3.12/site-packages/nvidia/cu13/lib/libcublasLt.so.13"


def span(low: float, median: float | None = None, high: float | None = None) -> Span:
    middle = low if median is None else median
    return Span(source="nvml", low=low, median=middle, high=middle if high is None else high)


def conditions(**changes: Any) -> Conditions:
    """An H200 alone and cool at its full clock."""
    found = Conditions(
        source="nvml", samples=61, sm_clock=span(1980e6), memory_clock=span(3201e6), power=span(119.8, 128.8, 604.9),
        temperature=span(37.0, 39.0, 50.0), utilisation=span(0.0, 21.0, 79.0), power_limit=700.0,
        power_limit_default=700.0, pcie_generation=5, pcie_width=16, ecc=True, utilisation_before=0.0,
        memory_before=644939776, temperature_before=33.0, temperature_after=37.0,
    )  # fmt: skip
    return but(found, **changes)


def right(checked: int = 1024, how: str = "1,024 random elements against FP64 on the CPU") -> Verification:
    return Verification(source="bench", right=True, checked=checked, how=how, worst=1e-5, tolerance=2e-5)


def wrong(count: int = 3) -> Verification:
    return but(right(), right=False, wrong=count, worst=0.5)


def samples_around(value: float) -> tuple[float, ...]:
    return (0.998 * value, value, 1.001 * value)


def figure(name: str, value: float, unit: str = "B/s", **more: Any) -> Measurement:
    return Measurement(
        source="bench", name=name, gpu=more.pop("gpu", UUID), value=value, unit=unit,
        samples=more.pop("samples", samples_around(value)), conditions=more.pop("conditions", conditions()), **more,
    )  # fmt: skip


def memory_copy(value: float = 4.2955e12, **more: Any) -> Measurement:
    facts = {"method": "kernel", "detail": "NVRTC 13.0", "size": 4 << 30, "burst": True}
    return figure("device-memory-copy", value, **{**facts, **more})


def memory_read(value: float = 4.5738e12, **more: Any) -> Measurement:
    facts = {"method": "kernel", "detail": "NVRTC 13.0", "size": 4 << 30, "burst": True}
    return figure("device-memory-read", value, **{**facts, **more})


def gemm(precision: str = "bf16", value: float = 822.58e12, **more: Any) -> Measurement:
    facts: dict[str, Any] = {
        "method": "cublasLt", "detail": "cuBLASLt 13.1.0", "precision": precision, "shape": (8192, 8192, 8192),
        "burst": True, "library": LIBRARY, "verification": right(),
    }  # fmt: skip
    return figure("gemm", value, "OP/s" if precision == "int8" else "FLOP/s", **{**facts, **more})


def to_gpu(value: float = 55.53e9, **more: Any) -> Measurement:
    facts = {"method": "copy engine", "detail": "cuMemcpyAsync", "size": 256 << 20, "variant": "pinned"}
    return figure("host-to-device", value, **{**facts, **more})


def to_peer(value: float = 395e9, peer: str | None = h200(1).uuid, **more: Any) -> Measurement:
    facts = {"method": "copy engine", "size": 512 << 20, "variant": "one direction, NVLink", "peer": peer}
    return figure("peer-to-peer", value, **{**facts, **more})
