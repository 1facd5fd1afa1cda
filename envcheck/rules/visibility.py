"""Which GPUs a program sees: the variables that choose them, and what CUDA enumerates."""

from __future__ import annotations

from typing import Literal, NamedTuple

from envcheck.checks import Evidence, Fix
from envcheck.rules.api import Facts, Outcome, passed, rule, seen
from envcheck.rules.driver_errors import naming, shown
from envcheck.rules.fixes import read_kernel_log
from envcheck.rules.machine import cuda_answers, doubted_inside_wsl, driver_of, gpu_nodes, nvml_answers, plural
from envcheck.snapshot import Gpu, Snapshot

VISIBLE = "CUDA_VISIBLE_DEVICES"
INJECTED = "NVIDIA_VISIBLE_DEVICES"

NONE = ("", "-1", "none", "void", "NoDevFiles")
"""Values of the variables that hide every GPU on purpose."""

_IN_WSL = doubted_inside_wsl(
    "CUDA finds no device inside WSL: this has several causes",
    "Another libcuda than the one in /usr/lib/wsl/lib may be loaded, Windows may not pass the GPU through, or a "
    "variable may hide it; what nvidia-smi says there, and which libcuda.so.1 the loader finds, would tell.",
)


def _driver_is_fine(_subject: Snapshot, facts: Facts) -> bool:
    return (nvml_answers(facts) or cuda_answers(facts)) and bool(facts.own_gpus)


def _prohibited(facts: Facts) -> bool:
    return bool(facts.own_gpus) and all(gpu.compute_mode == "prohibited" for gpu in facts.own_gpus)


def _show_again(facts: Facts) -> tuple[Fix, ...]:
    value = facts.variable(VISIBLE)
    unset = Fix(text=f"Unset {VISIBLE}, or name GPUs that exist; in a batch job, ask the scheduler for a GPU")
    if value in NONE:
        return (unset,)
    if any(node.openable is False for node in gpu_nodes(facts) or ()):
        return (Fix(text="Let this user open the device nodes: by group, or through the job scheduler", who="root"),)
    if _prohibited(facts):
        return (Fix(text="Set the compute mode to default", command=("sudo", "nvidia-smi", "-c", "0"), who="root"),)
    return (unset, read_kernel_log()) if value is not None else (read_kernel_log(),)


