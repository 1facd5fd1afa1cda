"""Whether the driver runs the CUDA version of a framework's build."""

from __future__ import annotations

from envcheck.enrich.stated import PROGRAMS
from envcheck.knowledge.error_lines import fragment_in
from envcheck.knowledge.relations.driver import branch_for_cuda, driver_runs_cuda, minimum_driver
from envcheck.knowledge.relations.fit import Fit, conclude
from envcheck.knowledge.relations.gpu_code import code_runs_on
from envcheck.model.checks import Evidence, Fix, Missing, Status
from envcheck.model.snapshot import Framework
from envcheck.model.versions import CudaVersion, DriverRelease
from envcheck.rules.api import (
    Facts,
    Outcome,
    evidence_of,
    failure,
    if_known,
    incompatible,
    not_known,
    note,
    passed,
    rule,
)
from envcheck.rules.facts.frameworks import built_for_cuda, code_targets, proves
from envcheck.rules.facts.machine import unanswered
from envcheck.rules.fixes.driver import update_driver
from envcheck.rules.fixes.frameworks import install_other_release
from envcheck.rules.known_facts import library_on_disk
from envcheck.rules.messages.observed import line_evidence


def _fixes(facts: Facts) -> tuple[Fix, ...]:
    """What gets a program that the driver refuses to run: a build for an older CUDA, or a newer driver."""
    # A program or an image may demand a CUDA version of the driver, or a release.
    demands = (fragment_in("asked-of-driver", error.text) for error in facts.snapshot.observed_errors)
    image, program, least = next((found.group("image", "program", "least") for found in demands if found), ("",) * 3)
    branch = branch_for_cuda(facts.matrix, image or program, facts.driver_os)
    least = least or (branch.branch if branch else "")
    update = update_driver(facts, f"driver >= {least}" if least else "")
    text = f"Start an image for a CUDA older than {image}: nvidia-smi shows the newest that the driver runs"
    return (*update, Fix(text)) if image else (*install_other_release(facts), *update)


def _is_driver_separate(framework: Framework, facts: Facts) -> bool:
    """On a Jetson the driver is part of the system software and has other release numbers."""
    return built_for_cuda(framework, facts) and not facts.on_tegra


def _starts_cuda_itself(framework: Framework, facts: Facts) -> bool:
    """Whether it initializes CUDA itself, as extensions do not; other packages count only with a known CUDA version."""
    base = facts.framework(framework.extends)
    if base is not None and base.cuda:
        return False
    return _is_driver_separate(framework, facts) and (facts.is_main_framework(framework) or framework.cuda is not None)


_NEW_ENOUGH = note(
    title="The stated driver is new enough",
    message="Inside WSL this error means that another libcuda than the one from Windows answered.",
)


@rule(
    layer="driver",
    scope="env",
    needs=("framework.cuda",),
    doubt=lambda facts: _NEW_ENOUGH if facts.driver_os == "wsl" and facts.supports_all_natively else None,
    arises=_starts_cuda_itself,
    proof=proves("ran with this driver"),
    ground="framework",
    remedy=_fixes,
)
def driver_too_old(framework: Framework, facts: Facts) -> Outcome | None:
    """The driver is too old for the CUDA version that a framework was built with."""
    driver = facts.driver
    cuda, number = CudaVersion.parse(framework.cuda), facts.driver_release
    if cuda is None or number is None:
        return _without_release(framework, cuda, facts)
    if driver.release:
        shown = evidence_of("driver", driver, "release")
    elif facts.module.version:
        shown = Evidence("kernel module", facts.module.version, facts.kernel.source_of("nvidia"))
    else:
        library = library_on_disk(facts.snapshot)
        what, source = (f"driver library {library.path}", library.source) if library else ("driver", "file")
        shown = Evidence(what, facts.release_text or "", source)
    evidence = _cuda_of_both(framework, facts, shown)
    title = f"Driver {number} runs CUDA {cuda} of {framework.title}"
    if framework.gpu_available:  # the framework's own answer, here or in the text of a tool that asked it
        proof = evidence_of(f"{framework.name} can use the GPU", framework, "gpu_available")
        return passed(title, *evidence, proof, decided_by="framework-ran")
    fit = _fit(framework, number, cuda, facts)
    if fit.ok:
        return _cannot_load_what_it_compiles(framework, cuda, facts) or passed(title, *evidence)
    if not fit.bad and not facts.is_main_framework(framework):
        return None
    if not fit.bad:
        return not_known(f"Not known whether driver {number} runs CUDA {cuda}", fit)
    more = ""
    if not driver.release and not facts.own_gpus:
        more = " No driver is running: the version of its library on disk was used."
        more += " A container that is given a GPU gets the host's driver instead." if facts.in_container else ""
    return _too_old(f"Driver {number}", fit, evidence, framework, facts, more)


