"""What of a GPU is not as it should be: by NVIDIA's DCGM, throttled, slow to start, lost, or in need of a reset."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.model.checks import Evidence, Fix, Missing, Status
from envcheck.model.snapshot import PASTED, Clocks, Gpu, KernelMessage, Power, Snapshot, Temperature, Throttle
from envcheck.rules.api import Action, Facts, Outcome, evidence_of, failure, if_known, note, passed, rule, warning
from envcheck.rules.facts.machine import basis_of, is_listed, plural, refused, unanswered
from envcheck.rules.facts.measurements import BRAKE, HARDWARE, HEAT, NEAR_IDLE, POWER_CAP, is_lowered
from envcheck.rules.fixes import driver
from envcheck.rules.fixes.driver import COOLING, SUPPLY, restore_power_limit
from envcheck.rules.messages.observed import answers, call_evidence, kernel_evidence, kernel_messages, results_naming

_NO_DEVICE = "this machine"  # no GPU or switch: of IMEX, which only jobs on several nodes need


@rule(layer="gpu", decided_by="driver-answered", arises=lambda snapshot, _facts: snapshot.dcgm is not None)
def dcgm_unhealthy(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """DCGM reports an unhealthy GPU."""
    dcgm = snapshot.dcgm
    if dcgm is None or dcgm.incidents is None:
        said, missing = f"DCGM says: {dcgm.why_not if dcgm else ''}", (Missing(fact="dcgm.incidents"),)
        return Outcome(status="skipped", title="DCGM's findings", message=said, missing=missing)
    logged = kernel_messages("gpu-error-logged", facts)
    others = (each for each in dcgm.incidents if each not in logged)
    found = sorted(others, key=lambda each: (each.subject == _NO_DEVICE, each.status))
    if not found:
        tests = f"; its diagnostic passed: {', '.join(dcgm.tests)}" if dcgm.tests and not dcgm.incidents else ""
        return passed(f"DCGM found nothing{' else' if logged else ''}{tests}")
    status = "warn" if found[0].subject == _NO_DEVICE else found[0].status
    subjects = list(dict.fromkeys(each.subject for each in found))
    several = plural(len(subjects), "device") if len(subjects) > 2 else " and ".join(subjects)
    return Outcome(
        status=status,
        title=f"DCGM reports {'a failure' if status == 'fail' else 'a warning'} of {several}",
        message=f"{found[0].subject}{f', {found[0].watch}' if found[0].watch else ''}: {found[0].text}",
        evidence=tuple(map(kernel_evidence, found[:8])),
    )


_FAR_BELOW = 0.8  # of the limit: a GPU that it caps draws nearly all of it, unless something else lowers the cap
_HALVED = 0.5  # of the highest clock: a hardware slowdown divides the clocks by two or more
_FULL_LOAD = 0.9
_SET, _SET_LOW = "applications_clocks_setting", 0.7  # of the highest clock: some defaults are three quarters of it
_REASONS = "gpu.throttle.reasons"
_FAST_STATES = (None, "P0", "P1", "P2")
_IDLE_STATES = ("P8", "P10", "P12", "P15")

_MARGIN = 1.0  # degrees: a GPU that the driver throttles for heat is at its limit or just below it
_NEGLIGIBLE = 1.0  # seconds of throttling since the driver was loaded that are not worth a note


@rule(layer="gpu", decided_by="driver-answered", arises=is_listed, remedy=(SUPPLY,))
def power_throttled(gpu: Gpu, facts: Facts) -> Outcome | None:
    """The supply, a lowered power limit or idle clocks slow a GPU down."""
    throttle, power = gpu.throttle or Throttle(), gpu.power or Power()
    reasons, busy = throttle.reasons or (), (gpu.utilisation or 0.0) >= _FULL_LOAD
    if gpu.performance_state in _IDLE_STATES and busy:
        return _idle_under_load(gpu)
    lowered = bool(power.limit and power.limit_default and is_lowered(power.limit, power.limit_default))
    near_idle = busy and _below(gpu, NEAR_IDLE, facts)
    if throttle.reasons is None and not (lowered or near_idle):
        return None if refused(_REASONS, gpu) else unanswered(_REASONS, "Power throttling", facts.snapshot)
    limits = (evidence_of("power limit (W)", power, "limit"), evidence_of("default limit (W)", power, "limit_default"))
    evidence = (if_known("reasons now", throttle, "reasons"), *(limits if lowered else ()))
    title, capped, model = gpu.title, POWER_CAP in reasons, facts.matrix.model_of(gpu)
    sheet = model.power if model and model.kind == "data-center" else None  # boards of other models differ
    status: Status = "warn"
    fixes: tuple[Fix, ...] = ()
    of_one_moment = throttle.source == PASTED and capped  # the driver samples both at different times
    if BRAKE in reasons:
        title += ": the power brake is active"
        message = "The machine's power supply forces the GPU to lower its clocks."
    elif (slowed := _slowed_by_hardware(gpu, facts)) is not None:
        return slowed
    elif of_one_moment and power.draw and power.limit and power.draw < _FAR_BELOW * power.limit:
        title += f": capped at {power.draw:.0f} W, with a limit of {power.limit:.0f} W"
        message = "Something other than the limit lowers the power, such as the supply or the machine's own limit."
        evidence = (*evidence, evidence_of("power (W)", power, "draw"))
    elif lowered and power.limit_default is not None:
        far = bool(power.limit and power.limit < _HALVED * power.limit_default)
        status = "warn" if capped or far else "note"
        watts = f"{power.limit:.0f} W (default {power.limit_default:.0f} W)"
        title += f": power {'capped' if capped else 'limit set'} at {watts}"
        message = "The power limit is below the default" + (" and lowers the clocks now." if capped else ".")
        fixes = (restore_power_limit(gpu, power.limit_default),)
    elif sheet and power.limit_default and power.limit_default < _FAR_BELOW * sheet:
        status = "note"
        title += f": its board's default limit is {power.limit_default:.0f} W, the data sheet's {sheet:.0f} W"
        message = "The maker of the board or of the machine lowered it; no command raises it above the board's highest."
        evidence = (*evidence, evidence_of("default limit (W)", power, "limit_default"))
    elif _SET in reasons and busy and _below(gpu, _SET_LOW, facts):
        title += f": a setting holds the SM clock at {_sm_clock(gpu)}"
        message, evidence = "Every program is slower by as much.", (*evidence, _clock_evidence(gpu))
        smi = ("sudo", "nvidia-smi", *driver.smi_selector(gpu))
        fixes = (Fix("Reset application clocks", (*smi, "-rac"), "root"), _unlock_clocks(gpu))
    elif set(reasons) <= {POWER_CAP} and near_idle:
        title += f": SM clock at {_sm_clock(gpu)} under full load"
        message = "The power cap holds the clocks near idle" if capped else "No reason is named for clocks near idle"
        message += ": check the power supply, its cables, and limits of the machine's firmware."
        evidence = (*evidence, _clock_evidence(gpu), evidence_of("use", gpu, "utilisation"))
        fixes = (SUPPLY, _unlock_clocks(gpu))
    elif (braked := (throttle.seconds or {}).get(BRAKE, 0.0)) >= _NEGLIGIBLE:
        status, title = "note", f"{title}: the power brake was active for {braked:.0f} s"
        message = "Since the driver was loaded; not active now: the machine's power supply forced lower clocks."
    else:
        usual = capped and facts.complains_of_speed
        return _at_its_limit(gpu, power, evidence) if usual else passed("No power throttling", *evidence)
    return Outcome(status=status, title=title, message=message, evidence=evidence, fixes=fixes)


def _at_its_limit(gpu: Gpu, power: Power, evidence: Sequence[Evidence | None]) -> Outcome:
    limits = (if_known("power limit (W)", power, "limit"), if_known("highest limit (W)", power, "limit_max"))
    return note(
        title=f"{gpu.title} works at its power limit" + (f" of {power.limit:.0f} W" if power.limit else ""),
        message="Under full load that is usual: the limit, and not the program, sets the clocks.",
        evidence=(*evidence, *limits),
    )


def _idle_under_load(gpu: Gpu) -> Outcome:
    """The finding on a GPU that works and stays in a state for idle GPUs."""
    clock = f", SM clock at {_sm_clock(gpu)}" if _sm_clock(gpu) else ""
    text = "Something holds its clocks down: often power cables, a laptop's mains adapter, locked clocks or the driver."
    return warning(
        title=f"{gpu.title} stays in the idle state {gpu.performance_state} under full load{clock}",
        message=text,
        evidence=(evidence_of("performance state", gpu, "performance_state"), evidence_of("use", gpu, "utilisation")),
        confidence="medium",
        fixes=(
            _ADAPTER,
            SUPPLY,
            _unlock_clocks(gpu),
            Fix("If it stays so, restart the machine, and then try another release of the driver", who="root"),
        ),
    )


_ADAPTER = Fix("On a laptop: connect its own power adapter, and choose its performance mode")


def _unlock_clocks(gpu: Gpu) -> Fix:
    return Fix("Reset locked clocks", ("sudo", "nvidia-smi", *driver.smi_selector(gpu), "-rgc"), "root")


def _slowed_by_hardware(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A hardware slowdown without one of the reasons that have a name of their own: then the draw was too high."""
    throttle = gpu.throttle or Throttle()
    reasons = set(throttle.reasons or ())
    idle = "gpu_idle" in reasons or gpu.performance_state not in _FAST_STATES
    if HARDWARE not in reasons or idle or reasons & {BRAKE, *HEAT}:
        return None
    evidence = evidence_of("reasons now", throttle, "reasons")
    if _sm_clock(gpu) and not _below(gpu, _HALVED, facts):
        return note(
            title=f"{gpu.title}: a hardware slowdown is reported, at {_sm_clock(gpu)}",
            message="The clocks are not halved; it is also reported while they change.",
            evidence=(evidence, _clock_evidence(gpu)),
        )
    return warning(
        title=f"{gpu.title}: hardware slowdown" + (f", SM clock at {_sm_clock(gpu)}" if _sm_clock(gpu) else ""),
        message="Neither heat nor the power brake is named: protection against a power draw that is too high (Fast "
        "Trigger) halves the clocks or worse, and has no reason of its own.",
        evidence=(evidence, _clock_evidence(gpu) if _sm_clock(gpu) else None),
        fixes=(SUPPLY,),
    )


