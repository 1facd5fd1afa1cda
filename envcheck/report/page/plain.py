"""What a report says without a page: a check in plain lines (JUnit, annotations, SARIF), and a machine's versions."""

from __future__ import annotations

import hashlib

from envcheck.model.checks import Check, Report, ways
from envcheck.model.names import fact_name
from envcheck.model.snapshot import Snapshot, frameworks_in, items_in
from envcheck.report.page.frame import evidence_text
from envcheck.report.page.pen import steps
from envcheck.report.page.subject import framework_title, gpu_name, judged_environment, place
from envcheck.text.clean import shell_line

NO_FILE = "envcheck"  # The path of a finding that no file of the reader's is to blame for, where formats demand one


def is_red(check: Check, report: Report) -> bool:
    """Whether the check is a reason for exit status 1: a failure, or a warning under ``--fail-on warn``."""
    if check.ignored:
        return False
    return check.status == "fail" or (check.status == "warn" and report.verdict == "warn" and report.exit_code == 1)


def why_open(check: Check) -> str:
    lacks = ", ".join(fact_name(missing.fact) for missing in check.missing)
    return f"not judged: {check.message or check.title}" + (f" (lacks {lacks})" if lacks else "")


def fingerprint(identity: str) -> str:
    """The same for a check's id on every run, so that a service can follow the finding from run to run."""
    return hashlib.sha256(identity.encode(errors="backslashreplace")).hexdigest()


def explained(check: Check) -> list[str]:
    """Message, evidence, cause, fixes and sources, a line each; foreign text, neither cleaned nor escaped."""
    fixes = []
    for step, fix in (each for way in ways(check.fixes) for each in steps(way)):
        who = "" if fix.who == "user" else f" ({fix.who})"
        fixes.append(f"fix{who}: {step}{fix.text}" + (f": {shell_line(fix.command)}" if fix.command else ""))
    lines = [
        check.message,
        *(f"seen: {evidence_text(found)}" for found in check.evidence),
        *(f"caused by: {cause}" for cause in filter(None, [check.explained_by])),
        *fixes,
        *(f"docs: {source.title} {source.address}" for source in check.sources),
    ]
    return [line for line in lines if line]


_WITH_CUDA = ("nvidia-", "cuda-", "cupy", "jax", "tensorrt", "onnxruntime", "triton", "torch", "numpy", "tensorflow")
"""Beginnings of the names of distributions that decide what works."""


def versions(report: Report) -> list[tuple[str, str]]:
    """Names and versions of what is here; nothing for what was not checked."""
    snapshot = report.snapshot or Snapshot()
    environment = judged_environment(report)
    driver, module = snapshot.driver, snapshot.kernel.nvidia if snapshot.kernel else None
    release = (driver.release if driver else None) or (module.version if module else None) or ""
    flavour = f"{module.flavour} module" if module and module.flavour else ""
    cuda = f"CUDA {driver.cuda}" if driver and driver.cuda else ""
    found: list[tuple[str, str]] = []
    if platform := snapshot.platform:
        system = platform.distribution_title or platform.distribution or platform.os or ""
        inside = [platform.container, platform.virtualization, "wsl" if platform.wsl else None]
        found = [
            ("System", ", ".join(filter(None, (system, platform.machine, platform.libc)))),
            ("Kernel", platform.kernel_release or ""),
            ("Inside", ", ".join(name for name in inside if name and name != "none")),
        ]
    for gpu in report.gpus:
        traits = (gpu_name(gpu), gpu.compute_capability, f"VBIOS {gpu.vbios}" if gpu.vbios else "", gpu.pci_bus_id)
        found.append((f"GPU {'' if gpu.index is None else gpu.index}".strip(), ", ".join(filter(None, traits))))
    found += [
        ("Driver", ", ".join(filter(None, (release, flavour, cuda))) if release else ""),
        *(("Toolkit", f"{each.version or 'unknown version'} in {each.path}") for each in items_in(snapshot.toolkits)),
        *([("Environment", place(environment))] if environment else []),
        *(("Framework", framework_title(framework)) for framework in frameworks_in(environment)),
        *dict.fromkeys(
            (found.name, f"{found.version} ({found.build})" if found.build else found.version)
            for found in sorted((environment.distributions if environment else None) or (), key=lambda each: each.name)
            if found.name.startswith(_WITH_CUDA)
        ),
    ]
    return [(label, text) for label, text in found if text]


def made_by(report: Report) -> str:
    """``envcheck 0.1.0 (matrix of 2026-11-20); made 2026-11-20 17:03:29 UTC (0.4 s)``."""
    tool = report.tool
    return f"{tool.name} {tool.version} (matrix of {tool.matrix}); made {made_at(report)} ({report.duration_s:.1f} s)"


def made_at(report: Report) -> str:
    """``2026-11-20 17:03:29 UTC``."""
    return report.created.replace("T", " ")[:19] + " UTC"
