"""Which GPUs a program sees: the variables that select them, and what CUDA enumerates."""

from __future__ import annotations

import msgspec

from envcheck.knowledge.relations.variables import Kind, hides_all, read_visible
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import PASTED, Gpu, Snapshot
from envcheck.rules.api import Facts, Outcome, failure, if_known, passed, rule, warning
from envcheck.rules.facts.machine import doubt_inside_wsl, plural
from envcheck.rules.facts.variables import VISIBLE, setting_evidence
from envcheck.rules.fixes.driver import READ_KERNEL_LOG
from envcheck.rules.messages.observed import call_evidence, results_naming, tells_of
from envcheck.rules.variables.values import cuda_stopping_faults, failed_start
from envcheck.text.lazy import lazy_pattern

INJECTED = "NVIDIA_VISIBLE_DEVICES"

_IN_WSL = doubt_inside_wsl(
    "CUDA finds no device inside WSL: several causes are possible",
    "A libcuda outside /usr/lib/wsl/lib may be loaded, Windows may not pass the GPU through, or a variable may hide "
    "it. Add what nvidia-smi prints there, and which libcuda.so.1 the loader finds.",
)

_LATER = lazy_pattern(r"[1-9][0-9]?\b")  # A list that begins with another GPU than the first
_INVALID_DEVICE = 101
_NO_DEVICE = 100
_TITLES: dict[Kind, str] = {
    "twice": "{variable} names the same GPU twice: {text}",
    "mixed": "{variable} mixes indices and UUIDs",
    "ambiguous": "{variable}: {text} matches several GPUs",
    "mig-off": "{variable} names a MIG device, but MIG is off",
    "misread": "{variable}: CUDA reads only the number in {text}",
    "absent": "{variable} names a GPU that does not exist: {text}",
    "word": "{variable}: {text} is neither an index nor a UUID",
    "blank": "{variable} has an empty entry",
}
_PLAIN_LIST = lazy_pattern(r"[0-9A-Za-z,/-]+")


def _prohibited(facts: Facts) -> bool:
    return bool(facts.own_gpus) and all(gpu.compute_mode == "prohibited" for gpu in facts.own_gpus)


def _show_again(facts: Facts) -> tuple[Fix, ...]:
    value = facts.variable(VISIBLE)
    unset = unset_visible(
        facts, f"Unset {VISIBLE}, or name GPUs that exist; in a batch job, request one from the scheduler"
    )
    if value is not None and hides_all(value):
        return (unset,)
    if any(node.openable is False for node in facts.gpu_nodes or ()):
        return (Fix("Grant this user access to the device nodes: by group, or through the job scheduler", who="root"),)
    if _prohibited(facts):
        return (Fix("Set the compute mode to default", command=("sudo", "nvidia-smi", "-c", "0"), who="root"),)
    if not facts.nvml_answers and not facts.cuda_answers:
        return _narrow_down(facts)
    return (unset, READ_KERNEL_LOG) if value is not None else (READ_KERNEL_LOG,)


def _narrow_down(facts: Facts) -> tuple[Fix, ...]:
    """What tells apart the causes of an error line: no GPU is there, a variable hides it, or a build has no CUDA."""
    where = "See whether the driver lists a GPU where the program runs"
    if facts.driver_os != "windows":
        where += ": a container has one only if it is started with --gpus all, a batch job if it asks (--gres=gpu:1)"
    asked = "import torch; print(torch.__version__, torch.version.cuda); torch.cuda.init()"
    torch = facts.framework("torch")
    by_torch = torch is not None or facts.lines_with("pytorch-speaks")
    build = "If it does, ask PyTorch: None is a build for CPUs alone, to be replaced"
    none = "If nvidia-smi lists none: look for the reason in the kernel log"
    return (
        Fix(where, command=("nvidia-smi", "-L")),
        *((Fix(build, command=(facts.interpreter, "-c", asked)),) if by_torch and not (torch and torch.cuda) else ()),
        Fix(f"If {VISIBLE} is set: start without it", command=("env", "-u", VISIBLE, facts.interpreter)),
        msgspec.structs.replace(READ_KERNEL_LOG, text=none),
    )


