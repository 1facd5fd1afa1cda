"""Requirements of frameworks on other packages, from their own metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from envcheck.compat.candidates import named_by
from envcheck.compat.package_needs import (
    NOT_TO_RUN,
    admits,
    bounds_on,
    by_name,
    names_extra,
    package_filled_by,
    same_package,
)
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.relations.libraries import TOOLKIT
from envcheck.knowledge.tables.packages import Trait
from envcheck.model.checks import Evidence, Source, Status
from envcheck.model.snapshot import Distribution, Environment, Framework
from envcheck.rules.api import Facts, Outcome, evidence_of, passed, rule, warning
from envcheck.rules.facts.frameworks import own_error
from envcheck.rules.facts.library_names import family_of_wheel
from envcheck.rules.facts.machine import title_of_first
from envcheck.rules.fixes.frameworks import install_gpu_build
from envcheck.rules.fixes.install import How, install, install_release_for, is_conda_package, one_bound
from envcheck.rules.packages.redirected import imported_from
from envcheck.text.lazy import lazy_pattern

_SPOKEN_OF = frozenset({"torch", "numpy", "jax", "jaxlib"})
"""Packages that another rule judges in more detail, beside NVIDIA's, those released with PyTorch and parts for CUDA."""
_NVIDIAS = ("nvidia-", TOOLKIT)
_OF_TORCH: Trait = "released-with-torch"
_SHOWN = 8


class _Broken(NamedTuple):
    name: str
    bounds: str
    there: Distribution | None = None  # What is imported of it; None: nothing is there
    asked_by: str = ""  # The package that asks, where it is not the framework
    fit: Fit | None = None  # What rows say, where no metadata does

    @property
    def text(self) -> str:
        by = f" (of {self.asked_by})" if self.asked_by else ""
        if self.there is None:
            return f"{self.name}{self.bounds}{by}, which is not installed"
        where = imported_from(self.there).removeprefix(", ") or "installed"
        return f"{self.name}{self.bounds}{by}, but {self.there.version or 'a copy of unknown version'} is {where}"


def _lines(framework: Framework, facts: Facts) -> tuple[str, ...]:
    """All requirements in its distribution's metadata; none for packages that conda installed."""
    found = facts.distributions
    if any(each.channel == "conda" for each in found) or framework.path is None:
        return ()
    own = next((each for each in found if each.name == framework.name and not each.editable), None)
    return (own.requires or ()) if own else ()


def _other_releases(framework: Framework, facts: Facts) -> Iterator[_Broken]:
    """Requirements of its distribution, and of required ones, that the imported release does not meet. Other frameworks
    have their own findings, and conda changes the requirements of its packages.
    """
    own = framework.name
    direct = _always(facts.installed(own))
    others = {each.name for each in facts.frameworks}
    further = {name: _always(facts.installed(name)) for name in direct if name not in others}
    for owner, asked in {own: direct, **further}.items():
        for name, lines in asked.items():
            there = facts.installed(name)
            if _kept_by_conda(facts.packages[owner], there) or there is None or _has_its_own_rule(name, facts.matrix):
                continue
            bounds = bounds_on(lines, name, facts.markers)
            if bounds is not None and admits(bounds, there.version) is False:
                yield _Broken(name, bounds, there, "" if owner == own else owner)
        for each in _by_rows(owner, facts):
            yield each._replace(asked_by="") if owner == own else each


def _by_rows(name: str, facts: Facts) -> Iterator[_Broken]:
    """What rows know a release to require of packages that are there, as its code does and its metadata does not."""
    named = named_by(canonical(name), facts.matrix) if name in facts.packages else ()
    for other in sorted(each for each in named if each in facts.packages):
        if _has_its_own_rule(other, facts.matrix, name):
            continue
        there = facts.packages[other]
        fit = facts.fit_of_release(name, facts.packages[name].version, other, there.version)
        if fit and fit.bad and re.fullmatch(r"[\w.!<>=~,-]+", fit.nearest_change):
            yield _Broken(other, fit.nearest_change.removeprefix(other), there, name, fit)


def _always(owner: Distribution | None) -> dict[str, list[str]]:
    """The requirement lines without an extra, by distribution, as pip check reads them; none of conda's own records."""
    if owner is None or owner.editable or owner.channel == "conda":
        return {}
    return by_name(line for line in owner.requires or () if not names_extra(line))


def _kept_by_conda(owner: Distribution, there: Distribution | None) -> bool:
    """Whether conda keeps a requirement: it knows nothing of what pip put in the place of its package."""
    return (there is not None and there.channel == "conda") or (
        is_conda_package(owner) and (there is None or is_conda_package(there))
    )


def _has_its_own_rule(name: str, matrix: Matrix, by_rows_of: str = "") -> bool:
    """Whether another rule judges it. Of what rows say of another package, those of JAX and PyTorch judge only their
    parts, and those of NVIDIA's wheels only those with libraries.
    """
    if by_rows_of and name == "jax":
        return by_rows_of.startswith(name)
    if by_rows_of and name.startswith("nvidia-"):
        return family_of_wheel(name) is not None
    if matrix.has_trait(name, _OF_TORCH):
        return not by_rows_of or matrix.has_trait(by_rows_of, _OF_TORCH)
    return name in _SPOKEN_OF or matrix.has_trait(name, "part-for-cuda") or name.startswith(_NVIDIAS)


