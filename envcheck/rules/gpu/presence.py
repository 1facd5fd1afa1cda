"""Whether there is an NVIDIA GPU, and whether the driver supports it."""

from __future__ import annotations

from envcheck.checks import Evidence, Fix, Missing
from envcheck.compat.relations.driver import driver_supports
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule
from envcheck.rules.facts.driver import release, release_text
from envcheck.rules.facts.frameworks import finds_no_gpu
from envcheck.rules.facts.machine import basis_of, count_by_model, gpu_title, lacks_handle, on_tegra
from envcheck.rules.fixes.driver import update_driver
from envcheck.rules.fixes.fits import incompatible, not_known
from envcheck.rules.messages.observed import kernel_evidence, kernel_messages, tells_of
from envcheck.snapshot import PASTED, Gpu, Snapshot, frameworks_in
from envcheck.versions import ComputeCapability, Flavour

_FIND_A_GPU = (
    Fix(text="Check whether the PCI bus shows the card", command=("lspci", "-nn", "-d", "10de:")),
    Fix(
        text="If the machine needs no GPU, check only its Python environment",
        command=("envcheck", "check", "--scope", "env"),
    ),
)


_ABOUT_CUDA = ("no-gpu-visible", "driver-not-installed", "gpu-init-failed", "cpu-only-build", "toolkit-missing")


