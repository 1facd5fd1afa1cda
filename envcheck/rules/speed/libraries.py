"""Whether CUDA's libraries work, on one GPU and (NCCL) on several together, and how fast."""

from __future__ import annotations

import msgspec

from envcheck.knowledge.performance.collectives import latency_limit
from envcheck.knowledge.performance.expected import in_use
from envcheck.knowledge.performance.quantities import library_tested
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.gpu_code import code_runs_on, read_targets, runs_natively
from envcheck.model.checks import Evidence, Fix, Status
from envcheck.model.snapshot import Gpu, Library, Measurement, ObservedError, ProbeRun, Snapshot
from envcheck.model.versions import ComputeCapability, CudaVersion
from envcheck.rules.api import Facts, MeasurementSubject, Outcome, failure, if_known, passed, rule
from envcheck.rules.facts.libraries import copy_at
from envcheck.rules.facts.machine import plural
from envcheck.rules.facts.measurements import measurement_name, quantity
from envcheck.rules.fixes.libraries import show_loader_search, without_variable
from envcheck.rules.fixes.reinstall import reinstall
from envcheck.rules.messages.observed import line_evidence
from envcheck.rules.speed.figures import figure_of, judge_figure, value_evidence
from envcheck.rules.speed.trust import failed_beside_others, why_not_judged
from envcheck.text.lazy import lazy_pattern

_SHOWN = 4
_END_OF_NAME = lazy_pattern(r"==| ")  # Between an owner's name and its version
_SEARCHED_FIRST = "LD_LIBRARY_PATH"
_VERIFY = Fix("Compare the library's files with what its package shipped", command=("envcheck", "check", "--verify"))


def _tested_by(run: ProbeRun) -> str | None:
    """The library that a probe works with: cuDNN for ``bench.cudnn`` and ``bench.cudnn_gpus``."""
    return library_tested(run.name.removeprefix("bench.").replace("_", "-"))


