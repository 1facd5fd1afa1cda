"""NCCL, which carries data between GPUs: that it is installed, new enough, and finds a network interface."""

from __future__ import annotations

from envcheck.knowledge.error_lines import lines_with, nccl_releases
from envcheck.knowledge.relations.libraries import is_older
from envcheck.model.checks import Evidence, Fix
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed, rule
from envcheck.rules.facts.frameworks import full_name
from envcheck.rules.facts.libraries import load_evidence, loads_are_known, loads_of
from envcheck.rules.facts.trials import TRIAL_RULES, imported
from envcheck.rules.fixes.libraries import INSTALL_NCCL, drop_from_variable, install_library_again
from envcheck.rules.libraries.missing import not_installed


@rule(
    layer="library",
    per="framework",
    arises=loads_are_known,
    explains=TRIAL_RULES,
    remedy=INSTALL_NCCL,
    told_by=("damaged-distribution",),
)
def nccl_missing(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """NCCL is not installed."""
    return not_installed("nccl-missing", subject, facts)


def _between_ranks(facts: Facts) -> Outcome | None:
    """The outcome where the text shows the releases that several processes of a job load."""
    versions = nccl_releases(facts.snapshot.observed_errors)
    if len(versions) < 2 or not lines_with("nccl-message-truncated", facts.snapshot.observed_errors):
        return None
    return Outcome(
        status="fail",
        title=f"The processes of a job load different releases of NCCL: {' and '.join(versions)}",
        fixes=(
            Fix(
                text="Use one release of NCCL on all nodes: the same image or environment, and no other copy on "
                "LD_LIBRARY_PATH; each process prints its own with NCCL_DEBUG=VERSION"
            ),
        ),
    )


@rule(layer="library", per="framework", explains=TRIAL_RULES, remedy=INSTALL_NCCL, doubt=_between_ranks)
def nccl_version_mismatch(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """NCCL is older than the one that the framework was built with."""
    framework = subject.framework
    load = next((load for load in loads_of(framework, "nccl") if load.version), None)
    if load is None or not framework.nccl or not loads_are_known(subject, facts):
        return None
    if not is_older(load.version, framework.nccl):
        return passed(f"{framework.name} loads NCCL {load.version}, which is new enough")
    built = Evidence(what="built with NCCL", value=framework.nccl or "", source=framework.source_of("nccl"))
    return Outcome(
        status="note" if imported(framework) else "warn",
        title=f"{framework.name} loads NCCL {load.version} but was built with {framework.nccl}",
        message=f"{load.path} is older than the NCCL that {full_name(framework)} was built with.",
        evidence=(*load_evidence([load]), built),
        fixes=(*drop_from_variable([load], facts), *install_library_again("nccl", subject, facts)),
    )