def _below(gpu: Gpu, share: float, facts: Facts) -> bool:
    """Whether the multiprocessors run at less than a share of their highest clock: the driver's, else that of the data
    sheet, else the lowest of all data sheets.
    """
    clocks, model = gpu.clocks or Clocks(), facts.matrix.model_of(gpu)
    highest = clocks.sm_max or (model and model.clock)
    if clocks.sm and highest is None:
        highest = min(row.clock for row in facts.matrix.gpus if row.clock and row.kind != "tegra")
    return bool(clocks.sm and highest and clocks.sm < share * highest)


def _sm_clock(gpu: Gpu) -> str:
    """``345 of 1980 MHz``, or ``345 MHz``; empty where that is not known."""
    clocks = gpu.clocks or Clocks()
    most = f" of {clocks.sm_max / 1e6:.0f}" if clocks.sm_max else ""
    return f"{clocks.sm / 1e6:.0f}{most} MHz" if clocks.sm else ""


def _clock_evidence(gpu: Gpu) -> Evidence:
    return Evidence("SM clock", _sm_clock(gpu), (gpu.clocks or Clocks()).source_of("sm"))


@rule(layer="gpu", decided_by="driver-answered", arises=is_listed, remedy=(COOLING,))
def thermal_throttled(gpu: Gpu, facts: Facts) -> Outcome | None:
    """Heat throttles a GPU."""
    throttle, temperature = gpu.throttle or Throttle(), gpu.temperature or Temperature()
    if throttle.reasons is None:
        found = _by_temperature(gpu, temperature)
        return found or (None if refused(_REASONS, gpu) else unanswered(_REASONS, "Thermal throttling", facts.snapshot))
    active = [reason for reason in HEAT if reason in throttle.reasons]
    heat = if_known("temperature (°C)", temperature, "gpu")
    evidence = (evidence_of("reasons now", throttle, "reasons"), heat)
    earlier = sum((throttle.seconds or {}).get(reason, 0.0) for reason in HEAT)
    title = f"{gpu.title}: thermal throttling"
    if active:
        message = f"Active now: {', '.join(active)}."
    elif earlier >= _NEGLIGIBLE:
        title, message = f"{title} for {earlier:.0f} s", "Since the driver was loaded; not active now."
        evidence = (Evidence("thermal slowdown since the driver was loaded", f"{earlier:.0f} s", "nvml"), heat)
    else:
        return passed("No thermal throttling", *evidence)
    status: Status = "warn" if active else "note"
    return Outcome(status=status, title=title, message=message, evidence=evidence)


