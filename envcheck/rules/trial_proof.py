"""What a framework that ran on the GPU proves, whatever its files and the driver's numbers let one infer."""

from __future__ import annotations

from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed
from envcheck.rules.framework_facts import named
from envcheck.rules.trial_facts import gpus_it_ran_on, proof_of, ran_on_gpu


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
