"""Peaks: the sheet's where there is one, the formula otherwise, and never more than can be."""

from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.expected import Peak, peak
from envcheck.knowledge.tables.hardware import ByPrecision, GpuRow, Precision
from tests.every import every_tabled, tabled
from tests.known import known

MATRIX = load_matrix()
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
CAPABILITIES = sorted({row.compute_capability for row in MATRIX.rates})


def model(name: str) -> GpuRow:
    return known(MATRIX.find_gpu(name))


def of(name: str, precision: Precision) -> Peak:
    return known(peak(MATRIX, model(name), precision))


def unlisted(
    compute_capability: str, precision: Precision, *, sms: int | None, clock: float | None, geforce: bool = False
) -> Peak | None:
    """Of a model whose sheet states no peak."""
    row = msgspec.structs.replace(
        model("H100 80GB HBM3"), name="GeForce X" if geforce else "X", compute_capability=compute_capability, sms=sms,
        clock=clock, tensor_clock=None, peaks=None, sheet_confidence="high",
    )  # fmt: skip
    return peak(MATRIX, row, precision)


# --- from the sheet -----------------------------------------------------------------------------------------------
def test_a_listed_model_has_its_sheet_s_peak_and_source() -> None:
    found = of("NVIDIA L40S", "fp16")
    assert (found.value, found.basis, found.rows, found.confidence) == (362e12, "sheet", ("gpu/l40s",), "medium")
    assert any("L40S data sheet" in source.title for source in found.sources)


def test_what_a_sheet_leaves_out_follows_from_what_it_states() -> None:
    found = of("L40S", "fp64")
    assert found.value == pytest.approx(91.6e12 * 4 / 256)
    assert (found.basis, found.rows, found.confidence) == ("formula", ("gpu/l40s", "rate/8.9"), "medium")
    assert of("RTX PRO 6000 Blackwell Server Edition", "bf16").value == pytest.approx(480e12, rel=0.01)


def test_a_restricted_model_stays_below_what_its_multiprocessors_could_do() -> None:
    found = of("H20", "tf32")
    assert found.value == pytest.approx(74e12)
    assert found.confidence == "weak"


def test_the_confidence_of_the_figures_is_that_of_the_peak() -> None:
    assert model("GB300").confidence == "high"
    assert of("GB300", "fp16").confidence == "medium"


# --- by the formula -----------------------------------------------------------------------------------------------
@every_tabled
def test_the_formula_gives_what_white_papers_print(name: str, precision: Precision, peak: float) -> None:
    found = of(name, precision)
    assert found.basis == "formula"
    assert found.value == pytest.approx(peak, rel=0.01)


def test_an_unlisted_model_has_the_formula_s_peak() -> None:
    found = known(unlisted("8.6", "fp16", sms=84, clock=1.74e9))
    assert found.value == 84 * 1.74e9 * 1024
    assert (found.basis, found.rows, found.confidence) == ("formula", ("rate/8.6",), "medium")


def test_a_geforce_accumulates_in_fp32_at_half_the_rate() -> None:
    whole = unlisted("8.9", "fp8", sms=128, clock=2.52e9)
    half = unlisted("8.9", "fp8", sms=128, clock=2.52e9, geforce=True)
    assert whole is not None
    assert half is not None
    assert whole.value == 2 * half.value
    assert half.rows == ("rate/8.9-geforce",)


def test_a_listed_geforce_is_known_to_be_one() -> None:
    laptop = msgspec.structs.replace(model("GeForce RTX 4090 Laptop GPU"), sms=76, clock=2.04e9)
    assert known(peak(MATRIX, laptop, "fp16")).value == 76 * 2.04e9 * 512
    assert of("TITAN RTX", "fp16").value == 130.5e12


def test_a_model_without_tensor_cores_has_no_tensor_peak() -> None:
    assert of("GeForce GTX 1660 Ti", "fp16").value == 24 * 1.77e9 * 256
    assert peak(MATRIX, model("GeForce GTX 1660 Ti"), "int8") is None


def test_tensor_peaks_refer_to_the_tensor_clock() -> None:
    bare = msgspec.structs.replace(model("H100 80GB HBM3"), peaks=None)
    precisions: tuple[Precision, ...] = ("fp16", "fp64_tensor", "fp32")
    found = {p: peak(MATRIX, bare, p) for p in precisions}
    values = {precision: round(value.value / 1e12) for precision, value in found.items() if value}
    assert values == {"fp16": 989, "fp64_tensor": 67, "fp32": 67}


@tabled
def test_none_is_made_up(compute_capability: str, precision: Precision, sms: int | None, clock: float | None) -> None:
    assert unlisted(compute_capability, precision, sms=sms, clock=clock) is None


@given(st.sampled_from(CAPABILITIES), st.sampled_from(PRECISIONS), st.integers(1, 200), st.floats(5e8, 3e9))
def test_more_multiprocessors_do_no_less(compute_capability: str, precision: Precision, sms: int, clock: float) -> None:
    fewer = unlisted(compute_capability, precision, sms=sms, clock=clock, geforce=True)
    more = unlisted(compute_capability, precision, sms=sms + 1, clock=clock, geforce=True)
    assert (fewer is None) == (more is None)
    assert fewer is None or (more is not None and fewer.value < more.value)


# --- memory and cores ---------------------------------------------------------------------------------------------
# NVML's greatest memory clock and bus width of these models, as nvidia-smi -q prints them in public dumps
@tabled
def test_the_formula_gives_the_sheet_s_bandwidth(name: str, memory_clock: float, bus_width: int) -> None:
    # The clock is half of the rate at which each line of the bus moves bits.
    assert 2 * memory_clock * bus_width / 8 == pytest.approx(model(name).bandwidth, rel=0.01)


# --- against a real machine ---------------------------------------------------------------------------------------
@tabled
def test_an_h200_comes_near_its_peak_and_not_above(precision: Precision, measured: float) -> None:
    assert 0.4 <= measured / of("NVIDIA H200", precision).value <= 1


def test_an_h200_s_memory_comes_near_its_bandwidth() -> None:
    assert 0.8 <= 4.29e12 / known(model("NVIDIA H200").bandwidth) <= 1


def test_precisions_are_the_fields() -> None:
    assert tuple(field.name for field in msgspec.structs.fields(ByPrecision)) == PRECISIONS
