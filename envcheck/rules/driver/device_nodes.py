"""The device nodes through which the driver's libraries reach the kernel module."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import DeviceNode, Snapshot
from envcheck.rules.api import Facts, Outcome, rule
from envcheck.rules.facts.machine import (
    driver_of,
    foreign_nodes,
    gpu_nodes,
    in_container,
    is_listed,
    may_have_gpus,
    uses_linux_driver,
)
from envcheck.rules.fixes import driver as fixes
from envcheck.rules.messages.observed import answers, call_evidence, meaning_of
from envcheck.rules.variables.values import failed_start

_CONTROL = "/dev/nvidiactl"
_MEMORY = "/dev/nvidia-uvm"
_MOST = 4
"""Nodes that a title names."""


def _failed_without_reason(_subject: Snapshot, facts: Facts) -> bool:
    """Whether CUDA does not start although module and libraries are there, for no reason that the driver names."""
    failed, kernel = failed_start(facts), facts.snapshot.kernel
    if failed is None or not (kernel and kernel.nvidia and kernel.nvidia.loaded):
        return False
    error = meaning_of(failed)
    unexplained = error is None or error.problem in ("gpu-init-failed", "no-gpu-visible")
    return unexplained and driver_of(facts).installed is not False and uses_linux_driver(facts) and may_have_gpus(facts)


@rule(
    layer="kernel",
    needs=("kernel.device_nodes",),
    arises=_failed_without_reason,
    explains=("gpu-init-failed", "no-gpu-visible"),
    yields_to=("gpu-hidden", "variable-stops-cuda"),
)
def device_node_missing(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A device node of the driver is missing."""
    missing = _missing(facts)
    if not missing:
        return None
    several = len(missing) > 1
    names = ", ".join(missing)
    return Outcome(
        status="fail",
        title=f"{names if len(missing) < _MOST else f'{len(missing)} device nodes of the driver'} "
        f"{'are' if several else 'is'} missing",
        message=f"The kernel module is loaded and the libraries are installed, but do not reach it.{_unloaded(facts)}",
        evidence=(
            Evidence(what="missing", value=names, source="file /dev"),
            *(call_evidence(result) for result in answers(facts)),
        ),
        decided_by="driver-answered",
        layer="container" if in_container(facts) else None,
        fixes=_fixes(missing, facts),
    )


def _unloaded(facts: Facts) -> str:
    module = facts.snapshot.kernel.nvidia if facts.snapshot.kernel else None
    return " The nvidia_uvm module is not loaded." if module and module.uvm_loaded is False else ""


def _missing(facts: Facts) -> tuple[str, ...]:
    kernel, failed = facts.snapshot.kernel, failed_start(facts)
    there = {node.path for node in (kernel.device_nodes if kernel else None) or ()}
    of_gpus = {node.path for node in gpu_nodes(facts) or ()}
    if in_container(facts):
        if not of_gpus:
            return ()
        wanted = [_CONTROL]
    else:
        numbers = [gpu.minor for gpu in facts.own_gpus if gpu.kernel_driver == "nvidia" and gpu.minor is not None]
        first = ["/dev/nvidia0"] if not of_gpus else []
        wanted = [_CONTROL, *([f"/dev/nvidia{number}" for number in sorted(numbers)] or first)]
    missing = [path for path in wanted if path not in there]
    error = meaning_of(failed) if failed else None
    hidden = error is not None and error.problem == "no-gpu-visible"  # cuInit then asks for no memory
    if _MEMORY not in there and (missing or not hidden):
        missing.append(_MEMORY)
    return tuple(missing)


def _does_not_start(subject: Snapshot, facts: Facts) -> bool:
    """Whether CUDA fails for no reason that the driver names, or a GPU stays away whose node is not the driver's."""
    foreign = {node.path for node, _ in foreign_nodes(facts)}
    withheld = any(f"/dev/nvidia{gpu.minor}" in foreign and not is_listed(gpu, facts) for gpu in facts.own_gpus)
    return withheld or _failed_without_reason(subject, facts)


@rule(
    layer="kernel",
    needs=("kernel.device_nodes",),
    arises=_does_not_start,
    explains=("gpu-init-failed", "no-gpu-visible"),
)
def device_node_wrong(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A device node of the driver leads elsewhere."""
    foreign = foreign_nodes(facts)
    if not foreign:
        return None
    names = ", ".join(node.path for node, _ in foreign)
    named = names if len(foreign) < _MOST else f"{len(foreign)} device nodes"
    return Outcome(
        status="fail",
        title=f"{named} {'is not a device' if len(foreign) == 1 else 'are not devices'} of the driver",
        message="The kernel module is loaded and the libraries are installed, but do not reach it.",
        evidence=(
            *(Evidence(what=node.path, value=_found(node, number), source=node.source) for node, number in foreign),
            *(call_evidence(result) for result in answers(facts)),
        ),
        decided_by="driver-answered",
        layer="container" if in_container(facts) else None,
        fixes=_replace([node.path for node, _ in foreign], facts),
    )


def _found(node: DeviceNode, expected: str) -> str:
    found = f"device {node.number}" if node.number else f"no character device ({node.mode})"
    return f"{found}; the driver's has number {expected}" if expected else found


def _replace(paths: Sequence[str], facts: Facts) -> tuple[Fix, ...]:
    command = ("sudo", "rm", "-f", *paths)
    remove = Fix(text="Remove what is in the place of the nodes", command=command, who="root")
    if not in_container(facts):
        return (remove, fixes.make_device_nodes(facts))
    platform = facts.snapshot.platform
    again = Fix(
        text="Start the container anew: it then gets the nodes of the module that runs",
        risk="ends what runs in the container",
    )
    by_number = Fix(
        text="Where its configuration allows devices by number (lxc.cgroup2.devices.allow), name these numbers",
        who="cluster-admin",
    )
    in_lxc = platform is not None and platform.container == "lxc"
    return (again, *((by_number,) if in_lxc else ()), fixes.make_device_nodes(facts, on_host=True))


def _fixes(missing: tuple[str, ...], facts: Facts) -> tuple[Fix, ...]:
    make = fixes.make_device_nodes(facts, on_host=in_container(facts))
    if not in_container(facts):
        return (make,)
    platform = facts.snapshot.platform
    options = " ".join(f"--device {path}" for path in missing)
    by_hand = Fix(text=f"Where its devices are named one by one, add the missing: {options}")
    passes_devices = platform is not None and platform.container in ("docker", "podman")
    return (*fixes.give_gpu_to_container(facts), *((by_hand,) if passes_devices else ()), make)
