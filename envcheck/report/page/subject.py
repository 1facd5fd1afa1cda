"""What a check is about, in words (``GPU 0-3``, ``torch 2.5.1+cpu in ~/p/.venv``); the worst of several statuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from envcheck.model.checks import Check, Location, Report, Status
from envcheck.model.snapshot import Environment, Framework, Gpu, frameworks_in
from envcheck.text.wrap import ranges

_MOST_NAMED = 4


def judged_environment(report: Report) -> Environment | None:
    """The environment that the verdict is about."""
    return report.snapshot.judged_environment if report.snapshot else None


def gpu_name(gpu: Gpu) -> str:
    """The model without its vendor: ``H100 80GB HBM3``."""
    name = gpu.name or gpu.pci_device_id or "GPU of unknown model"
    return name.removeprefix("NVIDIA ")


def gpu_numbers(checks: Iterable[Check]) -> str:
    """``GPU 0-3, 5`` by nvidia-smi's index, or the bus ids where no index is known; empty for other subjects."""
    subjects = [check.subject for check in checks if check.subject.kind == "gpu"]
    indices = sorted({subject.index for subject in subjects if subject.index is not None})
    others = list(dict.fromkeys(subject.pci_bus_id or subject.key for subject in subjects if subject.index is None))
    names = [*ranges(indices), *others]
    return f"GPU {listed(names)}" if names else ""


def listed(names: Sequence[str], most: int = _MOST_NAMED) -> str:
    """``a, b, c`` with the rest counted."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def place(environment: Environment) -> str:
    """``~/p/.venv (VIRTUAL_ENV, Python 3.12)``: which environment, why it, and its Python."""
    python = f"Python {minor_version(environment.python)}" if environment.python else ""
    reasons = ", ".join(filter(None, (environment.why, python)))
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
    told = [*dict.fromkeys(locations)]
    if kind == "gpu":
        told.append(_gpu_line(checks, report))
    elif kind != "machine":
        told.extend(dict.fromkeys(filter(None, (_software_line(check, report) for check in checks))))
    return "; ".join(told)


def _gpu_line(checks: Sequence[Check], report: Report) -> str:
    keys = {check.subject.key for check in checks}
    gpus = [gpu for gpu in report.gpus if keys & set(gpu.identities())]
    names = list(dict.fromkeys(gpu_name(gpu) for gpu in gpus))
    numbers = gpu_numbers(checks)
    line = f"{numbers}: {listed(names)}" if names else numbers
    bus = gpus[0].pci_bus_id if len(gpus) == 1 else None
    return f"{line} at {bus}" if bus and bus not in line else line


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
    """The worse of two."""
    return min(first, second, key=severity)
