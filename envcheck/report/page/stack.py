"""The rows of the stack: GPU, driver, toolkit, Python, frameworks, each with the status of the checks about it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.model.checks import ASSUMED, EXPIRED, PLAN, STATUSES, Check, Layer, Report, Status
from envcheck.model.snapshot import Driver, Environment, Framework, Gpu, KernelModule, Snapshot, frameworks_in, items_in
from envcheck.report.page.findings import dead_probe_for, probe_end
from envcheck.report.page.pen import EVERYTHING, WORDS, Line, Pen, Room, StyledSpan
from envcheck.report.page.subject import (
    framework_title,
    group_text,
    groups,
    judged_environment,
    listed,
    minor_version,
    severity,
    worse,
    worst,
)
from envcheck.text.wrap import ranges

_LABEL, _WORD = 12, 6
_NOT_LOOKED_AT = "not checked"


class StackRow(msgspec.Struct, frozen=True):
    label: str
    status: Status
    text: str


def stack_lines(report: Report, pen: Pen, room: Room, *, place_told: bool = False) -> list[Line]:
    """The rows; ``place_told`` when the judged environment is already named above them.

    Only a page without limits has a row for what was not looked at.
    """
    lines: list[Line] = []
    for row in stack_rows(report, room.gpus, place_told=place_told):
        if row.text == _NOT_LOOKED_AT and room is not EVERYTHING:
            continue
        word = WORDS[row.status] if row.label or row.status != "skipped" else ""
        lead = (StyledSpan(row.label.ljust(_LABEL)), StyledSpan(word.ljust(_WORD), row.status))
        lines += pen.hang(lead, row.text, most=room.row)
    return lines


def stack_rows(report: Report, gpus: int, *, place_told: bool = False) -> list[StackRow]:
    """The rows with their whole texts; at most ``gpus`` are about GPUs."""
    container = _container(report)
    return [
        *_gpu_rows(report, gpus, with_container=container is None),
        _driver_row(report),
        _row("Toolkit", checks_in(report, "toolkit"), _toolkit_text(report), report, "toolkits"),
        *([] if place_told else _python_rows(report)),
        *_framework_rows(report),
        *_other_environment(report),
        *([container] if container else []),
        *_required(report),
    ]


def _row(label: str, checks: Sequence[Check], text: str | None, report: Report, section: str) -> StackRow:
    """A row about ``section`` of the Snapshot; without a ``text``, one that says why nothing is known of it."""
    if text is not None:
        return StackRow(label, worst(checks), text)
    lost = dead_probe_for(section, report)
    if lost is not None:
        return StackRow(label, worse(worst(checks), "unknown"), f"not known (probe {lost.name} {probe_end(lost)})")
    return StackRow(label, _not_ok(worst(checks)), _worst_title(checks))


def _not_ok(status: Status) -> Status:
    """The status of a row about what is not there, or was not looked at."""
    return "skipped" if status in ("pass", "note") else status


def _worst_title(checks: Sequence[Check]) -> str:
    """What was found about a part of which nothing else is known: an error line may speak of it."""
    bad = sorted(
        (check for check in checks if check.status in ("fail", "warn")), key=lambda each: severity(each.status)
    )
    return bad[0].title if bad else _NOT_LOOKED_AT


def _driver_row(report: Report) -> StackRow:
    """The driver; one that is not installed, not running, or only stated is not called ok."""
    checks, snapshot = checks_in(report, "driver", "kernel"), report.snapshot or Snapshot()
    driver, module = snapshot.driver, snapshot.kernel.nvidia if snapshot.kernel else None
    row = _row("Driver", checks, _driver_text(driver, module), report, "driver")
    away = (driver is not None and driver.installed is False) or (module is not None and module.loaded is False)
    # Of one that was only stated, it is no news that nothing is known against it.
    proven = any(check.status == "pass" and check.evidence and not check.only_assumed for check in checks)
    stated = driver is not None and driver.source == ASSUMED and not proven
    doubtful = driver is None or stated or (away and not _answers(driver))
    return msgspec.structs.replace(row, status=_not_ok(row.status)) if doubtful else row


def _answers(driver: Driver | None) -> bool:
    """Whether CUDA starts, whatever module drives the GPU: Tegra's and WSL's have other names."""
    return driver is not None and driver.cuda_init is not None and driver.cuda_init.code == 0


def checks_in(report: Report, *layers: Layer) -> list[Check]:
    return [check for check in report.checks if check.layer in layers]


def _gpu_rows(report: Report, most: int, *, with_container: bool) -> list[StackRow]:
    layers: tuple[Layer, ...] = ("gpu", "fabric", "container") if with_container else ("gpu", "fabric")
    machine = [check for check in checks_in(report, *layers) if check.subject.kind == "machine"]
    if not report.gpus:
        listing = report.snapshot.gpus if report.snapshot else None
        none = None if listing is None else "none" if listing.complete else "none seen, but the list is not complete"
        row = _row("GPU", machine, none, report, "gpus")
        return [msgspec.structs.replace(row, status=_not_ok(row.status))]
    found = groups(report, machine)
    shown = found if len(found) <= most else found[: most - 1]
    rows: list[StackRow] = []
    for group in shown:
        which = listed(ranges([gpu.index for gpu in group.gpus if gpu.index is not None]))
        text = f"{which}: {group_text(group, report)}" if which and len(found) > 1 else group_text(group, report)
        rows.append(StackRow("" if rows else "GPU", group.status, text))
    rest = found[len(shown) :]
    if rest:
        number = sum(len(group.gpus) for group in rest)
        checks = [check for group in rest for check in group.checks]
        rows.append(StackRow("", worst([*checks, *machine]), f"{number} more GPUs in {len(rest)} other states (-v)"))
    return rows


def _driver_text(driver: Driver | None, module: KernelModule | None) -> str | None:
    running = (driver.release if driver else None) or (module.version if module and module.loaded else None)
    if not running and driver is not None:
        found = (each.version for each in items_in(driver.libraries) if each.kind == "driver")
        versions = list(dict.fromkeys(filter(None, found)))
        running = f"libraries {listed(versions)}, release not known" if versions else "release not known"
        running = "none installed" if driver.installed is False else running
    parts = [running] if running else []
    if module and module.loaded is False and not _answers(driver):
        parts.append("kernel module not loaded")
    if driver is None:
        return ", ".join(parts) or None
    if driver.cuda:
        parts.append(f"supports up to CUDA {driver.cuda}")
    text, start = ", ".join(parts), driver.cuda_init
    if driver.installed is False:
        return text
    if start is None:
        return f"{text}; CUDA initialization not tested"
    if start.code < 0:
        return f"{text}; libcuda cannot be loaded"
    return f"{text}; " + (f"cuInit {start.code} {start.name}".rstrip() if start.code else "cuInit ok")


def _toolkit_text(report: Report) -> str | None:
    listing = report.snapshot.toolkits if report.snapshot else None
    if listing is None:
        return None
    if not listing.items:
        return "none (wheels need none)" if listing.complete else "none seen, but the list is not complete"
    first, *others = sorted(listing.items, key=lambda toolkit: not (toolkit.on_path or toolkit.cuda_home))
    marks = [name for name, on in (("PATH", first.on_path), ("CUDA_HOME", first.cuda_home)) if on]
    text = f"{first.version or 'unknown version'} in {first.path}" + (f" ({', '.join(marks)})" if marks else "")
    further = listed([found.version or "unknown version" for found in others])
    return f"{text}; also {further}" if others else text


def _python_rows(report: Report) -> list[StackRow]:
    environment = judged_environment(report)
    if environment is None:
        return []
    if environment.problem:
        return [
            StackRow("Python", "unknown", f"{environment.key} ({environment.why or 'examined'}): {environment.problem}")
        ]
    unknown = "unknown version" if environment.planned is None else "not stated"
    version = minor_version(environment.python) if environment.python else unknown
    reason = f" ({environment.why})" if environment.why not in (None, "", environment.key) else ""
    if environment.why == environment.key and not environment.python:
        return []  # a pasted text need not speak of Python
    return [StackRow("Python", "skipped", f"{version} in {environment.key}{reason}")]


def _framework_rows(report: Report) -> list[StackRow]:
    """Frameworks, and in a separate row the extensions of one; each row begins with what is worst."""
    checks = checks_in(report, "framework", "library")
    environment = judged_environment(report)
    extensions = [found for found in frameworks_in(environment) if found.extends]
    if environment is None or not extensions:
        return [_row("Frameworks", checks, _framework_text(report, environment, checks), report, "environments")]
    of_extensions = [check for found in extensions for check in _checks_about(found, environment, checks)]
    others = [check for check in checks if check not in of_extensions]
    return [
        _row("Frameworks", others, _framework_text(report, environment, checks), report, "environments"),
        StackRow("Extensions", worst(of_extensions), listed(_titles(extensions, environment, checks, report))),
    ]


def _framework_text(report: Report, environment: Environment | None, checks: Sequence[Check]) -> str | None:
    if environment is None or environment.frameworks is None:
        return None
    found = [framework for framework in environment.frameworks.items if not framework.extends]
    if not found and environment.planned:
        keys = [check.subject.key for check in checks if check.rule == PLAN]
        named = [item.asked for item in environment.planned if any(key.endswith(f":{item.name}") for key in keys)]
        return listed(named) if named else "none that is known"
    stated = [part.value for check in checks if check.rule == PLAN for part in check.evidence if part.source == ASSUMED]
    if not found and stated:
        return listed(stated)
    if not found:
        return "none" if environment.frameworks.complete else "none seen, but the list is not complete"
    return listed(_titles(found, environment, checks, report))


def _titles(found: Sequence[Framework], environment: Environment, checks: Sequence[Check], report: Report) -> list[str]:
    """One text for each, those first about which something is wrong, as only the first of many are shown."""
    bad = ("fail", "warn", "unknown")
    ranks = [
        min(
            (STATUSES.index(check.status) for check in _checks_about(each, environment, checks) if check.status in bad),
            default=len(STATUSES),
        )
        for each in found
    ]
    ordered = sorted(zip(ranks, range(len(found)), found, strict=True))
    return [_one_framework(framework, report.gpus) for _, _, framework in ordered]


def _checks_about(framework: Framework, environment: Environment, checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if check.subject.key == f"{environment.key}:{framework.name}"]


def _one_framework(framework: Framework, gpus: Sequence[Gpu]) -> str:
    """``torch 2.5.1 (CUDA 12.4), ran on GPU 0 in 0.4 s``: with how far it came when it was tried."""
    title, trial = framework_title(framework), framework.trial
    if framework.problem:
        return f"{title} ({framework.problem})"
    if framework.cuda and "+" not in (framework.version or ""):
        title += f" (CUDA {framework.cuda})"
    if trial is None:
        reaches = {True: ", reaches the GPU", False: ", does not reach the GPU", None: ""}
        return title + reaches[framework.gpu_available]
    if not trial.imported:
        return title + (", import did not finish" if trial.imported is None else ", import fails")
    if trial.ran_on_gpu is None:
        return title + (", imported" if trial.skipped or not trial.error else ", no result")
    if not trial.ran_on_gpu:
        return f"{title}, cannot use the GPU"
    gpu = next((gpu for gpu in gpus if trial.gpu in gpu.identities()), None)
    where = f"GPU {gpu.index}" if gpu and gpu.index is not None else "the GPU"
    return f"{title}, ran on {where}" + (f" in {trial.seconds:.1f} s" if trial.seconds is not None else "")


def _other_environment(report: Report) -> list[StackRow]:
    """Another environment that has a framework, where the judged one has none."""
    judged = judged_environment(report)
    if frameworks_in(judged):
        return []
    others = [found for found in report.environments if found is not judged and frameworks_in(found)]
    if not others:
        return []
    found = sorted(frameworks_in(others[0]), key=lambda framework: framework.extends is not None)
    titles = listed([framework_title(framework) for framework in found])
    reason = f"{others[0].why}; " if others[0].why else ""
    return [StackRow("", "skipped", f"not judged: {titles} in {others[0].key} ({reason}--python judges it)")]


def _container(report: Report) -> StackRow | None:
    platform = report.snapshot.platform if report.snapshot else None
    checks = checks_in(report, "container")
    if platform is None or platform.container in (None, "none"):
        return StackRow("Container", worst(checks), _worst_title(checks)) if worst(checks) in ("fail", "warn") else None
    return StackRow("Container", worst(checks), platform.container or "")


def _required(report: Report) -> list[StackRow]:
    """What the user required, unmet first; that an ignore holds yet is no requirement."""
    checks = [check for check in checks_in(report, "request") if not (check.rule == EXPIRED and check.status == "pass")]
    if not checks:
        return []
    words = {"not met": ("fail", "warn"), "not known": ("unknown", "skipped"), "met": ("pass", "note")}
    keys = {
        word: [check.subject.key for check in checks if check.status in statuses] for word, statuses in words.items()
    }
    text = "; ".join(f"{word}: {listed(found)}" for word, found in keys.items() if found)
    return [StackRow("Required", worst(checks), text)]
