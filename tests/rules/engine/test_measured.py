"""How figures are named and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.model.snapshot import Measurement
from envcheck.rules.facts.measurements import measurement_key, measurement_name, quantity, spread
from tests.every import cases, every
from tests.rules.speed.measurements import figure, gemm, memory_copy, to_gpu, to_peer


@cases(
    "found, name, key",
    (gemm(), "BF16 matrix product 8192^3", "gemm-bf16-8192x8192x8192"),
    (gemm(burst=False, shape=(16384, 8192, 1024)), "BF16 matrix product 16384x8192x1024, sustained",
     "gemm-bf16-16384x8192x1024-sustained"),
    (memory_copy(), "Device memory copy", "device-memory-copy"),
    (to_gpu(variant="pinned, near"), "Copy from host to GPU, pinned, near", "host-to-device-pinned-near"),
    (to_peer(peer="GPU-b"), "Copy between GPUs, one direction, NVLink", "peer-to-peer-one-direction-NVLink-GPU-b"),
    (figure("fma", 1.0, precision="fp64"), "FP64 FMA throughput", "fma-fp64"),
    (figure("latency-l2", 1e-7, "s"), "L2 latency", "latency-l2"),
)  # fmt: skip
def test_names(found: Measurement, name: str, key: str) -> None:
    assert measurement_name(found) == name
    assert measurement_key(found) == key
    assert " " not in key


@every(
    (4.2955e12, "B/s", "4.30 TB/s"), (55.53e9, "B/s", "55.5 GB/s"), (822.58e12, "FLOP/s", "823 TFLOP/s"),
    (1.566e15, "FLOP/s", "1.57 PFLOP/s"), (999.0, "B/s", "999 B/s"), (2.6e-6, "s", "2.6 us"),
    (1.454e-7, "s", "0.145 us"), (0.0125, "s", "12.5 ms"), (0.0, "B/s", "0.00 B/s"),
)  # fmt: skip
def test_quantities(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


@given(st.floats(1.0, 9e17))
def test_a_quantity_is_short_and_close_to_the_value(value: float) -> None:
    number, unit = quantity(value, "B/s").split()
    scale = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}[unit.removesuffix("B/s")]
    assert len(number) <= 4
    assert float(number) * scale == pytest.approx(value, rel=0.006)


@cases("samples, wide", ((), 0.0), ((3.0,), 0.0), ((1.0, 2.0, 3.0), 1.0), ((3.0, 1.0, 2.0), 1.0), ((0.0, 0.0), 0.0))
def test_spread(samples: tuple[float, ...], wide: float) -> None:
    assert spread(samples) == wide
