"""Figures of GPU models, bands of efficiency and rates of links: consistent with the formula and one another."""

import itertools
import math
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from envcheck.knowledge.gpu_names import _FORM, name_keys
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.expected import WARN
from envcheck.knowledge.performance.quantities import QUANTITIES, BenchQuantity, framework_tested, library_tested
from envcheck.knowledge.relations.driver import architecture_name
from envcheck.knowledge.tables.hardware import EfficiencyRow, GpuRow, LinkRow, MeasuredModelsRow, Precision, RateRow
from envcheck.model.versions import ComputeCapability
from envcheck.rules.catalog import find_rule, measured_rules
from tests.every import cases, every, every_tabled
from tests.known import known

MATRIX = load_matrix()
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
FULL_CLOCK = {"fp64", "fp64_tensor", "fp32"}
TOLERANCE = 0.05  # Sheets round to two or three digits, and each in its own direction

FASTEST = 2.62e9  # No sheet has a higher boost clock, in Hz

HALVED = {"A10G", "L20", "L40"}
"""Their sheets state tensor peaks of half of what their multiprocessors and clock would give."""
RESTRICTED = {"H20"}  # Held below what its multiprocessors could do, for export

WITH_PEAKS = [row for row in MATRIX.gpus if row.peaks]
WITH_FIGURES = [row for row in MATRIX.gpus if row.memory or row.bandwidth or row.sms or row.peaks]
FAMILIES = [row for row in MATRIX.gpus if row.memory is None]


def rate_of(row: GpuRow) -> RateRow:
    variants = {rate.variant: rate for rate in MATRIX.rates if rate.compute_capability == row.compute_capability}
    if not row.tensor_cores:
        return variants["no-tensor-cores"]
    return variants.get("geforce" if row.name.startswith("GeForce") else "", variants[""])


def stated(row: GpuRow) -> dict[Precision, float]:
    found = {precision: row.peaks.of(precision) if row.peaks else None for precision in PRECISIONS}
    return {precision: value for precision, value in found.items() if value is not None}


def implied_clocks(row: GpuRow) -> dict[Precision, float]:
    """The clock at which the formula gives each peak that the row states."""
    operations = rate_of(row).operations
    return {
        precision: value / (row.sms * each)
        for precision, value in stated(row).items()
        if row.sms and (each := operations.of(precision))
    }


# --- plausible ----------------------------------------------------------------------------------------------------
@every(WITH_FIGURES)
def test_figures_are_in_their_units(row: GpuRow) -> None:
    assert row.memory is None or 2 * 2**30 <= row.memory <= 300 * 2**30
    slowest = 20e9 if row.kind == "tegra" else 50e9
    assert row.bandwidth is None or slowest <= row.bandwidth <= 10e12
    assert row.sms is None or 1 <= row.sms <= 200
    assert all(clock is None or 0.5e9 <= clock <= 3e9 for clock in (row.clock, row.tensor_clock))
    assert row.power is None or 10 <= row.power <= 1500
    assert row.pcie_generation in {None, 3, 4, 5, 6}
    assert row.pcie_width in {None, 4, 8, 16}
    assert all(1e10 <= value <= 2e16 for value in stated(row).values())


@every([row for row in WITH_FIGURES if row.memory and row.bandwidth])
def test_memory_is_read_whole_in_a_plausible_time(row: GpuRow) -> None:
    assert row.memory
    assert row.bandwidth
    assert 0.008 <= row.memory / row.bandwidth <= 0.6


@every(WITH_FIGURES)
def test_figures_have_a_source_of_their_own(row: GpuRow) -> None:
    capability_lists = {"gpus/gpus", "gpus/legacy-gpus", "gpus/open-modules", "gpus/pci-ids"}
    said_by_its_name = not (row.peaks or row.bandwidth or row.clock)
    assert set(row.source) - capability_lists or said_by_its_name


