"""Whether the driver initializes CUDA on every GPU that it holds."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.machine import (
    driver_of,
    gpu_nodes,
    gpu_title,
    is_listed,
    lacks_handle,
    may_have_gpus,
    nvml_answers,
)
from envcheck.rules.fixes import driver as fixes
from envcheck.rules.messages.driver import answers, call_evidence, meaning_of
from envcheck.rules.variables.values import failed_start
from envcheck.rules.variables.visible_devices import in_batch_job
from envcheck.snapshot import ApiResult, Gpu, Snapshot


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
    uvm = Fix(
        text="Load the nvidia_uvm module and create its device node",
        command=("sudo", "nvidia-modprobe", "-u", "-c=0"),
        who="root",
    )
    load = (uvm,) if module and module.uvm_loaded is False else ()
    return (*load, fixes.read_kernel_log(), *fixes.REBOOT)


@rule(
    layer="driver",
    scope="node",
    needs=("driver.cuda_init",),
    arises=_has_gpu_to_start,
    required=True,
    remedy=_fixes,
)
def gpu_init_failed(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The driver cannot initialize CUDA.

    What it checks
        Checks what cuInit answers, called without a context through the libcuda that a program would
        load, and whether the driver lists every GPU that is bound to it and has a device node. A
        working nvidia-smi does not prove it: NVML answers while cuInit fails with 802, 803, 804 or 999.

    Why it matters
        Every CUDA program starts with cuInit. If it fails, no framework can use any GPU.

    How to fix
        Most answers have a separate rule, which is then named as the cause. For the others, read the
        kernel log (`sudo dmesg | grep -i nvrm`), load the nvidia_uvm module (`sudo nvidia-modprobe
        -u`), check the permissions of the device nodes, or restart the machine.

    Sources
        CUDA driver API, CUresult: https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html
        NVML return codes: https://docs.nvidia.com/deploy/nvml-api/
    """
    driver, failed = driver_of(facts), failed_start(facts)
    if failed is not None:
        return _start_failed(failed, facts)
    dead = _not_started(facts)
    if dead:
        return _some_failed(dead)
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
    nodes = {node.path for node in gpu_nodes(facts) or ()}
    withheld = in_batch_job(facts)  # by control groups: the scheduler leaves the device nodes in sight
    return tuple(
        gpu
        for gpu in facts.own_gpus
        if lacks_handle(gpu)
        or (
            gpu.kernel_driver == "nvidia"
            and f"/dev/nvidia{gpu.minor}" in nodes
            and not (withheld or is_listed(gpu, facts))
        )
    )


def _some_failed(dead: tuple[Gpu, ...]) -> Outcome:
    names = ", ".join(gpu_title(gpu) for gpu in dead)
    errors = tuple(call_evidence(error) for gpu in dead for error in gpu.errors)
    bound = tuple(Evidence(what=gpu_title(gpu), value="bound to nvidia, not listed", source="sysfs") for gpu in dead)
    return Outcome(
        status="fail",
        title=f"The driver did not initialize {names if len(dead) == 1 else f'{len(dead)} GPUs'}",
        message=f"The kernel module holds {names}, but the driver does not list it. Other GPUs are not affected.",
        evidence=errors or bound,
        decided_by="driver-answered",
        action="reset",
        fixes=(fixes.read_kernel_log(), *(fixes.reset(gpu) for gpu in dead)),
    )
