"""cuDNN: that it is installed, in the right major version, new enough, and all of one release."""

from __future__ import annotations

from envcheck.knowledge.relations.libraries import cudnn_serves, is_older, same_major, same_version
from envcheck.model.snapshot import Framework
from envcheck.rules.api import Facts, Outcome, if_known, incompatible, passed, rule, sentence
from envcheck.rules.facts.libraries import (
    copies_of_other_majors,
    copy_evidence,
    is_of_family,
    load_evidence,
    loads_are_known,
    loads_of,
    missing_because,
    missing_status,
    parts_loaded,
)
from envcheck.rules.facts.library_names import name_of
from envcheck.rules.fixes.libraries import INSTALL_CUDNN, drop_from_variable, install_libraries, install_library_again
from envcheck.rules.libraries.missing import damage_evidence, missing_rule
from envcheck.rules.libraries.stated import stated_misfit, states_versions

_NUMBERS = 3

cudnn_missing = missing_rule("cudnn-missing", "cuDNN is not found", INSTALL_CUDNN)


@rule(
    layer="library",
    arises=lambda framework, facts: loads_are_known(framework, facts) or states_versions(framework, facts),
    remedy=INSTALL_CUDNN,
)
def cudnn_major_mismatch(framework: Framework, facts: Facts) -> Outcome | None:
    """The installed cuDNN has a different major version than the framework needs."""
    found = missing_because("cudnn-major-mismatch", framework, facts)
    if not found:
        return stated_misfit("cudnn", framework, facts, other_major=True)
    first = found[0]
    others, name = copies_of_other_majors(first, facts), name_of(first.name)
    versions = sorted({each.on_disk or each.declared or "" for each in others} - {""})
    here = f", found {' and '.join(versions)}" if versions else ""
    return Outcome(
        status=missing_status(framework, facts),
        title=f"{framework.title} needs cuDNN {name.number if name else ''}{here}",
        message=f"{first.needed_by} needs {first.name}; this system has other major versions of cuDNN only.",
        evidence=(*load_evidence(found), *copy_evidence(others), *damage_evidence(found, facts)),
        fixes=install_libraries([name] if name else [], framework, facts),
    )


@rule(layer="library", remedy=INSTALL_CUDNN)
def cudnn_too_old(framework: Framework, facts: Facts) -> Outcome | None:
    """The installed cuDNN is older than the one that the framework was built with."""
    load = next((load for load in loads_of(framework, "cudnn") if load.version), None)
    found = (load.version if load else None) or ""
    fit = (
        cudnn_serves(facts.matrix, framework.name, found, framework.cudnn)
        if framework.cudnn
        else facts.fit_of_release(framework.name, framework.version, "cudnn", found)
    )
    if load is None or fit is None or not loads_are_known(framework, facts):
        return stated_misfit("cudnn", framework, facts, other_major=False)
    if framework.ran_on_gpu or fit.ok:
        return passed(f"{framework.name} loads cuDNN {load.version}, which is new enough")
    if not fit.bad:
        title = f"Not known whether cuDNN {load.version} is new enough for {framework.title}"
        return Outcome(status="skipped", title=title, message=fit.reason)
    return incompatible(
        f"{framework.name} loads cuDNN {load.version}, which is too old or too new for it",
        fit,
        evidence=(*load_evidence([load]), if_known("built with cuDNN", framework, "cudnn")),
        fixes=(*drop_from_variable([load], facts), *install_library_again("cudnn", framework, facts)),
    )


@rule(layer="library", remedy=INSTALL_CUDNN)
def cudnn_mixed_copies(framework: Framework, facts: Facts) -> Outcome | None:
    """The parts of cuDNN that would be loaded have different versions."""
    parts = sorted(parts_loaded(framework, "cudnn"), key=lambda load: not is_of_family(load, ("cudnn",)))
    if len(parts) < 2 or not loads_are_known(framework, facts):
        return None
    first = parts[0]
    others = [load for load in parts if same_version(load.version, first.version, _NUMBERS) is False]
    # Libcudnn itself merely forwards calls to sub-libraries of its major version, and may be older than they are.
    forwards = is_of_family(first, ("cudnn",)) and any(is_of_family(load, ("cudnn_graph",)) for load in others)
    of_one = all(same_version(load.version, others[0].version, _NUMBERS) for load in others)
    older = all(is_older(first.version, load.version) and same_major(first.version, load.version) for load in others)
    if not others or (forwards and of_one and older):
        release = (others or [first])[0].version
        return passed(f"All cuDNN parts that {framework.name} loads are version {release}")
    versions = " and ".join(dict.fromkeys(load.version or "" for load in (first, *others)))
    return Outcome(
        status="warn" if framework.ran_on_gpu else "fail",
        title=f"{framework.title} would load parts of cuDNN {versions}",
        message=sentence(f"{others[0].name} is version {others[0].version}, {first.name} is version {first.version}"),
        evidence=load_evidence([first, *others]),
        fixes=(*drop_from_variable(others, facts), *install_library_again("cudnn", framework, facts)),
    )
