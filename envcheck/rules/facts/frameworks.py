"""Questions about a framework: its build, its role and its environment, and what trials (``--deep``) prove of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from envcheck.enrich.stated import first_of
from envcheck.knowledge.error_lines import ErrorLine, named_beside
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.gpu_code import compiler_of, read_targets
from envcheck.model.checks import Evidence
from envcheck.model.snapshot import (
    Distribution,
    Environment,
    Extension,
    Framework,
    Gpu,
    ProbeRun,
    Snapshot,
    Trial,
    frameworks_in,
)
from envcheck.model.versions import CodeTarget, CudaVersion
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, RuleFunction, passed
from envcheck.rules.facts.library_names import open_entries

LEAST_IMPORTANT = 2
"""The importance of compilers, extensions of a framework, and frameworks without a row in the matrix."""


def built_for_cuda(subject: FrameworkSubject, _facts: Facts) -> bool:
    """Whether it may be a CUDA build: nothing shows that it is built for the CPU or ROCm only."""
    return not subject.framework.cpu_only and not subject.framework.hip


def is_main_framework(framework: Framework, matrix: Matrix) -> bool:
    """Whether programs are written against it: it is no extension, no compiler and no inference engine.

    A failure of such a framework is a failure of its environment.
    """
    row = matrix.role_of(framework.name)
    return framework.extends is None and row is not None and row.role in ("framework", "library")


def importance(framework: Framework, matrix: Matrix) -> int:
    """How important a framework is, from 0: frameworks and engines, then libraries, then the rest."""
    row = matrix.role_of(framework.name)
    if row is None or row.role == "compiler" or (framework.extends is not None and row.role != "engine"):
        return LEAST_IMPORTANT
    return 1 if row.role == "library" else 0


def role_position(framework: Framework, matrix: Matrix) -> int:
    """The position of its role in the matrix; it orders frameworks of the same importance."""
    row = matrix.role_of(framework.name)
    return matrix.roles.index(row) if row is not None else len(matrix.roles)


def compiles_its_code(framework: Framework, matrix: Matrix) -> bool:
    """Whether its files hold only a part of the GPU code that it runs."""
    return matrix.has_trait(framework.name, "compiles-at-run-time")


def only_compiles_for_torch(environment: Environment | None) -> bool:
    """Whether Triton stands beside PyTorch, of which only ``torch.compile`` needs it, and not beside vLLM."""
    names = {each.name for each in frameworks_in(environment)}
    return "torch" in names and "vllm" not in names


def base_framework(subject: FrameworkSubject) -> Framework | None:
    """The framework that it extends, if that is in its environment."""
    return framework_named(subject.framework.extends, subject.environment)


def framework_named(name: str | None, environment: Environment | None) -> Framework | None:
    return next((each for each in frameworks_in(environment) if each.name == name), None)


def distributions_in(environment: Environment | None) -> tuple[Distribution, ...]:
    """The installed packages of an environment whose metadata was read."""
    return (environment.distributions if environment else None) or ()


def in_one_folder(environment: Environment | None, project: str, matrix: Matrix) -> tuple[Distribution, ...]:
    """The installed distributions of a project that all install its import package, each name once. Those of a plan
    whose release is open have an empty version.
    """
    found: dict[str, Distribution] = {}
    for each in (*distributions_in(environment), *open_entries(environment)):
        if project in matrix.projects(each.name, "shares-its-folder"):
            found.setdefault(each.name, each)
    return tuple(found.values())


def installed(environment: Environment | None, name: str) -> Distribution | None:
    return next((each for each in distributions_in(environment) if each.name == name), None)


def other_cuda_builds(subject: FrameworkSubject, matrix: Matrix) -> tuple[Framework, ...]:
    """Other frameworks of its environment that are built for CUDA, without the one that it extends."""
    own = (subject.framework.name, subject.framework.extends)
    return tuple(
        each
        for each in frameworks_in(subject.environment)
        if each.name not in own and is_main_framework(each, matrix) and each.cpu_only is False and not each.hip
    )


def provides_gpu_support(subject: FrameworkSubject) -> bool:
    """Whether the framework that it extends uses the GPU only through it: numba-cuda, or a CUDA plug-in of JAX."""
    base, own = base_framework(subject), subject.framework.source
    return base is not None and (base.read.get("cpu_only") == own or (base.cpu_only is None and base.cuda is None))


def finds_no_gpu(environment: Environment | None) -> bool:
    """Whether a framework that may be built for CUDA was asked and finds no GPU."""
    return any(
        each.gpu_available is False and not each.cpu_only and not each.hip for each in frameworks_in(environment)
    )


def code_targets(framework: Framework | Extension) -> tuple[CodeTarget, ...]:
    """The targets that it contains GPU code for."""
    return read_targets(framework.gpu_code or ())


def cuda_of_code(framework: Framework, facts: Facts) -> CudaVersion | None:
    """The CUDA version whose PTX it holds: that of the compiler which wrote it, where a row tells, else its own."""
    rows = facts.rows_of_release(framework.name, first_of(framework.version or ""))
    isa = next((row.ptx for row in rows if row.ptx), None)
    return compiler_of(facts.matrix, isa) or CudaVersion.parse(framework.cuda)


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


def unfinished_trials(environment: Environment, snapshot: Snapshot) -> tuple[ProbeRun, ...]:
    """The trials that were planned in ``environment`` and did not end by themselves, or were not started."""
    return tuple(
        run for run in snapshot.runs if is_trial(run) and run.environment == environment.key and run.status not in _DONE
    )


def end_of(run: ProbeRun) -> str:
    """How a trial ended that did not finish: ``timed out after 150 s while importing torch``."""
    waited = run.status == "skipped" or (run.status == "timed-out" and not run.seconds)
    if run.detail and (waited or run.detail.startswith(run.status.replace("-", " "))):
        return run.detail
    how = f"timed out after {run.seconds:.0f} s" if run.status == "timed-out" else run.status
    return ": ".join(filter(None, (how, run.detail)))


def tried_frameworks(environment: Environment | None) -> tuple[Framework, ...]:
    return tuple(found for found in frameworks_in(environment) if found.trial)


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

    def proof(subject: FrameworkSubject, _facts: Facts) -> Outcome | None:
        framework = subject.framework
        if not framework.ran_on_gpu:
            return None
        return passed(f"{framework.title} {what}", *proof_of(framework), decided_by="framework-ran")

    return proof


def ran_on_every_kind_of_gpu(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """Pass where the framework ran on every kind of GPU here: it has code for them."""
    framework, proven = subject.framework, gpus_proven(subject.framework, facts)
    if not proven or len(proven) < len(facts.usable_gpus):
        return None
    kinds = ", ".join(dict.fromkeys(f"compute capability {gpu.compute_capability}" for gpu in proven))
    return passed(f"{framework.title} ran on {kinds}", *proof_of(framework), decided_by="framework-ran")