def missing_requirements(required: Iterable[str], facts: Facts) -> list[tuple[str, str]]:
    """Name and bounds of what requirement lines without an extra ask for on this system and nothing provides."""
    there = {*facts.packages, *(each.name for each in facts.frameworks if not each.incomplete)}
    lines = by_name(line for line in required if not names_extra(line))
    lacking = [name for name in lines if name not in there]
    wanted = [(name, bounds) for name in lacking if (bounds := bounds_on(lines[name], name, facts.markers)) is not None]
    stand_ins = set(map(package_filled_by, there)) if wanted else there
    left_out = (*_NVIDIAS, *NOT_TO_RUN)  # whether a part of JAX is there at all, no rule of its own tells
    return [
        found for found in wanted if package_filled_by(found[0]) not in stand_ins and not found[0].startswith(left_out)
    ]


@rule(layer="framework", decided_by="declared")
def requirement_broken(framework: Framework, facts: Facts) -> Outcome | None:
    """A framework's own requirements are not met."""
    asked = by_name(framework.requires)
    asked = {name: lines for name, lines in asked.items() if not _has_its_own_rule(name, facts.matrix)}
    if not facts.environment.distributions_complete or not (asked or _lines(framework, facts)):
        return None
    found = [each for name, lines in asked.items() if (each := _broken(name, lines, facts))]
    # Where one of several groups must be met and none is: what is unmet of the group with the fewest, and among equals
    # of the last, which is for the newest CUDA version.
    groups = [by_name(group) for group in framework.needs_one_of or ()]
    lacking = [[each for name in group if (each := _broken(name, group[name], facts))] for group in groups]
    found += (compilers := min(reversed(lacking), key=len, default=[]))
    gone = missing_requirements(_lines(framework, facts), facts)
    found += [*(_Broken(name, bounds) for name, bounds in gone), *_other_releases(framework, facts)]
    broken = list({(each.asked_by, each.name): each for each in reversed(found)}.values())[::-1]
    if not broken:
        return passed(f"The requirements of {framework.title} are installed")
    lines = _asked(broken, framework.name, framework.source_of("requires"), facts)
    there = (evidence_of(each.name, each.there, "version") for each in broken[:_SHOWN] if each.there)
    # Errors of failed trials about these packages: of this framework, and of others that import them.
    errors: list[Evidence] = []
    others = () if framework.imported else facts.tried_frameworks
    for tried in (framework, *(each for each in others if each.name != framework.name)):
        error = tried.trial.error if tried.trial else None
        if error and tried.failed and any(_is_about(each.name, error, tried) for each in broken):
            errors += own_error(tried, error)
    # A failure if the framework that it extends is missing, or is left without the GPU.
    base = facts.framework(framework.extends)
    left = bool(gone) and base is not None and facts.is_main_framework(base) and facts.provides_gpu_support(framework)
    # Rows tell what its code needs where its metadata does not.
    stopped = facts.is_main_framework(framework) and any(each.fit and not each.asked_by for each in broken)
    status: Status = "fail" if left or stopped or framework.extends in {name for name, _ in gone} else "warn"
    if framework.ran_on_gpu or framework.imported:
        status = "warn" if errors else "note"
    names = dict.fromkeys(each.name for each in broken)
    required = [f"{name}{one_bound(each.bounds for each in broken if each.name == name)}" for name in names]
    return Outcome(
        status=status,
        title=f"Requirements of {framework.title} are not met",
        message=f"{framework.title} requires {'; '.join(each.text for each in broken[:_SHOWN])}.",
        evidence=(*errors, *lines, *there),
        sources=_sources(broken),
        decided_by="framework-ran" if errors else None,
        fixes=install_gpu_build(facts, framework)
        if compilers
        else install(facts, required, f"Install what {framework.title} requires", How(owner=framework.name)),
    )


def _asked(broken: Sequence[_Broken], name: str, source: str, facts: Facts) -> Iterator[Evidence]:
    """The first requirements, with the row or the metadata that tells of each: ``source`` where ``name`` asks."""
    for each in broken[:_SHOWN]:
        metadata = facts.packages[each.asked_by].source if each.asked_by else source
        told_by = f"inferred {each.fit.rows[0]}" if each.fit else metadata
        yield Evidence(f"{each.asked_by or name} requires", f"{each.name}{each.bounds}", told_by)


def _sources(broken: Iterable[_Broken]) -> tuple[Source, ...]:
    return tuple(dict.fromkeys(source for each in broken if each.fit for source in each.fit.sources))


_MINIMUM = lazy_pattern(r"[\w.\[\],-]+\s*(?:\(?\s*>=\s*(?P<least>[0-9.]+)\s*\)?)?\s*(?:;|$)")
"""A requirement that names at most a least release: most do, and few are parsed therefore."""


