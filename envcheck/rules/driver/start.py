"""Whether the driver initializes CUDA on every GPU that it holds."""

from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import ApiResult, Gpu, Snapshot
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import (
    foreign_nodes,
    gpu_nodes,
    gpu_title,
    is_listed,
    known_to_be_host,
    lacks_handle,
    may_have_gpus,
    nvml_answers,
)
from envcheck.rules.fixes import driver as fixes
from envcheck.rules.messages.observed import answers, call_evidence, kernel_evidence, kernel_messages, meaning_of
from envcheck.rules.variables.values import failed_start
from envcheck.rules.variables.visible_devices import VISIBLE, in_batch_job


def _has_gpu_to_start(_subject: Snapshot, facts: Facts) -> bool:
    """Without a GPU no-nvidia-gpu reports it: the driver's answer is no second finding."""
    failed = failed_start(facts)
    error = meaning_of(failed) if failed else None
    return may_have_gpus(facts) or error is None or error.problem not in ("driver-not-installed", "no-gpu-visible")


_IN_WSL = (
    Fix(text="In Windows, update the GPU's driver and WSL itself (wsl --update), then restart WSL (wsl --shutdown)"),
)


def _fixes(facts: Facts) -> tuple[Fix, ...]:
    if facts.driver_os == "wsl":
        return _IN_WSL  # the driver and its log are those of Windows
    load = (fixes.make_device_nodes(facts),) if facts.module.uvm_loaded is False else ()
    return (*load, fixes.READ_KERNEL_LOG, *fixes.REBOOT)


@rule(layer="driver", needs=("driver.cuda_init",), arises=_has_gpu_to_start, ground="driver", remedy=_fixes)
def gpu_init_failed(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver cannot initialize CUDA."""
    driver, failed = facts.driver, failed_start(facts)
    if failed is not None:
        return _start_failed(failed, facts)
    # The GPUs that the kernel module holds, but that no library lists.
    dead = tuple(
        gpu
        for gpu in (facts.own_gpus if nvml_answers(facts) else ())
        if lacks_handle(gpu)
        or (gpu.kernel_driver == "nvidia" and not is_listed(gpu, facts) and not _may_be_withheld(gpu, facts))
    )
    gpus = dead or _not_in_cuda(facts)
    if not gpus:
        supported = f", supports up to CUDA {driver.cuda}" if driver.cuda else ""
        title = f"{driver.release or 'Driver'}{supported}; cuInit ok"
        return passed(title, *map(call_evidence, answers(facts)), decided_by="driver-answered")
    names = ", ".join(map(gpu_title, gpus))
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
    seen = seen or [Evidence(what=gpu_title(gpu), value=value, source=source) for gpu in gpus]
    # The lines of the kernel log about a failed start that name one of these GPUs.
    places = [place for gpu in gpus if (place := (gpu.pci_bus_id or "").rpartition(".")[0])]
    logged = kernel_messages("gpu-init-failed", facts.snapshot)
    logged = tuple(each for each in logged if any(place in each.text for place in places))
    return Outcome(
        status="fail",
        title=title,
        message=message,
        evidence=(*seen, *map(kernel_evidence, logged)),
        decided_by="driver-answered",
        action="reset",
        fixes=(fixes.READ_KERNEL_LOG, *map(fixes.reset, gpus)),
    )


def _start_failed(failed: ApiResult, facts: Facts) -> Outcome:
    error = meaning_of(failed)
    if error is None or error.problem == "gpu-init-failed":
        fixes = _fixes(facts)
    else:
        fixes = (Fix(text=f"Fix the cause: {error.problem}", command=("envcheck", "rule", error.problem)),)
    hints = []  # common causes of an answer without a reason
    if facts.module.loaded and facts.module.uvm_loaded is False:
        hints.append(" The nvidia_uvm module is not loaded.")
    closed = [node.path for node in gpu_nodes(facts) or () if node.openable is False]
    if closed:
        hints.append(f" This user has no permission to open {', '.join(closed)}.")
    status = " ".join(part for part in (str(failed.code), failed.name) if part)
    meaning = error.meaning if error else failed.text or "the driver gives no reason"
    return Outcome(
        status="fail",
        title="libcuda cannot be loaded" if failed.code < 0 else f"{failed.call} fails: {status}",
        message=f"{meaning[:1].upper()}{meaning[1:]}.{''.join(hints)}",
        evidence=tuple(map(call_evidence, answers(facts))),
        decided_by="driver-answered",
        fixes=fixes,
    )


def _may_be_withheld(gpu: Gpu, facts: Facts) -> bool:
    """Whether this program may be barred from the GPU: by a scheduler, a container, the device node's permission, or an
    option of the kernel module.
    """
    if gpu.excluded or in_batch_job(facts):
        return True  # a scheduler leaves the device nodes in sight, and uses control groups
    nodes = gpu_nodes(facts) or ()
    own = [node for node in nodes if node.path == f"/dev/nvidia{gpu.minor}"]
    if gpu.minor is None and known_to_be_host(facts):  # a GPU that did not start may have no number
        own = list(nodes)
    foreign = [node.path for node, _ in foreign_nodes(facts)]
    return not own or any(node.openable is False or node.path in foreign for node in own)


def _not_in_cuda(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that NVML lists and CUDA does not, although nothing that is known of selects among them."""
    driver, variables = facts.driver, facts.snapshot.variables
    listed = [gpu for gpu in facts.own_gpus if gpu.index is not None]
    shown = [gpu for gpu in facts.gpus if gpu.cuda_ordinal is not None]
    if (
        not (nvml_answers(facts) and known_to_be_host(facts))
        or variables is None
        or not shown
        or len(shown) != driver.cuda_devices
    ):
        return ()
    if any(name == VISIBLE or name.startswith("CUDA_MPS_") for name in variables.values):
        return ()  # the server of MPS has a list of its own
    for gpu in listed:
        # Its parts are what programs or guests get (MIG, a host of virtual GPUs), or no program may use it.
        of_host = (gpu.virtualization or "").startswith("host_")
        if of_host or (gpu.mig and gpu.mig.enabled) or gpu.compute_mode == "prohibited":
            return ()
    return tuple(gpu for gpu in listed if gpu.cuda_ordinal is None and not _may_be_withheld(gpu, facts))
