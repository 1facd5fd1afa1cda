"""Windows: frameworks that no longer support its GPUs, and the libcuda that programs load inside WSL."""

from __future__ import annotations

from collections.abc import Mapping

from envcheck.compat.package_needs import normalised
from envcheck.knowledge.relations.variables import hides_all
from envcheck.knowledge.specifier import parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Distribution, DriverLibrary, Environment, Framework, Snapshot, items_in
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, if_known, note, passed, rule, warning
from envcheck.rules.facts.variables import VISIBLE
from envcheck.rules.fixes.driver import family
from envcheck.rules.frameworks.build import evidence_for_cuda
from envcheck.rules.messages.observed import call_evidence, line_evidence, observed_problems, results_naming

_WSL = Fix(
    "Use WSL2 with the Linux build (the Windows driver is enough)",
    command=("wsl", "--install"),
    who="root",
    risk="requires a restart of Windows",
)


@rule(layer="framework", remedy=(_WSL,))
def windows_gpu_unsupported(_environment: Environment, facts: Facts) -> Outcome | None:
    """A framework release has no GPU support on Windows."""
    asked = facts.lines_with("gpu-asked-of-tensorflow") or facts.finds_no_gpu
    if facts.driver_os != "windows" or not (asked or facts.usable_gpus or evidence_for_cuda(facts)):
        return None
    once: dict[str, Framework | Distribution] = {}
    for item in (item for item in facts.versions if item.version):
        once.setdefault(normalised(item.name), item)
    judged = []
    for item in (item for name, item in once.items() if facts.matrix.has_trait(name, "no-gpu-on-windows")):
        version = parse_version(item.version or "")
        rows = _rows(item, facts)
        judged.append((item, [row for row in rows if version and speaks_of(row.versions, version) != "none"]))
    without = [(item, rows) for item, rows in judged if rows and not any("windows" in row.os for row in rows)]
    if not without:
        return passed("The frameworks support GPUs on Windows") if any(rows for _, rows in judged) else None
    item, rows = without[0]
    systems = sorted({os for row in rows for os in row.os})
    # The last release that has GPU support on native Windows, with what it needs.
    builds = [row for row in _rows(item, facts) if "windows" in row.os]
    last = max(builds, key=lambda row: max(each.numbers for each in parse_specifier(row.versions).bounds), default=None)
    older: tuple[Fix, ...] = ()
    if last is not None:
        needs = ", ".join(f"{name} {last.needs[name]}" for name in ("python", "cuda", "cudnn") if name in last.needs)
        requires = f" (requires {needs})" if needs else ""
        older = (Fix(f"Use {last.name} {last.versions}, the last with GPU support on native Windows{requires}"),)
    return failure(
        title=f"{item.name} {item.version} has no GPU support on Windows",
        message="Its GPU builds are for other systems: here it runs on the CPU.",
        evidence=(
            Evidence(item.name, item.version or "", item.source),
            Evidence("GPU builds", ", ".join(systems), "matrix"),
        ),
        decided_by="declared",
        fixes=(_WSL, *older),
        sources=facts.matrix.cite(*rows),
    )


def _rows(item: Framework | Distribution, facts: Facts) -> list[ReleaseRow]:
    """The rows of builds with GPU support; of a distribution without any, those of its project."""
    name = normalised(item.name)
    for component in (name, *facts.matrix.projects(name, "no-gpu-on-windows")):
        rows = [row for row in facts.matrix.rows_of(component) if row.cuda and row.os]
        if rows:
            return rows
    return []


_SHADOWED = (
    "driver-library-mismatch", "driver-not-installed", "driver-not-loaded", "gpu-init-failed", "no-gpu-visible",
)  # fmt: skip
"""What programs say when they load a Linux driver's libcuda there."""
_OWN_FOLDER = "/usr/lib/wsl/"