def _only_of_other_makers(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The finding in a text that names a GPU of another maker alone, and whose program finds no CUDA."""
    other = snapshot.told.other_gpu if snapshot.told else None
    known = facts.own_gpus or (snapshot.driver and snapshot.driver.release) or on_tegra(facts)
    if not other or known or any(framework.hip for framework in frameworks_in(facts.environment)):
        return None
    if not (finds_no_gpu(facts.environment) or tells_of(snapshot, *_ABOUT_CUDA)):
        return None
    return Outcome(
        status="fail",
        title="No NVIDIA GPU was found",
        message=f"The text names only {other}, which CUDA does not use.",
        evidence=(Evidence(what="GPU", value=other, source=PASTED),),
        confidence="medium",
        fixes=(Fix(text=f"Install the program's build for {_builds_for(other)}"),),
    )


def _builds_for(other: str) -> str:
    if other.startswith("a Mac"):
        return "macOS: PyTorch's computes on the GPUs of Apple with device mps; parts that need CUDA have none"
    return "this GPU, such as PyTorch's for ROCm, XPU or the CPU"


@rule(
    layer="gpu",
    scope="node",
    needs=("gpus",),
    proof=_only_of_other_makers,
    ground="GPUs",
    remedy=_FIND_A_GPU,
    explains=(
        "container-without-gpu",
        "cpu-only-build",
        "driver-library-mismatch",
        "driver-not-installed",
        "driver-not-loaded",
        "driver-too-old",
        "gpu-code-missing",
        "gpu-init-failed",
        "no-gpu-visible",
    ),
)
def no_nvidia_gpu(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """There is no NVIDIA GPU.

    What it checks
        Checks whether the PCI bus, the driver or CUDA shows an NVIDIA GPU that this system may use. A
        GPU bound to vfio-pci is reserved for a virtual machine and does not count. The rule fails only
        if every source was read. Of a text, it also fails where a program finds no CUDA and the only
        GPU that is named is another maker's.

    Why it matters
        Without a GPU, every framework computes on the CPU or refuses to start.

    How to fix
        Use a machine, job, instance type or virtual machine with a GPU. If a card is installed, check
        its seating and power, that the firmware has not disabled its slot, and that the hypervisor
        passes it through. `lspci -nn -d 10de:` lists NVIDIA devices.

    Sources
        PCI device ids of NVIDIA: https://pci-ids.ucw.cz/read/PC/10de
        Driver Installation Guide: https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/
    """
    own, listing = facts.own_gpus, snapshot.gpus
    if own:
        where = Evidence(what="GPUs", value=count_by_model(own), source=own[0].source)
        return passed(count_by_model(own), where, decided_by=basis_of(own[0], "name"))
    if on_tegra(facts):
        return _on_tegra(snapshot)
    if listing is None or not listing.complete:
        text = "no GPU was found, but not every source was read"
        return Outcome(
            status="unknown", title="GPU presence unknown", message=text, missing=(Missing(fact="gpus.complete"),)
        )
    evidence = tuple(
        Evidence(what=gpu.key, value=f"bound to {gpu.kernel_driver}", source="sysfs") for gpu in facts.gpus
    )
    if evidence:
        return Outcome(
            status="fail",
            title="All NVIDIA GPUs are reserved for virtual machines",
            message="Every GPU on the bus is bound to a driver for virtual machines.",
            evidence=evidence,
            fixes=(
                Fix(text="Bind a GPU to the nvidia driver, or run inside the virtual machine that has it", who="root"),
            ),
        )
    text = "Neither the PCI bus nor the driver shows an NVIDIA GPU."
    return Outcome(status="fail", title="No NVIDIA GPU was found", message=text)


def _on_tegra(snapshot: Snapshot) -> Outcome:
    """The GPU of a Jetson is part of the chip: not on the PCI bus, and older system software has no NVML."""
    driver = snapshot.driver
    if driver and driver.cuda_devices:
        count = evidence_of("CUDA devices", driver, "cuda_devices")
        return passed("Integrated GPU of the Tegra chip", count, decided_by="driver-answered")
    text = "a Tegra chip has an integrated GPU, but CUDA, which would show it, did not answer"
    missing = (Missing(fact="driver.cuda_devices"),)
    return Outcome(status="unknown", title="GPU availability unknown", message=text, missing=missing)


@rule(
    layer="kernel",
    scope="node",
    per="gpu",
    needs=("gpu.compute_capability",),
    arises=lambda _gpu, facts: release(facts) is not None,
    remedy=update_driver,
    explains=(
        "driver-not-loaded",
        "gpu-error-logged",
        "gpu-init-failed",
        "no-gpu-visible",
    ),
)
def gpu_unsupported_by_driver(gpu: Gpu, facts: Facts) -> Outcome | None:
    """The installed driver does not support this GPU.

    What it checks
        Checks whether the driver release, and the type of its kernel module (open or proprietary),
        supports GPUs of this generation. A GPU that the driver lists is supported.

    Why it matters
        Drivers drop old generations and cannot know newer ones. The open kernel module needs a GPU with
        a GSP processor, and the newest GPUs need the open module. The kernel log says that the driver
        ignores the GPU, and CUDA never shows it.

    How to fix
        Install a driver branch that supports the GPU, or switch to the other type of kernel module. If
        a machine has GPUs of very different age, one branch must support them all.

    Sources
        Driver branches and GPUs: https://docs.nvidia.com/datacenter/tesla/drivers/
        Open kernel modules: https://github.com/NVIDIA/open-gpu-kernel-modules
    """
    capability, number = ComputeCapability.parse(gpu.compute_capability), release(facts)
    if capability is None or number is None:
        return None
    if gpu.cuda_ordinal is not None or (gpu.index is not None and not lacks_handle(gpu)):
        listed_by = "cuda_ordinal" if gpu.cuda_ordinal is not None else "index"
        return passed(f"Driver {number} supports {gpu_title(gpu)}", decided_by=basis_of(gpu, listed_by))
    model = facts.matrix.model_of(gpu)
    fit = driver_supports(facts.matrix, capability, number, facts.driver_os, _flavour(facts), model=model)
    evidence = (
        evidence_of("compute capability", gpu, "compute_capability"),
        Evidence(what="driver", value=release_text(facts) or "", source="driver"),
        *(kernel_evidence(message) for message in kernel_messages("gpu-unsupported-by-driver", facts.snapshot)),
    )
    if fit.ok:
        return passed(f"Driver {number} supports {capability.sm}", *evidence)
    if not fit.bad:
        return not_known(f"Driver support for {gpu_title(gpu)} unknown", fit)
    title = f"Driver {number} does not support {gpu_title(gpu)}"
    return incompatible(title, fit, evidence=evidence, fixes=_other_driver(fit.nearest_change, facts))


def _flavour(facts: Facts) -> Flavour | None:
    """Whether the kernel module is the open one; a package that a text names may bring either where nothing failed."""
    module = facts.snapshot.kernel.nvidia if facts.snapshot.kernel else None
    if module is None:
        return None
    named_only = module.source == PASTED and module.loaded is None
    if named_only and not tells_of(facts.snapshot, "gpu-init-failed", "driver-not-loaded"):
        return None
    return module.flavour


def _other_driver(change: str, facts: Facts) -> tuple[Fix, ...]:
    """An update brings a newer driver; an older branch or another module type must be installed by name."""
    if ">=" in change:
        return update_driver(facts, change)
    return (Fix(text=f"Install {change} for this GPU", who="root", risk="requires a restart"),)
