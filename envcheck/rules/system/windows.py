"""Native Windows (not WSL): frameworks that no longer support GPUs there."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.utils import canonicalize_name

from envcheck.knowledge.error_lines import lines_with
from envcheck.knowledge.specifier import parse_specifier, parse_version
from envcheck.knowledge.tables import ReleaseRow
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Distribution, Environment, Framework, frameworks_in
from envcheck.rules.api import Facts, Outcome, passed, rule
from envcheck.rules.facts.frameworks import finds_no_gpu
from envcheck.rules.frameworks.cuda_wanted import evidence_for_cuda


def _on_windows(environment: Environment, facts: Facts) -> bool:
    if facts.driver_os != "windows":
        return False
    asked = lines_with("gpu-asked-of-tensorflow", facts.snapshot.observed_errors)
    return bool(asked or finds_no_gpu(environment) or facts.usable_gpus or evidence_for_cuda(environment, facts))


_WSL = Fix(
    text="Use WSL2 with the Linux build (the Windows driver is enough)",
    command=("wsl", "--install"),
    who="root",
    risk="requires a restart of Windows",
)


@rule(
    layer="framework",
    per="environment",
    arises=_on_windows,
    remedy=lambda _facts: (_WSL,),
    explains=(
        "cpu-only-build",
        "no-gpu-visible",
        "cuda-major-mismatch",
        "cuda-library-missing",
        "cudnn-major-mismatch",
        "cudnn-missing",
        "cudnn-too-old",
        "library-not-found",
    ),
)
def windows_gpu_unsupported(environment: Environment, facts: Facts) -> Outcome | None:
    """A framework release has no GPU support on Windows."""
    judged = [(item, _builds(item, facts)) for item in _frameworks(environment, facts)]
    without = [(item, rows) for item, rows in judged if rows and not any("windows" in row.os for row in rows)]
    if not without:
        return passed("The frameworks support GPUs on Windows") if any(rows for _, rows in judged) else None
    item, rows = without[0]
    systems = sorted({os for row in rows for os in row.os})
    return Outcome(
        status="fail",
        title=f"{item.name} {item.version} has no GPU support on Windows",
        message="Its GPU builds are for other systems: here it runs on the CPU.",
        evidence=(
            Evidence(what=item.name, value=item.version or "", source=item.source),
            Evidence(what="GPU builds", value=", ".join(systems), source="matrix"),
        ),
        decided_by="declared",
        fixes=(_WSL, *_older(item, facts)),
        sources=facts.matrix.cite(*rows),
    )


def _frameworks(environment: Environment, facts: Facts) -> Iterator[Framework | Distribution]:
    """The frameworks with releases that have no GPU support on Windows, each once."""
    items: list[Framework | Distribution] = [*frameworks_in(environment), *(environment.distributions or ())]
    met: set[str] = set()
    for item in items:
        name = canonicalize_name(item.name)
        if facts.matrix.has_trait(name, "no-gpu-on-windows") and name not in met and item.version:
            met.add(name)
            yield item


def _rows(item: Framework | Distribution, facts: Facts) -> list[ReleaseRow]:
    """The rows of builds with GPU support; of a distribution without any, those of its project."""
    name = canonicalize_name(item.name)
    for component in (name, *facts.matrix.projects(name, "no-gpu-on-windows")):
        rows = [row for row in facts.matrix.rows_of(component) if row.cuda and row.os]
        if rows:
            return rows
    return []


def _builds(item: Framework | Distribution, facts: Facts) -> list[ReleaseRow]:
    """The rows of this release about a build with GPU support."""
    version = parse_version(item.version or "")
    if version is None:
        return []
    return [row for row in _rows(item, facts) if parse_specifier(row.versions).cover(version) != "none"]


def _older(item: Framework | Distribution, facts: Facts) -> tuple[Fix, ...]:
    """The last release that has GPU support on native Windows, with what it needs."""
    builds = [row for row in _rows(item, facts) if "windows" in row.os]
    last = max(builds, key=_newest, default=None)
    if last is None:
        return ()
    needs = ", ".join(f"{name} {last.needs[name]}" for name in ("python", "cuda", "cudnn") if name in last.needs)
    requires = f" (requires {needs})" if needs else ""
    return (Fix(text=f"Or use {last.name} {last.versions}, the last with GPU support on native Windows{requires}"),)


def _newest(row: ReleaseRow) -> tuple[int, ...]:
    return max(bound.numbers for bound in parse_specifier(row.versions).bounds)
