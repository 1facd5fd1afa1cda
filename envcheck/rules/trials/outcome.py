"""Results of testing a framework (``--deep``): importing it, computing on the GPU, and the libraries that it loaded."""

from __future__ import annotations

import re

from envcheck.enrich.complete import MEMORY_MAP
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.tables.messages import StepRow
from envcheck.model.checks import Evidence, Fix, Missing, Source, Status
from envcheck.model.snapshot import PASTED, Environment, Framework, Load, Loaded, ProbeRun, Trial
from envcheck.rules.api import Facts, Outcome, evidence_of, note, passed, rule
from envcheck.rules.facts.frameworks import end_of, named_in, printed_problems, proof_of, unfinished_trials
from envcheck.rules.facts.machine import plural
from envcheck.text.lazy import lazy_pattern

_LIBRARY = lazy_pattern(r"lib([\w+-]+?)(?:[-.][0-9a-f]{8})?\.so(?:\.[\d.]*)?$", re.ASCII)
_OF_THE_DRIVER = frozenset({"cuda", "nvidia-ml"})


@rule(layer="library", decided_by="framework-ran")
def loaded_library_differs(framework: Framework, facts: Facts) -> Outcome | None:
    """A framework loads other libraries than its files predict."""
    # The CUDA libraries that the framework or its plug-in should load, by family.
    predicted: dict[str, list[Load]] = {}
    plug_ins = (other for other in facts.frameworks if other.name.startswith(f"{framework.name}-cuda"))
    for load in (load for record in (framework, *plug_ins) for load in record.loads or ()):
        match = _LIBRARY.search(load.name)
        if match and load.path and match[1] not in _OF_THE_DRIVER:
            predicted.setdefault(match[1], []).append(load)
    libraries = (framework.trial.libraries if framework.trial else None) or ()
    compared = []
    for library in (library for library in libraries if library.family in predicted):
        # One of another major version than the predicted file, which is loaded too, is not used: preloading opens
        # whatever file has the library's name.
        loads, file = predicted[library.family or ""], library.path.rpartition("/")[2]
        named = any(file == load.name or file.startswith(f"{load.name}.") for load in loads)
        if named or not any(other.path in _paths(loads) for other in libraries):
            compared.append(library)
    differing = [library for library in compared if library.path not in _paths(predicted[library.family or ""])]
    if not compared:
        return None
    if not differing:
        title = f"{framework.title} loaded {plural(len(compared), 'library')} from where its files predict"
        return passed(title, *(_evidence(library) for library in compared))
    names = ", ".join(f"lib{family}" for family in dict.fromkeys(library.family or "" for library in differing))
    of_each = ((_evidence(library), *map(_expected, predicted[library.family or ""])) for library in differing)
    return note(
        title=f"{framework.title} loaded a different {names} than its files predict",
        message="The loaded files count: at run time the search differed from the predicted one.",
        evidence=tuple(part for parts in of_each for part in parts),
    )


def _paths(loads: list[Load]) -> set[str]:
    """The predicted paths; loads that only the process showed have none."""
    return {load.path for load in loads if load.path and load.read.get("path") != MEMORY_MAP}


def _evidence(library: Loaded) -> Evidence:
    version = f" ({library.version})" if library.version else ""
    return Evidence(f"lib{library.family} loaded", f"{library.path}{version}", "memory map")


def _expected(load: Load) -> Evidence:
    there = f"{load.path} ({load.version})" if load.version else f"{load.path}"
    text = f"{load.name} is not found" if load.read.get("path") == MEMORY_MAP else there
    return Evidence("predicted", text, load.source or "elf")


_IMPORT = ("PYTHON", "-c", "import MODULE")


