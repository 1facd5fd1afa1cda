"""Every model of the matrix by its own data sheet: 0.9 of each figure passes, 0.5 fails, 1.2 is an error of the
measurement, and what no sheet states is not judged.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.expected import Expectation, expectation
from envcheck.knowledge.performance.quantities import BenchQuantity, quantity_of
from envcheck.knowledge.tables.hardware import EfficiencyRow, GpuRow
from envcheck.model.snapshot import Fabric, Gpu, GpuLink, Measurement, NvLink
from tests.every import cases, every, tabled
from tests.rules.speed.measurements import conditions, figure, gemm, span, to_gpu, to_peer
from tests.thorough import sample

MATRIX = load_matrix()
JUDGEMENTS = {0.9: "pass", 0.5: "fail", 1.2: "above-ceiling"}
MEMORY = ("device-memory-read", "device-memory-write", "device-memory-copy", "device-memory-triad")
PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")


def gpu_of(row: GpuRow, number: int = 0, **changes: Any) -> Gpu:
    return Gpu(
        source="nvml", name=f"NVIDIA {row.name}", uuid=f"GPU-{number}", pci_bus_id=f"0000:{number:02x}:00.0",
        compute_capability=row.compute_capability, sm_count=row.sms, **changes,
    )  # fmt: skip


def model(name: str) -> GpuRow:
    (found,) = (row for row in MATRIX.gpus if row.name == name)
    return found


def joined(first: Gpu, second: Gpu, count: int) -> Fabric:
    link = GpuLink(source="nvml", first=first.pci_bus_id or "", second=second.pci_bus_id or "", nvlinks=count)
    return Fabric(source="nvml", links=(link,))


def judgement(row: GpuRow, measured: Measurement) -> str:
    found = expectation(MATRIX, gpu_of(row), measured)
    return found if isinstance(found, str) else found.judgement


def stated(row: GpuRow, precision: str) -> float | None:
    """The dense peak of its sheet; products in FP64 run on tensor cores where there are such."""
    if row.peaks is None:
        return None
    on_tensor_cores = row.compute_capability in {"8.0", "9.0", "10.0", "10.3"}
    name = "fp64_tensor" if precision == "fp64" and on_tensor_cores else precision
    value: float | None = getattr(row.peaks, name)
    return value


def product(row: GpuRow, precision: str, value: float) -> Measurement:
    clock = row.clock or row.tensor_clock or 1e9
    return gemm(precision, value, conditions=conditions(sm_clock=span(clock)))


@cache
def rows() -> tuple[GpuRow, ...]:
    return tuple(row for row in MATRIX.gpus if MATRIX.model_of(gpu_of(row)) is row)


def test_every_row_is_the_model_of_its_name() -> None:
    assert len(rows()) == len(MATRIX.gpus)


@every(lambda: sample(rows()))
def test_products_are_held_to_the_model_s_own_peak(row: GpuRow) -> None:
    for precision in PRECISIONS:
        peak = stated(row, precision)
        for share, expected in JUDGEMENTS.items():
            found = judgement(row, product(row, precision, share * (peak or 1e13)))
            if peak:
                assert found == expected, (precision, share)
            else:
                assert found.startswith("no published peak"), (precision, share)


@every(lambda: sample(rows()))
def test_memory_is_held_to_the_model_s_own_bandwidth(row: GpuRow) -> None:
    for name in MEMORY:
        for share, expected in JUDGEMENTS.items():
            found = judgement(row, figure(name, share * (row.bandwidth or 1e12), method="kernel", burst=True))
            assert found == expected if row.bandwidth else found.startswith("no published"), (name, share)


def bounded() -> Iterator[tuple[int, BenchQuantity, EfficiencyRow]]:
    """Every quantity that multiprocessors or memory bound, in each way and precision of its bands, once, counted."""
    found = {}
    for band in MATRIX.efficiencies:
        quantity = quantity_of(band.quantity)
        if quantity is not None and quantity.ceiling in ("multiprocessors", "sparse", "memory"):
            found[band.quantity, band.method, band.precision, band.variant] = (quantity, band)
    return ((place, *each) for place, each in enumerate(found.values()))


@every(bounded)
def test_every_quantity_is_held_to_the_ceiling_of_each_model(
    place: int, quantity: BenchQuantity, band: EfficiencyRow
) -> None:
    """The bands of libraries are wide: nearly all of the ceiling passes, nearly nothing fails, and more is an error.

    In the gate with every ninth model, of each quantity others: all quantities and all models have their turn.
    """
    for row in sample(rows()[place % 9 :] + rows()[: place % 9], 9):
        precision = band.precision or "fp32"
        of_sheet = getattr(row.peaks, precision, None) if quantity.name == "fma" else stated(row, precision)
        ceiling = row.bandwidth if quantity.ceiling == "memory" else of_sheet
        for share, expected in {0.99: "pass", 0.01: "fail", 1.2: "above-ceiling"}.items():
            value = share * (ceiling or 1e13) * (2 if quantity.ceiling == "sparse" else 1)
            measured = figure(
                quantity.name, value, method=band.method, precision=precision, variant=band.variant or None,
                burst=True, conditions=conditions(sm_clock=span(row.clock or row.tensor_clock or 1e9)),
            )  # fmt: skip
            found = judgement(row, measured)
            assert found == expected if ceiling else found.startswith(("no published", "the matrix")), (row.name, share)


@every(lambda: sample(rows()))
def test_host_links_are_held_to_what_they_were_under_load(row: GpuRow) -> None:
    if row.superchip:
        assert "NVLink-C2C" in judgement(row, to_gpu(346e9))
        return
    lanes = {link.generation: link.lane for link in MATRIX.links}
    for generation, lane in lanes.items():
        link = conditions(pcie_generation=generation, pcie_width=16)
        for share, expected in JUDGEMENTS.items():
            assert judgement(row, to_gpu(share * 16 * lane, conditions=link)) == expected, (generation, share)


@every(rows)
def test_a_pair_is_held_to_the_nvlinks_between_it(row: GpuRow) -> None:
    pair = [gpu_of(row, number) for number in range(2)]
    for count in (1, 2, 4, 6, 12, 18):
        fabric = joined(pair[0], pair[1], count)
        for share, expected in JUDGEMENTS.items():
            rate = row.nvlink.bandwidth / row.nvlink.links if row.nvlink else 25e9
            found = expectation(MATRIX, pair[0], to_peer(share * count * rate, peer=pair[1].uuid), pair, fabric)
            if row.nvlink:
                assert isinstance(found, Expectation)
                assert found.judgement == expected, (count, share)
            else:
                assert found == "the NVLink bandwidth of this GPU is not listed"


# --- models for which their compute capability gave a wrong ceiling --------------------------------------------------
@tabled
def test_cut_down_models_have_their_own_ceiling(name: str, precision: str, measured: float, judged: str) -> None:
    assert judgement(model(name), product(model(name), precision, measured)) == judged


@cases("name", "GeForce RTX 5090 D", "GeForce RTX 5090 D v2", "H800", "A800-SXM4-80GB", "H20 NVL16")
def test_a_model_without_a_published_peak_is_not_judged(name: str) -> None:
    assert judgement(model(name), product(model(name), "bf16", 1e14)).startswith(f"no published peak of NVIDIA {name}")


@tabled
def test_a_band_judges_the_models_that_it_was_measured_on(name: str, measured_there: bool) -> None:  # noqa: FBT001
    row = model(name)
    found = expectation(MATRIX, gpu_of(row), product(row, "bf16", 1e12))
    assert isinstance(found, Expectation)
    assert found.wide is not measured_there


def test_a_burst_at_the_power_cap_is_held_to_its_median_clock_where_only_a_floor_is_known() -> None:
    capped = conditions(sm_clock=span(600e6, 900e6, 2040e6), throttle={"sw_power_cap": 0.9})
    found = expectation(MATRIX, gpu_of(model("L4")), gemm("bf16", 50e12, conditions=capped))
    assert isinstance(found, Expectation)
    assert found.ceiling == pytest.approx(58 * 900e6 * 1024)
    assert found.judgement == "pass"
    free = conditions(sm_clock=span(600e6, 900e6, 2040e6))
    slow = expectation(MATRIX, gpu_of(model("L4")), gemm("bf16", 50e12, conditions=free))
    assert isinstance(slow, Expectation)
    assert slow.judgement == "fail"


# --- one link ----------------------------------------------------------------------------------------------------
def links(count: int, *, kind: str, to: str | None = None, down: int = 0) -> tuple[NvLink, ...]:
    return tuple(
        NvLink(source="nvml", link=number, active=number >= down, remote_kind=kind, remote_pci_bus_id=to)
        for number in range(count)
    )


def test_six_of_eighteen_links_are_judged_as_six() -> None:
    row = model("H100 80GB HBM3")
    pair = [gpu_of(row), gpu_of(row, 1)]
    found = expectation(MATRIX, pair[0], to_peer(129e9, peer=pair[1].uuid), pair, joined(pair[1], pair[0], 6))
    assert isinstance(found, Expectation)
    assert (found.ceiling, found.judgement, found.basis) == (150e9, "pass", "NVLink 4, 6 links")


def test_links_that_name_the_other_gpu_count_without_a_topology() -> None:
    row = model("A100-SXM4-80GB")
    other = gpu_of(row, 1)
    gpu = gpu_of(row, nvlinks=(*links(4, kind="gpu", to=other.pci_bus_id), *links(8, kind="gpu", to="0000:09:00.0")))
    found = expectation(MATRIX, gpu, to_peer(92e9, peer=other.uuid), (gpu, other))
    assert isinstance(found, Expectation)
    assert (found.ceiling, found.judgement) == (100e9, "pass")


def test_on_a_switch_the_gpu_with_fewer_links_decides() -> None:
    row = model("H200")
    gpu = gpu_of(row, nvlinks=links(18, kind="switch"))
    other = gpu_of(row, 1, nvlinks=links(18, kind="switch", down=6))
    found = expectation(MATRIX, gpu, to_peer(260e9, peer=other.uuid), (gpu, other))
    assert isinstance(found, Expectation)
    assert found.ceiling == pytest.approx(300e9)


def test_nobody_guesses_the_links_of_a_pair() -> None:
    row = model("H200")
    pair = (gpu_of(row), gpu_of(row, 1))
    found = expectation(MATRIX, pair[0], to_peer(129e9, peer=pair[1].uuid), pair)
    assert found == "the number of NVLinks between the GPUs is not known: compare it with a baseline"


@cases("name", "H800", "H800 NVL")
def test_an_export_model_is_held_to_the_links_that_it_has(name: str) -> None:
    """Whether a sheet states their bandwidth or NVML does."""
    row = model(name)
    rated = tuple(
        NvLink(source="nvml", link=number, active=number < 8, remote_kind="switch", bandwidth=25e9)
        for number in range(18)
    )
    pair = (gpu_of(row, nvlinks=rated), gpu_of(row, 1, nvlinks=rated))
    found = expectation(MATRIX, pair[0], to_peer(170e9, peer=pair[1].uuid), pair)
    assert isinstance(found, Expectation)
    assert (found.ceiling, found.judgement) == (200e9, "pass")
