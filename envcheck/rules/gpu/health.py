"""GPUs that fell off the bus, whose firmware hangs, or that need a reset."""

from __future__ import annotations

from envcheck.model.checks import Fix, Missing
from envcheck.model.snapshot import Gpu, KernelMessage, Snapshot
from envcheck.rules.api import Action, Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import gpu_title, is_listed, nvml_answers
from envcheck.rules.facts.needs import unanswered
from envcheck.rules.fixes import driver
from envcheck.rules.messages.observed import answers, call_evidence, kernel_evidence, kernel_messages, results_naming


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
    return nvml_answers(facts) and gpu is not None and gpu.index is not None and not gpu.errors


@rule(
    layer="gpu",
    needs=("gpus",),
    arises=_has_gpus,
    remedy=driver.REBOOT,
    explains=(
        "gpu-error-logged",
        "gpu-firmware-timeout",
        "gpu-init-failed",
        "gpu-needs-reset",
        "no-gpu-visible",
        "nvlink-down",
    ),
)
def gpu_lost(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A GPU fell off the bus."""
    lost = tuple((gpu, error) for gpu in facts.gpus for error in results_naming("gpu-lost", gpu.errors))
    calls = results_naming("gpu-lost", answers(facts))
    messages = kernel_messages("gpu-lost", facts.snapshot)
    if not (lost or calls or messages):
        return passed("No GPU is lost", decided_by="driver-answered") if nvml_answers(facts) else None
    back = not lost and not calls and all(_answers_now(message, facts) for message in messages)
    names = ", ".join(
        dict.fromkeys([*(gpu_title(gpu) for gpu, _ in lost), *(_place(each, facts) for each in messages)])
    )
    return Outcome(
        status="warn" if back else "fail",
        title=f"{names or 'A GPU'} {'was lost since boot and answers again' if back else 'is lost'}",
        message="The driver could not reach the GPU over PCI Express" + (" for a while." if back else "."),
        evidence=(
            *(call_evidence(error) for _, error in lost),
            *map(call_evidence, calls),
            *map(kernel_evidence, messages),
        ),
        decided_by="driver-answered",
        action="reboot",
    )


def _place(message: KernelMessage, facts: Facts) -> str:
    gpu = _gpu_of(message, facts)
    return gpu_title(gpu) if gpu else f"GPU {message.pci_bus_id}" if message.pci_bus_id else "A GPU"


@rule(
    layer="gpu",
    needs=("kernel.log.readable",),
    arises=_has_gpus,
    remedy=driver.REBOOT,
    explains=("gpu-error-logged", "gpu-init-failed", "gpu-needs-reset", "no-gpu-visible"),
)
def gpu_firmware_timeout(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The GPU firmware (GSP) stopped answering."""
    log, messages = facts.kernel.log, kernel_messages("gpu-firmware-timeout", facts.snapshot)
    if log is not None and not log.readable and not messages:
        text = f"no access to the kernel log ({log.why_not or 'no permission'}); run sudo dmesg | grep Xid"
        missing = (Missing(fact="kernel.log.messages"),)
        return Outcome(status="skipped", title="Xid events in the kernel log", message=text, missing=missing)
    if not messages:
        return passed("No GPU firmware timeout since boot", decided_by="driver-answered")
    back = all(_answers_now(message, facts) for message in messages)
    names = ", ".join(dict.fromkeys(_place(message, facts) for message in messages))
    return Outcome(
        status="warn" if back else "fail",
        title=f"The firmware of {names} {'did not answer for a while' if back else 'does not answer'}",
        message="The driver's requests to the GPU System Processor (GSP) timed out.",
        evidence=tuple(map(kernel_evidence, messages)),
        decided_by="driver-answered",
        action="reboot",
        fixes=(*driver.REBOOT, *driver.update_driver(facts)),
    )


_ACTIONS: dict[str, Action] = {
    "gpu_reset": "reset",
    "bus_reset": "reset",
    "node_reboot": "reboot",
    "system_reboot": "reboot",
    "drain_p2p": "drain",
    "drain_and_reset": "drain",
}

_ADVICE = {"reset": "needs a reset", "reboot": "needs a restart of the machine", "drain": "must be drained"}

_RESTART_IMEX = Fix(
    text="Restart the IMEX service, which shares memory between nodes, on all nodes (recover_imex_domain)",
    command=("sudo", "systemctl", "restart", "nvidia-imex"),
    who="cluster-admin",
    risk="ends jobs that share memory across the nodes",
)


@rule(
    layer="gpu",
    per="gpu",
    arises=lambda gpu, facts: is_listed(gpu, facts) or bool(gpu.errors),
    remedy=lambda _facts: (driver.reset(None),),
    explains=("gpu-init-failed", "no-gpu-visible"),
)
def gpu_needs_reset(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A GPU needs a reset, or its machine a restart."""
    required = results_naming("gpu-needs-reset", gpu.errors)
    advice = gpu.recovery_action
    if not required and advice == "none":
        return passed(f"{gpu_title(gpu)} needs no recovery", decided_by="driver-answered")
    if not required and advice is None:
        refused = "recovery_action" in gpu.not_supported
        return None if refused else unanswered("gpu.recovery_action", "Recovery action", facts.snapshot)
    action = "reset" if required else _ACTIONS.get(advice or "", "none")
    if advice == "recover_imex_domain":
        fixes: tuple[Fix, ...] = (_RESTART_IMEX,)
    elif action == "none":
        text = f"Follow the driver's recovery action ({advice}), as its documentation describes"
        fixes = (Fix(text=text, who="cluster-admin"),)
    else:
        fixes = driver.REBOOT if action == "reboot" else (driver.reset(gpu),)
    told = (evidence_of("recovery action", gpu, "recovery_action"),) if advice else ()
    return Outcome(
        status="fail",
        title=f"{gpu_title(gpu)} {_ADVICE.get(action, f'needs recovery: {advice}')}",
        message="After a fault, the driver requires this before the GPU is used again.",
        evidence=(*map(call_evidence, required), *told),
        decided_by="driver-answered",
        action=action,
        fixes=fixes,
    )
