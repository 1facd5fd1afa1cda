"""GPUs in containers: missing from the start, or lost later."""

from __future__ import annotations

from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Listing, Platform, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.frameworks import finds_no_gpu
from envcheck.rules.facts.machine import (
    cuda_answers,
    gpu_nodes,
    in_container,
    may_have_gpus,
    plural,
    uses_linux_driver,
)
from envcheck.rules.fixes import driver as fixes
from envcheck.rules.messages.observed import NOT_LOADABLE, call_evidence, tells_of
from envcheck.rules.variables.visible_devices import setting_evidence

_NVML_UNKNOWN = 999


def _could_have_gpus(_subject: Snapshot, facts: Facts) -> bool:
    """Whether this is a container with GPUs as /dev/nvidiaN, on a machine that may have some."""
    return in_container(facts) and uses_linux_driver(facts) and may_have_gpus(facts)


_WITHOUT_ONE = ("driver-not-installed", "no-gpu-visible")
"""What programs say in a container without a GPU."""


def _asked_for_none(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The finding in a text whose command asks for no GPU, and whose program finds none."""
    platform = snapshot.platform or Platform()
    if not platform.started_without_gpu:
        return None
    if not finds_no_gpu(facts.environment) and not tells_of(snapshot, *_WITHOUT_ONE):
        return None
    return Outcome(
        status="fail",
        title="The container was started without a GPU",
        message="The command that starts it asks for none.",
        evidence=(evidence_of("container", platform, "container_evidence"),),
    )


@rule(
    layer="container",
    needs=("kernel.device_nodes",),
    arises=_could_have_gpus,
    proof=_asked_for_none,
    remedy=fixes.give_gpu_to_container,
    explains=("driver-not-installed", "driver-too-old", "gpu-code-missing", "gpu-init-failed", "no-gpu-visible"),
)
def container_without_gpu(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The container was started without a GPU."""
    nodes, driver = gpu_nodes(facts) or (), facts.driver
    container = evidence_of("container", snapshot.platform or Platform(), "container")
    if nodes and _for_utilities_only(facts):
        return _without_cuda(container, facts)
    if cuda_answers(facts) or (nodes and driver.installed is not False):
        return passed(f"The container has {plural(len(nodes), 'GPU')}", container)
    evidence = [container, Evidence(what="GPU device nodes", value=str(len(nodes)), source="/dev")]
    asked = facts.variable("NVIDIA_VISIBLE_DEVICES")
    if asked is not None:
        evidence.append(Evidence(what="NVIDIA_VISIBLE_DEVICES", value=asked, source="environment"))
    if driver.installed is not None:
        evidence.append(evidence_of("driver libraries", driver, "installed"))
    if nodes:
        title, text = (
            "The container has no driver libraries",
            "The GPU's device nodes exist, but the libraries do not.",
        )
    else:
        title, text = "The container was started without a GPU", "It has no device node of a GPU."
    return Outcome(status="fail", title=title, message=text, evidence=tuple(evidence))


_CAPABILITIES = "NVIDIA_DRIVER_CAPABILITIES"


def _for_utilities_only(facts: Facts) -> bool:
    """Whether libcuda is missing and cannot be loaded, while other driver libraries exist."""
    driver = facts.driver
    listing = driver.libraries
    real = [library for library in items_in(listing) if library.kind == "driver"]
    libcuda = any("libcuda.so" in library.path for library in real)
    refused = driver.cuda_init is not None and driver.cuda_init.code == NOT_LOADABLE
    return refused and bool(real) and not libcuda


def _without_cuda(container: Evidence, facts: Facts) -> Outcome:
    driver, asked = facts.driver, facts.variable(_CAPABILITIES)
    there = next(library for library in (driver.libraries or Listing()).items if library.kind == "driver")
    variable = (setting_evidence(_CAPABILITIES, asked),) if asked is not None else ()
    started = (call_evidence(driver.cuda_init),) if driver.cuda_init else ()
    text = "Start the container with the driver capabilities for CUDA: "
    ways = {
        "kubernetes": "set NVIDIA_DRIVER_CAPABILITIES=compute,utility in the container's env",
        "apptainer": "--nv, with NVIDIA_DRIVER_CAPABILITIES=compute,utility where --nvccli is used",
    }
    other = "-e NVIDIA_DRIVER_CAPABILITIES=compute,utility (or ENV in the image)"
    return Outcome(
        status="fail",
        title="The container has the driver's utilities, but not CUDA",
        message="Device nodes and other driver libraries exist, but libcuda does not.",
        evidence=(container, *variable, *started, Evidence(what="present", value=there.path, source=there.source)),
        decided_by="driver-answered",
        fixes=(Fix(text=text + ways.get(container.value, other)),),
    )


@rule(
    layer="container",
    needs=("driver.nvml",),
    arises=_could_have_gpus,
    remedy=fixes.restart_container,
    explains=("gpu-init-failed", "no-gpu-visible"),
)
def container_lost_gpu(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The container lost access to its GPU."""
    nvml = snapshot.driver.nvml if snapshot.driver else None
    nodes = gpu_nodes(facts)
    if nvml is None or nvml.code != _NVML_UNKNOWN or not nodes or cuda_answers(facts):
        return None
    paths = Evidence(what="device nodes", value=", ".join(node.path for node in nodes), source="/dev")
    return Outcome(
        status="fail",
        title="The container lost access to its GPU",
        message="The device nodes exist, but cannot be opened: the container's device rules are gone.",
        evidence=(call_evidence(nvml), paths),
        decided_by="driver-answered",
    )