def _cannot_load_what_it_compiles(framework: Framework, cuda: CudaVersion, facts: Facts) -> Outcome | None:
    """The finding that the driver is older than the compiler of a framework, and refuses what that made."""
    compiler = max(cuda, CudaVersion.parse(framework.compiles_with.get("nvrtc")) or cuda)
    lines = facts.lines_with("compiled-code-refused")
    if not lines or not facts.compiles_its_code(framework) or facts.supports_natively(compiler) is not False:
        return None
    return failure(
        title=f"The driver does not load what {framework.title} compiles",
        message=f"It compiles with CUDA {compiler}, and the driver supports CUDA {facts.supported_cuda}.",
        evidence=(line_evidence(lines[0]), *_cuda_of_both(framework, facts)),
        decided_by="framework-ran",
        fixes=_fixes(facts),
    )


def _without_release(framework: Framework, cuda: CudaVersion | None, facts: Facts) -> Outcome:
    """The outcome where the driver's release is not known: by the newest CUDA that it supports, if that is.

    Nothing is compared without a driver; what cannot be read is unknown.
    """
    driver = facts.driver
    if cuda is None or driver.cuda is None or framework.gpu_available:
        if facts.release_text is not None:
            text = f"driver {facts.release_text} or CUDA {framework.cuda} is not a readable version"
            return Outcome(status="unknown", title="Not known whether the driver is new enough", message=text)
        title, missing = "Not compared with a driver", (Missing(fact="driver.release"),)
        if driver.installed is False:
            return Outcome(status="skipped", title=title, message="no NVIDIA driver was found here", missing=missing)
        return unanswered("driver.release", title, facts.snapshot)
    evidence = _cuda_of_both(framework, facts)
    if facts.runs_builds_for(cuda):
        works = passed(f"The driver runs CUDA {cuda} of {framework.title}", *evidence)
        return _cannot_load_what_it_compiles(framework, cuda, facts) or works
    least = minimum_driver(facts.matrix, cuda, facts.driver_os)
    wanted = f"driver >= {least.driver}" if least else ""
    reason = f"CUDA {cuda} needs a newer driver than one that supports CUDA up to {driver.cuda}"
    fit = conclude(facts.matrix, "incompatible", reason, least.row if least else None, change=wanted)
    return _too_old("The driver", fit, evidence, framework, facts)


def _cuda_of_both(framework: Framework, facts: Facts, *between: Evidence) -> tuple[Evidence | None, ...]:
    """The CUDA of a framework, and the newest that the driver is known to support."""
    of_driver = if_known("CUDA that the driver supports", facts.driver, "cuda")
    return (evidence_of(f"CUDA of {framework.name}", framework, "cuda"), *between, of_driver)


def _too_old(
    which: str, fit: Fit, evidence: tuple[Evidence | None, ...], framework: Framework, facts: Facts, more: str = ""
) -> Outcome:
    """The finding, as severe as what stops, with what works nevertheless."""
    row = facts.matrix.role_of(framework.name)
    worst: Status = "warn"
    if facts.is_main_framework(framework) or framework.name == PROGRAMS:
        worst = "fail"
    elif row is not None and row.role == "compiler" and facts.only_compiles_for_torch:
        worst, more = "note", f" PyTorch runs without it; torch.compile does not.{more}"
    fixes = (*install_other_release(facts, framework), *update_driver(facts, fit.nearest_change))
    title = f"{which} is too old for {framework.title}"
    return incompatible(title, fit, evidence=evidence, fixes=fixes, worst=worst, more=more)


def _fit(framework: Framework, number: DriverRelease, cuda: CudaVersion, facts: Facts) -> Fit:
    """Whether the driver runs the build, and can compile its PTX for GPUs without native code."""
    fit = driver_runs_cuda(facts.matrix, number, cuda, facts.driver_os, reported=CudaVersion.parse(facts.driver.cuda))
    if not fit.ok:
        return fit
    code, supported = code_targets(framework), facts.supported_cuda
    written = facts.cuda_of_code(framework)
    for _, capability in facts.gpus_with_capability if code else ():
        compiled = code_runs_on(facts.matrix, code, capability, driver_cuda=supported, built_with=written)
        if compiled.bad and code_runs_on(facts.matrix, code, capability, driver_cuda=written, built_with=written).ok:
            return compiled
    return fit


@rule(
    layer="driver",
    scope="env",
    needs=("framework.cuda", "driver.release"),
    arises=lambda framework, facts: (
        facts.is_main_framework(framework)
        and _is_driver_separate(framework, facts)
        and facts.driver.release is not None
    ),
)
def driver_older_than_toolkit(framework: Framework, facts: Facts) -> Outcome | None:
    """The driver is older than a framework's CUDA version but runs it."""
    cuda, number = CudaVersion.parse(framework.cuda), facts.driver_release
    if cuda is None or number is None or facts.supports_natively(cuda) is not False or not facts.runs_builds_for(cuda):
        return None
    supported = Evidence("CUDA that the driver supports", str(facts.supported_cuda), "driver")
    return note(
        title=f"Driver {number} is older than CUDA {cuda} of {framework.name}, which works",
        message=f"It supports CUDA {facts.supported_cuda}; minor-version compatibility covers the rest except PTX.",
        evidence=(evidence_of(f"CUDA of {framework.name}", framework, "cuda"), supported),
    )
