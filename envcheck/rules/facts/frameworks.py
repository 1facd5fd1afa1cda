"""Questions about a framework: its build, its role and its environment, and what trials (``--deep``) prove of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from envcheck.knowledge.error_lines import ErrorLine, named_beside
from envcheck.knowledge.relations.gpu_code import read_targets
from envcheck.model.checks import Evidence
from envcheck.model.snapshot import Distribution, Extension, Framework, Gpu, ProbeRun, Trial
from envcheck.model.versions import CodeTarget
from envcheck.rules.api import Facts, Outcome, RuleFunction, passed
from envcheck.rules.facts.library_names import open_entries


def built_for_cuda(framework: Framework, _facts: Facts) -> bool:
    """Whether it may be a CUDA build: nothing shows that it is built for the CPU or ROCm only."""
    return not framework.cpu_only and not framework.hip


def in_one_folder(project: str, facts: Facts) -> tuple[Distribution, ...]:
    """The installed distributions of a project that all install its import package, each name once. Those of a plan
    whose release is open have an empty version.
    """
    found: dict[str, Distribution] = {}
    for each in (*facts.distributions, *open_entries(facts.environment)):
        if project in facts.matrix.projects(each.name, "shares-its-folder"):
            found.setdefault(each.name, each)
    return tuple(found.values())


def code_targets(framework: Framework | Extension) -> tuple[CodeTarget, ...]:
    """The targets that it contains GPU code for."""
    return read_targets(framework.gpu_code or ())


TRIAL_RULES = ("framework-import-fails", "framework-cannot-use-gpu")
"""The rules about the results of trials. Whatever stops a framework explains their findings."""
ERROR_FROM = "error from"  # The beginning of evidence that quotes a framework's own error
SHOWN = 200  # Characters of a printed line that are quoted
_DONE = ("ok", "absent")
_MOST_PRINTED = 4  # Printed lines that are quoted


def ran_on(framework: Framework, gpu: Gpu) -> bool:
    """Whether it computed on this GPU; that proves nothing about GPUs of other models."""
    trial = framework.trial
    return trial is not None and trial.ran_on_gpu is True and trial.gpu in gpu.identities()


def gpus_proven(framework: Framework, facts: Facts) -> tuple[Gpu, ...]:
    """The usable GPUs with the compute capability of a GPU that it computed on; they run the same code."""
    tried = [gpu.compute_capability for gpu in facts.usable_gpus if ran_on(framework, gpu)]
    return tuple(gpu for gpu in facts.usable_gpus if gpu.compute_capability in tried)


def named_in(trial: Trial, text: str) -> ErrorLine | None:
    """The problem that a text of a trial names beside all that the trial said; None for a text that names none."""
    return named_beside(text, (*((trial.error,) if trial.error else ()), *trial.warnings))


def is_trial(run: ProbeRun) -> bool:
    """Whether it is a trial that ``--deep`` asked for in an environment, however it ended."""
    return run.name.startswith("deep.") and run.environment is not None


def unfinished_trials(facts: Facts) -> tuple[ProbeRun, ...]:
    """The trials that were planned in the environment and did not end by themselves, or were not started."""
    trials = (run for run in facts.snapshot.runs if is_trial(run) and run.environment == facts.environment.key)
    return tuple(run for run in trials if run.status not in _DONE)


def end_of(run: ProbeRun) -> str:
    """How a trial ended that did not finish: ``timed out after 150 s while importing torch``."""
    waited = run.status == "skipped" or (run.status == "timed-out" and not run.seconds)
    if run.detail and (waited or run.detail.startswith(run.status.replace("-", " "))):
        return run.detail
    how = f"timed out after {run.seconds:.0f} s" if run.status == "timed-out" else run.status
    return ": ".join(filter(None, (how, run.detail)))


def proof_of(framework: Framework) -> tuple[Evidence, ...]:
    """Evidence that it ran on the GPU; empty when it did not."""
    trial = framework.trial
    if trial is None or not trial.ran_on_gpu:
        return ()
    took = f" in {trial.seconds:g} s" if trial.seconds is not None else ""
    text = f"{trial.device or 'GPU'}{took}: {trial.proof}" if trial.proof else f"{trial.device or 'GPU'}{took}"
    return (Evidence(f"{framework.name} ran on", text, "trial"),)


def own_error(framework: Framework, text: str) -> tuple[Evidence]:
    return (Evidence(f"{ERROR_FROM} {framework.name}", text[:SHOWN], "trial"),)


def printed_problems(framework: Framework) -> Iterator[Evidence]:
    """The first printed lines of its process that name a problem, without the error itself."""
    trial = framework.trial
    if trial is None:
        return
    place = f"{framework.name} in this environment"
    error = trial.error or ""
    others = (line for line in trial.warnings if line not in error and not (error and error in line))
    for line in islice(others, _MOST_PRINTED):
        yield Evidence("printed", line[:SHOWN], place)


def proves(what: str) -> RuleFunction:
    """The proof of a rule that passes where the framework ran on a GPU, whatever was inferred."""

    def proof(framework: Framework, _facts: Facts) -> Outcome | None:
        if not framework.ran_on_gpu:
            return None
        return passed(f"{framework.title} {what}", *proof_of(framework), decided_by="framework-ran")

    return proof
