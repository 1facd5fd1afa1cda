"""Multi-Instance GPU mode."""

from __future__ import annotations

from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import PASTED, Gpu, Mig, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, passed, rule, warning
from envcheck.rules.facts.machine import plural, unanswered
from envcheck.rules.facts.variables import VISIBLE, setting_evidence
from envcheck.rules.fixes.driver import smi_selector
from envcheck.rules.messages.observed import call_evidence, line_evidence
from envcheck.rules.variables.visible_devices import sees_no_gpu
from envcheck.text.lazy import lazy_pattern

_NO_PERMISSION = 4  # ``NVML_ERROR_NO_PERMISSION``
_CAPABILITY = lazy_pattern(r"/dev/nvidia-caps/nvidia-cap(\d{1,9})")
_FOR_ADMINISTRATION = 2  # The first two capabilities configure and monitor MIG; higher numbers belong to instances


def _in_mig_mode(gpu: Gpu, _facts: Facts) -> bool:
    return bool(gpu.mig and gpu.mig.enabled)


@rule(layer="gpu", arises=_in_mig_mode, remedy=lambda _facts: _create_instances(None))
def mig_without_instances(gpu: Gpu, facts: Facts) -> Outcome | None:
    """MIG mode is on, but the GPU has no instance."""
    mig = gpu.mig or Mig()
    if mig.instances is None:
        # In a text that tells of MIG mode and of no instance, a program may see no GPU for that reason.
        others = any(other.mig and not other.mig.enabled for other in facts.own_gpus)
        if mig.source != PASTED or others or facts.variable(VISIBLE) or not sees_no_gpu(facts):
            return unanswered("gpu.mig.instances", mig_without_instances.title, facts.snapshot)
        return warning(
            title=f"{gpu.title} is in MIG mode, and a program sees no GPU",
            message="In MIG mode CUDA can use only instances, and the text lists none.",
            evidence=(evidence_of("MIG mode", mig, "enabled"),),
            confidence="medium",
            fixes=_create_instances(gpu),
        )
    count = len(mig.instances or ())
    evidence = (evidence_of("MIG mode", mig, "enabled"), evidence_of("instances", mig, "instances"))
    if count:
        return passed(f"MIG with {plural(count, 'instance')}", evidence[0], decided_by="driver-answered")
    return failure(
        title=f"{gpu.title} is in MIG mode without an instance",
        message="In MIG mode CUDA can use only instances.",
        evidence=evidence,
        decided_by="driver-answered",
        fixes=_create_instances(gpu),
    )


def _create_instances(gpu: Gpu | None) -> tuple[Fix, ...]:
    """For one GPU if its PCI bus id is known, else for all."""
    place, risk = smi_selector(gpu), "resets the GPU and ends what runs on it"
    return (
        Fix("List the available profiles", command=("sudo", "nvidia-smi", "mig", *place, "-lgip"), who="root"),
        Fix("Create an instance by its profile: nvidia-smi mig -cgi PROFILE -C", who="root"),
        Fix("Switch MIG mode off", command=("sudo", "nvidia-smi", *place, "-mig", "0"), who="root", risk=risk),
    )


_LIST_DEVICES = Fix("List the devices with their UUIDs", command=("nvidia-smi", "-L"))


