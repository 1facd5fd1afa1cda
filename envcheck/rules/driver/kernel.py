"""NVIDIA's kernel module, and the device nodes through which the driver's libraries reach it."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import PASTED, Gpu, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import (
    doubt_inside_wsl,
    foreign_nodes,
    gpu_nodes,
    gpu_title,
    in_container,
    is_listed,
    may_have_gpus,
    on_plain_host,
    uses_linux_driver,
)
from envcheck.rules.fixes import driver
from envcheck.rules.fixes.driver import give_gpu_to_container, make_device_nodes
from envcheck.rules.messages.observed import (
    answers,
    call_evidence,
    kernel_evidence,
    kernel_messages,
    meaning_of,
    tells_of,
)
from envcheck.rules.variables.values import failed_start

_CONTROL = "/dev/nvidiactl"
_MEMORY = "/dev/nvidia-uvm"
_MOST = 4
"""Nodes that a title names."""


def _failed_without_reason(_subject: Snapshot, facts: Facts) -> bool:
    """Whether CUDA does not start although module and libraries are there, for no reason that the driver names."""
    failed = failed_start(facts)
    if failed is None or not facts.module.loaded:
        return False
    error = meaning_of(failed)
    unexplained = error is None or error.problem in ("gpu-init-failed", "no-gpu-visible")
    return unexplained and facts.driver.installed is not False and uses_linux_driver(facts) and may_have_gpus(facts)


@rule(
    layer="kernel",
    needs=("kernel.device_nodes",),
    arises=_failed_without_reason,
    explains=("gpu-init-failed", "no-gpu-visible"),
    yields_to=("gpu-hidden", "variable-stops-cuda"),
)
def device_node_missing(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A device node of the driver is missing."""
    missing = _missing_nodes(facts)
    if not missing:
        return None
    names = ", ".join(missing)
    unloaded = " The nvidia_uvm module is not loaded." if facts.module.uvm_loaded is False else ""
    fixes = (make_device_nodes(facts, on_host=in_container(facts)),)
    if in_container(facts):
        options = " ".join(f"--device {path}" for path in missing)
        by_hand = (Fix(text=f"Where its devices are named one by one, add the missing: {options}"),)
        passes_devices = facts.platform.container in ("docker", "podman")
        fixes = (*give_gpu_to_container(facts), *(by_hand if passes_devices else ()), *fixes)
    return Outcome(
        status="fail",
        title=f"{names if len(missing) < _MOST else f'{len(missing)} device nodes of the driver'} "
        f"{'are' if len(missing) > 1 else 'is'} missing",
        message=f"The kernel module is loaded and the libraries are installed, but do not reach it.{unloaded}",
        evidence=(
            Evidence(what="missing", value=names, source="file /dev"),
            *map(call_evidence, answers(facts)),
        ),
        decided_by="driver-answered",
        layer="container" if in_container(facts) else None,
        fixes=fixes,
    )


def _missing_nodes(facts: Facts) -> tuple[str, ...]:
    failed, there = failed_start(facts), {node.path for node in facts.kernel.device_nodes or ()}
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
    evidence = []
    for node, number in foreign:
        found = f"device {node.number}" if node.number else f"no character device ({node.mode})"
        expected = f"; the driver's has number {number}" if number else ""
        evidence.append(Evidence(what=node.path, value=f"{found}{expected}", source=node.source))
    return Outcome(
        status="fail",
        title=f"{named} {'is not a device' if len(foreign) == 1 else 'are not devices'} of the driver",
        message="The kernel module is loaded and the libraries are installed, but do not reach it.",
        evidence=(*evidence, *map(call_evidence, answers(facts))),
        decided_by="driver-answered",
        layer="container" if in_container(facts) else None,
        fixes=_replace_nodes([node.path for node, _ in foreign], facts),
    )


