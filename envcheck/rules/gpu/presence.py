"""Whether there is an NVIDIA GPU, the driver supports it, and it has the features that packages need."""

from __future__ import annotations

from envcheck.compat.devices import refused
from envcheck.compat.question import AskedGpu
from envcheck.knowledge.relations.driver import driver_supports
from envcheck.model.checks import Evidence, Fix, Missing, Status
from envcheck.model.snapshot import PASTED, Environment, Framework, Gpu, Snapshot
from envcheck.model.versions import ComputeCapability
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, incompatible, not_known, passed, rule, warning
from envcheck.rules.facts.frameworks import ran_on
from envcheck.rules.facts.machine import basis_of, count_by_model
from envcheck.rules.fixes.driver import smi_selector, update_driver
from envcheck.rules.messages.observed import kernel_evidence, kernel_messages, tells_of

_ABOUT_CUDA = ("no-gpu-visible", "driver-not-installed", "gpu-init-failed", "cpu-only-build", "toolkit-missing")


def _only_of_other_makers(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The finding in a text that names a GPU of another maker alone, and whose program finds no CUDA."""
    other = facts.told.other_gpu
    known = facts.own_gpus or facts.driver.release or facts.on_tegra
    if not other or known or any(framework.hip for framework in facts.frameworks):
        return None
    if not (facts.finds_no_gpu or tells_of(facts, *_ABOUT_CUDA)):
        return None
    builds = "this GPU, such as PyTorch's for ROCm, XPU or the CPU"
    if other.startswith("a Mac"):
        builds = "macOS: PyTorch's computes on the GPUs of Apple with device mps; parts that need CUDA have none"
    return failure(
        title="No NVIDIA GPU was found",
        message=f"The text names only {other}, which CUDA does not use.",
        evidence=(Evidence("GPU", other, PASTED),),
        confidence="medium",
        fixes=(Fix(f"Install the program's build for {builds}"),),
    )


@rule(layer="gpu", needs=("gpus",), proof=_only_of_other_makers, ground="GPUs")
def no_nvidia_gpu(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """There is no NVIDIA GPU."""
    own, listing = facts.own_gpus, snapshot.gpus
    if own:
        where = Evidence("GPUs", count_by_model(own), own[0].source)
        return passed(count_by_model(own), where, decided_by=basis_of(own[0], "name"))
    if facts.on_tegra:  # its GPU is part of the chip: not on the PCI bus, and older system software has no NVML
        if facts.driver.cuda_devices:
            count = evidence_of("CUDA devices", facts.driver, "cuda_devices")
            return passed("Integrated GPU of the Tegra chip", count, decided_by="driver-answered")
        text = "a Tegra chip has an integrated GPU, but CUDA, which would show it, did not answer"
        missing = (Missing(fact="driver.cuda_devices"),)
        return Outcome(status="unknown", title="GPU availability unknown", message=text, missing=missing)
    if listing is None or not listing.complete:
        text = "no GPU was found, but not every source was read"
        return Outcome(
            status="unknown", title="GPU presence unknown", message=text, missing=(Missing(fact="gpus.complete"),)
        )
    evidence = tuple(Evidence(gpu.key, f"bound to {gpu.kernel_driver}", "sysfs") for gpu in facts.gpus)
    if evidence:
        return failure(
            title="All NVIDIA GPUs are reserved for virtual machines",
            message="Every GPU on the bus is bound to a driver for virtual machines.",
            evidence=evidence,
            fixes=(Fix("Bind a GPU to the nvidia driver, or run inside the virtual machine that has it", who="root"),),
        )
    text = "Neither the PCI bus nor the driver shows an NVIDIA GPU."
    if facts.environment.planned is None:
        return failure(title="No NVIDIA GPU was found", message=text)
    fix = Fix("Name the machine that the plan is for, by its GPU and driver, with --assume or --target")
    return failure(
        title="No NVIDIA GPU was found", message=f"{text} The plan is judged for this machine.", fixes=(fix,)
    )


@rule(
    layer="kernel",
    needs=("gpu.compute_capability",),
    arises=lambda _gpu, facts: facts.driver_release is not None,
    remedy=update_driver,
)
def gpu_unsupported_by_driver(gpu: Gpu, facts: Facts) -> Outcome | None:
    """The installed driver does not support this GPU."""
    capability, number = ComputeCapability.parse(gpu.compute_capability), facts.driver_release
    if capability is None or number is None:
        return None
    if gpu.cuda_ordinal is not None or (gpu.index is not None and not gpu.lacks_handle):
        listed_by = "cuda_ordinal" if gpu.cuda_ordinal is not None else "index"
        return passed(f"Driver {number} supports {gpu.title}", decided_by=basis_of(gpu, listed_by))
    # A package that a text names may bring the open module or the other, where nothing failed.
    model, named_only = facts.matrix.model_of(gpu), facts.module.source == PASTED and facts.module.loaded is None
    failed = tells_of(facts, "gpu-init-failed", "driver-not-loaded")
    flavour = facts.module.flavour if failed or not named_only else None
    fit = driver_supports(facts.matrix, capability, number, facts.driver_os, flavour, model=model)
    evidence = (
        evidence_of("compute capability", gpu, "compute_capability"),
        Evidence("driver", facts.release_text or "", "driver"),
        *map(kernel_evidence, kernel_messages("gpu-unsupported-by-driver", facts)),
    )
    if fit.ok:
        return passed(f"Driver {number} supports {capability.sm}", *evidence)
    if not fit.bad:
        return not_known(f"Driver support for {gpu.title} unknown", fit)
    # An update brings a newer driver; an older branch or another module type must be installed by name.
    change = fit.nearest_change
    fixes: tuple[Fix, ...] = (Fix(f"Install {change} for this GPU", who="root", risk="requires a restart"),)
    if ">=" in change:
        fixes = update_driver(facts, change)
    return incompatible(f"Driver {number} does not support {gpu.title}", fit, evidence=evidence, fixes=fixes)


_SHOWN = 3
_END_HOLDER = Fix("Wait until that program ends, end it, or use another GPU", command=("nvidia-smi",))
_ONE_PROCESS = ("exclusive_process", "exclusive_thread")


@rule(
    layer="gpu",
    decided_by="driver-answered",
    arises=lambda gpu, _facts: gpu.compute_mode is not None and not gpu.lacks_handle,
)
def gpu_held_exclusively(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """The compute mode of a GPU turns programs away."""
    mode, holders = gpu.compute_mode, [each for each in gpu.processes or () if each.kind != "graphics"]
    served = [each for each in holders if each.mps_server]
    evidence = (
        evidence_of("compute mode", gpu, "compute_mode"),
        *(Evidence("holds it", f"process {each.pid}", each.source) for each in holders[:_SHOWN]),
    )
    if served:
        text = f"The server of MPS (process {served[0].pid}) shares {gpu.title} among its clients"
        return passed(text, *evidence)
    if mode == "prohibited" or (mode in _ONE_PROCESS and holders):
        why = "takes no program" if mode == "prohibited" else f"belongs to process {holders[0].pid}"
        command = ("sudo", "nvidia-smi", *smi_selector(gpu), "-c", "0")
        risk = "several programs then share its memory"
        share = Fix("Let it take several programs", command=command, who="root", risk=risk)
        return warning(
            title=f"{gpu.title} {why} (compute mode {mode})",
            message="Every other program fails with 'all CUDA-capable devices are busy or unavailable'.",
            evidence=evidence,
            fixes=(*((_END_HOLDER,) if holders else ()), share),
        )
    text = "takes several programs" if mode == "default" else f"is free; it takes one program at a time ({mode})"
    return passed(f"{gpu.title} {text}", *evidence)


_NO_BYSTANDER = 512 << 20  # bytes of a program that works, and not only has a context


@rule(
    layer="gpu",
    decided_by="driver-answered",
    # Programs may share a GPU on purpose; on Windows each that draws is listed as one that computes.
    arises=lambda gpu, facts: facts.complains_of_speed and gpu.processes is not None and facts.platform.os != "windows",
)
def gpu_shared(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """Several programs compute on one GPU."""
    programs = (each for each in gpu.processes or () if each.kind == "compute")
    computing = [each for each in programs if each.memory is None or each.memory >= _NO_BYSTANDER]
    if len(computing) < 2:
        return passed(f"{gpu.title}: no second program computes on it")
    return warning(
        title=f"{gpu.title}: {len(computing)} programs compute on it",
        message="They take turns: each gets a part of the GPU's time and memory.",
        evidence=tuple(Evidence("computes on it", f"process {each.pid}", each.source) for each in computing[:_SHOWN]),
        confidence="medium",
    )


@rule(layer="gpu", scope="env")
def gpu_feature_unsupported(environment: Environment, facts: Facts) -> Outcome | None:
    """A package or number format needs a newer GPU."""
    if not any(gpu.compute_capability for gpu in facts.usable_gpus):
        return None
    refusals = []
    records = [each for each in facts.versions if facts.matrix.has_trait(each.name, "own-kernels")]
    for each in records:
        for gpu, capability in facts.gpus_with_capability:
            proven = isinstance(each, Framework) and ran_on(each, gpu)
            asked = AskedGpu(gpu.name or "GPU", capability, None)
            rows = () if proven else facts.rows_of_release(each.name, each.version)
            refusals += [(each, row, gpu, *no) for row in rows if (no := refused(facts.matrix, row, asked))]
    if not refusals:
        if not records or not all(facts.rows_of_release(each.name, each.version) for each in records):
            return None  # not all of them are known
        return passed(f"The GPUs support {', '.join(dict.fromkeys(each.name for each in records))}")
    record, row, gpu, why, change = refusals[0]
    # Programs do without an installed one; a plan that still names it asks for it.
    useless = environment.planned is not None or facts.matrix.has_trait(record.name, "needs-its-kernels")
    status: Status = "fail" if useless and row.confidence != "weak" else "warn"
    names = ", ".join(dict.fromkeys(f"{each.name} {each.version}" for each, *_ in refusals))
    return Outcome(
        status=status,
        title=f"{record.name} {record.version} does not support {gpu.name or gpu.title}",
        message=f"{names}: {record.name} {why}, and {gpu.title} has {gpu.compute_capability}.",
        evidence=(
            *(Evidence(each.name, each.version or "", each.source) for each, *_ in refusals),
            evidence_of(f"compute capability of {gpu.title}", gpu, "compute_capability"),
        ),
        confidence=row.confidence,
        sources=facts.matrix.cite(row),
        fixes=(Fix(f"Switch {record.name} off in the program, or use {change}"),),
    )
