"""The way to CUDA: NVIDIA's kernel module, the device nodes that lead to it, and whether CUDA starts on each GPU."""

from __future__ import annotations

from collections.abc import Sequence

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import PASTED, ApiResult, Gpu, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, if_known, note, passed, rule
from envcheck.rules.facts.machine import doubt_inside_wsl, is_listed
from envcheck.rules.facts.variables import VISIBLE
from envcheck.rules.fixes import driver as fixes
from envcheck.rules.messages.observed import (
    answers,
    call_evidence,
    kernel_evidence,
    kernel_messages,
    meaning_of,
    tells_of,
)
from envcheck.rules.variables.values import failed_start
from envcheck.rules.variables.visible_devices import in_batch_job

_CONTROL = "/dev/nvidiactl"
_MEMORY = "/dev/nvidia-uvm"
_MOST = 4  # Nodes that a title names


def _failed_without_reason(_subject: Snapshot, facts: Facts) -> bool:
    """Whether CUDA does not start although module and libraries are there, for no reason that the driver names."""
    failed = failed_start(facts)
    if failed is None or not facts.module.loaded:
        return False
    error = meaning_of(failed)
    unexplained = error is None or error.problem in ("gpu-init-failed", "no-gpu-visible")
    return unexplained and facts.driver.installed is not False and facts.uses_linux_driver and facts.may_have_gpus