def _by_temperature(gpu: Gpu, temperature: Temperature) -> Outcome | None:
    """The driver lowers the clocks from the maximum operating temperature on."""
    now, limit, power = temperature.gpu, temperature.gpu_max, gpu.power or Power()
    if now is None:
        return None
    if limit is None:
        return _hot_with_little_power(gpu, now, power, temperature)
    evidence = (
        evidence_of("temperature (°C)", temperature, "gpu"),
        evidence_of("maximum operating temperature (°C)", temperature, "gpu_max"),
        if_known("hardware slowdown from (°C)", temperature, "slowdown"),
    )
    how = basis_of(temperature, "gpu")
    if now < limit - _MARGIN:
        return passed(f"{now:.0f} °C, below the limit of {limit:.0f} °C", *evidence, decided_by=how)
    return warning(
        title=f"{gpu.title} is at its temperature limit of {limit:.0f} °C",
        message="The driver lowers the clocks to keep the GPU below its maximum operating temperature.",
        evidence=evidence,
        decided_by=how,
        confidence="medium",
    )


_HOT = 85.0  # degrees: near the limits of most models, and where a GPU that draws little is not with enough air


def _hot_with_little_power(gpu: Gpu, now: float, power: Power, temperature: Temperature) -> Outcome | None:
    """Where no limit of the temperature is known: a busy GPU is hot, and draws less than half of what it may."""
    busy = (gpu.utilisation or 0.0) >= _FULL_LOAD and power.draw and power.limit
    if now < _HOT or not busy or (power.draw or 0.0) >= _HALVED * (power.limit or 0.0):
        return None
    return warning(
        title=f"{gpu.title}: {now:.0f} °C at {power.draw:.0f} of {power.limit:.0f} W under full load",
        message="Heat lowers its clocks, or it would draw more: it is not cooled enough.",
        evidence=(evidence_of("temperature (°C)", temperature, "gpu"), evidence_of("power (W)", power, "draw")),
        decided_by=basis_of(temperature, "gpu"),
        confidence="medium",
    )


