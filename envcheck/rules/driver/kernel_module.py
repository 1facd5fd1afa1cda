"""NVIDIA's kernel module: loaded, built for the running kernel, accepted by it, and not blocked by another driver."""

from __future__ import annotations

from envcheck.model.checks import Evidence
from envcheck.model.snapshot import PASTED, Gpu, Kernel, KernelModule, Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.machine import (
    doubt_inside_wsl,
    driver_of,
    gpu_title,
    may_have_gpus,
    on_plain_host,
    uses_linux_driver,
)
from envcheck.rules.fixes import driver
from envcheck.rules.messages.observed import kernel_evidence, kernel_messages, tells_of

_RIVALS = ("nouveau", "nova")

_IN_WSL = doubt_inside_wsl(
    "nvidia-smi cannot reach the driver inside WSL: several causes are possible",
    "WSL loads no kernel module; Windows may not pass the GPU through. Update the driver in Windows and WSL itself "
    "(wsl --update), then restart WSL (wsl --shutdown).",
)


def _kernel(facts: Facts) -> Kernel:
    return facts.snapshot.kernel or Kernel()


def _module(facts: Facts) -> KernelModule:
    return _kernel(facts).nvidia or KernelModule()


def _concerns_module(_subject: Snapshot, facts: Facts) -> bool:
    """Whether this system should load the module: it has its own GPU and the driver libraries."""
    return uses_linux_driver(facts) and may_have_gpus(facts) and driver_of(facts).installed is not False


def _is_not_loaded(subject: Snapshot, facts: Facts) -> bool:
    """Likewise, and not in a container, whose /lib/modules does not belong to the kernel."""
    return _concerns_module(subject, facts) and on_plain_host(facts) and _module(facts).loaded is False


def _may_lack_module(subject: Snapshot, facts: Facts) -> bool:
    """Likewise, or a text that lists what was built, and in which nothing shows a running driver."""
    module = _module(facts)
    listed = module.loaded is None and module.built is False and driver_of(facts).release is None
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
def driver_not_loaded(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The NVIDIA kernel module is not loaded."""
    module = _module(facts)
    if module.loaded:
        words = ("Kernel module", module.version, "loaded", f"({module.flavour})" if module.flavour else None)
        title = " ".join(word for word in words if word)
        return passed(title, evidence_of("kernel module", module, "loaded"), decided_by="driver-answered")
    evidence = [evidence_of("nvidia module loaded", module, "loaded")]
    if module.blacklisted_by:
        evidence.append(evidence_of("loading blocked by", module, "blacklisted_by"))
    if snapshot.driver and snapshot.driver.nvml and snapshot.driver.nvml.code:
        answer = snapshot.driver.nvml
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
def kernel_module_missing(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """No NVIDIA kernel module is built for the running kernel."""
    module, platform = _module(facts), snapshot.platform
    release = (platform.kernel_release if platform else None) or "the running kernel"
    if module.built:
        return passed(f"The kernel module is built for {release}", evidence_of("module file", module, "file"))
    evidence = [evidence_of("module built for the running kernel", module, "built")]
    built_for = ", ".join(module.built_for or ())
    if built_for:
        evidence.append(Evidence(what="built for", value=built_for, source=module.source_of("built_for")))
    if platform and platform.kernel_release:
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
    kernel, taken = _kernel(facts), _on_other_drivers(facts)
    messages = kernel_messages("nouveau-loaded", facts.snapshot)
    known = all(gpu.kernel_driver is not None for gpu in facts.own_gpus) and bool(facts.own_gpus)
    loaded = [name for name in _RIVALS if getattr(kernel, f"{name}_loaded")]
    evidence = (
        *(evidence_of(f"{name} loaded", kernel, f"{name}_loaded") for name in loaded),
        *(Evidence(what=gpu_title(gpu), value=f"bound to {gpu.kernel_driver}", source="sysfs") for gpu in taken),
        *(kernel_evidence(message) for message in messages),
    )
    if _module(facts).loaded:
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
    told = _kernel(facts).source == PASTED and _kernel(facts).secure_boot and _module(facts).built is None
    if told and _concerns_module(subject, facts) and not driver_of(facts).names_release:
        return tells_of(facts.snapshot, "driver-not-loaded")
    return _is_not_loaded(subject, facts) and _module(facts).built is True


@rule(
    layer="kernel",
    needs=("kernel.secure_boot",),
    arises=_may_be_blocked,
    remedy=driver.trust_module,
    explains=("driver-not-loaded", "gpu-init-failed", "no-gpu-visible"),
)
def secure_boot_blocks_module(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Secure Boot blocks the NVIDIA kernel module."""
    kernel, module = _kernel(facts), _module(facts)
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
            *(kernel_evidence(message) for message in messages),
        ),
        decided_by="driver-answered" if messages else "inferred",
        confidence="high" if messages else "medium",
    )