@rule(layer="library", decided_by="measured", symptom=True)
def library_fails(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """An installed CUDA library does not work."""
    # What was asked of libraries that do more than matrix products, and their probes that died, not for want of time.
    figures = (found for found in snapshot.measurements if library_tested(found.name) and not found.collective)
    asked = [found for found in figures if found.failed or found.verification]
    crashed = [run for run in snapshot.runs if run.status == "crashed" and run.name != _PROBE and _tested_by(run)]
    if not asked and not crashed:
        return None
    used = {gpu.uuid for gpu in facts.gpus if in_use(gpu)}
    wrong: list[Measurement | ProbeRun] = [*(found for found in asked if found.failed), *crashed]
    failed = [found for found in asked if found.failed and found.gpu not in used]
    died = [run for run in crashed if run.gpu not in used]
    if wrong and not failed and not died:  # on GPUs in use only
        one = wrong[0]
        text = (one.missing or "" if isinstance(one, Measurement) else one.detail).rstrip(".")
        title = library_tested(one.name.removeprefix("bench.")) or one.name
        return failed_beside_others((gpu for gpu in facts.gpus if gpu.uuid == one.gpu), title, text)
    if not failed and not died:
        names = ", ".join(dict.fromkeys(library_tested(found.name) or "" for found in asked))
        return passed(f"{names} work{'s' if ',' not in names else ''} on the GPU")
    gpus = {gpu.uuid: gpu.title for gpu in facts.gpus}
    first = (library_tested(failed[0].name) if failed else _tested_by(died[0])) or ""
    others = {library_tested(found.name) or "" for found in failed} - {first}
    text = (failed[0].missing if failed else died[0].detail) or ""
    place = failed[0].library if failed else _loaded(died[0].name.removeprefix("bench.").partition("_")[0], facts)
    more = f" {', '.join(sorted(others))} {'fail' if len(others) > 1 else 'fails'} too." if others else ""
    library = copy_at(place, facts)
    owner = library.owner if library else None
    gpu = next((gpu for gpu in facts.gpus if gpu.uuid == (failed or died)[0].gpu), None)
    code = _foreign_code(library, gpu, facts)
    lacks = code is not None and code.verdict == "incompatible"
    called_gpu = gpu.title if gpu else "this GPU"
    return failure(
        title=f"{first} has no code for {called_gpu}" if lacks else f"{first} fails on the GPU: {text}",
        message=(
            f"envcheck loaded and called it directly, without any framework: {text}.{more}"
            + (f" For this GPU, {code.reason}." if code else "")
        ),
        evidence=(
            Evidence(owner, place or "", "bench") if owner else None,
            if_known("its GPU code", library, "gpu_code") if code else None,
            *(
                Evidence(
                    f"{gpus.get(found.gpu, '')}: {measurement_name(found)}".removeprefix(": "),
                    found.missing or "",
                    found.library or "bench",
                )
                for found in failed[:_SHOWN]
            ),
            *(Evidence(run.title, run.detail, run.name) for run in died[:_SHOWN]),
        ),
        fixes=(Fix(f"Use a release of {first} with code for {called_gpu}"),)
        if lacks
        else _fixes(first, place, library, facts),
        sources=code.sources if code else (),
    )


def _foreign_code(library: Library | None, gpu: Gpu | None, facts: Facts) -> Fit | None:
    """Whether a library's code runs on the GPU, where none of it was made for that GPU; None where some was."""
    capability = ComputeCapability.parse(gpu.compute_capability) if gpu else None
    targets = read_targets(library.gpu_code or ()) if library else ()
    if capability is None or not targets or any(runs_natively(facts.matrix, each, capability) for each in targets):
        return None
    return code_runs_on(facts.matrix, targets, capability, driver_cuda=CudaVersion.parse(facts.driver.cuda))


def _loaded(family: str, facts: Facts) -> str | None:
    """The file of a library that a framework of the judged environment would load, else one of that environment."""
    loads = (load for each in facts.frameworks for load in each.loads or ())
    found = [load.path for load in loads if _is_of(load.name, family) and load.path]
    own = [each.path for each in facts.libraries if each.environment == facts.environment.key]
    return next(iter((*found, *(path for path in own if _is_of(path, family)))), None)


def _is_of(name: str, family: str) -> bool:
    return name.rpartition("/")[2].startswith(f"lib{family}.so")


def _fixes(first: str, place: str | None, library: Library | None, facts: Facts) -> tuple[Fix, ...]:
    """Look for damage first; where the files are known to be as shipped, replace what holds the library."""
    if facts.environment.verified is None:
        return (_VERIFY,)
    owner = library.owner if library else None
    name = _END_OF_NAME.split(owner or "", maxsplit=1)[0]
    distributions = [each for each in facts.distributions if each.name == name]
    if distributions:
        return reinstall(distributions, facts)
    if place is None:
        return show_loader_search(facts)
    folder = place.rpartition("/")[0]
    if folder in (facts.variable(_SEARCHED_FIRST) or "").split(":"):
        return without_variable(_SEARCHED_FIRST, (folder,), facts)
    if owner:
        return (Fix(f"Install {name} again, with the system's package manager: {place} is its file", who="root"),)
    if library and library.origin == "toolkit":
        return (Fix(f"Install the CUDA Toolkit that holds {place} again", who="root"),)
    text = f"Replace {place}, which no package owns: install {first} again the way that put it there, or move it away"
    return (Fix(text),)


@rule(layer="gpu", ground="figures")
def slow_library(subject: MeasurementSubject, facts: Facts) -> Outcome | None:
    """A CUDA library is slower than expected."""
    measured = subject.measurement
    timed = library_tested(measured.name) and not measured.collective and not measured.failed
    return judge_figure(subject, facts) if timed and (measured.value or measured.missing) else None


_PROBE = "bench.nccl"
_LINES_OF_LOG = 6
_LOG = Fix("To keep NCCL's whole log, set NCCL_DEBUG=INFO and NCCL_DEBUG_FILE (a path), and measure again")


@rule(layer="fabric", ground="figures")
def slow_collective(subject: MeasurementSubject, facts: Facts) -> Outcome | None:
    """A collective operation of several GPUs is slower than expected."""
    measured, collective = subject.measurement, subject.measurement.collective
    if collective is None or collective.log or not (measured.value or measured.missing):
        return None
    if measured.unit != "s" or why_not_judged(facts.gpus, measured):
        found = judge_figure(subject, facts)
        ways = collective.transports if found.status in ("warn", "fail") else ()
        indirect = [way for way in ways if way.startswith(("SHM", "NET"))]
        remark = f" NCCL's log says that it connected GPUs over {', '.join(indirect)}, not by direct access."
        return msgspec.structs.replace(found, message=f"{found.message}{remark if indirect else ''}".strip())
    # The smallest message. A slow one warns only: the host's processor counts too.
    value = quantity(measured.value or 0.0, "s")
    limit = latency_limit(facts.matrix, facts.gpus, facts.snapshot.fabric, measured)
    evidence = [value_evidence("measured", measured)]
    status: Status = "skipped"
    if isinstance(limit, str):
        judged, message = "not judged", f"Measured, not judged: {limit}."
    else:
        most, slow = quantity(limit[0], "s"), (measured.value or 0.0) > limit[0]
        status, judged = "warn" if slow else "pass", f"{'more than' if slow else 'within'} {most}"
        message = "The host's processor may be slow or busy, or the GPUs' clocks low." if slow else ""
        evidence.append(Evidence("expected", f"at most {most}", "matrix"))
    return Outcome(
        status=status,
        title=f"{subject.gpu.title}: {measurement_name(measured)}: {value}, {judged}",
        message=message,
        evidence=tuple(evidence),
        figure=figure_of(subject.gpu, measured),
        sources=() if isinstance(limit, str) else limit[1],
        decided_by="measured",
    )


@rule(layer="fabric", decided_by="measured", symptom=True)
def collective_fails(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """GPUs do not work together through NCCL."""
    # Jobs that ended early: their measurements have NCCL's log, or say that NCCL failed.
    failed = [found for found in snapshot.measurements if found.collective and (found.failed or found.collective.log)]
    died = [run for run in snapshot.runs if run.name == _PROBE and run.status in ("crashed", "timed-out")]
    done = next((found.collective for found in snapshot.measurements if found.collective), None)
    if done is None and not died:
        return None
    if done and not failed and not died:
        return passed(f"NCCL connects {plural(done.ranks, 'GPU')}")
    if not failed:
        return Outcome(
            status="unknown" if died[0].status == "timed-out" else "fail",
            title=f"NCCL: {died[0].detail}",
            message="The process that watches the ranks did not end by itself.",
            fixes=(_LOG,),
        )
    first = failed[0]
    log = [line for line in (first.collective.log if first.collective else ()) if " NCCL WARN " in line]
    text = (first.missing or "").rstrip(".")
    ranks = first.collective.gpus if first.collective else ()
    beside = failed_beside_others((gpu for gpu in facts.gpus if gpu.uuid in ranks), "NCCL", text)
    if beside:
        return beside
    return Outcome(
        status="fail" if first.failed else "warn",
        title=f"NCCL fails: {text}" if first.failed else f"NCCL did not end: {text}",
        message=f"{text}. All other ranks waited for it, and were ended.",
        evidence=(
            Evidence(measurement_name(first), text, first.library or "bench"),
            *(line_evidence(ObservedError(source="NCCL's log", text=line)) for line in log[-_LINES_OF_LOG:]),
        ),
        fixes=(_LOG,),
    )
