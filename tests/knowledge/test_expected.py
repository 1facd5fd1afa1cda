"""What a figure should have been: ceilings by hand, bands, what clock counts, and when nobody can say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.expected import HEADROOM, WARN, Expectation, expectation
from envcheck.knowledge.tables.hardware import EfficiencyRow
from envcheck.model.snapshot import Gpu, Measurement
from tests.every import cases, every
from tests.rules.machines import but, geforce, h200
from tests.rules.speed.measurements import conditions, figure, gemm, memory_copy, span, to_gpu, to_peer

MATRIX = load_matrix()
SMS, CLOCK = 132, 1980e6


def expected(measured: Measurement, gpu: Gpu | None = None) -> Expectation:
    found = expectation(MATRIX, gpu or h200(sm_count=SMS), measured)
    assert isinstance(found, Expectation), found
    return found


def refused(measured: Measurement, gpu: Gpu | None = None) -> str:
    found = expectation(MATRIX, gpu or h200(sm_count=SMS), measured)
    assert isinstance(found, str), found
    return found


# --- ceilings -----------------------------------------------------------------------------------------------------
@cases("precision, operations",
    ("fp64", 256), ("fp32", 256), ("tf32", 2048), ("fp16", 4096), ("bf16", 4096), ("fp8", 8192), ("int8", 8192),
)  # fmt: skip
def test_a_computation_is_held_to_multiprocessors_times_clock_times_rate(precision: str, operations: int) -> None:
    assert expected(gemm(precision, 1e12)).ceiling == pytest.approx(SMS * CLOCK * operations)


def test_fma_in_fp64_is_held_to_the_vector_units_and_a_product_to_the_tensor_cores() -> None:
    vector = figure("fma", 33.2e12, "FLOP/s", method="kernel", precision="fp64", burst=True)
    assert expected(vector).ceiling == pytest.approx(SMS * CLOCK * 128)
    assert expected(gemm("fp64", 60e12)).ceiling == pytest.approx(SMS * CLOCK * 256)


def test_multiprocessors_of_the_model_count_where_nobody_counted_them() -> None:
    assert expected(gemm(), h200(sm_count=None)).ceiling == expected(gemm()).ceiling


def test_multiprocessors_that_were_counted_count_more_than_the_model() -> None:
    assert expected(gemm(), h200(sm_count=66)).ceiling == expected(gemm()).ceiling / 2


def test_a_burst_is_held_to_the_highest_clock_seen_and_a_sustained_run_to_the_median() -> None:
    slowing = conditions(sm_clock=span(1305e6, 1500e6, 1980e6))
    assert expected(gemm(conditions=slowing)).ceiling == pytest.approx(SMS * 1980e6 * 4096)
    assert expected(gemm(conditions=slowing, burst=False)).ceiling == pytest.approx(SMS * 1500e6 * 4096)


def test_the_share_splits_into_what_the_clock_allowed_and_the_clock() -> None:
    found = expected(gemm(value=600e12, conditions=conditions(sm_clock=span(1305e6, 1485e6, 1980e6))))
    assert found.at_clock is not None
    assert found.clock_share == pytest.approx(1485 / 1980)
    assert found.at_clock == pytest.approx(600e12 / (SMS * 1485e6 * 4096))
    assert found.at_clock * 1485 / 1980 == pytest.approx(found.share)


def test_memory_is_held_to_the_data_sheet() -> None:
    found = expected(memory_copy(4.32e12))
    assert found.ceiling == 4.8e12
    assert found.share == pytest.approx(0.9)
    assert "data sheet" in found.basis
    assert "gpu/h200-sxm" in found.rows or any(row.startswith("gpu/") for row in found.rows)


@cases("generation, width, ceiling",
    (1, 16, 4e9), (3, 16, 15.754e9), (4, 16, 31.508e9), (5, 16, 63.015e9), (5, 4, 15.754e9),
)  # fmt: skip
def test_a_host_link_is_held_to_what_it_had_under_load(generation: int, width: int, ceiling: float) -> None:
    seen = conditions(pcie_generation=generation, pcie_width=width)
    assert expected(to_gpu(3e9, conditions=seen)).ceiling == pytest.approx(ceiling, rel=1e-3)


def test_nvlink_is_held_to_the_sheet_and_both_directions_to_twice_that() -> None:
    one = expected(to_peer())
    both = expected(to_peer(760e9, variant="both directions, NVLink"))
    assert one.ceiling == pytest.approx(450e9)
    assert both.ceiling == 2 * one.ceiling


# --- when nobody can say ------------------------------------------------------------------------------------------
@every(
    (gemm(), h200(compute_capability=None), "compute capability"),
    (but(gemm(), value=None, missing="no cuBLASLt was found"), h200(), "no cuBLASLt was found"),
    (but(gemm(), value=None), h200(), "it has no value"),
    (figure("l2-read", 9e12, method="kernel"), h200(), "baseline"),
    (figure("copy-latency", 2e-6, "s", method="copy engine"), h200(), "baseline"),
    (figure("fma", 1e14, "FLOP/s", method="kernel", precision="fp16"), h200(), "vector units"),
    (gemm(conditions=conditions(sm_clock=None)), h200(sm_count=SMS), "clock is not known"),
    (gemm(value=100e12, conditions=None), h200(sm_count=SMS), "the clock during the run is not known"),
    (gemm("fp4"), h200(), "no published peak"),
    (gemm(shape=(1024, 1024, 16384)), h200(sm_count=SMS), "square products only"),
    (to_gpu(conditions=conditions(pcie_width=None)), h200(), "link is not known"),
    (to_gpu(conditions=conditions(pcie_generation=99)), h200(), "link is not known"),
    (to_gpu(conditions=None), h200(), "link is not known"),
    (to_peer(variant="one direction, PCIe"), h200(), "no listed ceiling"),
    (to_peer(), h200(name="NVIDIA Frobnicator", pci_device_id="10de:ffff"), "NVLink bandwidth"),
    (memory_copy(), h200(name="NVIDIA Frobnicator", pci_device_id="10de:ffff"), "no published memory bandwidth"),
)
def test_it_says_why_there_is_no_expectation(measured: Measurement, gpu: Gpu, words: str) -> None:
    assert words in refused(measured, gpu)


# --- bands --------------------------------------------------------------------------------------------------------
def test_a_measured_architecture_has_its_own_band_and_others_a_floor() -> None:
    hopper = expected(gemm())
    ada = expected(gemm(value=100e12), geforce("NVIDIA GeForce RTX 4090", "8.9", "10de:2684", sm_count=128))
    assert not hopper.wide
    assert ada.wide
    assert ada.low < hopper.low
    assert hopper.rows[0] == "efficiency/gemm-cublasLt-bf16-hopper-burst"
    assert ada.rows[0] == "efficiency/gemm-cublasLt"
    assert all(found.sources for found in (hopper, ada))


def test_a_burst_and_a_sustained_run_have_bands_of_their_own() -> None:
    capped = conditions(sm_clock=span(1305e6, 1500e6, 1980e6))
    rows = {run: expected(gemm("bf16", 600e12, burst=run, conditions=capped)).rows[0] for run in (True, False, None)}
    assert rows[True] == rows[None] == "efficiency/gemm-cublasLt-bf16-hopper-burst"
    assert rows[False] == "efficiency/gemm-cublasLt-bf16-hopper-sustained"


@cases("precision", "fp32", "tf32", "fp16", "fp8", "int8")
def test_what_nobody_measured_sustained_has_a_floor(precision: str) -> None:
    ada = geforce("NVIDIA GeForce RTX 4090", "8.9", "10de:2684", sm_count=128)
    rows = [expected(gemm(precision, 10e12, burst=False), gpu).rows[0] for gpu in (ada, None)]
    assert rows == ["efficiency/gemm-cublasLt", f"efficiency/gemm-cublasLt-{precision}-hopper-sustained"]


@every([row for row in MATRIX.efficiencies if row.gpu])
def test_a_model_has_bands_of_its_own_beside_those_of_its_architecture(row: EfficiencyRow) -> None:
    measured = figure(row.quantity, 1e12, method=row.method, precision=row.precision, variant=row.variant)
    own = expected(measured, h200(sm_count=SMS, name=f"NVIDIA {row.gpu}", pci_device_id=None))
    others = expected(measured)
    assert own.rows[0] == row.id
    assert others.rows[0] == row.id.replace(f"-{row.gpu.replace(' ', '-')}", "")
    assert own.low > others.low


def stands(share: float, low: float = 0.8) -> str:
    return Expectation(ceiling=1.0, basis="", low=low, high=0.9, wide=False, share=share).judgement


@every(
    (0.80, "pass"), (0.95, "pass"), (1.03, "pass"), (1.031, "above-ceiling"), (3.0, "above-ceiling"), (0.799, "warn"),
    (0.681, "warn"), (0.679, "fail"), (0.0, "fail"),
)  # fmt: skip
def test_judgements_at_their_edges(share: float, judgement: str) -> None:
    assert stands(share) == judgement


@given(st.floats(0, 2), st.floats(0, 2), st.floats(0.05, 1))
def test_more_is_never_judged_worse_below_the_ceiling(one: float, other: float, low: float) -> None:
    order = ["fail", "warn", "pass"]
    less, more = sorted((one, other))
    if more <= HEADROOM:
        assert order.index(stands(less, low)) <= order.index(stands(more, low))
    else:
        assert stands(more, low) == "above-ceiling"


def test_the_headroom_is_no_licence() -> None:
    assert 1 < HEADROOM <= 1.03
    assert 0.5 < WARN < 1
