"""What a check is about, in words (``GPU 0-3``, ``torch 2.5.1+cpu in ~/p/.venv``); the worst of several statuses; and
the GPUs of a machine, those of one model in one state together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from envcheck.model.checks import Check, Location, Report, Status
from envcheck.model.snapshot import Environment, Framework, Gpu, frameworks_in
from envcheck.model.versions import ComputeCapability
from envcheck.rules.facts.machine import and_more
from envcheck.text.lazy import lazy_pattern
from envcheck.text.wrap import ranges

_LABEL = lazy_pattern(r"^(assumed|pasted|named|stated)(?: text)?[- ](?:(\d{1,4})$)?")
"""Begins the label of a GPU that was not looked at: whence it comes, then its number or its name."""


def judged_environment(report: Report) -> Environment | None:
    """The environment that the verdict is about."""
    return report.snapshot.judged_environment if report.snapshot else None


def gpu_name(gpu: Gpu) -> str:
    """The model without its vendor: ``H100 80GB HBM3``."""
    return (gpu.name or gpu.pci_device_id or "GPU of unknown model").removeprefix("NVIDIA ")


def gpu_numbers(checks: Iterable[Check]) -> str:
    """``GPU 0-3, 5`` by nvidia-smi's index, else the number in a label or the bus id; empty for a mere name."""
    indices, others = set(), []
    for subject in (check.subject for check in checks if check.subject.kind == "gpu"):
        label = _LABEL.match(subject.key)
        index = int(label[2]) if subject.index is None and label and label[2] else subject.index
        if index is not None:
            indices.add(index)
        elif not label:
            others.append(subject.pci_bus_id or subject.key)
    names = [*ranges(sorted(indices)), *dict.fromkeys(others)]
    return f"GPU {listed(names)}" if names else ""


def check_name(check: Check) -> str:
    """The id, without the label of a GPU: ``row-remap-failed@GPU 0``."""
    is_labelled = check.subject.kind == "gpu" and _LABEL.match(check.subject.key)
    return f"{check.rule}@{gpu_numbers([check]) or 'GPU'}" if is_labelled else check.id


def listed(names: Sequence[str], most: int = 4) -> str:
    """``a, b, c`` with the rest counted."""
    return ", ".join(names[:most]) + and_more(names, most)


def place(environment: Environment) -> str:
    """``~/p/.venv (VIRTUAL_ENV, Python 3.12)``: which environment, why it, and its Python."""
    python = f"Python {minor_version(environment.python)}" if environment.python else ""
    reasons = ", ".join(filter(None, (environment.why if environment.why != environment.key else "", python)))
    return f"{environment.key} ({reasons})" if reasons else environment.key


def minor_version(version: str) -> str:
    """``3.12.3`` as ``3.12``."""
    return ".".join(version.split(".")[:2])


def framework_title(framework: Framework) -> str:
    """``torch 2.5.1+cpu``."""
    return f"{framework.name} {framework.version or 'of unknown version'}"


def place_of(location: Location) -> str:
    """``requirements.txt:3``."""
    return f"{location.file}:{location.line}" if location.line else location.file


def subject_line(checks: Sequence[Check], report: Report) -> str:
    """What ``checks`` (of one rule) are about; empty for the machine as a whole."""
    locations = [place_of(found) for check in checks if (found := check.location)]
    kind = checks[0].subject.kind
    parts = [*dict.fromkeys(locations)]
    if kind == "gpu":
        keys = {check.subject.key for check in checks}
        gpus = [gpu for gpu in report.gpus if keys & set(gpu.identities())]
        names = list(dict.fromkeys(gpu_name(gpu) for gpu in gpus))
        label = _LABEL.match(checks[0].subject.key)
        numbers = (gpu_numbers(checks) or "GPU") + (f" ({label[1]})" if label else "")
        line = f"{numbers}: {listed(names)}" if names else numbers
        bus = gpus[0].pci_bus_id if len(gpus) == 1 else None
        parts.append(f"{line} at {bus}" if bus and bus not in line else line)
    elif kind != "machine":
        parts.extend(dict.fromkeys(filter(None, (_software_line(check, report) for check in checks))))
    return "; ".join(parts)


def _software_line(check: Check, report: Report) -> str:
    key = check.subject.environment or check.subject.key
    environment = next((found for found in report.environments if found.key == key), None)
    if environment is None:
        return check.subject.path or check.subject.key
    if check.subject.kind == "environment":
        return place(environment)
    name = check.subject.key.removeprefix(f"{key}:")
    framework = next((found for found in frameworks_in(environment) if found.name == name), None)
    return f"{framework_title(framework) if framework else name} in {place(environment)}"


_WORST_FIRST: tuple[Status, ...] = ("fail", "warn", "unknown", "note", "pass", "skipped")