def _job_without_gpu(facts: Facts) -> str | None:
    """How a text starts a batch job that asks for no GPU, where its program sees none."""
    job = facts.told.job_without_gpu
    # The same program may see one elsewhere, as on the node from which the job is sent.
    differs = any(each.path.endswith("gpu_available") for each in facts.snapshot.disagreements)
    return job if job and (differs or tells_of(facts, "gpu-init-failed") or sees_no_gpu(facts)) else None


def _asked_for_none(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The finding in a text about such a job."""
    job = _job_without_gpu(facts)
    if job is None:
        return None
    return failure(
        title="The batch job asks for no GPU",
        message="The scheduler shows a job only the GPUs that it asks for; a partition with GPUs is no request.",
        evidence=(Evidence("batch job", job, PASTED),),
        confidence="medium",
        fixes=(Fix("Ask the scheduler for a GPU: #SBATCH --gres=gpu:1, or --gpus=1"),),
    )


@rule(
    layer="container",
    decided_by="driver-answered",
    needs=("driver.cuda_init",),
    arises=lambda _snapshot, facts: (
        ((facts.nvml_answers or facts.cuda_answers) and bool(facts.own_gpus)) or _job_without_gpu(facts) is not None
    ),
    proof=_asked_for_none,
    remedy=_show_again,
    doubt=_IN_WSL,
)
def no_gpu_visible(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """CUDA sees no GPU, although the driver works."""
    driver = facts.driver
    calls = tuple(result for result in (driver.cuda_init, driver.cuda_device_count) if result is not None)
    refused = results_naming("no-gpu-visible", calls)
    if not refused and driver.cuda_devices:
        return passed(f"CUDA sees {plural(driver.cuda_devices, 'device')}")
    if not refused and driver.cuda_devices is None:
        return None
    value = facts.variable(VISIBLE)
    closed = [node.path for node in facts.gpu_nodes or () if node.openable is False]
    if value is not None and hides_all(value):
        why = f"{VISIBLE} is {value!r}: programs started here see no GPU."
    elif closed:
        why = f"This user has no permission to open {', '.join(closed)}."
    elif _prohibited(facts):
        why = "The compute mode of every GPU is prohibited."
    else:
        why = "The driver works, but CUDA enumerates no device."
    return failure(
        title=f"{VISIBLE} hides every GPU" if value is not None and hides_all(value) else "CUDA sees no GPU",
        message=why,
        evidence=(
            setting_evidence(VISIBLE, value) if value is not None else None,
            *map(call_evidence, refused),
            if_known("CUDA devices", driver, "cuda_devices"),
        ),
    )


def in_batch_job(facts: Facts) -> bool:
    """Whether a job scheduler assigns the GPUs."""
    return any(name.startswith(("SLURM_", "PBS_", "LSB_")) for name in facts.variables.values)


def unset_visible(facts: Facts, text: str = f"Unset {VISIBLE}: programs then see every GPU") -> Fix:
    """Start a program without the list, with the risk of that inside a batch job."""
    risk = "The job scheduler sets the list: without it, this program may use GPUs of other jobs"
    return Fix(text, command=("env", "-u", VISIBLE, "python"), risk=risk if in_batch_job(facts) else "")


def _name_others(facts: Facts) -> tuple[Fix, ...]:
    value = facts.variable(VISIBLE)
    listing = Fix("List the GPUs with indices and UUIDs", command=("nvidia-smi", "-L"))
    return (*((unset_visible(facts),) if value is not None else ()), listing)


def _chooses_gpus(_subject: Snapshot, facts: Facts) -> bool:
    """Whether a variable selects GPUs, on a machine that may have some."""
    value = facts.variable(VISIBLE)
    chosen = value is not None and (not hides_all(value) or sees_no_gpu(facts)) and facts.may_have_gpus
    return chosen or ("GPU-" in (facts.variable(INJECTED) or "") and bool(_listed(facts)))


@rule(layer="container", arises=_chooses_gpus, remedy=_name_others)
def gpu_hidden(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """CUDA_VISIBLE_DEVICES selects a GPU that CUDA cannot use."""
    value, gpus = facts.variable(VISIBLE), _listed(facts)
    if value is not None and hides_all(value) and sees_no_gpu(facts) and facts.driver.cuda_init is None:
        # The finding in a text; on an examined machine no-gpu-visible has CUDA's own answer.
        return failure(
            title=f"{VISIBLE} hides every GPU",
            message=f"{VISIBLE} is {value!r}: programs started so see no GPU.",
            evidence=(setting_evidence(VISIBLE, value),),
        )
    if value is None or hides_all(value):
        return _injected_wrongly(facts, gpus)
    if not gpus and _LATER.match(value) and sees_no_gpu(facts) and facts.driver.cuda_init is None:
        return failure(
            title=f"{VISIBLE}={value} selects no GPU that is there",
            message="The program finds none, and the list does not begin with the first one.",
            evidence=(setting_evidence(VISIBLE, value),),
            confidence="medium",
        )
    return _judge_list(value, gpus, facts)


def _judge_list(value: str, gpus: tuple[Gpu, ...], facts: Facts) -> Outcome | None:
    """Compare a list with the GPUs that are there, and with what CUDA answers to it."""
    reading, driver, failed = read_visible(value, gpus or None), facts.driver, failed_start(facts)
    problem = reading.problem
    if failed is None and problem is not None and (driver.cuda_devices or 0) > reading.visible:
        problem = None  # CUDA accepts it
    refused = (
        failed is not None and failed.code == _INVALID_DEVICE and not (problem is None and cuda_stopping_faults(facts))
    )
    if problem is None and not refused:
        wrong, empty = _injected_wrongly(facts, gpus), failed is not None and failed.code == _NO_DEVICE
        if wrong or empty or not gpus:
            return wrong
        return passed(f"{reading.visible} of {plural(len(gpus), 'GPU')} visible", setting_evidence(VISIBLE, value))
    lost = refused or reading.visible == 0 or bool(failed and failed.code == _NO_DEVICE)
    left = plural(reading.visible, "GPU") if reading.visible else "none"
    effect = f"CUDA ignores this entry and all that follow. Visible: {left}."
    if refused or reading.refused:
        effect = "CUDA refuses the whole list: cuInit fails with 101 (invalid device), but the GPUs are healthy."
    elif problem is not None and problem.kind == "misread":
        effect = f"Commas separate the entries, and CUDA ignores what follows the number. Visible: {left}."
    corrected: tuple[Fix, ...] = ()
    once = ",".join(entry.text for entry in reading.entries if entry.kind == "gpu")
    repeated = problem is not None and all(entry.kind in ("gpu", "twice") for entry in reading.entries)
    if repeated and _PLAIN_LIST.fullmatch(once):
        corrected = (Fix("Name each GPU once", command=("env", f"{VISIBLE}={once}", "python")),)
    return Outcome(
        status="fail" if lost else "warn",
        title=_TITLES[problem.kind].format(variable=VISIBLE, text=problem.text)
        if problem
        else f"CUDA refuses {VISIBLE}={value}",
        message=effect,
        evidence=(
            setting_evidence(VISIBLE, value),
            Evidence("GPUs", str(len(gpus)), gpus[0].source) if gpus else None,
            call_evidence(failed) if failed else None,
        ),
        decided_by="driver-answered" if driver.cuda_init is not None else "inferred",
        fixes=(*corrected, *_name_others(facts)),
    )


def _listed(facts: Facts) -> tuple[Gpu, ...]:
    """The GPUs that NVML lists; a pasted table may be cut, so it counts only beside a program that sees no GPU."""
    refused = sees_no_gpu(facts)
    return tuple(gpu for gpu in facts.own_gpus if gpu.index is not None) if refused or facts.nvml_answers else ()


def sees_no_gpu(facts: Facts) -> bool:
    """Whether a program of a text sees no GPU."""
    return tells_of(facts, "no-gpu-visible") or facts.finds_no_gpu


def _injected_wrongly(facts: Facts, gpus: tuple[Gpu, ...]) -> Outcome | None:
    """A UUID that the container requests and does not have."""
    entries = (text.strip() for text in (facts.variable(INJECTED) or "").split(","))
    asked = [text for text in entries if text.startswith("GPU-")]
    absent = [text for text in asked if read_visible(text, gpus).problem]
    if not absent:
        return None
    return warning(
        title=f"{INJECTED} names a GPU that does not exist",
        message=f"{', '.join(absent)} was requested, but the driver does not list it.",
        evidence=(setting_evidence(INJECTED, facts.variable(INJECTED) or ""),),
        fixes=(Fix("Start the container with GPUs that exist on the host"),),
    )