@every([row for row in WITH_FIGURES if row.nvlink])
def test_nvlink_is_its_links(row: GpuRow) -> None:
    assert row.nvlink
    per_link = {1: {20e9}, 2: {25e9}, 3: {25e9, 14.0625e9}, 4: {25e9}, 5: {50e9}}[row.nvlink.version]
    assert row.nvlink.bandwidth / row.nvlink.links in per_link


# --- against the formula ------------------------------------------------------------------------------------------
@every(WITH_PEAKS)
def test_peaks_follow_from_multiprocessors_clock_and_rate(row: GpuRow) -> None:
    for precision, implied in implied_clocks(row).items():
        clock = row.clock if precision in FULL_CLOCK else row.tensor_clock or row.clock
        if row.name in RESTRICTED:
            assert implied < 1e9
        elif row.name in HALVED and precision not in FULL_CLOCK:
            assert implied == pytest.approx((clock or 2.52e9) / 2, rel=TOLERANCE), precision
        elif clock:
            assert implied == pytest.approx(clock, rel=TOLERANCE), precision
        else:
            assert 1e9 <= implied <= 2.7e9, precision


@every(WITH_PEAKS)
def test_peaks_of_one_kind_agree_on_a_clock(row: GpuRow) -> None:
    clocks = implied_clocks(row)
    for kind in (FULL_CLOCK, set(PRECISIONS) - FULL_CLOCK):
        found = [clock for precision, clock in clocks.items() if precision in kind]
        assert not found or max(found) / min(found) <= 1 + 2 * TOLERANCE


@every(WITH_PEAKS)
def test_no_peak_counts_zeros(row: GpuRow) -> None:
    """A figure with sparsity would be twice what the formula gives."""
    operations = rate_of(row).operations
    for precision, value in stated(row).items():
        clock = (None if precision in FULL_CLOCK else row.tensor_clock) or row.clock or FASTEST
        each = operations.of(precision)
        if row.sms and each:
            assert value <= row.sms * clock * each * 1.06, precision


@every(WITH_PEAKS)
def test_narrower_types_are_as_much_faster_as_the_architecture_says(row: GpuRow) -> None:
    peaks = stated(row)
    assert peaks.get("bf16", peaks.get("fp16")) == peaks.get("fp16")
    if "tf32" in peaks:
        assert peaks["fp16"] / peaks["tf32"] == pytest.approx(2, rel=TOLERANCE)
    if "fp8" in peaks:
        assert peaks["fp8"] / peaks["fp16"] == pytest.approx(2, rel=TOLERANCE)
    if "fp4" in peaks and "fp8" in peaks and row.compute_capability == "10.0":
        assert peaks["fp4"] == 2 * peaks["fp8"]


@every_tabled
def test_a_well_known_dense_peak(name: str, precision: Precision, peak: float) -> None:
    row = known(MATRIX.find_gpu(name))
    assert stated(row)[precision] == peak


# --- rows against rows --------------------------------------------------------------------------------------------
@cache
def key_of(name: str) -> str:
    return name_keys((name,))[0]


@every(FAMILIES)
def test_a_family_has_only_what_its_variants_share(family: GpuRow) -> None:
    variants = [
        row
        for row in MATRIX.gpus
        if row is not family and key_of(_FORM.sub(" ", row.name.lower().replace("-", " "))) == key_of(family.name)
    ]
    for variant in variants:
        assert variant.compute_capability == family.compute_capability
        if variant.sms is None:
            continue
        for field in ("bandwidth", "sms", "clock", "tensor_clock", "peaks", "pcie_generation"):
            value = getattr(family, field)
            assert value is None or value == getattr(variant, field), (variant.name, field)


def test_every_gpu_s_code_can_be_compiled() -> None:
    compiled = {target for row in MATRIX.cuda for target in row.targets}
    for row in MATRIX.gpus:
        capability = known(ComputeCapability.parse(row.compute_capability))
        # No toolkit of the matrix is so old that it compiles for the first generation.
        assert capability.sm in compiled or capability.major == 1, row.id