def worst(checks: Iterable[Check]) -> Status:
    """The worst status among ``checks``; ``skipped`` when none was judged. An ignored finding is a remark, and what was
    assumed is not judged.
    """
    statuses: set[Status] = set()
    for check in checks:
        assumed = check.status == "pass" and check.only_assumed
        statuses.add("note" if check.ignored else "skipped" if assumed else check.status)
    return next((status for status in _WORST_FIRST if status in statuses), "skipped")


def severity(status: Status) -> int:
    """Sorts the worst status first."""
    return _WORST_FIRST.index(status)


def worse(first: Status, second: Status) -> Status:
    return min(first, second, key=severity)


_BUSY = 0.01  # Share of time from which a GPU counts as in use


class EqualGpus(msgspec.Struct, frozen=True):
    """GPUs of one model in one state."""

    gpus: tuple[Gpu, ...]
    checks: tuple[Check, ...]  # The checks about any of them
    status: Status
    troubles: tuple[str, ...]  # Names of the rules that found something
    open_questions: int  # Number of rules that could not be judged


def groups(report: Report, machine: Sequence[Check]) -> list[EqualGpus]:
    """The GPUs by model and state, the worst first; ``machine`` are the checks that concern all of them."""
    about: dict[str, list[Check]] = {}
    for check in report.checks:
        if check.subject.kind == "gpu":
            subject = check.subject
            for identity in dict.fromkeys((subject.key, subject.uuid, subject.pci_bus_id)):  # a figure has its own key
                about.setdefault(identity or "", []).append(check)
    common = worst(machine)
    found: dict[tuple[str, str | None, Status, tuple[str, ...], int], list[tuple[Gpu, list[Check]]]] = {}
    for gpu in report.gpus:
        own = [*{check.id: check for identity in gpu.identities() for check in about.get(identity, ())}.values()]
        status = worse(worst(own), common)
        concerning = [check for check in (*machine, *own) if not check.ignored]
        troubles = tuple(dict.fromkeys(check.rule for check in concerning if check.status in ("fail", "warn")))
        unknown = {check.rule for check in concerning if check.status == "unknown"}
        key = (gpu_name(gpu), gpu.compute_capability, status, troubles, len(unknown))
        found.setdefault(key, []).append((gpu, own))
    return sorted(
        (
            EqualGpus(tuple(gpu for gpu, _ in members), tuple(check for _, own in members for check in own), *key[2:])
            for key, members in found.items()
        ),
        key=lambda group: (severity(group.status), -len(group.gpus)),
    )


def group_text(group: EqualGpus, report: Report) -> str:
    first = group.gpus[0]
    capability = ComputeCapability.parse(first.compute_capability)
    sizes = {gpu.memory.total if gpu.memory else None for gpu in group.gpus}
    size = sizes.pop() if len(sizes) == 1 else None
    memory = "" if size is None or "GB" in gpu_name(first) else f"{size / (1 << 30):.0f} GiB"
    traits = ", ".join(filter(None, (capability.sm if capability else first.compute_capability, memory)))
    name = gpu_name(first) + (f" ({traits})" if traits and traits != gpu_name(first) else "")
    enabled = [gpu.mig for gpu in group.gpus if gpu.mig and gpu.mig.enabled]
    instances = [mig.instances for mig in enabled if mig.instances is not None]
    mig = f"MIG with {sum(map(len, instances))} instances" if instances else "MIG" if enabled else ""
    driver = report.snapshot.driver if report.snapshot else None
    asked = driver is not None and driver.cuda_devices is not None  # else nobody knows how many CUDA hides
    total, visible = len(group.gpus), sum(gpu.cuda_ordinal is not None for gpu in group.gpus)
    count = f"{visible} of {total} x " if asked and visible < total else f"{total} x " if total > 1 else ""
    busy: list[bool | None] = []
    for gpu in group.gpus:
        computes = any(process.kind == "compute" for process in gpu.processes or ())
        busy.append(computes or (None if gpu.utilisation is None else gpu.utilisation >= _BUSY))
    use = "" if None in busy else "idle"
    if any(busy):
        use = "in use" if all(busy) else f"{busy.count(True)} in use"
    parts = [count + name, mig, use, listed(group.troubles, 3)]
    if group.open_questions:
        parts.append(f"{group.open_questions} check{'s' if group.open_questions > 1 else ''} not judged")
    elif not group.troubles:
        # Only where the state of each GPU was read, and not just what it is, and a check about it passed.
        judged = {check.subject.key for check in group.checks if check.status in ("pass", "note")}
        healthy = all(
            judged & set(gpu.identities()) and any((gpu.ecc, gpu.row_remap, gpu.recovery_action, gpu.throttle))
            for gpu in group.gpus
        )
        parts.append("no errors" if healthy else "")
    return ", ".join(filter(None, parts))