def next_steps(framework: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Steps that show the reason of a failed trial where no finding names it."""
    trial, steps = framework.trial, []
    if trial is None:
        return ()
    error = trial.error or ""
    if error.startswith(("crashed: SIGSEGV", "crashed: SIGBUS")) and facts.environment.verified is None:
        text = "Compare the hashes of the installed files: an overwritten library crashes without a message"
        steps = [Fix(text, command=("envcheck", "check", "--verify", "--python", facts.interpreter))]
    row = step_for(error)
    frame = next((file for file in trial.files or () if file.role == "frame" and file.owner), None)
    if row is not None:
        steps.append(Fix(row.text, command=_filled(row.command, framework, facts)))
    elif frame is not None:
        place = f"{frame.path}, line {frame.line}" if frame.line else frame.path
        text = f"Look at {place} (of {frame.owner}), where it was raised"
        steps.append(Fix(text, command=_filled(_IMPORT, framework, facts)))
    else:
        steps.append(Fix("See the whole traceback", command=_filled(_IMPORT, framework, facts)))
    if trial.imported is False:
        steps.append(Fix(f"If that does not help, install {framework.title} in a separate environment"))
    return tuple(steps)


def step_for(error: str) -> StepRow | None:
    """The first row of ``errors.toml`` that matches the error of a trial."""
    rows = sorted(load_matrix().steps, key=lambda row: row.priority)
    return next((row for row in rows if any(re.search(line, error, re.IGNORECASE) for line in row.lines)), None)


def _filled(command: tuple[str, ...], framework: Framework, facts: Facts) -> tuple[str, ...]:
    module = framework.module
    return tuple(facts.interpreter if part == "PYTHON" else part.replace("MODULE", module) for part in command)


_NEEDS = "needs"  # The key of the answer with the call that a program must make first


@rule(layer="framework", decided_by="framework-ran", symptom=True, on_request=True)
def framework_import_fails(framework: Framework, facts: Facts) -> Outcome | None:
    """A framework cannot be imported."""
    base = facts.framework(framework.extends)
    trial = framework.trial
    title, not_known = f"{framework.title} cannot be imported", f"Not known whether {framework.title} can be"
    if trial is None:
        return _open(f"{not_known} imported", framework, facts) if _unfinished(framework, facts) else None
    if trial.source == PASTED:
        # A report tried to import it: a failure of what its Python has, else an open question.
        name = framework.name
        return Outcome(
            status="fail" if framework.version else "unknown",
            title=f"{framework.title} could not be imported",
            message=f"The report knows no version of {name}: the Python that made it has none, or could not import it. "
            f"The text does not show why. Paste what that Python prints for: import {name}.",
            decided_by="inferred",
            fixes=(Fix("See the error and its traceback", command=("python", "-c", f"import {name}")),),
            missing=() if framework.version else (Missing(fact="cause in the text"),),
        )
    if trial.imported:
        return passed(f"{framework.title} can be imported")
    if trial.imported is None:
        return _open(f"{not_known} imported", framework, facts)
    if base is not None and base.trial is not None and base.trial.imported is False:
        return Outcome(status="skipped", title=title, message=f"{base.name} itself cannot be imported")
    line = named_in(trial, trial.error or "")
    if line is not None and line.problem == "driver-not-installed" and not facts.may_have_gpus:
        text = f"it needs the driver's library, but this machine has no GPU: {trial.error}"
        return Outcome(status="skipped", title=title, message=text)
    return _ended("fail", title, framework, trial, facts)


@rule(layer="framework", decided_by="framework-ran", symptom=True, on_request=True)
def framework_cannot_use_gpu(framework: Framework, facts: Facts) -> Outcome | None:
    """A framework that is built for CUDA does not compute on the GPU."""
    trial = framework.trial
    if trial is None:
        return _denied_in_text(framework, facts)
    if trial.imported is not True:
        return None
    if trial.ran_on_gpu is None:
        if trial.error or (not trial.skipped and _unfinished(framework, facts)):
            return _open(f"Not known whether {framework.title} can use the GPU", framework, facts)
        title = f"{framework.title} was imported but not tested on the GPU"
        return Outcome(status="skipped", title=title, message=trial.skipped or "")
    if trial.ran_on_gpu and not trial.error:
        needed = trial.answers.get(_NEEDS)
        gpu = next((gpu for gpu in facts.gpus if trial.gpu in gpu.identities()), None)
        where = gpu.title if gpu else "the GPU"
        if not needed:
            return passed(f"{framework.title} ran on {where}", *proof_of(framework))
        text = f"Call {needed} before the first session, or import torch first where its CUDA is the same"
        return note(  # as without a trial: whether a program makes the call cannot be seen
            title=f"{framework.title} uses the GPU only after {needed}",
            message=f"Without that call it does not find CUDA's libraries and computes on the CPU without an error. "
            f"It ran on {where} once it was called.",
            evidence=(*proof_of(framework), *printed_problems(framework)),
            fixes=(Fix(text),),
        )
    parts = (other for other in facts.tried_frameworks if other.extends == framework.name)
    if framework.cpu_only or framework.hip or (not framework.is_known_cuda_build and any(parts)):
        return None  # another finding covers it, or its part for CUDA, which was tried too
    base = facts.framework(framework.extends)
    if base and base.trial and base.trial.ran_on_gpu is False and base.is_known_cuda_build:
        title, text = f"{framework.title} cannot use the GPU", f"{base.name} itself cannot use it"
        return Outcome(status="skipped", title=title, message=text)
    return _failed(framework, trial, facts)


def _denied_in_text(framework: Framework, facts: Facts) -> Outcome | None:
    """The outcome where the framework of a pasted text says that it finds no GPU, and the text shows one."""
    denied = framework.source == PASTED and framework.gpu_available is False
    if not denied or framework.cpu_only or framework.hip or facts.misses_no_gpu or not facts.own_gpus:
        return None
    shown = facts.own_gpus[0].title + (f" with driver {facts.driver.release}" if facts.driver.release else "")
    return Outcome(
        status="unknown",
        title=f"{framework.title} does not reach the GPU; the text does not show why",
        message=f"It says so itself, and the text shows {shown}. Run envcheck check --deep there, or paste what it "
        "prints when it first uses the GPU, how it is started, and CUDA_VISIBLE_DEVICES and LD_LIBRARY_PATH.",
        evidence=(evidence_of(f"{framework.name} can use the GPU", framework, "gpu_available"),),
        missing=(Missing(fact="cause in the text"),),
    )


@rule(layer="framework", on_request=True)
def trial_unfinished(_environment: Environment, facts: Facts) -> Outcome | None:
    """A test of the environment did not finish."""
    left = [run for run in unfinished_trials(facts) if run.framework is None]
    if not left:
        return None
    return Outcome(
        status="unknown",
        title=f"{left[0].title or left[0].name}: not finished",
        message=end_of(left[0]),
        evidence=tuple(Evidence(run.title or run.name, end_of(run), run.name) for run in left),
        missing=(Missing(fact="environment.trial"),),
    )


def _unfinished(framework: Framework, facts: Facts) -> ProbeRun | None:
    return next((run for run in unfinished_trials(facts) if run.framework == framework.name), None)


def _failed(framework: Framework, trial: Trial, facts: Facts) -> Outcome:
    """A failure for a CUDA build, a warning for an extension, a note for what may be meant for the CPU."""
    alone = facts.provides_gpu_support(framework) and not facts.other_cuda_builds(framework)
    weight: Status = "fail" if facts.is_main_framework(framework) or alone else "warn"
    status: Status = weight if framework.is_known_cuda_build or trial.ran_on_gpu else "note"
    title = f"{facts.matrix.title_of(framework.name)} cannot use the GPU"
    if trial.ran_on_gpu:
        title = f"{framework.title} reaches the GPU but fails there"
    # The page about this framework comes first.
    name = facts.matrix.title_of(framework.name.partition("-")[0]).lower()
    pages = sorted(framework_cannot_use_gpu.sources, key=lambda page: not page.title.lower().startswith(name))
    return _ended(status, title, framework, trial, facts, *pages)


def _ended(status: Status, title: str, framework: Framework, trial: Trial, facts: Facts, *sources: Source) -> Outcome:
    return Outcome(
        status=status,
        title=title,
        message=trial.error or "no reason was given",
        evidence=(*proof_of(framework), *printed_problems(framework)),
        fixes=next_steps(framework, facts),
        sources=sources,
    )


def _open(title: str, framework: Framework, facts: Facts) -> Outcome:
    trial, run = framework.trial, _unfinished(framework, facts)
    message = (trial.error if trial else None) or (end_of(run) if run else "the test did not finish")
    missing = (Missing(fact="framework.trial"),)
    # What used up the time is the open question, not what waited for it.
    waited = run is not None and not run.seconds and any(each.seconds for each in unfinished_trials(facts))
    status: Status = "skipped" if waited else "unknown"
    return Outcome(status=status, title=title, message=message, missing=missing, fixes=next_steps(framework, facts))