def _replace_nodes(paths: Sequence[str], facts: Facts) -> tuple[Fix, ...]:
    command = ("sudo", "rm", "-f", *paths)
    remove = Fix(text="Remove what is in the place of the nodes", command=command, who="root")
    if not in_container(facts):
        return (remove, make_device_nodes(facts))
    again = Fix(
        text="Start the container anew: it then gets the nodes of the module that runs",
        risk="ends what runs in the container",
    )
    by_number = Fix(
        text="Where its configuration allows devices by number (lxc.cgroup2.devices.allow), name these numbers",
        who="cluster-admin",
    )
    in_lxc = facts.platform.container == "lxc"
    return (again, *((by_number,) if in_lxc else ()), make_device_nodes(facts, on_host=True))


_RIVALS = ("nouveau", "nova")

_IN_WSL = doubt_inside_wsl(
    "nvidia-smi cannot reach the driver inside WSL: several causes are possible",
    "WSL loads no kernel module; Windows may not pass the GPU through. Update the driver in Windows and WSL itself "
    "(wsl --update), then restart WSL (wsl --shutdown).",
)


def _concerns_module(_subject: Snapshot, facts: Facts) -> bool:
    """Whether this system should load the module: it has its own GPU and the driver libraries."""
    return uses_linux_driver(facts) and may_have_gpus(facts) and facts.driver.installed is not False


def _is_not_loaded(subject: Snapshot, facts: Facts) -> bool:
    """Whether such a system does not load it; not in a container, whose /lib/modules does not belong to the kernel."""
    return _concerns_module(subject, facts) and on_plain_host(facts) and facts.module.loaded is False


def _may_lack_module(subject: Snapshot, facts: Facts) -> bool:
    """Whether it is not loaded, or a text lists what was built, and in which nothing shows a running driver."""
    module = facts.module
    listed = module.loaded is None and module.built is False and facts.driver.release is None
    return _is_not_loaded(subject, facts) or (listed and _concerns_module(subject, facts))


