"""What rules ask of a trial: how far the framework came, and what that proves."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.checks import Evidence
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed
from envcheck.rules.facts.frameworks import frameworks_in, named
from envcheck.snapshot import Environment, Framework, Gpu, Loaded

# What rules ask of a trial: how far a framework came when it was imported and put to work on the GPU.

TRIAL_RULES = ("framework-import-fails", "framework-cannot-use-gpu")
"""Names of the rules about what came of a trial; what stops a framework explains their findings."""
SAID_HERE = "said here by"
"""How the evidence begins that quotes a framework's own error."""
SHOWN = 200
"""Characters of a printed line that are quoted."""


def ran_on_gpu(framework: Framework) -> bool | None:
    """Whether it computed on a GPU, by proof; None when that was not tried, or no end of it was seen.

    For a rule that infers whether a framework can use the GPU, True settles the question.
    """
    return framework.trial.ran_on_gpu if framework.trial else None


def ran_on(framework: Framework, gpu: Gpu) -> bool:
    """Whether it computed on this very GPU; of another model's GPU that says nothing."""
    trial = framework.trial
    return trial is not None and trial.ran_on_gpu is True and trial.gpu in gpu.identities()


def gpus_it_ran_on(framework: Framework, facts: Facts) -> tuple[Gpu, ...]:
    """The usable GPUs of the model that it computed on; all of one compute capability run the same code."""
    tried = [gpu.compute_capability for gpu in facts.usable_gpus if ran_on(framework, gpu)]
    return tuple(gpu for gpu in facts.usable_gpus if gpu.compute_capability in tried)


def imported(framework: Framework) -> bool | None:
    """Whether importing it worked; None when that was not tried, or no end of it was seen."""
    return framework.trial.imported if framework.trial else None


def loaded(framework: Framework, family: str) -> tuple[Loaded, ...]:
    """The copies of a library that its process had in its memory map; none when it was not tried."""
    libraries = framework.trial.libraries if framework.trial else None
    return tuple(library for library in libraries or () if library.family == family)


def failed(framework: Framework) -> bool:
    """Whether something went wrong in its trial that was not ended from outside."""
    trial = framework.trial
    if trial is None or trial.imported is False or trial.ran_on_gpu is False:
        return trial is not None
    return trial.ran_on_gpu is True and trial.error is not None


def tried(environment: Environment | None) -> tuple[Framework, ...]:
    """The frameworks of an environment that were tried."""
    return tuple(found for found in frameworks_in(environment) if found.trial)


def proof_of(framework: Framework) -> tuple[Evidence, ...]:
    """Evidence that it ran on the GPU; empty when it did not."""
    trial = framework.trial
    if trial is None or not trial.ran_on_gpu:
        return ()
    took = f" in {trial.seconds:g} s" if trial.seconds is not None else ""
    text = f"{trial.device or 'GPU'}{took}: {trial.proof}" if trial.proof else f"{trial.device or 'GPU'}{took}"
    return (Evidence(what=f"{framework.name} ran on", value=text, source="trial"),)


def said_here(framework: Framework, text: str) -> tuple[Evidence]:
    """The framework's own words, as evidence."""
    return (Evidence(what=f"{SAID_HERE} {framework.name}", value=text[:SHOWN], source="trial"),)


def what_it_printed(framework: Framework, most: int = 4) -> Iterator[Evidence]:
    """The first lines that its process printed and that name a problem, without the error itself."""
    trial = framework.trial
    if trial is None:
        return
    place = f"{framework.name} in this environment"
    error = trial.error or ""
    told = (line for line in trial.warnings if line not in error and not (error and error in line))
    for _, line in zip(range(most), told, strict=False):
        yield Evidence(what="printed", value=line[:SHOWN], source=place)


# What a framework that ran on the GPU proves, whatever its files and the driver's numbers let one infer.


def ran_with_this_driver(subject: FrameworkSubject, _facts: Facts) -> Outcome | None:
    """The driver runs what it was built with, since it ran."""
    framework = subject.framework
    if not ran_on_gpu(framework):
        return None
    return passed(f"{named(framework)} ran with this driver", *proof_of(framework), decided_by="framework-ran")


def ran_on_every_kind_of_gpu(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """It has code for the GPUs here, since it ran on one of their kind; on a mixed machine that proves one kind."""
    framework, proven = subject.framework, gpus_it_ran_on(subject.framework, facts)
    if not proven or len(proven) < len(facts.usable_gpus):
        return None
    kinds = ", ".join(dict.fromkeys(f"compute capability {gpu.compute_capability}" for gpu in proven))
    return passed(f"{named(framework)} ran on {kinds}", *proof_of(framework), decided_by="framework-ran")


def ran_on_a_gpu(subject: FrameworkSubject, _facts: Facts) -> Outcome | None:
    """It is no build for the CPU alone, since it ran on a GPU."""
    framework = subject.framework
    if not ran_on_gpu(framework):
        return None
    return passed(f"{named(framework)} ran on a GPU", *proof_of(framework), decided_by="framework-ran")