@rule(
    layer="container",
    scope="container",
    needs=("driver.cuda_init",),
    arises=_driver_is_fine,
    remedy=_show_again,
    doubt=_IN_WSL,
    explains=("gpu-init-failed",),
)
def no_gpu_visible(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """CUDA sees no GPU, although the driver works.

    What it checks
        Whether CUDA enumerates at least one device under the present variables, on a machine whose
        driver answers and that has a GPU. A text from inside WSL that only says that there is no
        device leaves this open: there it has other causes too.

    Why it matters
        A program sees the GPUs that CUDA_VISIBLE_DEVICES leaves it. When it is empty or -1, or its
        first entry does not exist, there is none, and frameworks say that no CUDA GPU is available.

    How to fix
        Unset CUDA_VISIBLE_DEVICES, or name GPUs that exist (`nvidia-smi -L` lists them). In a batch
        job the scheduler sets it: ask for a GPU. Otherwise look at who may open /dev/nvidia*, and at
        the GPUs' compute mode.

    Sources
        CUDA environment variables:
            https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    driver = driver_of(facts)
    calls = tuple(result for result in (driver.cuda_init, driver.cuda_device_count) if result is not None)
    refused = naming("no-gpu-visible", calls)
    if not refused and driver.cuda_devices:
        return passed(f"CUDA sees {plural(driver.cuda_devices, 'device')}", decided_by="driver-answered")
    if not refused and driver.cuda_devices is None:
        return None
    value = facts.variable(VISIBLE)
    variable = (as_set(VISIBLE, value),) if value is not None else ()
    count = (seen("CUDA devices", driver, "cuda_devices"),) if driver.cuda_devices is not None else ()
    return Outcome(
        status="fail",
        title=f"{VISIBLE} hides every GPU" if value in NONE else "CUDA sees no GPU",
        message=_why(facts, value),
        evidence=(*variable, *(shown(result) for result in refused), *count),
        decided_by="driver-answered",
    )


def _why(facts: Facts, value: str | None) -> str:
    if value in NONE:
        return f"{VISIBLE} is {value!r}: no GPU is left to programs started here."
    closed = [node.path for node in gpu_nodes(facts) or () if node.openable is False]
    if closed:
        return f"This user may not open {', '.join(closed)}."
    if _prohibited(facts):
        return "The compute mode of every GPU is prohibited."
    return "The driver answers, but CUDA enumerates no device."


def as_set(name: str, value: str) -> Evidence:
    """An environment variable and its value, as evidence."""
    return Evidence(what=name, value=value or "(empty)", source="environment")


class Entry(NamedTuple):
    """An entry of a list of GPUs."""

    text: str
    state: Literal["valid", "end", "invalid"]


def _name_others(_facts: Facts) -> tuple[Fix, ...]:
    return (Fix(text="Name GPUs that exist", command=("nvidia-smi", "-L")),)


def _lists_gpus(_subject: Snapshot, facts: Facts) -> bool:
    """Whether a variable chooses among GPUs that are all known."""
    chosen = facts.variable(VISIBLE), _injected(facts)
    return any(value not in (None, *NONE) for value in chosen) and nvml_answers(facts) and bool(_listed(facts))


@rule(
    layer="container",
    scope="container",
    arises=_lists_gpus,
    remedy=_name_others,
    explains=("gpu-init-failed", "no-gpu-visible"),
)
def gpu_hidden(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A list of visible GPUs names one that does not exist.

    What it checks
        Every entry of CUDA_VISIBLE_DEVICES (an index, a UUID or its beginning, a MIG device) and
        every UUID in NVIDIA_VISIBLE_DEVICES against the GPUs that the driver lists. Choosing some of
        the GPUs is normal and passes.

    Why it matters
        CUDA ignores the first entry that does not exist and all that follow it. Programs then see
        fewer GPUs than were asked for, or none.

    How to fix
        Name GPUs that exist: `nvidia-smi -L` lists indices and UUIDs. In a container indices start
        at 0 again, so an index of the host may not exist.

    Sources
        CUDA environment variables:
            https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    value, gpus = facts.variable(VISIBLE), _listed(facts)
    entries = tuple(_entry(text.strip(), gpus) for text in value.split(",")) if value not in (None, *NONE) else ()
    visible = next((place for place, entry in enumerate(entries) if entry.state != "valid"), len(entries))
    wrong = entries[visible] if visible < len(entries) and entries[visible].state == "invalid" else None
    driver = driver_of(facts)
    if wrong is None or (driver.cuda_devices or 0) > visible:
        return _injected_wrongly(facts, gpus) or _chosen(value, visible, gpus, bool(entries))
    return Outcome(
        status="warn" if visible else "fail",
        title=f"{VISIBLE} names a GPU that does not exist: {wrong.text or 'an empty entry'}"[:80],
        message=f"CUDA ignores it and all that follows; left: {plural(visible, 'GPU') if visible else 'none'}.",
        evidence=(
            as_set(VISIBLE, value or ""),
            Evidence(what="GPUs", value=str(len(gpus)), source="nvml"),
        ),
        decided_by="driver-answered" if driver.cuda_devices is not None else "inferred",
        fixes=_name_others(facts),
    )


def _listed(facts: Facts) -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in facts.own_gpus if gpu.index is not None)


_LONGEST_INDEX = 9
"""Digits; Python reads no number of thousands."""


def _entry(text: str, gpus: tuple[Gpu, ...]) -> Entry:
    if text == "-1":
        return Entry(text, "end")
    if text.isdecimal():
        return Entry(text, "valid" if len(text) <= _LONGEST_INDEX and int(text) < len(gpus) else "invalid")
    if text.startswith("MIG-"):
        return Entry(text, "valid" if _names_mig(text, gpus) else "invalid")
    known = bool(text) and any((gpu.uuid or "").lower().startswith(text.lower()) for gpu in gpus)
    unknown = text.lower().startswith("gpu-") and any(gpu.uuid is None for gpu in gpus)
    return Entry(text, "valid" if known or unknown else "invalid")


def _names_mig(text: str, gpus: tuple[Gpu, ...]) -> bool:
    """Whether the text may name a MIG device here; the older form, by GPU and numbers, is taken on trust."""
    if "/" in text:
        return True
    instances = [gpu.mig.instances if gpu.mig else None for gpu in gpus]
    if any(known is None for known in instances):
        return True
    uuids = [instance.uuid for known in instances for instance in known or ()]
    return any(uuid is None or uuid.lower().startswith(text.lower()) for uuid in uuids)


def _injected(facts: Facts) -> str | None:
    value = facts.variable(INJECTED)
    return value if value is not None and "GPU-" in value else None


def _injected_wrongly(facts: Facts, gpus: tuple[Gpu, ...]) -> Outcome | None:
    """A UUID that the container was asked to have, and does not."""
    asked = [text.strip() for text in (_injected(facts) or "").split(",") if text.strip().startswith("GPU-")]
    absent = [text for text in asked if _entry(text, gpus).state == "invalid"]
    if not absent:
        return None
    return Outcome(
        status="warn",
        title=f"{INJECTED} names a GPU that is not here",
        message=f"{', '.join(absent)} was asked for, and the driver does not list it.",
        evidence=(as_set(INJECTED, facts.variable(INJECTED) or ""),),
        fixes=(Fix(text="Start the container with GPUs that exist on the host"),),
    )


def _chosen(value: str | None, visible: int, gpus: tuple[Gpu, ...], by_variable: bool) -> Outcome | None:  # noqa: FBT001
    if not by_variable:
        return None
    title = f"{visible} of {plural(len(gpus), 'GPU')} visible"
    return passed(title, as_set(VISIBLE, value or ""))
