"""Heat and power that lowered a GPU's clocks while it was measured explain its low figures."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.snapshot import Conditions
from tests.rules.machines import check_of, h200, machine, statuses
from tests.rules.speed.measurements import conditions, figure, samples_around

GPU = h200(0, sm_count=132)
CAP = {"power_limit": 500.0, "throttle": {"sw_power_cap": 0.9}}


def measured(value: float = 500e12, **changes: Any) -> Any:
    run: Conditions = conditions(**changes)
    product = figure(
        "gemm",
        value,
        "FLOP/s",
        method="cublasLt",
        precision="bf16",
        shape=(8192, 8192, 8192),
        conditions=run,
        samples=samples_around(value),
    )
    return machine(GPU, measurements=(product,))


@pytest.mark.parametrize(
    ("changes", "title", "command"),
    [
        ({"throttle": {"sw_thermal_slowdown": 1.0}}, "thermal throttling", ()),
        ({"throttle": {"hw_thermal_slowdown": 0.2}}, "thermal throttling", ()),
        ({"throttle": {"hw_power_brake_slowdown": 0.5}}, "power brake", ()),
        (CAP, "power limit of 500 W (default 700 W)", ("sudo", "nvidia-smi", "-i", GPU.pci_bus_id, "-pl", "700")),
    ],
)
def test_what_held_it_back_is_the_cause(changes: Any, title: str, command: tuple[str, ...]) -> None:
    found = check_of("gpu-held-back", measured(**changes))
    assert found.status in ("warn", "fail")
    assert f": {title} while it was measured" in found.title
    assert [fix.command for fix in found.fixes] == [command]
    assert check_of("slow-gemm", measured(**changes)).explained_by == found.id


@pytest.mark.parametrize(
    "changes",
    [{}, {"throttle": {"sw_power_cap": 1.0}}, {"power_limit": 500.0}, {"throttle": {"sw_thermal_slowdown": 0.05}}],
)
def test_a_run_at_its_own_limits_was_not_held_back(changes: Any) -> None:
    """The power cap at the default limit is normal, and a moment of heat does not count."""
    found = check_of("gpu-held-back", measured(800e12, **changes))
    assert (found.status, found.title) == ("pass", "Neither heat nor power held a run back")


def test_the_hottest_run_is_told() -> None:
    heat = conditions().temperature
    assert heat
    found = check_of("gpu-held-back", measured(throttle={"sw_thermal_slowdown": 1.0}))
    (evidence,) = found.evidence
    assert evidence.value == f"in up to 100% of the samples of 1 figure, at up to {heat.high:.0f} °C"


def test_without_a_measurement_nothing_is_asked() -> None:
    assert statuses("gpu-held-back", machine(GPU)) == ()