def test_every_capability_since_kepler_that_has_models_has_rates() -> None:
    rated = {row.compute_capability for row in MATRIX.rates if not row.variant}
    with_models = {row.compute_capability for row in MATRIX.gpus if not row.compute_capability.startswith(("1.", "2."))}
    assert with_models == rated


@every(MATRIX.rates)
def test_a_rate_is_a_power_of_two_times_small(rate: RateRow) -> None:
    assert rate.operations.fp32 == 2 * rate.cores
    for precision in PRECISIONS:
        operations = rate.operations.of(precision)
        if operations is not None:
            assert math.log2(operations / 3).is_integer() or math.log2(operations).is_integer(), precision


def test_geforce_does_less_and_never_more() -> None:
    rates = {(row.compute_capability, row.variant): row for row in MATRIX.rates}
    for (capability, variant), row in rates.items():
        whole = rates[capability, ""]
        for precision in PRECISIONS:
            own, others = row.operations.of(precision), whole.operations.of(precision)
            assert own is None or (others is not None and own <= others)
        assert not variant or row.operations != whole.operations


def test_models_without_tensor_cores_are_of_a_capability_that_has_some() -> None:
    assert {row.compute_capability for row in MATRIX.gpus if not row.tensor_cores} == {"7.5"}
    assert all(row.tensor_cores is False for row in MATRIX.gpus if row.name.startswith("GeForce GTX 16"))
    assert all(row.tensor_cores for row in MATRIX.gpus if "RTX" in row.name)


# --- names --------------------------------------------------------------------------------------------------------
@every_tabled
def test_a_name_finds_its_model(written: str, model: str) -> None:
    row = known(MATRIX.find_gpu(written))
    assert row.name == model


@cases("written", "T4 16GB", "RTX 4090 24GB", "L40S 48GB PCIe", "B200 180GB", "L4 PCIe")
def test_a_size_or_form_that_is_the_model_s_own_keeps_its_figures(written: str) -> None:
    row = known(MATRIX.find_gpu(written))
    assert (row.memory, row.bandwidth, row.sms) != (None, None, None)
    assert row in MATRIX.gpus


@cases("written", "RTX 4090 48GB", "H200 PCIe", "B200 192GB", "T4 32GB", "L40S SXM")
def test_a_size_or_form_that_is_another_s_leaves_the_capability_alone(written: str) -> None:
    row = known(MATRIX.find_gpu(written))
    figures = (row.memory, row.bandwidth, row.sms, row.clock, row.tensor_clock, row.peaks, row.nvlink, row.power)
    assert set(figures) == {None}
    assert (row.pcie_generation, row.pcie_width, row.device_ids) == (None, None, ())


@cases("written, capability, sms",
    ("A100 40GB", "8.0", 108), ("A100 SXM4", "8.0", 108), ("V100 32GB", "7.0", 80), ("H100 80GB", "9.0", None),
)  # fmt: skip
def test_a_family_tells_what_its_members_share(written: str, capability: str, sms: int | None) -> None:
    row = known(MATRIX.find_gpu(written))
    assert (row.compute_capability, row.sms, row.memory, row.bandwidth) == (capability, sms, None, None)


# --- Bands of efficiency and rates of links -------------------------------------------------------------------------
ROOT = Path(__file__).resolve().parents[2]
PROBES = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "probes").rglob("*.py")))
METHODS = {"cublasLt", "kernel", "mma.sync", "copy engine", *(quantity.needs for quantity in QUANTITIES)}
ARCHITECTURES = {row.name for row in MATRIX.architectures}
NARROW = [row for row in MATRIX.efficiencies if not row.wide]