@rule(layer="kernel", decided_by="driver-answered", needs=("kernel.device_nodes",), arises=_failed_without_reason)
def device_node_missing(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A device node of the driver is missing."""
    failed, there = failed_start(facts), {node.path for node in facts.kernel.device_nodes or ()}
    of_gpus = {node.path for node in facts.gpu_nodes or ()}
    wanted = [_CONTROL]
    if facts.in_container and not of_gpus:
        return None
    if not facts.in_container:
        numbers = [gpu.minor for gpu in facts.own_gpus if gpu.kernel_driver == "nvidia" and gpu.minor is not None]
        first = ["/dev/nvidia0"] if not of_gpus else []
        wanted += [f"/dev/nvidia{number}" for number in sorted(numbers)] or first
    missing = [path for path in wanted if path not in there]
    error = meaning_of(failed) if failed else None
    hidden = error is not None and error.problem == "no-gpu-visible"  # cuInit then asks for no memory
    if _MEMORY not in there and (missing or not hidden):
        missing.append(_MEMORY)
    if not missing:
        return None
    names = ", ".join(missing)
    named = names if len(missing) < _MOST else f"{len(missing)} device nodes of the driver"
    unloaded = " The nvidia_uvm module is not loaded." if facts.module.uvm_loaded is False else ""
    steps = (fixes.make_device_nodes(facts, on_host=facts.in_container),)
    if facts.in_container:
        options = " ".join(f"--device {path}" for path in missing)
        by_hand = (Fix(f"Where its devices are named one by one, add the missing: {options}"),)
        passes_devices = facts.platform.container in ("docker", "podman")
        steps = (*fixes.give_gpu_to_container(facts), *(by_hand if passes_devices else ()), *steps)
    evidence = Evidence("missing", names, "file /dev")
    return _not_reached(
        f"{named} {'are' if len(missing) > 1 else 'is'} missing", [evidence], steps, facts, more=unloaded
    )


def _not_reached(
    title: str, evidence: Sequence[Evidence], fixes: tuple[Fix, ...], facts: Facts, *, more: str = ""
) -> Outcome:
    """The outcome for a device node through which the libraries do not reach the module."""
    return failure(
        title=title,
        message=f"The kernel module is loaded and the libraries are installed, but do not reach it.{more}",
        evidence=(*evidence, *map(call_evidence, answers(facts))),
        layer="container" if facts.in_container else None,
        fixes=fixes,
    )


def _may_lead_elsewhere(subject: Snapshot, facts: Facts) -> bool:
    """Whether a GPU stays away whose node is not the driver's, or CUDA does not start for no reason that is named."""
    foreign = {node.path for node, _ in facts.foreign_nodes}
    away = any(f"/dev/nvidia{gpu.minor}" in foreign and not is_listed(gpu, facts) for gpu in facts.own_gpus)
    return away or _failed_without_reason(subject, facts)


@rule(layer="kernel", decided_by="driver-answered", needs=("kernel.device_nodes",), arises=_may_lead_elsewhere)
def device_node_wrong(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A device node of the driver leads elsewhere."""
    foreign = facts.foreign_nodes
    if not foreign:
        return None
    paths, evidence = [node.path for node, _ in foreign], []
    for node, number in foreign:
        found = f"device {node.number}" if node.number else f"no character device ({node.mode})"
        expected = f"; the driver's has number {number}" if number else ""
        evidence.append(Evidence(node.path, f"{found}{expected}", node.source))
    steps = [
        Fix("Remove what is in the place of the nodes", command=("sudo", "rm", "-f", *paths), who="root"),
        fixes.make_device_nodes(facts, on_host=facts.in_container),
    ]
    if facts.in_container:
        text = "Restart the container: it then gets the nodes of the module that runs"
        steps[0] = Fix(text, risk="ends what runs in the container")
    if facts.platform.container == "lxc":
        text = "Where its configuration allows devices by number (lxc.cgroup2.devices.allow), name these numbers"
        steps.insert(1, Fix(text, who="cluster-admin"))
    named = ", ".join(paths) if len(paths) < _MOST else f"{len(paths)} device nodes"
    title = f"{named} {'is not a device' if len(paths) == 1 else 'are not devices'} of the driver"
    return _not_reached(title, evidence, tuple(steps), facts)


_RIVALS = ("nouveau", "nova")

_IN_WSL = doubt_inside_wsl(
    "nvidia-smi cannot reach the driver inside WSL: several causes are possible",
    "WSL loads no kernel module; Windows may not pass the GPU through. Update the driver in Windows and WSL itself "
    "(wsl --update), then restart WSL (wsl --shutdown).",
)


def _concerns_module(_subject: Snapshot, facts: Facts) -> bool:
    """Whether this system should load the module: it has its own GPU and the driver libraries."""
    return facts.uses_linux_driver and facts.may_have_gpus and facts.driver.installed is not False


def _is_not_loaded(subject: Snapshot, facts: Facts) -> bool:
    """Whether such a system does not load it; not in a container, whose /lib/modules does not belong to the kernel."""
    return _concerns_module(subject, facts) and facts.on_plain_host and facts.module.loaded is False


def _may_lack_module(subject: Snapshot, facts: Facts) -> bool:
    """Whether a system does not load it; or a text lists what was built, and nothing in it shows a running driver."""
    only_built = facts.module.loaded is None and facts.module.built is False and facts.driver.release is None
    return _is_not_loaded(subject, facts) or (only_built and _concerns_module(subject, facts))


def _on_other_drivers(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that nouveau or nova drives."""
    return tuple(gpu for gpu in facts.own_gpus if (gpu.kernel_driver or "").lower().startswith(_RIVALS))


@rule(
    layer="kernel",
    decided_by="driver-answered",
    needs=("kernel.nvidia.loaded",),
    arises=_concerns_module,
    remedy=fixes.load_module,
    doubt=_IN_WSL,
)
def driver_not_loaded(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVIDIA kernel module is not loaded."""
    module = facts.module
    if module.loaded:
        flavour = f"({module.flavour})" if module.flavour else None
        title = " ".join(filter(None, ("Kernel module", module.version, "loaded", flavour)))
        return passed(title, evidence_of("kernel module", module, "loaded"))
    nvml = facts.driver.nvml
    return failure(
        message="The driver libraries are installed, but the kernel module that reaches the GPU is not loaded.",
        evidence=(
            evidence_of("nvidia module loaded", module, "loaded"),
            if_known("loading blocked by", module, "blacklisted_by"),
            Evidence(nvml.call, f"{nvml.code} {nvml.name}".strip(), "nvml") if nvml and nvml.code else None,
        ),
    )


@rule(layer="kernel", needs=("kernel.nvidia.built",), arises=_may_lack_module, remedy=fixes.build_module)
def kernel_module_missing(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """No NVIDIA kernel module is built for the running kernel."""
    module, platform = facts.module, facts.platform
    release = platform.kernel_release or "the running kernel"
    if module.built:
        return passed(f"The kernel module is built for {release}", evidence_of("module file", module, "file"))
    built_for = ", ".join(module.built_for or ())
    return failure(
        message=f"/lib/modules has no nvidia module for {release}" + (f", only for {built_for}." if built_for else "."),
        evidence=(
            evidence_of("module built for the running kernel", module, "built"),
            Evidence("built for", built_for, module.source_of("built_for")) if built_for else None,
            if_known("running kernel", platform, "kernel_release"),
        ),
        decided_by="driver-answered",
    )


@rule(layer="kernel", needs=("kernel.nouveau_loaded",), arises=_concerns_module)
def nouveau_loaded(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The open-source driver nouveau or nova holds the GPU."""
    kernel, taken = facts.kernel, _on_other_drivers(facts)
    messages = kernel_messages("nouveau-loaded", facts)
    known = all(gpu.kernel_driver is not None for gpu in facts.own_gpus) and bool(facts.own_gpus)
    loaded = [name for name in _RIVALS if getattr(kernel, f"{name}_loaded")]
    evidence = (
        *(evidence_of(f"{name} loaded", kernel, f"{name}_loaded") for name in loaded),
        *(Evidence(gpu.title, f"bound to {gpu.kernel_driver}", "sysfs") for gpu in taken),
        *map(kernel_evidence, messages),
    )
    if facts.module.loaded and not taken:
        return None
    if facts.module.loaded:
        text = f"{', '.join(each.title for each in taken)} uses nouveau or nova, so CUDA does not see it."
        return note(title="A GPU does not use NVIDIA's driver", message=text, evidence=evidence)
    if not loaded or (known and not taken):
        return passed("Neither nouveau nor nova holds a GPU")
    return failure(
        title=f"The {' and '.join(loaded)} driver holds the GPU",
        message="NVIDIA's module cannot bind a GPU that another kernel driver holds.",
        evidence=evidence,
        decided_by="driver-answered",
    )


def _may_be_blocked(subject: Snapshot, facts: Facts) -> bool:
    """Whether a built module is not loaded; in a text, whether it says so of the driver, and Secure Boot is on."""
    stated = facts.kernel.source == PASTED and facts.kernel.secure_boot and facts.module.built is None
    if stated and _concerns_module(subject, facts) and not facts.driver.names_release:
        return tells_of(facts, "driver-not-loaded")
    return _is_not_loaded(subject, facts) and facts.module.built is True


@rule(layer="kernel", needs=("kernel.secure_boot",), arises=_may_be_blocked)
def secure_boot_blocks_module(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Secure Boot blocks the NVIDIA kernel module."""
    kernel, module = facts.kernel, facts.module
    messages = kernel_messages("secure-boot-blocks-module", facts)
    if not kernel.secure_boot:
        return passed("Secure Boot is off", evidence_of("Secure Boot", kernel, "secure_boot"))
    blocked = module.blacklisted_by or kernel.nouveau_loaded or kernel.nova_loaded or _on_other_drivers(facts)
    if not messages and blocked:
        return None
    return failure(
        title=f"Secure Boot {'blocks' if messages else 'probably blocks'} the NVIDIA kernel module",
        message="The module is not loaded, and Secure Boot is on.",
        evidence=(
            evidence_of("Secure Boot", kernel, "secure_boot"),
            if_known("module built", module, "built"),
            *map(kernel_evidence, messages),
        ),
        decided_by="driver-answered" if messages else "inferred",
        confidence="high" if messages else "medium",
    )


def _has_gpu_to_start(_subject: Snapshot, facts: Facts) -> bool:
    """Without a GPU no-nvidia-gpu reports it: the driver's answer is no second finding."""
    failed = failed_start(facts)
    error = meaning_of(failed) if failed else None
    return facts.may_have_gpus or error is None or error.problem not in ("driver-not-installed", "no-gpu-visible")


def _fixes(facts: Facts) -> tuple[Fix, ...]:
    if facts.driver_os == "wsl":
        text = "In Windows, update the GPU's driver and WSL itself (wsl --update), then restart WSL (wsl --shutdown)"
        return (Fix(text),)  # the driver and its log are those of Windows
    load = (fixes.make_device_nodes(facts),) if facts.module.uvm_loaded is False else ()
    held = (_UNFILTERED,) if facts.in_container and facts.nvml_answers and not load else ()
    return (*load, *held, fixes.READ_KERNEL_LOG, *fixes.REBOOT)


_UNFILTERED = Fix(
    "Start the container once without a filter of system calls (--security-opt seccomp=unconfined; in a pod, "
    "seccompProfile: Unconfined): where CUDA starts then, its profile refuses a call that the driver makes"
)


@rule(
    layer="driver",
    decided_by="driver-answered",
    needs=("driver.cuda_init",),
    arises=_has_gpu_to_start,
    ground="driver",
    remedy=_fixes,
)
def gpu_init_failed(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver cannot initialize CUDA."""
    driver, failed = facts.driver, failed_start(facts)
    if failed is not None:
        return _start_failed(failed, facts)
    # The GPUs that the kernel module holds, but that no library lists.
    dead = tuple(
        gpu
        for gpu in (facts.own_gpus if facts.nvml_answers else ())
        if gpu.lacks_handle
        or (gpu.kernel_driver == "nvidia" and not is_listed(gpu, facts) and not _may_be_withheld(gpu, facts))
    )
    gpus = dead or _not_in_cuda(facts)
    if not gpus:
        supported = f", supports up to CUDA {driver.cuda}" if driver.cuda else ""
        title = f"{driver.release or 'Driver'}{supported}; cuInit ok"
        return passed(title, *map(call_evidence, answers(facts)))
    names = ", ".join(each.title for each in gpus)
    several = names if len(gpus) == 1 else f"{len(gpus)} GPUs"
    if dead:
        title = f"The driver did not initialize {several}"
        message = f"The kernel module holds {names}, but the driver does not list it. Other GPUs are not affected."
        seen = [call_evidence(error) for gpu in dead for error in gpu.errors]
        value, source = "bound to nvidia, not listed", "sysfs"
    else:
        title = f"CUDA does not list {several}"
        message = f"NVML lists {names}, but CUDA does not, and {VISIBLE} is not set: programs cannot use it."
        seen, value, source = [], "listed by NVML, not by CUDA", "cuda"
    seen = seen or [Evidence(gpu.title, value, source) for gpu in gpus]
    # The lines of the kernel log about a failed start that name one of these GPUs.
    places = [place for gpu in gpus if (place := (gpu.pci_bus_id or "").rpartition(".")[0])]
    messages = kernel_messages("gpu-init-failed", facts)
    logged = (each for each in messages if any(place in each.text for place in places))
    return failure(
        title=title,
        message=message,
        evidence=(*seen, *map(kernel_evidence, logged)),
        action="reset",
        fixes=(fixes.READ_KERNEL_LOG, *map(fixes.reset, gpus)),
    )


def _start_failed(failed: ApiResult, facts: Facts) -> Outcome:
    error = meaning_of(failed)
    fixes = _fixes(facts)
    if error is not None and error.problem != "gpu-init-failed":
        fixes = (Fix(f"Fix the cause: {error.problem}", command=("envcheck", "rule", error.problem)),)
    unloaded = facts.module.loaded and facts.module.uvm_loaded is False
    causes = " The nvidia_uvm module is not loaded." if unloaded else ""
    shared = [node for node in facts.kernel.device_nodes or () if node.path in (_CONTROL, _MEMORY)]
    if closed := [node.path for node in (*(facts.gpu_nodes or ()), *shared) if node.openable is False]:
        causes += f" This user has no permission to open {', '.join(closed)}."
        fixes = (Fix("Give this user access to them: ls -l shows their mode and group", who="root"), *fixes)
    status = f"{failed.code} {failed.name}".rstrip()
    meaning = error.meaning if error else failed.text or "the driver gives no reason"
    return failure(
        title="libcuda cannot be loaded" if failed.code < 0 else f"{failed.call} fails: {status}",
        message=f"{meaning[:1].upper()}{meaning[1:]}.{causes}",
        evidence=tuple(map(call_evidence, answers(facts))),
        fixes=fixes,
    )


def _may_be_withheld(gpu: Gpu, facts: Facts) -> bool:
    """Whether a scheduler, a container, permissions or an option of the module may bar this program from the GPU."""
    if gpu.excluded or in_batch_job(facts):
        return True  # a scheduler leaves the device nodes in sight, and uses control groups
    nodes = facts.gpu_nodes or ()
    own = [node for node in nodes if node.path == f"/dev/nvidia{gpu.minor}"]
    if gpu.minor is None and facts.known_to_be_host:  # a GPU that did not start may have no number
        own = list(nodes)
    foreign = [node.path for node, _ in facts.foreign_nodes]
    return not own or any(node.openable is False or node.path in foreign for node in own)


def _not_in_cuda(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that NVML lists and CUDA does not, although nothing that is known of selects among them."""
    variables = facts.snapshot.variables
    listed = [gpu for gpu in facts.own_gpus if gpu.index is not None]
    shown = [gpu for gpu in facts.gpus if gpu.cuda_ordinal is not None]
    unasked = variables is None or not facts.nvml_answers or not facts.known_to_be_host
    if unasked or not shown or len(shown) != facts.driver.cuda_devices:
        return ()
    if variables and any(name == VISIBLE or name.startswith("CUDA_MPS_") for name in variables.values):
        return ()  # the server of MPS has a list of its own
    for gpu in listed:
        # Its parts are what programs or guests get (MIG, a host of virtual GPUs), or no program may use it.
        of_host = (gpu.virtualization or "").startswith("host_")
        if of_host or (gpu.mig and gpu.mig.enabled) or gpu.compute_mode == "prohibited":
            return ()
    return tuple(gpu for gpu in listed if gpu.cuda_ordinal is None and not _may_be_withheld(gpu, facts))