@rule(layer="gpu", decided_by="driver-answered", scope="container")
def mig_enumeration(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """CUDA shows a process fewer MIG devices than exist."""
    driver = facts.driver
    instances = [instance for gpu in facts.own_gpus if gpu.mig for instance in gpu.mig.instances or ()]
    count = Evidence("MIG devices", str(len(instances)), instances[0].source if instances else "")
    numbers_refused = facts.lines_with("device-number-refused")
    if numbers_refused and len(instances) > 1:
        return failure(
            title="A program uses numbers of MIG devices that CUDA does not show it",
            message="CUDA shows a process one MIG device, NVML shows all: higher device numbers do not exist.",
            evidence=(*map(line_evidence, numbers_refused), count),
            decided_by="framework-ran",
            confidence="medium",
        )
    value, enumerated = facts.variable(VISIBLE), driver.cuda_devices
    concerned = instances or "MIG-" in (value or "") or any(_in_mig_mode(gpu, facts) for gpu in facts.own_gpus)
    if enumerated is None or not concerned:
        return None
    entries = [entry.strip() for entry in (value or "").split(",") if entry.strip()]
    setting, shown = setting_evidence(VISIBLE, value or ""), evidence_of("CUDA devices", driver, "cuda_devices")
    named = [entry for entry in entries if entry.startswith("MIG-")]
    in_mig_mode = [gpu.uuid for gpu in facts.own_gpus if gpu.mig and gpu.mig.enabled and gpu.uuid]
    parents = [entry for entry in entries if entry.startswith("GPU-")]
    beside = [gpu for gpu in facts.own_gpus if gpu.mig and gpu.mig.enabled is False and gpu.cuda_ordinal is None]
    status: Status = "warn"
    evidence: tuple[Evidence, ...] = (setting, count, shown)
    fixes: tuple[Fix, ...] = ()
    if len(named) > max(enumerated, 1):
        title = f"{VISIBLE} names {len(named)} MIG devices; CUDA shows {enumerated}"
        message = f"A process sees only one MIG device, {named[0]}; the others are ignored."
    elif enumerated == 0 and any(uuid.startswith(entry) for uuid in in_mig_mode for entry in parents):
        status, evidence = "fail", (setting, shown)
        title = f"{VISIBLE} names a GPU in MIG mode instead of its MIG device"
        message = "In MIG mode CUDA uses only instances: name a UUID that begins with MIG-."
    elif len(instances) > enumerated or (beside and value is None and facts.cuda_answers):
        # A warning about a text in which somebody asked how many there are.
        status = "warn" if driver.read.get("cuda_devices", driver.source) == PASTED else "note"
        there = f"{len(instances)} MIG devices"
        if beside:
            there = f"{plural(len(instances), 'MIG device')} and {plural(len(beside), 'whole GPU')}"
        title = f"CUDA shows a process {enumerated} of {there}"
        message = f"This is by design: select a device for each process with {VISIBLE}."
        whole = (Evidence("not enumerated", gpu.title, "cuda") for gpu in beside)
        evidence, fixes = (count, shown, *whole), (_LIST_DEVICES,)
    else:
        return passed(f"CUDA shows {plural(enumerated, 'device')}", count, shown)
    return Outcome(status=status, title=title, message=message, evidence=evidence, fixes=fixes)


def _give_capability(facts: Facts) -> tuple[Fix, ...]:
    monitor = "set NVIDIA_MIG_MONITOR_DEVICES=all in it, and run it with CAP_SYS_ADMIN (privileged)"
    return (
        Fix("Give the process its MIG device: its UUID in NVIDIA_VISIBLE_DEVICES, or its resource in the pod")
        if facts.platform.container == "kubernetes"
        else Fix("Start the container with its MIG device: --gpus '\"device=MIG-UUID\"', or allow the node's group"),
        Fix(f"For a container that monitors all MIG devices (device plugin, DCGM): {monitor}", who="cluster-admin"),
    )


@rule(layer="container", decided_by="driver-answered", arises=_in_mig_mode, remedy=_give_capability)
def mig_permission(gpu: Gpu, facts: Facts) -> Outcome | None:
    """A process lacks permission to use or query the MIG devices."""
    refused = tuple(error for error in gpu.errors if error.code == _NO_PERMISSION and error.call.startswith("nvml"))
    if refused:
        return failure(
            title=f"{gpu.title}: no permission to query its MIG devices",
            message="The driver refuses the query: this process lacks the capability.",
            evidence=tuple(map(call_evidence, refused)),
        )
    driver = facts.driver
    if driver.cuda_devices:
        return passed(f"{gpu.title}: CUDA can use a MIG device")
    listed = facts.kernel.device_nodes
    if listed is None or driver.cuda_init is None or not (gpu.mig and gpu.mig.instances):
        return None
    numbered = ((node, _CAPABILITY.fullmatch(node.path)) for node in listed)
    nodes = [node for node, found in numbered if found and int(found[1]) > _FOR_ADMINISTRATION]
    closed = [node for node in nodes if node.openable is False]
    if len(closed) < len(nodes):
        return None
    message = "This user cannot read their capability nodes."
    what = [Evidence(node.path, f"{node.mode} {node.owner}", node.source) for node in closed]
    if not closed:
        message = "This container or system has no capability node of a MIG device."
        what = [Evidence("capability nodes of instances", "none", "/dev/nvidia-caps")]
    return failure(
        title=f"{gpu.title}: no permission to use its MIG devices",
        message=message,
        evidence=(*what, call_evidence(driver.cuda_init)),
    )