@rule(layer="framework", decided_by="declared")
def package_requirement_broken(environment: Environment, facts: Facts) -> Outcome | None:
    """A package's requirements are not met."""
    found = facts.distributions
    if not environment.distributions_complete or environment.planned is not None:
        return None
    frameworks = {each.name for each in facts.frameworks}
    spoken_of = frameworks | {name for each in frameworks for name in _always(facts.installed(each))}
    names = dict.fromkeys(each.name for each in found if each.name not in frameworks)
    owners = {name: _always(facts.packages[name]) for name in names}
    if not any(owners.values()):
        return None
    conda = any(each.channel == "conda" for each in found)
    broken: dict[tuple[str, str], _Broken] = {}
    for owner, asked in owners.items():
        for name, lines in asked.items():
            there = facts.installed(name)
            own_rule = (name == "torch" and there is not None) or facts.matrix.has_trait(name, "part-for-cuda")
            own_rule = own_rule or facts.matrix.has_trait(owner, _OF_TORCH)
            own_rule = own_rule or _kept_by_conda(facts.packages[owner], there) or name in NOT_TO_RUN
            if own_rule or (there is None and (conda or name in frameworks)):
                continue
            if there is None or not _is_met(lines, there.version):
                bounds = bounds_on(lines, name, facts.markers)
                if bounds is None or (there is not None and admits(bounds, there.version) is not False):
                    continue
                if there is not None or not any(same_package(name, each) for each in facts.packages):
                    broken[owner, name] = _Broken(name, bounds, there, owner)
    for owner in owners:
        for each in _by_rows(owner, facts):
            broken.setdefault((owner, each.name), each)
    # What a framework requires directly is told of the framework.
    broken = {key: each for key, each in broken.items() if key[0] not in spoken_of or each.there is None}
    if not broken:
        return passed(f"The requirements of {len(owners)} other packages are met")
    replaced = {each.name for each in broken.values() if each.there}
    # Of all that stay and ask for it, else the fix breaks another one.
    staying = {owner: asked for owner, asked in owners.items() if owner not in replaced} or owners
    required = []
    for name in dict.fromkeys(each.name for each in broken.values()):
        asked_for = [bounds_on(asked[name], name, facts.markers) or "" for asked in staying.values() if name in asked]
        known = (each for each in broken.values() if each.name == name and each.fit)
        asked_for += [each.bounds for each in known if each.asked_by in staying]
        required += [f"{name}{one_bound(asked_for)}"] if asked_for else []
    texts = [(each.asked_by, each._replace(asked_by="").text) for each in broken.values()]
    asking = facts.packages[texts[0][0]]
    title = f"{asking.name} {asking.version} requires {texts[0][1]}"
    asks = "they require" if len(broken) > 1 else f"{asking.name} requires"
    fixes = install(facts, required, f"Install what {asks}")
    for each in broken.values() if len(broken) == 1 else ():
        # What only rows know ends with a release of the package; a framework was upgraded for its own sake.
        newer = install_release_for(each.asked_by, each.name, facts) if each.fit else ()
        fixes = (*newer, *fixes) if each.name in frameworks else (*fixes, *newer)
    return warning(
        title=title_of_first(title, list(broken)),
        message=f"{'; '.join(f'{owner} requires {text}' for owner, text in texts[:_SHOWN])}.",
        evidence=tuple(_asked(list(broken.values()), "", "", facts)),
        sources=_sources(broken.values()),
        fixes=fixes,
        frameworks=tuple(dict.fromkeys(owner for owner, _ in broken)),  # none of them, so that those come first
    )


def _is_met(lines: Sequence[str], there: str) -> bool:
    """Whether a release meets lines that name no more than a least one, whatever their markers say."""
    own = tuple(map(int, re.findall(r"\d+", there))) if re.fullmatch(r"\d+(?:\.\d+)*", there) else None
    for line in lines:
        parsed = _MINIMUM.match(line)
        least = tuple(map(int, re.findall(r"\d+", parsed["least"] or ""))) if parsed else ()
        if parsed is None or (least and (own is None or own < least)):
            return False
    return True


def _is_about(name: str, error: str, framework: Framework) -> bool:
    """Whether an error names a package or one of its files, or was raised in one."""
    files = (framework.trial.files if framework.trial else None) or ()
    raised_in = next((file for file in files if file.role == "frame"), None)
    owners = (file.owner for file in files if file.owner and (file.role != "frame" or file is raised_in))
    if any(owner.partition("==")[0] == name for owner in owners):
        return True
    spelled = re.escape(name).replace(r"\-", "[-_.]")
    return re.search(rf"(?<![\w./-]){spelled}(?![\w-])", error, re.IGNORECASE) is not None


def _broken(name: str, lines: list[str], facts: Facts) -> _Broken | None:
    """A requirement that is not met. Of conda's packages, which have other names, none is called missing."""
    bounds = bounds_on(lines, name, facts.markers)
    if bounds is None:
        return None
    there = facts.installed(name)
    if there is None:
        by_conda = any(each.channel == "conda" for each in facts.distributions)
        return None if by_conda or facts.framework(name) else _Broken(name, bounds)
    return _Broken(name, bounds, there) if bounds and admits(bounds, there.version) is False else None