_DAEMON = Fix(
    "On a server, run the persistence daemon",
    command=("sudo", "systemctl", "enable", "--now", "nvidia-persistenced"),
    who="root",
)


@rule(
    layer="driver", decided_by="driver-answered", needs=("gpu.persistence_mode",), arises=is_listed, remedy=(_DAEMON,)
)
def persistence_mode_off(gpu: Gpu, facts: Facts) -> Outcome | None:
    """Persistence mode is off."""
    evidence = evidence_of("persistence mode", gpu, "persistence_mode")
    if gpu.persistence_mode:
        return passed("Persistence mode is on", evidence)
    return note(
        title=f"{gpu.title}: persistence mode is off",
        message="The first program after a pause waits while the driver initializes the GPU.",
        evidence=(evidence,),
        fixes=(msgspec.structs.replace(_DAEMON, command=()) if facts.platform.wsl else _DAEMON,),
    )


def _has_gpus(_subject: Snapshot, facts: Facts) -> bool:
    return bool(facts.own_gpus)


def _gpu_of(message: KernelMessage, facts: Facts) -> Gpu | None:
    """The GPU that a line of the kernel log names; the log omits the PCI function."""
    place = (message.pci_bus_id or "").lower()
    if not place:
        return None
    return next((gpu for gpu in facts.gpus if (gpu.pci_bus_id or "").startswith(place)), None)


def _answers_now(message: KernelMessage, facts: Facts) -> bool:
    """Whether the GPU of an older log line answers the driver now."""
    gpu = _gpu_of(message, facts)
    return facts.nvml_answers and gpu is not None and gpu.index is not None and not gpu.errors


_IF_AGAIN = "If it happens again: "
_LOOK_AT_SLOT = Fix(
    f"{_IF_AGAIN}check the GPU's power cables, temperature and slot; another slot, or another GPU in this one, tells "
    "which is at fault",
    who="cluster-admin",
)


