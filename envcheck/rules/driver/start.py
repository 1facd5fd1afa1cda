"""Whether the driver initializes CUDA on every GPU that it holds."""

from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import ApiResult, Gpu, Snapshot
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import (
    driver_of,
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
    """If there is no GPU, no-nvidia-gpu reports it: the driver's answer is no second finding."""
    failed = failed_start(facts)
    error = meaning_of(failed) if failed else None
    return may_have_gpus(facts) or error is None or error.problem not in ("driver-not-installed", "no-gpu-visible")


_IN_WSL = (
    Fix(text="In Windows, update the GPU's driver and WSL itself (wsl --update), then restart WSL (wsl --shutdown)"),
)


def _fixes(facts: Facts) -> tuple[Fix, ...]:
    if facts.driver_os == "wsl":
        return _IN_WSL  # the driver and its log are those of Windows
    module = facts.snapshot.kernel.nvidia if facts.snapshot.kernel else None
    load = (fixes.make_device_nodes(facts),) if module and module.uvm_loaded is False else ()
    return (*load, fixes.read_kernel_log(), *fixes.REBOOT)


@rule(layer="driver", needs=("driver.cuda_init",), arises=_has_gpu_to_start, ground="driver", remedy=_fixes)
def gpu_init_failed(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver cannot initialize CUDA."""
    driver, failed = driver_of(facts), failed_start(facts)
    if failed is not None:
        return _start_failed(failed, facts)
    dead = _not_started(facts)
    if dead:
        return _some_failed(dead, facts)
    unlisted = _not_in_cuda(facts)
    if unlisted:
        return _some_not_in_cuda(unlisted, facts)
    supported = f", supports up to CUDA {driver.cuda}" if driver.cuda else ""
    title = f"{driver.release or 'Driver'}{supported}; cuInit ok"
    return passed(title, *(call_evidence(result) for result in answers(facts)), decided_by="driver-answered")


def _start_failed(failed: ApiResult, facts: Facts) -> Outcome:
    error = meaning_of(failed)
    if error is None or error.problem == "gpu-init-failed":
        fixes = _fixes(facts)
    else:
        fixes = (Fix(text=f"Fix the cause: {error.problem}", command=("envcheck", "rule", error.problem)),)
    status = " ".join(part for part in (str(failed.code), failed.name) if part)
    meaning = error.meaning if error else failed.text or "the driver gives no reason"
    return Outcome(
        status="fail",
        title="libcuda cannot be loaded" if failed.code < 0 else f"{failed.call} fails: {status}",
        message=f"{meaning[:1].upper()}{meaning[1:]}." + "".join(f" {hint}" for hint in _hints(facts)),
        evidence=tuple(call_evidence(result) for result in answers(facts)),
        decided_by="driver-answered",
        fixes=fixes,
    )


def _hints(facts: Facts) -> tuple[str, ...]:
    """Common causes of an answer without a reason."""
    found = []
    module = facts.snapshot.kernel.nvidia if facts.snapshot.kernel else None
    if module and module.loaded and module.uvm_loaded is False:
        found.append("The nvidia_uvm module is not loaded.")
    closed = [node.path for node in gpu_nodes(facts) or () if node.openable is False]
    if closed:
        found.append(f"This user has no permission to open {', '.join(closed)}.")
    return tuple(found)


def _not_started(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that the kernel module holds, but that no library lists."""
    if not nvml_answers(facts):
        return ()
    return tuple(
        gpu
        for gpu in facts.own_gpus
        if lacks_handle(gpu)
        or (gpu.kernel_driver == "nvidia" and not is_listed(gpu, facts) and not _may_be_withheld(gpu, facts))
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
    driver, variables = driver_of(facts), facts.snapshot.variables
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
    if any(_is_shared_out(gpu) for gpu in listed):
        return ()
    return tuple(gpu for gpu in listed if gpu.cuda_ordinal is None and not _may_be_withheld(gpu, facts))


def _is_shared_out(gpu: Gpu) -> bool:
    """Whether its parts are what programs or guests get (MIG, a host of virtual GPUs), or no program may use it."""
    host = (gpu.virtualization or "").startswith("host_")
    return host or bool(gpu.mig and gpu.mig.enabled) or gpu.compute_mode == "prohibited"


def _some_not_in_cuda(unlisted: tuple[Gpu, ...], facts: Facts) -> Outcome:
    names = ", ".join(gpu_title(gpu) for gpu in unlisted)
    seen = (Evidence(what=gpu_title(gpu), value="listed by NVML, not by CUDA", source="cuda") for gpu in unlisted)
    return Outcome(
        status="fail",
        title=f"CUDA does not list {names if len(unlisted) == 1 else f'{len(unlisted)} GPUs'}",
        message=f"NVML lists {names}, but CUDA does not, and {VISIBLE} is not set: programs cannot use it.",
        evidence=(*seen, *_logged(unlisted, facts)),
        decided_by="driver-answered",
        action="reset",
        fixes=(fixes.read_kernel_log(), *(fixes.reset(gpu) for gpu in unlisted)),
    )


def _logged(gpus: tuple[Gpu, ...], facts: Facts) -> tuple[Evidence, ...]:
    """The lines of the kernel log about a failed start that name one of these GPUs."""
    places = tuple((gpu.pci_bus_id or "").rpartition(".")[0] for gpu in gpus)
    messages = kernel_messages("gpu-init-failed", facts.snapshot)
    return tuple(kernel_evidence(each) for each in messages if any(place and place in each.text for place in places))


def _some_failed(dead: tuple[Gpu, ...], facts: Facts) -> Outcome:
    names = ", ".join(gpu_title(gpu) for gpu in dead)
    errors = tuple(call_evidence(error) for gpu in dead for error in gpu.errors)
    bound = tuple(Evidence(what=gpu_title(gpu), value="bound to nvidia, not listed", source="sysfs") for gpu in dead)
    return Outcome(
        status="fail",
        title=f"The driver did not initialize {names if len(dead) == 1 else f'{len(dead)} GPUs'}",
        message=f"The kernel module holds {names}, but the driver does not list it. Other GPUs are not affected.",
        evidence=(*(errors or bound), *_logged(dead, facts)),
        decided_by="driver-answered",
        action="reset",
        fixes=(fixes.read_kernel_log(), *(fixes.reset(gpu) for gpu in dead)),
    )
