"""Packages of NVIDIA's in several releases: TensorRT's parts, and wheels that overwrite each other or replace a pin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from envcheck.compat.package_needs import of_an_extra, pinned_by, requirement_name
from envcheck.compat.question import listed
from envcheck.knowledge.error_lines import lines_with
from envcheck.knowledge.relations.libraries import is_older, same_version
from envcheck.model.checks import DecidedBy, Evidence, Fix
from envcheck.model.snapshot import PASTED, Distribution, Environment, Framework, Library, Load, frameworks_in
from envcheck.rules.api import Facts, Outcome, passed, rule, warning
from envcheck.rules.facts.frameworks import TRIAL_RULES
from envcheck.rules.facts.libraries import parts_loaded
from envcheck.rules.facts.library_names import (
    all_wheels,
    cuda_of_wheel,
    install_same_files,
    required_wheels,
    version_of,
    wheel_of,
)
from envcheck.rules.fixes.frameworks import install_jax_for, keep_plugin
from envcheck.rules.fixes.install import How, install, pip_command
from envcheck.rules.fixes.libraries import INSTALL_TENSORRT
from envcheck.rules.libraries.missing import missing_rule
from envcheck.rules.messages.observed import tells_of
from envcheck.rules.packages.shipped import owner_of
from envcheck.text.lazy import lazy_pattern

_PACKAGE = lazy_pattern(r"tensorrt(?:-cu[0-9]{2})?(?:-bindings|-libs)?")
_NUMBERS = 4

tensorrt_missing = missing_rule("tensorrt-missing", "TensorRT is not found", INSTALL_TENSORRT)


@rule(layer="library", remedy=INSTALL_TENSORRT)
def tensorrt_mixed_versions(environment: Environment, facts: Facts) -> Outcome | None:
    """The parts of TensorRT have different versions."""
    packages = [each for each in facts.distributions if _PACKAGE.fullmatch(each.name)]
    # The parts that each framework would load, if there are several.
    loaded: dict[str, list[Load]] = {}
    for framework in frameworks_in(environment):
        parts = parts_loaded(framework, "tensorrt")
        if len(parts) > 1 and not framework.imported:
            loaded[framework.title] = parts
    if len(packages) < 2 and not loaded:
        return None
    for one in packages:
        for other in (other for other in packages if one.name < other.name and one.channel == other.channel):
            # Packages of one tool for the same CUDA version.
            plain = {name.replace("-bindings", "").replace("-libs", "") for name in (one.name, other.name)}
            if len(plain) == 1 and same_version(one.version, other.version, _NUMBERS) is False:
                newest = max((one, other), key=lambda each: each.name.count("-") == 0)
                wanted = f"{newest.name}=={newest.version}"
                return warning(
                    title=f"{one.name} {one.version} does not match {other.name} {other.version}",
                    message="The bindings and the libraries of TensorRT must have the same version.",
                    evidence=tuple(Evidence(each.name, each.version, each.source) for each in (one, other)),
                    fixes=install(facts, (wanted,), f"Install {wanted} again, with its parts", How(again=True)),
                    decided_by="declared",
                )
    for name, loads in loaded.items():
        first = loads[0]
        differs = (load for load in loads if same_version(load.version, first.version, _NUMBERS - 1) is False)
        if second := next(differs, None):
            text = f"Install {second.name} and {first.name} in one release, or remove one from the loader's path"
            return warning(
                title=f"{name} would load parts of TensorRT {first.version} and {second.version}",
                message=f"{first.path} is version {first.version}, {second.path} is version {second.version}.",
                evidence=tuple(
                    Evidence(load.name, f"{load.path} ({load.version})", load.source) for load in (first, second)
                ),
                fixes=(Fix(text),),
            )
    return passed("All parts of TensorRT have the same version")


_FELT_AS = (
    *TRIAL_RULES, "cuda-major-mismatch", "nccl-version-mismatch", "cudnn-mixed-copies", "cudnn-too-old",
    "cuda-library-too-old", "library-not-found",
)  # fmt: skip

_LIST = "List NVIDIA's wheels; remove those of the other CUDA major, and install the rest again"


@rule(layer="library", explains=_FELT_AS, remedy=lambda facts: (Fix(_LIST, command=pip_command(facts, "list")),))
def nvidia_wheel_conflict(environment: Environment, facts: Facts) -> Outcome | None:
    """Two of NVIDIA's wheels write the same files, or a pinned one was replaced."""
    separate = all_wheels(facts)
    if not separate and not any(wheel_of(each.name) for each in facts.distributions):
        return None
    clashes = [pair for pair in combinations(separate, 2) if install_same_files(*pair)]
    if clashes:
        return _clashing(clashes, facts)
    claimed = next((each for each in _copies(facts) if len(_wheels_claiming(each)) > 1), None)
    others = (each for each in _copies(facts) if owner_of(each.path, facts) is None)
    altered = next((each for each in others if each.altered and each.owner), None)
    older = next(_older_than_pinned(facts), None)
    decided_by: DecidedBy = "inferred"
    remove: list[str] = []
    if claimed:
        owners = _wheels_claiming(claimed)
        remove, requirement = [each.partition("==")[0] for each in owners], owners[-1]
        title, text = f"{remove[0]} and {remove[1]} claim one file", f"Install {requirement} alone"
        message = f"{claimed.path} is listed by {' and by '.join(owners)}."
        evidence = (_file(claimed), *(Evidence("listed by", each, "wheel metadata") for each in owners))
    elif altered:
        requirement = altered.owner or ""
        title, text = f"A library of {requirement.partition('==')[0]} was overwritten", f"Install {requirement} again"
        message = f"{altered.path} has a different size than {requirement} recorded: something overwrote it."
        evidence = (_file(altered),)
    elif older:
        wheel, framework, pinned = older
        requirement, source = f"{wheel.name}=={pinned}", framework.source_of("requires")
        title, text = f"{wheel.name} {wheel.version} is older than {framework.name} pins", f"Install {requirement}"
        message = f"{framework.name} {framework.version or ''} was built and tested with {requirement}."
        pin = Evidence(f"pinned by {framework.name}", requirement, source)
        evidence, decided_by = (_listed(wheel), pin), "declared"
    else:
        return passed("NVIDIA's wheels do not overwrite each other") if environment.distributions_complete else None
    again = How(alone=True, again=True)
    return warning(
        title=title,
        message=message,
        evidence=evidence,
        fixes=install(facts, (requirement,), text, again, remove=remove) if "==" in requirement else (),
        decided_by=decided_by,
    )