def _on_other_drivers(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that nouveau or nova drives."""
    return tuple(gpu for gpu in facts.own_gpus if (gpu.kernel_driver or "").lower().startswith(_RIVALS))


@rule(
    layer="kernel",
    needs=("kernel.nvidia.loaded",),
    arises=_concerns_module,
    remedy=driver.load_module,
    doubt=_IN_WSL,
    explains=("container-without-gpu", "driver-too-old", "gpu-code-missing", "gpu-init-failed", "no-gpu-visible"),
)
def driver_not_loaded(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVIDIA kernel module is not loaded."""
    module = facts.module
    if module.loaded:
        words = ("Kernel module", module.version, "loaded", f"({module.flavour})" if module.flavour else None)
        title = " ".join(word for word in words if word)
        return passed(title, evidence_of("kernel module", module, "loaded"), decided_by="driver-answered")
    evidence = [evidence_of("nvidia module loaded", module, "loaded")]
    if module.blacklisted_by:
        evidence.append(evidence_of("loading blocked by", module, "blacklisted_by"))
    answer = facts.driver.nvml
    if answer and answer.code:
        evidence.append(Evidence(what=answer.call, value=f"{answer.code} {answer.name}".strip(), source="nvml"))
    return Outcome(
        status="fail",
        title="The NVIDIA kernel module is not loaded",
        message="The driver libraries are installed, but the kernel module that reaches the GPU is not loaded.",
        evidence=tuple(evidence),
        decided_by="driver-answered",
    )


@rule(
    layer="kernel",
    needs=("kernel.nvidia.built",),
    arises=_may_lack_module,
    remedy=driver.build_module,
    explains=("driver-not-loaded", "gpu-init-failed", "no-gpu-visible"),
)
def kernel_module_missing(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """No NVIDIA kernel module is built for the running kernel."""
    module, platform = facts.module, facts.platform
    release = platform.kernel_release or "the running kernel"
    if module.built:
        return passed(f"The kernel module is built for {release}", evidence_of("module file", module, "file"))
    evidence = [evidence_of("module built for the running kernel", module, "built")]
    built_for = ", ".join(module.built_for or ())
    if built_for:
        evidence.append(Evidence(what="built for", value=built_for, source=module.source_of("built_for")))
    if platform.kernel_release:
        evidence.append(evidence_of("running kernel", platform, "kernel_release"))
    return Outcome(
        status="fail",
        title="No NVIDIA kernel module is built for the running kernel",
        message=f"/lib/modules has no nvidia module for {release}" + (f", only for {built_for}." if built_for else "."),
        evidence=tuple(evidence),
        decided_by="driver-answered",
    )


@rule(
    layer="kernel",
    needs=("kernel.nouveau_loaded",),
    arises=_concerns_module,
    remedy=driver.disable_nouveau,
    explains=("driver-not-loaded", "gpu-init-failed", "no-gpu-visible"),
)
def nouveau_loaded(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The open-source driver nouveau or nova holds the GPU."""
    kernel, taken = facts.kernel, _on_other_drivers(facts)
    messages = kernel_messages("nouveau-loaded", facts.snapshot)
    known = all(gpu.kernel_driver is not None for gpu in facts.own_gpus) and bool(facts.own_gpus)
    loaded = [name for name in _RIVALS if getattr(kernel, f"{name}_loaded")]
    evidence = (
        *(evidence_of(f"{name} loaded", kernel, f"{name}_loaded") for name in loaded),
        *(Evidence(what=gpu_title(gpu), value=f"bound to {gpu.kernel_driver}", source="sysfs") for gpu in taken),
        *map(kernel_evidence, messages),
    )
    if facts.module.loaded:
        if not taken:
            return None
        text = f"{', '.join(map(gpu_title, taken))} uses nouveau or nova, so CUDA does not see it."
        return Outcome(status="note", title="A GPU does not use NVIDIA's driver", message=text, evidence=evidence)
    if not loaded or (known and not taken):
        return passed("Neither nouveau nor nova holds a GPU")
    return Outcome(
        status="fail",
        title=f"The {' and '.join(loaded)} driver holds the GPU",
        message="NVIDIA's module cannot bind a GPU that another kernel driver holds.",
        evidence=evidence,
        decided_by="driver-answered",
    )


def _may_be_blocked(subject: Snapshot, facts: Facts) -> bool:
    """Whether a module that is built is not loaded; in a text, whether it says so of the driver and that Secure Boot
    is on.
    """
    stated = facts.kernel.source == PASTED and facts.kernel.secure_boot and facts.module.built is None
    if stated and _concerns_module(subject, facts) and not facts.driver.names_release:
        return tells_of(facts.snapshot, "driver-not-loaded")
    return _is_not_loaded(subject, facts) and facts.module.built is True


@rule(
    layer="kernel",
    needs=("kernel.secure_boot",),
    arises=_may_be_blocked,
    remedy=driver.trust_module,
    explains=("driver-not-loaded", "gpu-init-failed", "no-gpu-visible"),
)
def secure_boot_blocks_module(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Secure Boot blocks the NVIDIA kernel module."""
    kernel, module = facts.kernel, facts.module
    messages = kernel_messages("secure-boot-blocks-module", facts.snapshot)
    if not kernel.secure_boot:
        return passed("Secure Boot is off", evidence_of("Secure Boot", kernel, "secure_boot"))
    blocked = module.blacklisted_by or kernel.nouveau_loaded or kernel.nova_loaded or _on_other_drivers(facts)
    if not messages and blocked:
        return None
    return Outcome(
        status="fail",
        title=f"Secure Boot {'blocks' if messages else 'probably blocks'} the NVIDIA kernel module",
        message="The module is not loaded, and Secure Boot is on.",
        evidence=(
            evidence_of("Secure Boot", kernel, "secure_boot"),
            *((evidence_of("module built", module, "built"),) if module.built is not None else ()),
            *map(kernel_evidence, messages),
        ),
        decided_by="driver-answered" if messages else "inferred",
        confidence="high" if messages else "medium",
    )
