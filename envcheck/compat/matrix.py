"""The matrix: all rows, and the indexes by which they are found."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from envcheck.compat.decoding import ByName, Table, decode
from envcheck.compat.gpu_names import by_name, find_by_name, name_keys
from envcheck.compat.names import canonical, scheme
from envcheck.compat.specifier import Specifier, Version, covered, parse_specifier
from envcheck.compat.tables import (
    AnswerRow,
    ArchitectureRow,
    CapabilityRow,
    CollectiveRow,
    CondaBuildRow,
    CondaCpuBuildRow,
    CondaRow,
    CudaRow,
    DistributionRow,
    DriverBranchRow,
    DriverLibrariesRow,
    EfficiencyRow,
    ErrorRow,
    ExtraRow,
    FailureRow,
    FamilyRow,
    FlawRow,
    FragmentRow,
    GpuRow,
    ImageRow,
    IndexRow,
    InstallerRow,
    LinkRow,
    MigRow,
    ProblemRow,
    ProductRow,
    PublishedRow,
    RateRow,
    ReleaseRow,
    RequirementRow,
    RoleRow,
    Row,
    SecretRow,
    SettingRow,
    SharedNameRow,
    SourceRow,
    SpokenRow,
    StepRow,
    SystemPackageRow,
    TorchRow,
    Trait,
    TraitRow,
    TranslationRow,
    VariableRow,
    WheelRow,
    WordRow,
    XidRow,
    is_named,
)
from envcheck.sources import Source
from envcheck.versions import ComputeCapability, CudaVersion

if TYPE_CHECKING:
    from envcheck.snapshot import Gpu

_NEEDED_BY_MANY = ("python", "gcc")
"""Components without separate rows that rows of releases need: known without decoding all of these."""

_SIMILAR = 0.8
"""Least likeness of a name, of 1, to be offered for another one."""


class Matrix:
    """All rows. Rows do not change, so each index is made once, when it is first asked for."""

    def __init__(self, **given: Any) -> None:
        """Each table by its name: its rows, or their JSON."""
        self.given = given

    architectures = Table(ArchitectureRow)
    capabilities = Table(CapabilityRow)
    drivers = Table(DriverBranchRow)
    driver_libraries = Table(DriverLibrariesRow)
    cuda = Table(CudaRow)
    gpus = Table(GpuRow)
    shared_names = Table(SharedNameRow)
    rates = Table(RateRow)
    efficiencies = Table(EfficiencyRow)
    collectives = Table(CollectiveRow)
    links = Table(LinkRow)
    secrets = Table(SecretRow)
    torch = Table(TorchRow)
    migs = Table(MigRow)
    flaws = Table(FlawRow)
    variables = Table(VariableRow)
    roles = Table(RoleRow)
    traits = Table(TraitRow)
    conda = Table(CondaRow)
    conda_builds = Table(CondaBuildRow)
    conda_cpu_builds = Table(CondaCpuBuildRow)
    products = Table(ProductRow)
    distributions = Table(DistributionRow)
    images = Table(ImageRow)
    indexes = Table(IndexRow)
    extras = Table(ExtraRow)
    system_packages = Table(SystemPackageRow)
    installers = Table(InstallerRow)
    families = Table(FamilyRow)
    fragments = Table(FragmentRow)
    errors = Table(ErrorRow)
    problems = Table(ProblemRow)
    failures = Table(FailureRow)
    steps = Table(StepRow)
    settings = Table(SettingRow)
    answers = Table(AnswerRow)
    xids = Table(XidRow)
    spoken = Table(SpokenRow)
    words = Table(WordRow)
    translations = Table(TranslationRow)

    @cached_property
    def sources(self) -> dict[str, SourceRow]:
        """By ``file/key``, where file is the TOML file's stem."""
        given = self.given.get("sources", {})
        sources: dict[str, SourceRow] = decode(given, dict[str, SourceRow]) if isinstance(given, Raw) else given
        return sources

    @cached_property
    def releases(self) -> tuple[ReleaseRow, ...]:
        return tuple(chain.from_iterable(self.releases_by_name.values()))

    @cached_property
    def wheels(self) -> tuple[WheelRow, ...]:
        return tuple(chain.from_iterable(self.wheels_by_name.values()))

    @cached_property
    def requirements(self) -> tuple[RequirementRow, ...]:
        return tuple(chain.from_iterable(self.requirements_by_name.values()))

    @cached_property
    def published(self) -> tuple[PublishedRow, ...]:
        return tuple(chain.from_iterable(self.published_by_name.values()))

    @cached_property
    def releases_by_name(self) -> ByName[ReleaseRow]:
        return ByName(ReleaseRow, self.given.get("releases", ()))

    @cached_property
    def wheels_by_name(self) -> ByName[WheelRow]:
        return ByName(WheelRow, self.given.get("wheels", ()))

    @cached_property
    def requirements_by_name(self) -> ByName[RequirementRow]:
        return ByName(RequirementRow, self.given.get("requirements", ()))

    @cached_property
    def published_by_name(self) -> ByName[PublishedRow]:
        return ByName(PublishedRow, self.given.get("published", ()))

    def cite(self, *rows: Row) -> tuple[Source, ...]:
        """The sources of ``rows``, each once."""
        keys = dict.fromkeys(key for row in rows for key in row.source)
        found = (self.sources[key] for key in keys if key in self.sources)
        return tuple(Source(title=row.title, address=row.address, read=row.read) for row in found)

    def knows(self, name: str) -> bool:
        """Whether any row covers the component of this canonical name."""
        own = name in _NEEDED_BY_MANY or name in self.releases_by_name or name in self.wheels_by_name
        return own or name in self._named_by_others

    @cached_property
    def _named_by_others(self) -> frozenset[str]:
        """What rows of releases, and wheels, need or bundle; it takes all of them."""
        named = chain(((*row.needs, *row.bundles) for row in self.releases), (row.needs for row in self.requirements))
        return frozenset(canonical(key) for keys in named for key in keys)

    @cached_property
    def cuda_rows(self) -> dict[CudaVersion, CudaRow]:
        """The rows of CUDA versions, ascending."""
        return {version: row for row in self.cuda if (version := CudaVersion.parse(row.version))}

    @cached_property
    def toolkits(self) -> list[CudaVersion]:
        """The CUDA versions with a published toolkit, ascending; drivers report others too."""
        return [version for version, row in self.cuda_rows.items() if row.toolkit]

    @cached_property
    def capability_rows(self) -> dict[ComputeCapability, CapabilityRow]:
        return {parsed: row for row in self.capabilities if (parsed := ComputeCapability.parse(row.capability))}

    @cached_property
    def gpus_by_name(self) -> dict[str, GpuRow]:
        """GPU models by the keys of their names and aliases."""
        return by_name(self.gpus)

    @cached_property
    def distribution_names(self) -> frozenset[str]:
        """The Linux distributions that a question may name, as components."""
        return frozenset(row.component for row in self.distributions if row.component)

    @cached_property
    def wheels_of_libraries(self) -> dict[str, str]:
        """By component, the distribution on PyPI that holds the library, with CUDA's major for ``{}``."""
        return {row.kind: row.told_by for row in self.families if row.told_by}

    @cached_property
    def _by_trait(self) -> dict[Trait, tuple[dict[str, list[str]], list[tuple[str, str]]]]:
        """The projects of each trait: by whole names, and beside what a name begins with."""
        found: dict[Trait, tuple[dict[str, list[str]], list[tuple[str, str]]]] = {}
        for row in self.traits:
            whole, beginnings = found.setdefault(row.trait, ({}, []))
            for pattern in row.names:
                if pattern.endswith("*"):
                    beginnings.append((pattern[:-1], row.project))
                else:
                    whole.setdefault(pattern, []).append(row.project)
        return found

    def has_trait(self, framework: str, trait: Trait) -> bool:
        """Whether a framework of this name is known to behave so."""
        return bool(self.projects(framework, trait))

    def names_with(self, trait: Trait) -> list[str]:
        """The names, or patterns of names, of the frameworks that behave so."""
        return [name for row in self.traits if row.trait == trait for name in row.names]

    def projects_with(self, trait: Trait) -> list[str]:
        """The projects whose frameworks behave so."""
        return list(dict.fromkeys(row.project for row in self.traits if row.trait == trait))

    def role_of(self, name: str) -> RoleRow | None:
        """What people install a distribution of this name for."""
        return next((row for row in self.roles if is_named(name, row.names)), None)

    def title_of(self, name: str) -> str:
        """What a project of this name is called in text."""
        return next((row.title for row in self.roles if row.name == name and row.title), name)

    def projects(self, framework: str, trait: Trait) -> list[str]:
        """The project whose code makes a framework of this name behave so; none where it does not."""
        whole, beginnings = self._by_trait.get(trait, ({}, []))
        found = [*whole.get(framework, ()), *(project for start, project in beginnings if framework.startswith(start))]
        return list(dict.fromkeys(found)) if len(found) > 1 else found

    def rows_of(self, name: str) -> tuple[ReleaseRow, ...]:
        """The rows of releases of a component, by its canonical name."""
        return self.releases_by_name.get(name, ())

    def rows_for(self, name: str, version: Version) -> list[ReleaseRow]:
        """The rows that hold for everything that a version stands for."""
        return [row for row in self.rows_of(name) if covered(row.versions, version) == "all"]

    def similar_name(self, name: str) -> str | None:
        """The known component whose name is spelled most nearly so."""
        from difflib import get_close_matches  # noqa: PLC0415 - few questions need it

        known = self._named_by_others.union(self.releases_by_name, self.wheels_by_name)
        return next(iter(get_close_matches(name, sorted(known), 1, _SIMILAR)), None)

    def known_versions(self, name: str) -> list[Version]:
        """The versions that rows of a component name, ascending; those between them are covered by the same rows."""
        if name == "torch":
            return _releases(name, [f"=={row.version}" for row in self.torch])
        return _releases(name, [row.versions for row in self.rows_of(name)])

    def named_versions(self, name: str) -> list[Version]:
        """The known versions, those that other rows need, and those of which PyPI has wheels, ascending."""
        needed = [spec for row in self.releases for key, spec in row.needs.items() if canonical(key) == name]
        needed += [row.versions for row in self.wheels_by_name.get(name, ())]
        return sorted({*self.known_versions(name), *_releases(name, needed)}, key=_age)

    def admitted_toolkits(self, spec: Specifier) -> list[CudaVersion]:
        """The published toolkits of which a specifier admits any release, ascending."""
        return [version for version in self.toolkits if spec.cover(Version(tuple(version))) != "none"]

    def find_gpu(self, name: str) -> GpuRow | None:
        """The model called ``name``; None when the matrix has none of that name, or the name says too little."""
        return find_by_name(self.gpus_by_name, name)

    def find_shared_name(self, name: str) -> SharedNameRow | None:
        """The GPUs of which any may be meant by ``name``, where it says too little."""
        (wanted,) = name_keys([name])
        return next((row for row in self.shared_names if wanted in name_keys((row.name, *row.aliases))), None)

    def find_gpu_by_pci_id(self, device_id: str) -> GpuRow | None:
        """The model of a PCI device id (``10de:2330``), where one model alone has it."""
        wanted = device_id.lower()
        return next((row for row in self.gpus if wanted in row.device_ids), None)

    def model_of(self, gpu: Gpu) -> GpuRow | None:
        """The model of a GPU: by its PCI device id, which names the chip, else by what it calls itself."""
        by_id = self.find_gpu_by_pci_id(gpu.pci_device_id) if gpu.pci_device_id else None
        return by_id or (self.find_gpu(gpu.name) if gpu.name else None)


ROW_TYPES: dict[str, type[Row]] = {
    **{name: table.row for name, table in vars(Matrix).items() if isinstance(table, Table)},
    "releases": ReleaseRow,
    "wheels": WheelRow,
    "requirements": RequirementRow,
    "published": PublishedRow,
}
"""By table of Matrix: the type of its rows."""


def _releases(name: str, texts: Iterable[str]) -> list[Version]:
    """The versions that specifiers name and admit, with as many numbers as people write: JetPack 6.1 for 6.1.0."""
    numbering, found = scheme(name), set()
    for bound in (bound for text in texts for bound in parse_specifier(text).bounds):
        if bound.operator in ("==", ">=", "<="):
            numbers = bound.numbers
            while len(numbers) > numbering.numbers and numbers[-1] == 0:
                numbers = numbers[:-1]
            found.add(Version(numbers, post=bound.post, scheme=numbering))
    return sorted(found, key=_age)


def _age(version: Version) -> tuple[tuple[int, ...], int]:
    return version.numbers, -1 if version.post is None else version.post
