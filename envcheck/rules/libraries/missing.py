"""CUDA libraries that a framework needs and does not find, and NCCL: that it is new enough."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from envcheck.knowledge.error_lines import nccl_releases
from envcheck.knowledge.relations.libraries import TOOLKIT, cuda_majors, is_older
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Distribution, Framework, Load
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts, Outcome, Remedy, Rule, failure, note, passed, rule, warning
from envcheck.rules.facts.libraries import (
    VARIABLES,
    are_opened_late,
    copies_of_other_majors,
    copy_at,
    copy_evidence,
    folder_of,
    load_evidence,
    loads_are_followed,
    loads_are_known,
    loads_of,
    missing,
    missing_because,
    missing_status,
)
from envcheck.rules.facts.library_names import LibraryName, contains_library, name_of
from envcheck.rules.facts.machine import and_more, plural
from envcheck.rules.fixes.frameworks import install_fitting_build, install_gpu_build
from envcheck.rules.fixes.install import How, in_steps, install
from envcheck.rules.fixes.libraries import (
    INSTALL_NCCL,
    SYSTEM_LIBRARY,
    add_folders,
    drop_from_variable,
    install_framework_again,
    install_libraries,
    install_library_again,
)
from envcheck.rules.fixes.reinstall import reinstall
from envcheck.rules.libraries.copies import use_right_copy
from envcheck.rules.libraries.stated import install_or_locate_library, stated_misfit, states_versions
from envcheck.rules.packages.shipped import is_damaged, owner_of


def _provided_by_host(facts: Facts) -> Outcome | None:
    """A note on a Jetson of an unknown release, where these libraries belong to the system; where the release is known,
    jetpack-mismatch judges those of another.
    """
    if not facts.on_tegra or facts.platform.jetpack or facts.platform.tegra_release:
        return None
    if facts.lines_with("import-lacks-library"):
        return None
    return note(title="A CUDA library is missing", message="On a Jetson, JetPack provides it.")


@rule(layer="library", arises=loads_are_known, doubt=_provided_by_host, remedy=install_or_locate_library)
def cuda_library_missing(framework: Framework, facts: Facts) -> Outcome | None:
    """A CUDA library that a framework needs is not found."""
    lacking = not_installed("cuda-library-missing", framework, facts)
    if lacking or missing(framework, facts):
        return lacking
    count = sum(load.path is not None and name_of(load.name) is not None for load in framework.loads or ())
    if not framework.loads_complete and not framework.ran_on_gpu:
        if framework.extends is not None:
            return None
        text = "not all of its libraries could be followed"
        title = f"Not known whether {framework.title} finds all its libraries"
        return Outcome(status="unknown", title=title, message=text)
    return passed(f"{framework.title} finds {plural(count, 'CUDA library')}") if count else None


def not_installed(problem: str, framework: Framework, facts: Facts) -> Outcome | None:
    """The outcome for the libraries of this problem that are not on this system."""
    found = missing_because(problem, framework, facts)
    if not found:
        return None
    text = "This system does not have it" if len(found) == 1 else "This system does not have them"
    names = ", ".join(load.name for load in found)
    return Outcome(
        status="warn" if are_opened_late(found, framework, facts) else missing_status(framework, facts),
        title=f"{framework.title} lacks {found[0].name}{and_more(found)}",
        message=f"{framework.title} needs {names}. {text}; {_effect(found, framework, facts)}.",
        evidence=(*load_evidence(found), *damage_evidence(found, facts)),
        fixes=install_libraries(_names_missing(framework, facts), framework, facts),
    )


def missing_rule(name: str, title: str, remedy: Remedy) -> Rule:
    """The rule for a product of libraries that is not on this system."""
    made = Rule(name=name, title=title, layer="library", per="framework", arises=loads_are_known, remedy=remedy)
    return msgspec.structs.replace(made, function=lambda framework, facts: not_installed(name, framework, facts))


def damage_evidence(found: Sequence[Load], facts: Facts) -> tuple[Evidence, ...]:
    """The damaged packages that should provide these libraries; none unless all of them come from damaged packages."""
    environment, owners = facts.environment, []
    for load in found:
        name, owner = name_of(load.name), _installed_by(load.path or load.name, facts)
        bringing = (
            each for each in environment.distributions or () if name and contains_library(each, name, facts.matrix)
        )
        candidates = (*((owner,) if owner else ()), *bringing)
        owners.append(next((each for each in candidates if is_damaged(each, facts)), None))
    if not all(owners):
        return ()
    titles = dict.fromkeys(f"{owner.name}=={owner.version}" for owner in owners if owner)
    names = ", ".join(load.name for load in found)
    return tuple(Evidence(title, f"damaged, brings {names}", "wheel metadata") for title in titles)


def _effect(found: Sequence[Load], framework: Framework, facts: Facts) -> str:
    gentle = all(load.optional for load in found) and not are_opened_late(found, framework, facts)
    return "without it, the framework computes on the CPU" if gentle else "what needs it cannot be loaded"


def _names_missing(framework: Framework, facts: Facts, besides: Sequence[Load] = ()) -> list[LibraryName]:
    """All missing libraries, whichever rule reports them, so that one command fixes all of them: where an image is
    built, also those that only its target's GPU asks for.
    """
    wanted = (load for load in missing(framework, facts, for_gpu=True) if load not in besides)
    lacking = (load for load in wanted if not _is_installed_elsewhere(load, facts))
    return [name for load in lacking if (name := name_of(load.name))]


def _is_installed_elsewhere(load: Load, facts: Facts) -> bool:
    """Whether a wheel installed an intact copy where the loader does not look; reinstalling would change nothing."""
    found = (copy_at(path, facts) for path in load.unfound)
    wheels = (copy for copy in found if copy and copy.origin == "wheel" and copy.environment == facts.environment.key)
    return any(copy.owner and not copy.altered for copy in wheels)


@rule(layer="library", arises=loads_are_followed, doubt=_provided_by_host, remedy=install_or_locate_library)
def library_not_found(framework: Framework, facts: Facts) -> Outcome | None:
    """A needed library is not where the loader looks for it."""
    found = missing_because("library-not-found", framework, facts)
    if not found:
        return None
    first, call = found[0], framework.preload_call
    if call and all(_is_installed_elsewhere(load, facts) for load in found):
        # Its wheels are installed as documented, but files do not show whether programs make the required call.
        names = ", ".join(load.name for load in found)
        text = f"Call {call} before the first session, or import torch first where its CUDA is the same"
        return note(
            title=f"{framework.title} uses the GPU only after {call}",
            message=f"Its libraries ({names}) are in wheels, where it looks only then.",
            evidence=load_evidence(found),
            fixes=(Fix(text),),
        )
    elsewhere = next((load for load in found if load.unfound), None)
    there = tuple(
        Evidence(f"copy of {load.name}", path, f"file {path}") for load in found[:4] for path in load.unfound[:2]
    )
    does = "cannot load" if first.refused else "does not find"
    text = f"{framework.title} needs {', '.join(load.name for load in found)}; {_effect(found, framework, facts)}."
    if elsewhere:
        text += f" {elsewhere.unfound[0]} exists, but its loader does not look there."
        if _is_installed_elsewhere(elsewhere, facts):
            text += " A wheel of this environment installed it there, and would do so again."
    if refused := next((load for load in found if load.refused), None):
        owner = _installed_by(refused.path or refused.name, facts)
        whose = f" of {owner.name} {owner.version}" if owner else ""
        text += f" {refused.path}{whose} cannot be loaded: {refused.refused}."
    return Outcome(
        status="warn" if are_opened_late(found, framework, facts) else missing_status(framework, facts),
        title=f"{framework.title} {does} {first.name}{and_more(found)}",
        message=text,
        evidence=(*load_evidence(found), *there, *damage_evidence(found, facts)),
        fixes=_bring_or_find(found, framework, facts),
    )


def _bring_or_find(found: Sequence[Load], framework: Framework, facts: Facts) -> tuple[Fix, ...]:
    """Replace damaged files, take away what shadows others, install what is missing, and lead the loader to it."""
    call = framework.preload_call
    owners = {load.name: _installed_by(load.path or load.name, facts) for load in found}
    # Files that the loader refuses and that no package owns; they shadow installed copies.
    unowned = (load for load in found if load.refused and not owners[load.name])
    strays = [load for load in unowned if load.found_by in VARIABLES or (load.owner is None and load.others)]
    names = _names_missing(framework, facts, [load for load in strays if load.others or name_of(load.name) is None])
    brings = install_libraries(names, framework, facts) if names else ()
    brought = [load for load in found if _is_installed_elsewhere(load, facts)]
    folders = dict.fromkeys(folder_of(load.unfound[0]) for load in found if load.unfound)
    looking = (add_folders(tuple(folders)),) if folders else ()
    if all(owners.values()):
        mends = reinstall([*{each.name: each for each in owners.values() if each}.values()], facts)
    elif strays:
        away = dict.fromkeys(fix for load in strays for fix in use_right_copy(load, framework, facts))
        mends = in_steps((*away, *brings))
    elif len(brought) == len(found):
        mends = looking
    elif brought or (looking and framework.looks_in_wheels is False):
        mends = (*looking, *brings)
    else:
        if not brings:  # the framework's release once more: one of its own files is damaged
            own = (each for each in facts.distributions if each.name == framework.name)
            whole = next((each for each in own if each.channel == "pip" and "+" not in each.version), None)
            text, way = f"Install {framework.title} again, whole", How(alone=True, again=True)
            pins = (f"{framework.name}=={whole.version}",) if whole else ()
            brings = install(facts, pins, text, way) if pins else install_framework_again(framework, facts)
        others = tuple(SYSTEM_LIBRARY for load in found[:1] if name_of(load.name) is None and load.path is None)
        mends = (*brings, *looking, *others)
    return (*((Fix(f"If the copies come from wheels, call {call} before the first session"),) if call else ()), *mends)


def _installed_by(path: str, facts: Facts) -> Distribution | None:
    """The package that installed a file, by its list of files (or, of one that is gone, its name), else its owner."""
    differing = owner_of(path, facts)
    copy = copy_at(path, facts)
    if differing or copy is None or copy.environment != facts.environment.key:
        return differing
    name, _, version = (copy.owner or "").replace(" ", "==").partition("==")
    own = (each for each in facts.distributions if each.name == name)
    return next((each for each in own if each.version == version), None)


@rule(
    layer="library",
    arises=lambda framework, facts: (
        loads_are_known(framework, facts)
        or states_versions(framework, facts)
        or facts.framework(framework.extends) is not None
    ),
    doubt=lambda facts: (  # unless the text says itself which CUDA there is
        None if any(each.stated and each.family == TOOLKIT for each in facts.libraries) else _provided_by_host(facts)
    ),
    remedy=install_or_locate_library,
)
def cuda_major_mismatch(framework: Framework, facts: Facts) -> Outcome | None:
    """A framework or library is built for another CUDA major version than is installed."""
    found = missing_because("cuda-major-mismatch", framework, facts)
    if not found and states_versions(framework, facts):
        return stated_misfit("cuda", framework, facts, other_major=True)
    if not found:
        return _extends_another(framework, facts) or _uses_other_major(framework, facts)
    first = found[0]
    name = name_of(first.name)
    majors = sorted(cuda_majors(facts.matrix, name.family, name.number)) if name else []
    there = sorted(
        {(each.cuda or "").partition(".")[0] for load in found for each in copies_of_other_majors(load, facts)} - {""}
    )
    needs = f"CUDA {' or '.join(map(str, majors))}" if majors else "another CUDA"
    here = f" of CUDA {' and '.join(there)}" if there else ""
    other = facts.matrix.has_trait(framework.name, "on-torch-index") and facts.framework(framework.extends) is not None
    return Outcome(
        status=missing_status(framework, facts),
        title=f"{framework.title} needs {first.name}, but another CUDA is installed",
        message=f"{first.name} belongs to {needs}; this system only has copies{here}.",
        evidence=(
            *load_evidence(found),
            *copy_evidence(copies_of_other_majors(first, facts)),
            *damage_evidence(found, facts),
        ),
        fixes=(
            *(install_gpu_build(facts, framework) if other else ()),
            *install_libraries(_names_missing(framework, facts), framework, facts),
        ),
    )


def _extends_another(framework: Framework, facts: Facts) -> Outcome | None:
    base = facts.framework(framework.extends)
    own, its = CudaVersion.parse(framework.cuda), CudaVersion.parse(base.cuda if base else None)
    if base is None or own is None or its is None or own.major == its.major:
        return None
    # Of some, other rules compare the CUDA with that of what they extend.
    if framework.ran_on_gpu or facts.matrix.has_trait(framework.name, "part-for-cuda", "cuda-of-torch"):
        return None
    return warning(
        title=f"{framework.title} is built for CUDA {own.major}, {base.name} for {its.major}",
        message=f"{framework.title} is built with CUDA {own}; {base.title}, which it extends, with {its}.",
        evidence=(
            Evidence(f"CUDA of {framework.name}", str(own), framework.source_of("cuda")),
            Evidence(f"CUDA of {base.name}", str(its), base.source_of("cuda")),
        ),
        fixes=(
            *(install_fitting_build(facts, base, own.major) if base.name == "torch" else ()),
            *install_framework_again(framework, facts),
        ),
    )


def _uses_other_major(framework: Framework, facts: Facts) -> Outcome | None:
    own = CudaVersion.parse(framework.cuda)
    if own is None or framework.extends is not None or framework.ran_on_gpu:
        return None
    for load in loads_of(framework, "cudnn", "nccl"):
        library = copy_at(load.path, facts)
        its = CudaVersion.parse(library.cuda) if library else None
        if library is not None and its is not None and its.major != own.major:
            name = name_of(load.name)
            return warning(
                title=f"{framework.title} of CUDA {own.major} loads a {library.family} for CUDA {its.major}",
                message=f"{library.path} is built for CUDA {its}, {framework.title} for CUDA {own}.",
                evidence=(*load_evidence([load]), *copy_evidence([library])),
                fixes=install_libraries([name] if name else [], framework, facts),
            )
    return None


nccl_missing = missing_rule("nccl-missing", "NCCL is not found", INSTALL_NCCL)


def _between_ranks(facts: Facts) -> Outcome | None:
    """The outcome where the text shows the releases that several processes of a job load."""
    versions = nccl_releases(facts.snapshot.observed_errors)
    if len(versions) < 2 or not facts.lines_with("nccl-message-truncated"):
        return None
    text = "Use one release of NCCL on all nodes: the same image or environment, and no other copy on LD_LIBRARY_PATH"
    return failure(
        title=f"The processes of a job load different releases of NCCL: {' and '.join(versions)}",
        fixes=(Fix(f"{text}; each process prints its own with NCCL_DEBUG=VERSION"),),
    )


@rule(layer="library", remedy=INSTALL_NCCL, doubt=_between_ranks)
def nccl_version_mismatch(framework: Framework, facts: Facts) -> Outcome | None:
    """NCCL is older than the one that the framework was built with."""
    load = next((load for load in loads_of(framework, "nccl") if load.version), None)
    if load is None or not framework.nccl or not loads_are_known(framework, facts):
        return None
    if not is_older(load.version, framework.nccl):
        return passed(f"{framework.name} loads NCCL {load.version}, which is new enough")
    built = Evidence("built with NCCL", framework.nccl or "", framework.source_of("nccl"))
    return Outcome(
        status="note" if framework.imported else "warn",
        title=f"{framework.name} loads NCCL {load.version} but was built with {framework.nccl}",
        message=f"{load.path} is older than the NCCL that {framework.title} was built with.",
        evidence=(*load_evidence([load]), built),
        fixes=(*drop_from_variable([load], facts), *install_library_again("nccl", framework, facts)),
    )