@rule(
    layer="gpu", decided_by="driver-answered", needs=("gpus",), arises=_has_gpus, remedy=(*driver.REBOOT, _LOOK_AT_SLOT)
)
def gpu_lost(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A GPU fell off the bus."""
    lost = tuple((gpu, error) for gpu in facts.gpus for error in results_naming("gpu-lost", gpu.errors))
    calls = results_naming("gpu-lost", answers(facts))
    lines = kernel_messages("gpu-lost", facts)
    if not (lost or calls or lines):
        return passed("No GPU is lost") if facts.nvml_answers else None
    back = not lost and not calls and all(_answers_now(message, facts) for message in lines)
    names = ", ".join(dict.fromkeys([*(gpu.title for gpu, _ in lost), *(_place(each, facts) for each in lines)]))
    return Outcome(
        status="warn" if back else "fail",
        title=f"{names or 'A GPU'} {'was lost since boot and answers again' if back else 'is lost'}",
        message="The driver could not reach the GPU over PCI Express" + (" for a while." if back else "."),
        evidence=(*(call_evidence(call) for _, call in lost), *map(call_evidence, calls), *map(kernel_evidence, lines)),
        action="reboot",
    )


def _place(message: KernelMessage, facts: Facts) -> str:
    gpu = _gpu_of(message, facts)
    return gpu.title if gpu else f"GPU {message.pci_bus_id}" if message.pci_bus_id else "A GPU"


@rule(
    layer="gpu",
    decided_by="driver-answered",
    needs=("kernel.log.readable",),
    arises=_has_gpus,
    remedy=lambda facts: (
        *driver.REBOOT,
        *driver.install_driver(facts, f"{_IF_AGAIN}update the NVIDIA driver", new=False),
    ),
)
def gpu_firmware_timeout(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The GPU firmware (GSP) stopped answering."""
    log, messages = facts.kernel.log, kernel_messages("gpu-firmware-timeout", facts)
    if log is not None and not log.readable and not messages:
        text = f"no access to the kernel log ({log.why_not or 'no permission'}); run sudo dmesg | grep Xid"
        missing = (Missing(fact="kernel.log.messages"),)
        return Outcome(status="skipped", title="Xid events in the kernel log", message=text, missing=missing)
    if not messages:
        return passed("No GPU firmware timeout since boot")
    back = all(_answers_now(message, facts) for message in messages)
    names = ", ".join(dict.fromkeys(_place(message, facts) for message in messages))
    return Outcome(
        status="warn" if back else "fail",
        title=f"The firmware of {names} {'did not answer for a while' if back else 'does not answer'}",
        message="The driver's requests to the GPU System Processor (GSP) timed out.",
        evidence=tuple(map(kernel_evidence, messages)),
        action="reboot",
        fixes=(*driver.REBOOT, *driver.update_driver(facts)),
    )


_ACTIONS: dict[str, Action] = {
    "gpu_reset": "reset", "bus_reset": "reset", "node_reboot": "reboot", "system_reboot": "reboot",
    "drain_p2p": "drain", "drain_and_reset": "drain",
}  # fmt: skip

_ADVICE = {"reset": "needs a reset", "reboot": "needs a restart of the machine", "drain": "must be drained"}

_RESTART_IMEX = Fix(
    "Restart the IMEX service, which shares memory between nodes, on all nodes (recover_imex_domain)",
    command=("sudo", "systemctl", "restart", "nvidia-imex"),
    who="cluster-admin",
    risk="ends jobs that share memory across the nodes",
)


@rule(
    layer="gpu",
    decided_by="driver-answered",
    arises=lambda gpu, facts: is_listed(gpu, facts) or bool(gpu.errors),
    remedy=(driver.reset(None),),
)
def gpu_needs_reset(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A GPU needs a reset, or its machine a restart."""
    required = results_naming("gpu-needs-reset", gpu.errors)
    advice = gpu.recovery_action
    if not required and advice == "none":
        return passed(f"{gpu.title} needs no recovery")
    if not required and advice is None:
        refused = "recovery_action" in gpu.not_supported
        return None if refused else unanswered("gpu.recovery_action", "Recovery action", facts.snapshot)
    action = "reset" if required else _ACTIONS.get(advice or "", "none")
    if advice == "recover_imex_domain":
        fixes: tuple[Fix, ...] = (_RESTART_IMEX,)
    elif action == "none":
        text = f"Follow the driver's recovery action ({advice}), as its documentation describes"
        fixes = (Fix(text, who="cluster-admin"),)
    else:
        fixes = driver.REBOOT if action == "reboot" else (driver.reset(gpu),)
    return failure(
        title=f"{gpu.title} {_ADVICE.get(action, f'needs recovery: {advice}')}",
        message="After a fault, the driver requires this before the GPU is used again.",
        evidence=(*map(call_evidence, required), if_known("recovery action", gpu, "recovery_action")),
        action=action,
        fixes=fixes,
    )