def is_measured(name: str) -> bool:
    """Whether a probe names it: as a whole, as a group and the member that it puts behind it, or a framework's as one
    of the works that the probe of that name measures.
    """
    splits = (name.rpartition("-"), name.partition("-"))
    group = any(f'"{first}-{{' in PROBES and f'"{rest}"' in PROBES.lower() for first, _, rest in splits)
    framework, _, work = name.partition("-")
    own = ROOT / "probes" / "bench" / f"{framework}.py"
    return f'"{name}"' in PROBES or group or (own.is_file() and f'"{work}"' in own.read_text(encoding="utf-8"))


@every(MATRIX.efficiencies)
def test_a_band_is_one(row: EfficiencyRow) -> None:
    least = 0.001 if library_tested(row.quantity) or framework_tested(row.quantity) else 0.2
    assert least <= row.low < row.high <= 1.0
    assert row.method in METHODS
    assert row.architecture in {"", *ARCHITECTURES}
    if row.gpu:
        model = known(MATRIX.find_gpu(row.gpu))
        assert model.name == row.gpu
        assert architecture_name(MATRIX, model.compute_capability) == row.architecture
    assert row.precision in {"", *get_args(Precision)}
    assert MATRIX.cite(row)


@every(MATRIX.efficiencies)
def test_what_it_is_about_is_measured(row: EfficiencyRow) -> None:
    assert is_measured(row.quantity)
    assert f'"{row.method}"' in PROBES


@every(NARROW)
def test_a_floor_for_others_fails_nothing_that_a_measured_band_passes(row: EfficiencyRow) -> None:
    floors = [
        other
        for other in MATRIX.efficiencies
        if other.wide
        and (other.quantity, other.method) == (row.quantity, row.method)
        and other.precision in ("", row.precision)
        and not other.architecture
    ]
    assert len(floors) == 1
    assert WARN * floors[0].low <= row.low


@every([row for row in MATRIX.efficiencies if row.wide])
def test_a_floor_is_weak_and_for_any_architecture(row: EfficiencyRow) -> None:
    assert (row.confidence, row.architecture, row.high) == ("weak", "", 1.0)


@every(MATRIX.measured_models)
def test_bands_of_an_architecture_hold_for_listed_models_of_it(row: MeasuredModelsRow) -> None:
    models = [model for model in MATRIX.gpus if model.name in row.gpus]
    assert len(models) == len(row.gpus)
    assert {architecture_name(MATRIX, model.compute_capability) for model in models} == {row.architecture}


def test_every_architecture_with_bands_says_on_which_models_they_were_measured() -> None:
    measured = {row.architecture for row in MATRIX.measured_models}
    assert measured == {row.architecture for row in NARROW}


@every(NARROW)
def test_a_band_names_its_architecture(row: EfficiencyRow) -> None:
    assert row.architecture


@every(QUANTITIES)
def test_a_band_is_a_share_of_a_ceiling(quantity: BenchQuantity) -> None:
    assert (quantity.name in {row.quantity for row in MATRIX.efficiencies}) == bool(quantity.ceiling)


@every(QUANTITIES)
def test_every_quantity_is_measured(quantity: BenchQuantity) -> None:
    assert is_measured(quantity.name)


def test_every_rule_on_figures_exists() -> None:
    assert all(find_rule(name) for name in measured_rules())


def test_a_lane_carries_more_with_each_generation() -> None:
    rates = [row.lane for row in sorted(MATRIX.links, key=lambda row: row.generation)]
    assert [row.generation for row in MATRIX.links] == list(range(1, len(rates) + 1))
    assert all(1.85 < later / earlier < 2.01 for earlier, later in itertools.pairwise(rates))


@pytest.mark.parametrize("row", MATRIX.links, ids=lambda row: row.id)
def test_a_lane_carries_its_transfers_less_the_code(row: LinkRow) -> None:
    transfers = {1: 2.5e9, 2: 5e9, 3: 8e9, 4: 16e9, 5: 32e9, 6: 64e9}[row.generation]
    code = 8 / 10 if row.generation <= 2 else 128 / 130 if row.generation <= 5 else 236 / 256
    assert row.lane == pytest.approx(transfers * code / 8, rel=1e-4)
