"""What lowered a GPU's clocks while it was measured."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.checks import Evidence, Fix
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import gpu_title, plural
from envcheck.rules.facts.measurements import figures_of
from envcheck.rules.facts.run_conditions import BRAKE, HEAT, OFTEN, POWER_CAP, lowered_limit
from envcheck.rules.fixes.driver import COOLING, SUPPLY, restore_power_limit
from envcheck.snapshot import Conditions, Gpu


def _runs(gpu: Gpu, facts: Facts) -> list[Conditions]:
    return [each.conditions for each in figures_of(gpu, facts.snapshot.measurements) if each.conditions]


@rule(
    layer="gpu",
    scope="node",
    per="gpu",
    arises=lambda gpu, facts: bool(_runs(gpu, facts)),
    explains=(
        "slow-gemm",
        "slow-gpu-memory",
        "slow-library",
        "slow-collective",
        "gpu-straggler",
        "slower-than-baseline",
        "framework-slower-than-library",
    ),
)
def gpu_held_back(gpu: Gpu, facts: Facts) -> Outcome | None:
    """Heat or power held a GPU back while it was measured."""
    runs = _runs(gpu, facts)
    found: list[tuple[str, str, Fix]] = []
    if often := _often(runs, *HEAT):
        hottest = max((run.temperature.high for run in runs if run.temperature), default=None)
        heat = f", at up to {hottest:.0f} °C" if hottest is not None else ""
        found.append(("thermal throttling", f"{often}{heat}", COOLING))
    if often := _often(runs, BRAKE):
        found.append(("power brake", often, SUPPLY))
    lowered = lowered_limit(runs[0])
    if lowered and (often := _often(runs, POWER_CAP)):
        limit, default = lowered
        words = f"power limit of {limit:.0f} W (default {default:.0f} W)"
        found.append((words, often, restore_power_limit(gpu, default)))
    if not found:
        return passed("Neither heat nor power held a run back", decided_by="measured")
    first = found[0][0]
    return Outcome(
        status="warn",
        title=f"{gpu_title(gpu)}: {first} while it was measured",
        message="Its clocks were lowered under load, and its figures with them.",
        evidence=tuple(Evidence(what=what, value=value, source="nvml") for what, value, _ in found),
        fixes=tuple(fix for _, _, fix in found),
        decided_by="measured",
    )


def _often(runs: Sequence[Conditions], *reasons: str) -> str:
    """How much the reasons held runs back, in words; empty where they did not."""
    shares = [share for run in runs if (share := max(run.throttle.get(name, 0.0) for name in reasons)) >= OFTEN]
    return f"in up to {max(shares):.0%} of the samples of {plural(len(shares), 'figure')}" if shares else ""