def _copies(facts: Facts) -> tuple[Library, ...]:
    return tuple(
        each for each in facts.libraries if each.environment == facts.environment.key and each.origin == "wheel"
    )


def _clashing(clashes: Sequence[tuple[Distribution, Distribution]], facts: Facts) -> Outcome:
    pair, names = clashes[0], dict.fromkeys(each.name for both in clashes for each in both)
    if facts.environment.planned is not None:
        return _clashing_in_plan(pair, facts)
    asked = [_asked_for(each, facts) for each in clashes]
    wanted = dict.fromkeys(f"{each.name}=={each.version}" for each in asked)
    major = cuda_of_wheel(asked[0]) or ""
    # JAX's plug-in for the other CUDA would then load what is not for it.
    fixes = install_jax_for(major, facts) if keep_plugin(major, facts).removed else ()
    files = [each for each in _copies(facts) if (each.owner or "").partition("==")[0] in {_.name for _ in pair}]
    # Where both are one release, only removing one does harm.
    alike = same_version(pair[0].version, pair[1].version) and cuda_of_wheel(pair[0]) == cuda_of_wheel(pair[1])
    here = f" The present file is {files[0].on_disk}." if files and files[0].on_disk else ""
    # A text shows no file: where none of its errors is about the library, or about one that does not load, the wheel
    # that was overwritten may well be a left-over of an older release.
    wheel, errors = wheel_of(pair[0].name), facts.snapshot.observed_errors
    felt = (
        facts.environment.source != PASTED
        or (wheel is not None and any(wheel.name in error.text.lower() for error in errors))
        or bool(lines_with("trouble-between-gpus", errors))
        or tells_of(facts, *_FELT_AS)
    )
    how = How(alone=True, again=True)
    return Outcome(
        status="note" if alike or not (files or felt) else "warn",
        title=f"{pair[0].name} and {pair[1].name} write the same files",
        message=f"{pair[0].name} {pair[0].version} and {pair[1].name} {pair[1].version} share a folder; "
        f"the one that was installed last overwrote the other.{here}",
        evidence=(*map(_listed, pair), *(_file(each) for each in files[:2])),
        fixes=fixes or install(facts, tuple(wanted), f"Install {listed(list(wanted))} alone", how, remove=list(names)),
        decided_by="declared",
        # Those that require a wheel of them, or load its libraries.
        frameworks=tuple(
            each.name
            for each in facts.frameworks
            if not names.keys().isdisjoint(map(requirement_name, each.requires))
            or any((load.owner or "").partition("==")[0] in names for load in each.loads or ())
        ),
    )


def _clashing_in_plan(pair: tuple[Distribution, Distribution], facts: Facts) -> Outcome:
    """Of two wheels in a plan, the one stays that a pinned package requires, else the one for its CUDA version."""
    required = required_wheels(facts)
    wanted = next((each for each in pair if each.name in required), None) or _asked_for(pair, facts)
    other = next(each for each in pair if each is not wanted)
    owner = f": {required[wanted.name].owner} requires {wanted.name}" if wanted.name in required else ""
    return warning(
        title=f"{pair[0].name} and {pair[1].name} write the same files",
        message=f"{pair[0].title} and {pair[1].title} share a folder; "
        "the one that is installed last overwrites the other.",
        evidence=tuple(map(_listed, pair)),
        fixes=(Fix(f"Remove {other.name} from the plan{owner}"),),
        decided_by="declared",
    )


def _asked_for(pair: tuple[Distribution, Distribution], facts: Facts) -> Distribution:
    """The wheel that a framework's metadata or CUDA version requires; else the one for the newer CUDA version."""
    lines = [line for framework in facts.frameworks for line in framework.requires if not of_an_extra(line)]
    asked = [each for each in pair if each.name in map(requirement_name, lines)]
    majors = {(framework.cuda or "").partition(".")[0] for framework in facts.frameworks}
    fitting = [each for each in pair if cuda_of_wheel(each) in majors]
    return next(iter(asked or fitting), max(pair, key=lambda each: each.name))


def _wheels_claiming(library: Library) -> tuple[str, ...]:
    return tuple(owner for owner in library.claimed_by if owner.startswith("nvidia-"))


def _older_than_pinned(facts: Facts) -> Iterator[tuple[Distribution, Framework, str]]:
    """Wheels that are older than a framework's pin; newer ones are compatible."""
    for framework in facts.frameworks:
        for line in framework.requires:
            name = requirement_name(line)
            pinned = pinned_by(line) if wheel_of(name) else None
            if pinned is None:
                continue
            for each in facts.distributions:
                if each.name == name and is_older(each.version, pinned):
                    yield each, framework, pinned


def _listed(wheel: Distribution) -> Evidence:
    return Evidence(wheel.name, version_of(wheel), wheel.path or wheel.source)


def _file(library: Library) -> Evidence:
    version = library.on_disk or library.declared or "of unknown version"
    return Evidence(f"{library.family} {version}", library.path, library.source)
