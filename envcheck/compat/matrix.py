"""The matrix: all rows, and the indexes by which they are found.

Without ``from __future__ import annotations``, as in ``envcheck.snapshot``: it is decoded.
"""

from collections.abc import Iterable
from functools import cached_property

import msgspec

from envcheck.compat.gpu_names import find_by_name, name_keys
from envcheck.compat.names import canonical, scheme
from envcheck.compat.specifier import Specifier, Version, parse_specifier
from envcheck.compat.tables import (
    AnswerRow,
    ArchitectureRow,
    CapabilityRow,
    CollectiveRow,
    CondaBuildRow,
    CondaRow,
    CudaRow,
    DriverBranchRow,
    EfficiencyRow,
    ErrorRow,
    ExtraRow,
    FamilyRow,
    FlawRow,
    FragmentRow,
    GpuRow,
    ImageRow,
    IndexRow,
    LinkRow,
    MigRow,
    ProductRow,
    RateRow,
    ReleaseRow,
    RoleRow,
    Row,
    SecretRow,
    SettingRow,
    SourceRow,
    SpokenRow,
    StepRow,
    TorchRow,
    Trait,
    TraitRow,
    VariableRow,
    WheelRow,
    XidRow,
    is_named,
)
from envcheck.sources import Source
from envcheck.versions import ComputeCapability, CudaVersion

_NAMED_ELSEWHERE = ("torch", "python", "cudnn", "nccl", "triton", "tensorrt", "gcc")
"""Components of which other rows than those of releases, or relations, speak."""

_SIMILAR = 0.8
"""Least likeness of a name, of 1, to be offered for another one."""


class Matrix(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All rows. Rows do not change, so each index is made once, when it is first asked for."""

    sources: dict[str, SourceRow] = {}
    """By ``file/key``, where file is the TOML file's stem."""
    architectures: tuple[ArchitectureRow, ...] = ()
    capabilities: tuple[CapabilityRow, ...] = ()
    drivers: tuple[DriverBranchRow, ...] = ()
    cuda: tuple[CudaRow, ...] = ()
    gpus: tuple[GpuRow, ...] = ()
    rates: tuple[RateRow, ...] = ()
    efficiencies: tuple[EfficiencyRow, ...] = ()
    collectives: tuple[CollectiveRow, ...] = ()
    links: tuple[LinkRow, ...] = ()
    secrets: tuple[SecretRow, ...] = ()
    torch: tuple[TorchRow, ...] = ()
    releases: tuple[ReleaseRow, ...] = ()
    wheels: tuple[WheelRow, ...] = ()
    migs: tuple[MigRow, ...] = ()
    flaws: tuple[FlawRow, ...] = ()
    variables: tuple[VariableRow, ...] = ()
    roles: tuple[RoleRow, ...] = ()
    traits: tuple[TraitRow, ...] = ()
    conda: tuple[CondaRow, ...] = ()
    conda_builds: tuple[CondaBuildRow, ...] = ()
    products: tuple[ProductRow, ...] = ()
    images: tuple[ImageRow, ...] = ()
    indexes: tuple[IndexRow, ...] = ()
    extras: tuple[ExtraRow, ...] = ()
    families: tuple[FamilyRow, ...] = ()
    fragments: tuple[FragmentRow, ...] = ()
    errors: tuple[ErrorRow, ...] = ()
    steps: tuple[StepRow, ...] = ()
    settings: tuple[SettingRow, ...] = ()
    answers: tuple[AnswerRow, ...] = ()
    xids: tuple[XidRow, ...] = ()
    spoken: tuple[SpokenRow, ...] = ()

    def cite(self, *rows: Row) -> tuple[Source, ...]:
        """The sources of ``rows``, each once."""
        keys = dict.fromkeys(key for row in rows for key in row.source)
        found = (self.sources[key] for key in keys if key in self.sources)
        return tuple(Source(title=row.title, address=row.address, read=row.read) for row in found)

    @cached_property
    def releases_by_name(self) -> dict[str, list[ReleaseRow]]:
        """The rows of releases, by the canonical name of the component."""
        found: dict[str, list[ReleaseRow]] = {}
        for row in self.releases:
            found.setdefault(canonical(row.name), []).append(row)
        return found

    @cached_property
    def wheels_by_name(self) -> dict[str, list[WheelRow]]:
        """The rows of wheels, by the canonical name of the component."""
        found: dict[str, list[WheelRow]] = {}
        for row in self.wheels:
            found.setdefault(canonical(row.name), []).append(row)
        return found

    @cached_property
    def component_names(self) -> frozenset[str]:
        """The components of which any row speaks, be it only as something that another one needs."""
        others = {canonical(key) for row in self.releases for key in (*row.needs, *row.bundles)}
        return frozenset(others.union(_NAMED_ELSEWHERE, self.releases_by_name, self.wheels_by_name))

    @cached_property
    def cuda_rows(self) -> dict[CudaVersion, CudaRow]:
        """The rows of CUDA versions, ascending."""
        return {version: row for row in self.cuda if (version := CudaVersion.parse(row.version))}

    @cached_property
    def toolkits(self) -> list[CudaVersion]:
        """The CUDA versions with a published toolkit, ascending; drivers report others besides."""
        return [version for version, row in self.cuda_rows.items() if row.toolkit]

    @cached_property
    def capability_rows(self) -> dict[ComputeCapability, CapabilityRow]:
        return {parsed: row for row in self.capabilities if (parsed := ComputeCapability.parse(row.capability))}

    @cached_property
    def gpus_by_name(self) -> dict[str, GpuRow]:
        """GPU models by the keys of their names and aliases."""
        named = [(name, row) for row in self.gpus for name in (row.name, *row.aliases)]
        keys = name_keys(name for name, _ in named)
        return {key: row for key, (_, row) in zip(keys, named, strict=True)}

    def has_trait(self, framework: str, trait: Trait) -> bool:
        """Whether a framework of this name is known to behave so."""
        return any(row.trait == trait and is_named(framework, row.names) for row in self.traits)

    def rows_of(self, name: str) -> list[ReleaseRow]:
        """The rows of releases of a component, by its canonical name."""
        return self.releases_by_name.get(name, [])

    def rows_for(self, name: str, version: Version) -> list[ReleaseRow]:
        """The rows that hold for everything that a version stands for."""
        return [row for row in self.rows_of(name) if parse_specifier(row.versions).cover(version) == "all"]

    def similar_name(self, name: str) -> str | None:
        """The known component whose name is spelled most nearly so."""
        from difflib import get_close_matches  # noqa: PLC0415 - few questions need it

        return next(iter(get_close_matches(name, sorted(self.component_names), 1, _SIMILAR)), None)

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

    def find_gpu_by_pci_id(self, device_id: str) -> GpuRow | None:
        """The model of a PCI device id (``10de:2330``), where one model alone has it."""
        wanted = device_id.lower()
        return next((row for row in self.gpus if wanted in row.device_ids), None)


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
