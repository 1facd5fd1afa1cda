"""Simulate a fix: the Snapshot with packages removed and installed as an installer would do it.

Nothing is downloaded: the requirements of a release come from the installed metadata where it is the same release, else
from the matrix. A version that only an index knows stays unknown (an empty string), and nothing is concluded from it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from envcheck.compat.package_needs import (
    needed_of,
    normalised,
    read_requirement,
    release_rows,
    requirement_name,
    same_package,
    satisfies,
)
from envcheck.compat.requirements import extras_of
from envcheck.compat.wheels import published
from envcheck.enrich.complete import complete, join_loads
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.relations.libraries import TOOLKIT
from envcheck.model.checks import Changes
from envcheck.model.snapshot import (
    Distribution,
    Environment,
    Framework,
    Library,
    Listing,
    Load,
    Shipped,
    Snapshot,
    items_in,
)
from envcheck.model.versions import CudaVersion
from envcheck.rules.api import Facts
from envcheck.rules.engine.resolve import frameworks_of_text, newest_admitted, requirements_of, resolve
from envcheck.rules.facts.libraries import can_load
from envcheck.rules.facts.library_names import (
    contains_library,
    family_of_wheel,
    name_of,
    wheels_brought,
    wheels_of_extra,
)

if TYPE_CHECKING:
    from packaging.requirements import Requirement

SOURCE = "simulated"


class Simulated(msgspec.Struct, frozen=True):
    """An environment after a fix."""

    snapshot: Snapshot
    moved: tuple[tuple[str, str, str], ...]
    """Other packages that change: name, version before (empty: added), version after (empty: unknown)."""
    unknown: tuple[str, ...]  # Packages whose new version only the index knows
    impossible: tuple[str, ...] = ()  # Requirements that no release can meet


def simulate(snapshot: Snapshot, steps: Sequence[Changes], matrix: Matrix) -> Simulated:
    """``snapshot`` (complete and joined) after these changes."""
    facts = Facts(snapshot, matrix)
    environment = snapshot.judged_environment
    if environment is None or snapshot.environments is None:
        return Simulated(snapshot, (), ())
    installer = _Installer(facts)
    for step in steps:
        installer.apply(step)
    changed = installer.environment()
    items = tuple(changed if item is environment else item for item in snapshot.environments.items)
    after = msgspec.structs.replace(
        snapshot,
        environments=msgspec.structs.replace(snapshot.environments, items=items),
        libraries=_libraries(snapshot.libraries, installer) if snapshot.libraries else None,
    )
    return Simulated(
        join_loads(complete(after, matrix)), installer.moved(), tuple(installer.unknown), tuple(installer.impossible)
    )


def without_trials(snapshot: Snapshot, matrix: Matrix) -> Snapshot:
    """The Snapshot without results of trials and error lines, which say nothing about a changed environment; of a plan
    without the packages that no row speaks of, whose requirements nobody read.
    """
    if snapshot.environments is None:
        return msgspec.structs.replace(snapshot, observed_errors=())
    replace, items = msgspec.structs.replace, []
    for item in snapshot.environments.items:
        if item.frameworks is not None:
            untried = (each if each.trial is None else replace(each, trial=None) for each in item.frameworks.items)
            item = replace(item, frameworks=replace(item.frameworks, items=tuple(untried)))  # noqa: PLW2901
        if item.planned is not None:
            named = tuple(each for each in item.distributions or () if matrix.is_named(each.name))
            asked = tuple(each for each in item.planned if not each.name or matrix.is_named(each.name))
            item = replace(item, distributions=named, planned=asked)  # noqa: PLW2901
        items.append(item)
    return replace(snapshot, environments=replace(snapshot.environments, items=tuple(items)), observed_errors=())


class _Installer:
    """Removes and installs as pip does."""

    def __init__(self, facts: Facts) -> None:
        self.before = facts.environment
        self.facts = facts
        self.there: dict[str, Distribution] = {}
        for each in facts.distributions:
            self.there.setdefault(each.name, each)
        self.known = dict(self.there)
        self.told = frameworks_of_text(facts)
        self.removed: set[str] = set()
        self.fresh: set[str] = set()  # Names that were installed or reinstalled, whatever their version
        self.asked_for: set[str] = set()
        self.extended: set[str] = set()  # Names that were installed with an extra
        self.brought: set[str] = set()  # Families of which such an extra brings its own copies
        self.relabelled: set[str] = set()
        """Names that were installed again in the same version, and in another build."""
        looked = (self.before.shipped, self.before.verified)
        damaged = (each for compared in looked if compared for each in compared.damaged)
        self.damaged = {posixpath.basename(each.path): normalised(each.package) for each in damaged}  # Name to owner
        self.brings_tools = False  # Whether an extra brings wheels of no one family, such as that with nvcc and NVVM
        self.unknown: dict[str, None] = {}
        self.impossible: dict[str, None] = {}

    def apply(self, step: Changes) -> None:
        for name in map(normalised, step.removes):
            self.there.pop(name, None)
            self.fresh.discard(name)
            self.removed.add(name)
        asked = [each for line in step.installs if (each := read_requirement(line)) is not None]
        names = {normalised(each.name) for each in asked}
        self.asked_for |= names
        self.extended |= {normalised(each.name) for each in asked if each.extras}
        newest = names if step.newest else frozenset[str]()

        def requires(there: Distribution, extras: Sequence[str]) -> Iterable[Requirement]:
            if there.requires is None and there.version:  # of a pasted list, which may leave out what is there
                lines = self._known_requirements(there.name, there.version, extras=bool(extras))
                known = tuple(line for line in lines if self._is_there(requirement_name(line)))
                there = msgspec.structs.replace(there, requires=known)
            return () if step.alone else requirements_of(there, self.facts.markers, ("", *extras))

        found = resolve(asked, lambda name, bounds: self._candidates(name, bounds, newest), requires)
        if found.conflict:
            self.impossible[found.conflict] = None
        for name, chosen in found.chosen.items():
            if chosen is not self.there.get(name) and chosen is not self.told.get(name):
                self.there[name] = chosen
                self.fresh.add(name)
                if not chosen.version and name != TOOLKIT:
                    self.unknown[name] = None
            elif step.again and name in names:
                self.fresh.add(name)
                label = "+" in chosen.version
                if label and not any("+" in str(each.specifier) for each in asked if normalised(each.name) == name):
                    # Without the label it comes from another index than before.
                    self.there[name] = msgspec.structs.replace(chosen, version=chosen.version.partition("+")[0])
                    self.relabelled.add(name)
        for each in (each for each in asked if each.extras and normalised(each.name) in found.chosen):
            rows = extras_of(self.facts.matrix, normalised(each.name), found.chosen[normalised(each.name)].version)
            families = (other for row in rows if each.extras & {*row.extras} for other in row.brings)
            self.brought |= {TOOLKIT if other == "cuda" else other for other in families}
        for name, chosen in () if step.alone else found.chosen.items():
            # The extras of ``cuda-toolkit``, and NVIDIA's wheels, bring wheels.
            for extra in found.extras[name] if name == TOOLKIT and chosen.version else ():
                wheels = wheels_of_extra(extra, chosen.version.partition(".")[0])
                self.brings_tools = self.brings_tools or not wheels
                self._add_wheels(wheels)
            self._add_wheels(wheels_brought(name))

    def _candidates(self, name: str, bounds: str, newest: Container[str]) -> Iterator[Distribution]:
        """What is there, where it is admitted, then the newest release that bounds can mean."""
        there, before = self.there.get(name) or self.told.get(name), self.known.get(name)
        if there is not None and name not in newest and (not bounds or satisfies(bounds, there.version) is not False):
            yield there
        version = newest_admitted(bounds)
        if version and name != "torch" and version.endswith(".999"):
            # A stand-in: what PyPI lists for this Python, where that is known.
            listed = (
                each for each in map(str, reversed(published(self.facts.matrix, name))) if satisfies(bounds, each)
            )
            fits = (
                (self.facts.fit_of_release(name, each, "python", self.before.python or ""), each) for each in listed
            )
            version = next((each for fit, each in fits if not (fit and fit.bad)), version)
        if version and before is not None and _same_build(before.version, version):
            version = before.version  # with its local label
        if version is None or (there is not None and version == there.version and name not in newest):
            return
        if before is not None and _same_build(before.version, version):
            requires = before.requires
        else:  # the matrix has pins for torch only; other rows relate releases of packages that are installed anyway
            lines = self._known_requirements(name, version) if version else ()
            pins = tuple(line for line in lines if name == "torch" or self._is_there(requirement_name(line)))
            requires = pins or None
        yield Distribution(source=SOURCE, name=name, version=version, channel="pip", requires=requires)

    def _add_wheels(self, names: Iterable[str]) -> None:
        """Add wheels of NVIDIA, each under all names that it may have."""
        for name in names:
            if name not in self.there:
                self.there[name] = Distribution(source=SOURCE, name=name, version="", channel="pip")
                self.fresh.add(name)
                self.asked_for.add(name)

    def _is_there(self, name: str) -> bool:
        """Whether a package is listed, or told as a framework, as a pasted text does it."""
        return name in self.there or self.facts.framework(name) is not None

    def _known_requirements(self, name: str, version: str, *, extras: bool = False) -> tuple[str, ...]:
        facts = self.facts
        return needed_of(facts.matrix, name, version, facts.driver_os, facts.processor, extras=extras)

    def moved(self) -> tuple[tuple[str, str, str], ...]:
        """The changes beyond what was requested."""
        names = [name for name in self.fresh if name not in self.asked_for]
        was = {name: self.known[name].version if name in self.known else "" for name in names}
        return tuple((name, was[name], self.there[name].version) for name in sorted(names))

    def environment(self) -> Environment:
        before, frameworks = self.before, self.before.frameworks
        changed = self.fresh | self.removed
        there = [each for each in before.distributions or () if each.name in self.there]
        kept = [each for each in there if each.name not in changed or self.there[each.name] is each]
        names = {each.name for each in kept}
        added = [each for name, each in self.there.items() if name not in names]
        owners = {each.path: each.name for each in reversed(self.known.values())}
        extensions = tuple(each for each in items_in(before.extensions) if each.name not in changed)
        return msgspec.structs.replace(
            before,
            distributions=(*kept, *added),
            damaged=tuple(each for each in before.damaged if owners.get(each.path, each.name) not in changed)
            if before.damaged is not None
            else None,
            extensions=before.extensions and msgspec.structs.replace(before.extensions, items=extensions),
            shipped=self._repaired(before.shipped),
            verified=self._repaired(before.verified),
            frameworks=msgspec.structs.replace(frameworks, items=tuple(self._frameworks(frameworks.items)))
            if frameworks and (changed or self.extended)
            else frameworks,
        )

    def _repaired(self, compared: Shipped | None) -> Shipped | None:
        """The environment without damaged files of packages that were reinstalled or removed."""
        changed = self.fresh | self.removed
        if compared is None or not changed:
            return compared
        damaged = tuple(each for each in compared.damaged if normalised(each.package) not in changed)
        return msgspec.structs.replace(compared, damaged=damaged)

    def _frameworks(self, frameworks: Iterable[Framework]) -> Iterator[Framework]:
        names = set()
        matrix = self.facts.matrix
        parts = {name for name in {*self.fresh, *self.removed} if matrix.has_trait(name, "part-for-cuda")}
        roles = {matrix.role_of(name) for name in parts}
        for each in frameworks:
            now = self._after_change(each)
            # JAX has its CUDA from its plug-in.
            by_part = now is not None and now.name not in parts and matrix.role_of(now.name) in roles - {None}
            if now is not None and (by_part or (now.cpu_only and now.name in self.extended)):
                now = msgspec.structs.replace(now, cuda=None, cpu_only=None)
            if now is not None and now.name not in names:
                names.add(now.name)
                yield now
        for name in self.fresh - names:
            if name in _FRAMEWORKS or any(same_package(name, each.name) for each in frameworks):
                yield self._new(name, None)

    def _after_change(self, framework: Framework) -> Framework | None:
        """The framework after the change; None where its package is gone."""
        name = framework.name
        if name not in self.known:  # no distribution of that name: it stays as it is
            lost = name in self.fresh and not framework.led_by
            return self._new(name, framework) if lost else self._with_libraries(framework)
        if name not in self.there:
            return None
        if name not in self.fresh:
            return self._with_libraries(framework)
        before, after = self.known[name].version, self.there[name].version
        if not _same_build(before, after) or (framework.version or before) != before:
            return self._new(name, framework)
        binaries = framework.binaries or None  # none of them is there: it was not checked
        torch = self.facts.framework(framework.extends)
        own, its = CudaVersion.parse(framework.cuda), CudaVersion.parse(torch.cuda if torch else None)
        # For another CUDA major than PyTorch: another index has the build to install again.
        elsewhere = own is not None and its is not None and own.major != its.major
        if name in self.relabelled or (elsewhere and self.facts.matrix.has_trait(name, "on-torch-index")):
            return self._new(name, framework)
        changes = {"incomplete": False, "problem": None, "binaries": binaries, "unresolved": None}
        return self._with_libraries(msgspec.structs.replace(framework, **changes), own=True)

    def _new(self, name: str, old: Framework | None) -> Framework:
        """A framework of another release, with only what the matrix knows of it."""
        distribution = self.there[name]
        return Framework(
            source=SOURCE,
            name=name,
            version=distribution.version or None,
            path=(old.path if old else None) or f"{SOURCE}/{name}",
            extends=old.extends if old else None,
            requires=distribution.requires or (),
        )

    def _with_libraries(self, framework: Framework, *, own: bool = False) -> Framework:
        """The framework with the libraries that it would get now; with its own files intact where ``own``."""
        base = self.facts.framework(framework.extends)
        if base is not None and not can_load(base):
            framework = msgspec.structs.replace(framework, loads=None)  # what it finds once that loads is not known
        if framework.extends in self.fresh:
            rows = release_rows(self.facts.matrix, framework.name, framework.version or "")
            several = bool(rows) and not any(row.cuda for row in rows)  # it takes the build for the CUDA of PyTorch
            cuda = None if several else framework.cuda
            # What found all symbols in another PyTorch than it was built for uses only those that stay.
            built, ran = framework.built_for.get(framework.extends, ""), self.known.get(framework.extends)
            stable = not framework.unresolved and ran and built and built.split(".")[:2] != ran.version.split(".")[:2]
            unresolved = framework.unresolved if stable else None
            framework = msgspec.structs.replace(framework, unresolved=unresolved, cuda=cuda)
        if framework.loads is None:
            return framework
        pairs = [(load, self._load(load, own=own)) for load in framework.loads]
        gone = {before.path for before, now in pairs if before.path and now.path is None}
        # What only a removed library needed, or itself where it is loaded because it is there, nothing needs any more;
        # what an extension had from PyTorch's wheels, another PyTorch brings in wheels that are not known, as tools do.
        lost = framework.extends in self.fresh or self.brings_tools
        kept = (
            now for before, now in pairs if now.path or before.path is None or not (lost or before.needed_by in gone)
        )
        return msgspec.structs.replace(framework, loads=tuple(kept))

    def _load(self, load: Load, *, own: bool) -> Load:
        name = name_of(load.name)
        owner = (load.owner or "").partition("==")[0]
        if name is None:
            lost = load.path is None and self.damaged.get(load.name) in self.fresh
            now = f"{SOURCE}/{load.name}" if lost else load.path
            return msgspec.structs.replace(load, path=now, refused=None) if own and (lost or load.refused) else load
        fresh = (each for each in self.there.values() if each.name in self.fresh)
        wheel = next((each for each in fresh if contains_library(each, name, self.facts.matrix)), None)
        if wheel is not None:
            family = family_of_wheel(wheel.name)
            version = wheel.version if family == name.family or name.family.startswith("cudnn") else None
            found = f"{SOURCE}/{wheel.name}/{load.name}"
            if load.path is None or load.refused or owner == wheel.name:
                return msgspec.structs.replace(
                    load,
                    path=found,
                    found_by="preloaded",
                    version=version,
                    owner=_pinned(wheel),
                    missing_symbols=None,
                    refused=None,
                    unfound=(),
                )
        if owner and owner in self.fresh | self.removed and wheel is None:
            return msgspec.structs.replace(load, path=None, version=None, owner=None, refused=None)
        return load


_FRAMEWORKS = frozenset({"torch", "jax", "jaxlib", "tensorflow"})
"""Distributions that become a framework when they are installed for the first time."""


def _same_build(before: str, after: str) -> bool:
    """Whether a version is the installed one; a version without a label matches any build."""
    return before == after or ("+" not in after and before.partition("+")[0] == after)


def _pinned(distribution: Distribution) -> str:
    return f"{distribution.name}=={distribution.version}"


def _libraries(libraries: Listing[Library], installer: _Installer) -> Listing[Library]:
    """The copies on disk: those of removed packages go, those of replaced packages are intact again."""
    key, found = installer.before.key, []
    for library in libraries.items:
        if library.stated and library.family in installer.brought:
            continue  # a text's, from which it is no longer taken
        owner = (library.owner or "").partition("==")[0]
        claims = tuple(each for each in library.claimed_by if each.partition("==")[0] not in installer.removed)
        if library.environment != key or not {owner, *(each.partition("==")[0] for each in library.claimed_by)} & (
            installer.fresh | installer.removed
        ):
            found.append(library)
        elif owner in installer.there and owner in installer.fresh:
            now = installer.there[owner]
            found.append(
                msgspec.structs.replace(
                    library,
                    owner=_pinned(now),
                    declared=now.version or None,
                    on_disk=None if now.version != installer.known.get(owner, now).version else library.on_disk,
                    loaded=None,
                    altered=False,
                    claimed_by=claims if len(claims) > 1 else (),
                )
            )
    return msgspec.structs.replace(libraries, items=tuple(found))