@rule(layer="driver", remedy=lambda facts: _remove_linux_driver(None, facts), explains=_SHADOWED)
def wsl_libcuda_shadowed(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Inside WSL, another libcuda shadows the one from Windows."""
    driver, files = facts.driver, items_in(facts.driver.libraries)
    if facts.driver_os != "wsl":
        return None
    found = [library for library in files if library.found_as and "libcuda.so" in library.found_as[0]]
    # Not from Windows: the real path is elsewhere, and no container runtime mounted it from there.
    elsewhere = (each for each in found if each.kind == "driver" and not each.path.startswith(_OWN_FOLDER))
    foreign = [each for each in elsewhere if each.version is not None or each.mounted is not True]
    first = found[0] if found else None
    if facts.cuda_answers and not foreign:
        evidence = call_evidence(driver.cuda_init) if driver.cuda_init else None
        return passed("Programs load the libcuda from Windows", evidence, decided_by="driver-answered")
    if facts.cuda_answers:
        return note(
            title="A Linux driver is installed inside WSL",
            message="Programs load the libcuda from Windows; the Linux driver has no effect.",
            evidence=tuple(Evidence("libcuda", library.path, library.source) for library in foreign),
            decided_by="driver-answered",
            fixes=_remove_linux_driver(foreign[0], facts),
        )
    if first is None or first not in foreign:
        return _by_text(snapshot, facts)
    failed = results_naming("no-gpu-visible", (driver.cuda_init,)) if driver.cuda_init else ()
    whose = "A Linux driver's" if first.version else "Another"
    return failure(
        title=f"{whose} libcuda shadows the one from Windows",
        message=f"Programs load {first.found_as[0]}, which cannot reach the GPU inside WSL.",
        evidence=(
            Evidence("libcuda", f"{first.path}, found as {first.found_as[0]}", first.source),
            *(call_evidence(result) for result in failed),
        ),
        decided_by="driver-answered" if failed else "inferred",
        fixes=_remove_linux_driver(first, facts),
    )


def _by_text(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """What the error lines of a text say, if the libraries decide nothing."""
    lines = facts.lines_with("released-driver-read")
    if lines:
        return failure(
            title="A Linux driver's libcuda is loaded inside WSL",
            message="The name of the loaded libcuda contains a Linux driver version.",
            evidence=tuple(map(line_evidence, lines)),
            decided_by="framework-ran",
            fixes=_remove_linux_driver(None, facts),
        )
    problems = {found.line.problem: found for found in observed_problems(facts)}
    if installed := _installed({name: found.evidence for name, found in problems.items()}, facts):
        return installed
    contradicted = problems.get("driver-too-old") if facts.supports_all_natively else None
    no_device = problems.get("no-gpu-visible") or problems.get("driver-not-installed") or contradicted
    known = (no_device, contradicted)
    others = any(each.line.status == "fail" and each not in known for each in problems.values())
    value = facts.variable(VISIBLE)
    # A build for CUDA finds no GPU, though Windows' driver is there and new enough for it.
    builds = [each for each in facts.frameworks if each.cuda and not each.cpu_only]
    refused = any(each.gpu_available is False for each in builds)
    new_enough = facts.driver_release is not None and facts.supports_all_natively
    seen = no_device.evidence if no_device else _denials(facts) if refused and new_enough else ()
    if not seen or others or (value is not None and hides_all(value)):
        return None
    text = "List the libcuda files that the loader knows: all should be in /usr/lib/wsl"
    return warning(
        title="CUDA does not start inside WSL: usually another libcuda is loaded",
        message="If /usr/lib/wsl/lib/nvidia-smi lists the GPU, the loader finds a Linux libcuda (or a stub) first.",
        evidence=(*seen, if_known("WSL", snapshot.platform, "wsl")),
        confidence="weak",
        fixes=(Fix(text, command=("ldconfig", "-p")), *_remove_linux_driver(None, facts)),
    )


def _installed(problems: Mapping[str, tuple[Evidence, ...]], facts: Facts) -> Outcome | None:
    """A Linux driver that a text lists or installs inside WSL, where something then fails."""
    # A package with a Linux driver's libraries that a text lists or installs.
    files = items_in(facts.driver.libraries)
    package = next((each for each in files if not each.found_as and "/" not in each.path), None)
    refused = tuple(each for name in _SHADOWED if name in problems for each in problems[name])
    failed = refused + _denials(facts)
    on_cpu = any(each.cpu_only for each in facts.frameworks)
    if package is None or not failed or (on_cpu and not refused) or "cpu-only-build" in problems:
        return None
    return failure(
        title="A Linux driver is installed inside WSL",
        message="Inside WSL the driver is that of Windows; a Linux driver's libraries stand in its way.",
        evidence=(Evidence("package", package.path, package.source), *failed),
        fixes=_remove_linux_driver(None, facts),
    )


def _denials(facts: Facts) -> tuple[Evidence, ...]:
    denying = (each for each in facts.frameworks if each.gpu_available is False)
    return tuple(evidence_of(f"{each.name} can use the GPU", each, "gpu_available") for each in denying)


def _remove_linux_driver(library: DriverLibrary | None, facts: Facts) -> tuple[Fix, ...]:
    path = facts.variable("LD_LIBRARY_PATH") or ""
    folder = library.found_as[0].rpartition("/")[0] if library and library.found_as else ""
    if folder and folder in path.split(":"):
        return (Fix(f"Remove {folder} from LD_LIBRARY_PATH, or put /usr/lib/wsl/lib before it"),)
    remove = {
        "ubuntu": ("sudo", "apt-get", "remove", "--purge", "^libnvidia-compute-[0-9].*", "^nvidia-driver-[0-9].*"),
        "debian": ("sudo", "apt-get", "remove", "--purge", "libcuda1", "nvidia-driver"),
    }
    return (
        Fix(
            "Remove the Linux driver from this distribution; the Windows driver stays",
            command=remove.get(family(facts), ()),
            who="root",
            risk="also removes packages that depend on the Linux driver",
        ),
        Fix("Then rebuild the loader cache", command=("sudo", "ldconfig"), who="root"),
        Fix("Workaround: export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH"),
    )
