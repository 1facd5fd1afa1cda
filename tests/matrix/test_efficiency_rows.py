"""Bands of efficiency and rates of links: consistent with one another, and about things that are measured."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import get_args

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.performance.quantities import QUANTITIES, Quantity, framework_tested, library_tested
from envcheck.compat.relations.driver import architecture_name
from envcheck.compat.tables import EfficiencyRow, LinkRow, Precision
from envcheck.rules.catalog import find_rule
from envcheck.rules.speed.ceilings import MEASURED
from tests.every import every

ROOT = Path(__file__).resolve().parents[2]
MATRIX = load_matrix()
PROBES = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "probes").rglob("*.py")))
METHODS = {"cublasLt", "kernel", "mma.sync", "copy engine", *(quantity.needs for quantity in QUANTITIES)}
ARCHITECTURES = {row.name for row in MATRIX.architectures}
NARROW = [row for row in MATRIX.efficiencies if not row.wide]


def is_measured(name: str) -> bool:
    """Whether a probe names it, as a whole or as a group and the member that it puts behind it."""
    splits = (name.rpartition("-"), name.partition("-"))
    group = any(f'"{first}-{{' in PROBES and f'"{rest}"' in PROBES.lower() for first, _, rest in splits)
    return f'"{name}"' in PROBES or group


@every(MATRIX.efficiencies)
def test_a_band_is_one(row: EfficiencyRow) -> None:
    least = 0.001 if library_tested(row.quantity) or framework_tested(row.quantity) else 0.2
    assert least <= row.low < row.high <= 1.0
    assert row.method in METHODS
    assert row.architecture in {"", *ARCHITECTURES}
    if row.gpu:
        model = MATRIX.find_gpu(row.gpu)
        assert model is not None
        assert model.name == row.gpu
        assert architecture_name(MATRIX, model.compute_capability) == row.architecture
    assert row.precision in {"", *get_args(Precision)}
    assert MATRIX.cite(row)


@every(MATRIX.efficiencies)
def test_what_it_is_about_is_measured(row: EfficiencyRow) -> None:
    assert is_measured(row.quantity)
    assert f'"{row.method}"' in PROBES


@every(NARROW)
def test_a_floor_for_others_lies_below_every_band_that_was_measured(row: EfficiencyRow) -> None:
    floors = [
        other
        for other in MATRIX.efficiencies
        if other.wide
        and (other.quantity, other.method) == (row.quantity, row.method)
        and other.precision in ("", row.precision)
        and not other.architecture
    ]
    assert len(floors) == 1
    assert floors[0].low <= row.low


@every([row for row in MATRIX.efficiencies if row.wide])
def test_a_floor_is_weak_and_for_any_architecture(row: EfficiencyRow) -> None:
    assert (row.confidence, row.architecture, row.high) == ("weak", "", 1.0)


@every(NARROW)
def test_a_band_names_its_architecture(row: EfficiencyRow) -> None:
    assert row.architecture


@every(QUANTITIES)
def test_a_band_is_a_share_of_a_ceiling(quantity: Quantity) -> None:
    banded = quantity.name in {row.quantity for row in MATRIX.efficiencies}
    assert banded == bool(quantity.ceiling)


@every(QUANTITIES)
def test_every_quantity_is_measured(quantity: Quantity) -> None:
    assert is_measured(quantity.name)


def test_every_rule_on_figures_exists() -> None:
    assert all(find_rule(name) for name in MEASURED)


def test_a_lane_carries_more_with_each_generation() -> None:
    rates = [row.lane for row in sorted(MATRIX.links, key=lambda row: row.generation)]
    assert [row.generation for row in MATRIX.links] == list(range(1, len(rates) + 1))
    assert all(1.9 < later / earlier < 2.01 for earlier, later in itertools.pairwise(rates))


@pytest.mark.parametrize("row", MATRIX.links, ids=lambda row: row.id)
def test_a_lane_carries_its_transfers_less_the_code(row: LinkRow) -> None:
    transfers = {1: 2.5e9, 2: 5e9, 3: 8e9, 4: 16e9, 5: 32e9}[row.generation]
    code = 8 / 10 if row.generation <= 2 else 128 / 130
    assert row.lane == pytest.approx(transfers * code / 8, rel=1e-4)
