"""What throttles a GPU, and what makes each start slow."""

from __future__ import annotations

import msgspec

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import PASTED, Gpu, Power, Temperature, Throttle
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import basis_of, gpu_title, is_listed
from envcheck.rules.facts.needs import refused, unanswered
from envcheck.rules.facts.run_conditions import BRAKE, HEAT, POWER_CAP, is_lowered
from envcheck.rules.fixes.driver import COOLING, SUPPLY, restore_power_limit

_FAR_BELOW = 0.8
"""Share of the limit: a GPU that it caps draws nearly all of it, unless something else lowers the cap."""

_MARGIN = 1.0
"""Degrees: a GPU that the driver throttles for heat is at its limit or just below it."""

_NEGLIGIBLE = 1.0
"""Seconds of throttling since the driver was loaded that are not worth a note."""


@rule(layer="gpu", per="gpu", needs=("gpu.throttle.reasons",), arises=is_listed, remedy=(SUPPLY,))
def power_throttled(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """The power supply or a lowered power limit throttles a GPU."""
    throttle, power = gpu.throttle or Throttle(), gpu.power or Power()
    reasons = throttle.reasons or ()
    lowered = bool(power.limit and power.limit_default and is_lowered(power.limit, power.limit_default))
    limits = (
        (evidence_of("power limit (W)", power, "limit"), evidence_of("default limit (W)", power, "limit_default"))
        if lowered
        else ()
    )
    evidence = (evidence_of("reasons now", throttle, "reasons"), *limits)
    if BRAKE in reasons:
        return Outcome(
            status="warn",
            title=f"{gpu_title(gpu)}: the power brake is active",
            message="The machine's power supply forces the GPU to lower its clocks.",
            evidence=evidence,
            decided_by="driver-answered",
        )
    told = throttle.source == PASTED and POWER_CAP in reasons  # the driver samples both at different times
    if told and power.draw and power.limit and power.draw < _FAR_BELOW * power.limit:
        return Outcome(
            status="warn",
            title=f"{gpu_title(gpu)}: capped at {power.draw:.0f} W, with a limit of {power.limit:.0f} W",
            message="Something other than the limit lowers the power, such as the supply or the machine's own limit.",
            evidence=(*evidence, evidence_of("power (W)", power, "draw")),
            decided_by="driver-answered",
        )
    if not lowered or power.limit_default is None:
        return passed("No power throttling", *evidence, decided_by="driver-answered")
    capped = POWER_CAP in reasons
    watts = f"{power.limit:.0f} W (default {power.limit_default:.0f} W)"
    return Outcome(
        status="warn" if capped else "note",
        title=f"{gpu_title(gpu)}: power {'capped' if capped else 'limit set'} at {watts}",
        message="The power limit is below the default" + (" and lowers the clocks now." if capped else "."),
        evidence=evidence,
        decided_by="driver-answered",
        fixes=(restore_power_limit(gpu, power.limit_default),),
    )


@rule(layer="gpu", per="gpu", arises=is_listed, remedy=(COOLING,))
def thermal_throttled(gpu: Gpu, facts: Facts) -> Outcome | None:
    """Heat throttles a GPU."""
    throttle, temperature = gpu.throttle or Throttle(), gpu.temperature or Temperature()
    if throttle.reasons is None:
        found, need = _by_temperature(gpu, temperature), "gpu.throttle.reasons"
        return found or (None if refused(need, gpu) else unanswered(need, "Thermal throttling", facts.snapshot))
    active = [reason for reason in HEAT if reason in throttle.reasons]
    heat = (evidence_of("temperature (°C)", temperature, "gpu"),) if temperature.gpu is not None else ()
    evidence = (evidence_of("reasons now", throttle, "reasons"), *heat)
    if active:
        return Outcome(
            status="warn",
            title=f"{gpu_title(gpu)}: thermal throttling",
            message=f"Active now: {', '.join(active)}.",
            evidence=evidence,
            decided_by="driver-answered",
        )
    earlier = sum((throttle.seconds or {}).get(reason, 0.0) for reason in HEAT)
    if earlier >= _NEGLIGIBLE:
        spent = Evidence(what="thermal slowdown since the driver was loaded", value=f"{earlier:.0f} s", source="nvml")
        return Outcome(
            status="note",
            title=f"{gpu_title(gpu)}: thermal throttling for {earlier:.0f} s",
            message="Since the driver was loaded; not active now.",
            evidence=(spent, *heat),
            decided_by="driver-answered",
        )
    return passed("No thermal throttling", *evidence, decided_by="driver-answered")


def _by_temperature(gpu: Gpu, temperature: Temperature) -> Outcome | None:
    """The driver lowers the clocks from the maximum operating temperature on."""
    now, limit = temperature.gpu, temperature.gpu_max
    if now is None or limit is None:
        return None
    bounds = (("maximum operating temperature (°C)", "gpu_max"), ("hardware slowdown from (°C)", "slowdown"))
    evidence = (
        evidence_of("temperature (°C)", temperature, "gpu"),
        *(evidence_of(what, temperature, field) for what, field in bounds if getattr(temperature, field) is not None),
    )
    how = basis_of(temperature, "gpu")
    if now < limit - _MARGIN:
        return passed(f"{now:.0f} °C, below the limit of {limit:.0f} °C", *evidence, decided_by=how)
    return Outcome(
        status="warn",
        title=f"{gpu_title(gpu)} is at its temperature limit of {limit:.0f} °C",
        message="The driver lowers the clocks to keep the GPU below its maximum operating temperature.",
        evidence=evidence,
        decided_by=how,
        confidence="medium",
    )


_DAEMON = Fix(
    text="On a server, run the persistence daemon",
    command=("sudo", "systemctl", "enable", "--now", "nvidia-persistenced"),
    who="root",
)


@rule(layer="driver", per="gpu", needs=("gpu.persistence_mode",), arises=is_listed, remedy=(_DAEMON,))
def persistence_mode_off(gpu: Gpu, facts: Facts) -> Outcome | None:
    """Persistence mode is off."""
    evidence = evidence_of("persistence mode", gpu, "persistence_mode")
    if gpu.persistence_mode:
        return passed("Persistence mode is on", evidence, decided_by="driver-answered")
    return Outcome(
        status="note",
        title=f"{gpu_title(gpu)}: persistence mode is off",
        message="The first program after a pause waits while the driver initializes the GPU.",
        evidence=(evidence,),
        decided_by="driver-answered",
        fixes=(msgspec.structs.replace(_DAEMON, command=()) if facts.platform.wsl else _DAEMON,),
    )
