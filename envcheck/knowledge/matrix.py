"""The matrix: all rows, and the indexes by which they are found.

A table is decoded when it is first asked for: a question needs few of them, and all take 20 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import msgspec
from msgspec import Raw

from envcheck import bundle
from envcheck.errors import MatrixError
from envcheck.knowledge.compiling import NEEDED
from envcheck.knowledge.copies import rows_folder, updates_folder
from envcheck.knowledge.gpu_names import by_name, find_by_name, name_keys
from envcheck.knowledge.names import canonical, scheme
from envcheck.knowledge.specifier import Specifier, Version, parse_specifier, speaks_of
from envcheck.knowledge.tables import Row, SourceRow, environment, hardware, messages, packages, software
from envcheck.model.versions import ComputeCapability, CudaVersion
from envcheck.sources import Source
from envcheck.text.lazy import Needed

if TYPE_CHECKING:
    from envcheck.model.snapshot import Gpu


R = TypeVar("R", bound=Row)
N = TypeVar(
    "N",
    software.ReleaseRow,
    software.WheelRow,
    software.RequirementRow,
    software.ExtraRequirementRow,
    software.PublishedRow,
)

ONE_AT_A_TIME = RLock()
"""msgspec prepares a Struct at its first decoding; a second thread that decodes it meanwhile ends the process."""


def decode(content: bytes | Raw, wanted: Any) -> Any:
    """``content`` of the compiled matrix as the type ``wanted``; raise MatrixError where it is damaged."""
    try:
        with ONE_AT_A_TIME:
            return msgspec.json.decode(content, type=wanted)
    except msgspec.DecodeError as error:
        raise MatrixError(f"the compiled matrix is damaged, {repair_hint()}: {error}") from error


def repair_hint() -> str:
    """How rows that cannot be read are replaced."""
    updated = rows_folder().startswith(updates_folder() or "\0")
    return "go back with 'envcheck matrix update --back'" if updated else "install envcheck again"


def decode_rows(content: Raw, row: type[R]) -> tuple[R, ...]:
    """The rows of a table. Of newer rows than envcheck's own, what only a newer envcheck can read is left out."""
    try:
        rows: tuple[R, ...] = decode(content, tuple[row, ...])  # type: ignore[valid-type]  # row is an argument
    except MatrixError:
        if rows_folder() == bundle.place("matrix"):
            raise
        return tuple(readable_rows(content, row))
    return rows


def readable_rows(content: Raw, row: type[R]) -> Iterator[R]:
    """The rows of a table of which this envcheck knows every field, and every value."""
    for each in decode(content, list[Raw]):
        try:
            with ONE_AT_A_TIME:
                yield msgspec.json.decode(each, type=row)
        except msgspec.ValidationError:
            continue


class Table(Generic[R]):
    """A table of the TOML files, declared as an attribute of Matrix: the rows of one kind.

    Of a table that is ``grouped``, Matrix has the rows by the name of their component too, as ``ATTRIBUTE_by_name``.
    Of one that is ``shipped``, only the rows that came with envcheck count: their patterns meet hostile text, or the
    probes hold them too.
    """

    def __init__(self, name: str, row: type[R], *, grouped: bool = False, shipped: bool = False) -> None:
        self.name, self.row, self.grouped, self.shipped = name, row, grouped, shipped

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name

    @overload
    def __get__(self, instance: None, owner: type) -> Table[R]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> tuple[R, ...]: ...
    def __get__(self, instance: Any, owner: type) -> Table[R] | tuple[R, ...]:
        if instance is None:
            return self
        if self.grouped:
            rows = tuple(chain.from_iterable(getattr(instance, f"{self.attribute}_by_name").values()))
        else:
            given = instance.given.get(self.name, ())
            rows = decode_rows(given, self.row) if isinstance(given, Raw) else tuple(given)
        instance.__dict__[self.attribute] = rows  # found there from now on
        return rows


class ByName(Mapping[str, tuple[N, ...]]):
    """Rows by the canonical name of their component, those of one name in the order of the matrix."""

    def __init__(self, row: type[N], given: Iterable[N] | Raw) -> None:
        self._row: type[N] = row
        self._encoded: dict[str, Raw] = {}
        self._rows: dict[str, tuple[N, ...]] = {}
        if isinstance(given, Raw):
            self._encoded = decode(given, dict[str, Raw])
        else:
            groups: dict[str, list[N]] = {}
            for one in given:
                groups.setdefault(canonical(one.name), []).append(one)
            self._rows = {name: tuple(group) for name, group in groups.items()}

    def __getitem__(self, name: str) -> tuple[N, ...]:
        found = self._rows.get(name)
        if found is None:
            found = self._rows[name] = decode_rows(self._encoded[name], self._row)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._encoded or name in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._encoded or self._rows)

    def __len__(self) -> int:
        return len(self._encoded or self._rows)


def _grouped(table: str, row: type[N]) -> cached_property[ByName[N]]:
    return cached_property(lambda matrix: ByName(row, matrix.given.get(table, ())))


_NEEDED_BY_MANY = ("python", "gcc")
"""Components without separate rows that rows of releases need: known without decoding all of these."""

_SIMILAR = 0.8  # Least likeness of a name, of 1, to be offered for another one


class Matrix:
    """All rows. Rows do not change, so each index is made once, when it is first asked for."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Each table by its name: its rows, or their JSON."""
        self.given = given

    architectures = Table("architecture", hardware.ArchitectureRow)
    capabilities = Table("capability", hardware.CapabilityRow)
    drivers = Table("driver", hardware.DriverBranchRow)
    driver_libraries = Table("driver-libraries", hardware.DriverLibrariesRow)
    cuda = Table("cuda", hardware.CudaRow)
    gpus = Table("gpu", hardware.GpuRow)
    shared_names = Table("shared_name", hardware.SharedNameRow)
    rates = Table("rate", hardware.RateRow)
    efficiencies = Table("efficiency", hardware.EfficiencyRow)
    measured_models = Table("measured-models", hardware.MeasuredModelsRow)
    links = Table("link", hardware.LinkRow)
    collectives = Table("collective", hardware.CollectiveRow)
    torch = Table("torch", software.TorchRow)
    torch_symbols = Table("torch-symbol", software.TorchSymbolRow)
    extension_builds = Table("extension-build", software.ExtensionBuildRow)
    releases = Table("release", software.ReleaseRow, grouped=True)
    wheels = Table("wheel", software.WheelRow, grouped=True)
    requirements = Table("requirement", software.RequirementRow, grouped=True)
    extra_requirements = Table("extra-requirement", software.ExtraRequirementRow, grouped=True)
    published = Table("published", software.PublishedRow, grouped=True)
    distributions = Table("distribution", software.DistributionRow)
    migs = Table("mig", hardware.MigRow)
    flaws = Table("flaw", software.FlawRow)
    variables = Table("variable", environment.VariableRow)
    caches = Table("cache", environment.CacheRow)
    limits = Table("limit", environment.LimitRow)
    roles = Table("role", packages.RoleRow)
    traits = Table("trait", packages.TraitRow)
    conda = Table("conda", packages.CondaRow)
    conda_builds = Table("conda-build", packages.CondaBuildRow)
    virtual_packages = Table("virtual-package", packages.VirtualPackageRow)
    conda_cpu_builds = Table("conda-cpu-build", packages.CondaCpuBuildRow)
    products = Table("product", packages.ProductRow)
    images = Table("image", software.ImageRow)
    indexes = Table("index", packages.IndexRow)
    image_demands = Table("image-demand", software.ImageDemandRow)
    extras = Table("extra", software.ExtraRow)
    system_packages = Table("system-package", packages.SystemPackageRow)
    installers = Table("installer", packages.InstallerRow)
    plain = Table("plain", packages.PlainRow)
    secrets = Table("secret", messages.SecretRow)
    families = Table("family", packages.FamilyRow, shipped=True)
    fragments = Table("fragment", messages.FragmentRow, shipped=True)
    errors = Table("error", messages.ErrorRow, shipped=True)
    problems = Table("problem", messages.ProblemRow, shipped=True)
    rules = Table("rule", messages.RuleRow, shipped=True)
    remedies = Table("remedy", messages.RemedyRow, shipped=True)
    failures = Table("failure", messages.FailureRow)
    readings = Table("reading", messages.ReadingRow, shipped=True)
    options = Table("option", packages.OptionRow)
    steps = Table("step", messages.StepRow, shipped=True)
    settings = Table("setting", hardware.SettingRow)
    answers = Table("answer", messages.AnswerRow, shipped=True)
    xids = Table("xid", messages.XidRow, shipped=True)
    spoken = Table("spoken", messages.SpokenRow, shipped=True)
    wordings = Table("wording", messages.WordingRow, shipped=True)
    words = Table("word", messages.WordRow)
    translations = Table("translation", messages.TranslationRow)

    @cached_property
    def sources(self) -> dict[str, SourceRow]:
        """By ``file/key``, where file is the TOML file's stem."""
        given = self.given.get("sources", {})
        sources: dict[str, SourceRow] = decode(given, dict[str, SourceRow]) if isinstance(given, Raw) else given
        return sources

    releases_by_name = _grouped("release", software.ReleaseRow)
    wheels_by_name = _grouped("wheel", software.WheelRow)
    requirements_by_name = _grouped("requirement", software.RequirementRow)
    extra_requirements_by_name = _grouped("extra-requirement", software.ExtraRequirementRow)
    published_by_name = _grouped("published", software.PublishedRow)

    @cached_property
    def needed_words(self) -> dict[str, Needed]:
        """What patterns that few texts match need, as the build of the wheel finds it."""
        return decode(self.given[NEEDED], dict[str, Needed]) if NEEDED in self.given else {}

    def cite(self, *rows: Row) -> tuple[Source, ...]:
        keys = dict.fromkeys(key for row in rows for key in row.source)
        found = (self.sources[key] for key in keys if key in self.sources)
        return tuple(Source(title=row.title, address=row.address, read=row.read) for row in found)

    def knows(self, name: str) -> bool:
        """Whether any row covers the component of this canonical name."""
        own = name in _NEEDED_BY_MANY or name in self.releases_by_name or name in self.wheels_by_name
        return own or name in self._named_by_others

    def is_named(self, name: str) -> bool:
        """Whether rows of releases, wheels, roles, traits or flaws are about a distribution of this name."""
        own = (self.releases_by_name, self.wheels_by_name, self._flawed)
        return any(canonical(name) in each for each in own) or bool(self._roles_named(name) or self._traits_named(name))

    @cached_property
    def _flawed(self) -> frozenset[str]:
        return frozenset(row.name for row in self.flaws)

    def is_published(self, name: str) -> bool:
        """Whether a package index is known to have a package of this canonical name."""
        return name in self.published_by_name or name in self.wheels_by_name

    @cached_property
    def _named_by_others(self) -> frozenset[str]:
        """What rows of releases, and wheels, need or bundle; it takes all of them."""
        named = chain(((*row.needs, *row.bundles) for row in self.releases), (row.needs for row in self.requirements))
        return frozenset(chain.from_iterable(named))

    @cached_property
    def cuda_rows(self) -> dict[CudaVersion, hardware.CudaRow]:
        """Ascending."""
        return {version: row for row in self.cuda if (version := CudaVersion.parse(row.version))}

    @cached_property
    def toolkits(self) -> list[CudaVersion]:
        """The CUDA versions with a published toolkit, ascending; drivers report others too."""
        return [version for version, row in self.cuda_rows.items() if row.toolkit]

    @cached_property
    def capability_rows(self) -> dict[ComputeCapability, hardware.CapabilityRow]:
        return {parsed: row for row in self.capabilities if (parsed := ComputeCapability.parse(row.capability))}

    @cached_property
    def gpus_by_name(self) -> dict[str, hardware.GpuRow]:
        return by_name(self.gpus)

    @cached_property
    def distribution_names(self) -> frozenset[str]:
        """The Linux distributions that a question may name, as components."""
        return frozenset(row.component for row in self.distributions if row.component)

    @cached_property
    def wheels_of_libraries(self) -> dict[str, str]:
        """By component, the distribution on PyPI that holds the library, with CUDA's major for ``{}``."""
        return {row.kind: row.told_by for row in self.families if row.told_by}

    def has_trait(self, framework: str, *traits: packages.Trait) -> bool:
        """Whether a framework of this name is known to behave so, in one of these ways."""
        rows = self._traits_named(framework)  # none for nearly all that is asked about
        return bool(rows) and any(row.trait in traits for row in rows)

    def names_with(self, trait: packages.Trait) -> list[str]:
        return [name for row in self.traits if row.trait == trait for name in row.names]

    def projects_with(self, trait: packages.Trait) -> list[str]:
        return list(dict.fromkeys(row.project for row in self.traits if row.trait == trait))

    def extension_build(self, name: str) -> software.ExtensionBuildRow:
        """How an extension of this name is built; an empty row where none tells."""
        empty = software.ExtensionBuildRow(names=(name,), source=())
        return next((row for row in self.extension_builds if name in row.names), empty)

    def role_of(self, name: str) -> packages.RoleRow | None:
        """What people install a distribution of this name for."""
        return next(iter(self._roles_named(name)), None)

    def has_role(self, name: str, *roles: str) -> bool:
        """Whether people install a distribution of this name for one of these."""
        row = self.role_of(name)
        return row is not None and row.role in roles

    @cached_property
    def _roles_named(self) -> Callable[[str], tuple[packages.RoleRow, ...]]:
        return _by_pattern(self.roles)

    def title_of(self, name: str) -> str:
        return next((row.title for row in self.roles if row.name == name and row.title), name)

    @cached_property
    def projects(self) -> Callable[[str, packages.Trait], list[str]]:
        """Finds the projects whose code makes a framework of this name behave so; none where it does not.

        Rules ask it 20,000 times about one machine: the answers are kept.
        """
        named = self._traits_named

        @lru_cache(maxsize=1 << 16)  # of any machine's names, and of a repository's plans
        def found(framework: str, trait: packages.Trait) -> list[str]:
            rows = named(framework)  # none for nearly all that is asked about
            return list(dict.fromkeys(row.project for row in rows if row.trait == trait)) if rows else []

        return found

    @cached_property
    def _traits_named(self) -> Callable[[str], tuple[packages.TraitRow, ...]]:
        return _by_pattern(self.traits)

    def rows_of(self, name: str) -> tuple[software.ReleaseRow, ...]:
        return self.releases_by_name.get(name, ())

    def rows_for(self, name: str, version: Version) -> list[software.ReleaseRow]:
        """The rows that hold for everything that a version stands for."""
        return [row for row in self.rows_of(name) if speaks_of(row.versions, version) == "all"]

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
        needed = [row.needs[name] for row in self.releases if name in row.needs]
        needed += [row.versions for row in self.wheels_by_name.get(name, ())]
        return sorted({*self.known_versions(name), *_releases(name, needed)}, key=_age)

    def admitted_toolkits(self, spec: Specifier) -> list[CudaVersion]:
        """The published toolkits of which a specifier admits any release, ascending."""
        return [version for version in self.toolkits if spec.cover(Version(tuple(version))) != "none"]

    def find_gpu(self, name: str) -> hardware.GpuRow | None:
        """The model called ``name``; None when the matrix has none of that name, or the name says too little."""
        return find_by_name(self.gpus_by_name, name)

    def find_shared_name(self, name: str) -> hardware.SharedNameRow | None:
        """The GPUs of which any may be meant by ``name``, where it says too little."""
        (wanted,) = name_keys([name])
        return next((row for row in self.shared_names if wanted in name_keys((row.name, *row.aliases))), None)

    def find_gpu_by_pci_id(self, device_id: str) -> hardware.GpuRow | None:
        wanted = device_id.lower()
        return next((row for row in self.gpus if wanted in row.device_ids), None)

    def model_of(self, gpu: Gpu) -> hardware.GpuRow | None:
        """The model of a GPU: by its PCI device id, which names the chip, else by what it calls itself."""
        by_id = self.find_gpu_by_pci_id(gpu.pci_device_id) if gpu.pci_device_id else None
        return by_id or (self.find_gpu(gpu.name) if gpu.name else None)


TABLES = {table.name: table for table in vars(Matrix).values() if isinstance(table, Table)}
"""Every table of the matrix, by its name in the TOML files."""


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


NAMED = TypeVar("NAMED", packages.RoleRow, packages.TraitRow)


def _by_pattern(rows: Sequence[NAMED]) -> Callable[[str], tuple[NAMED, ...]]:
    """Finds the rows among whose ``names`` a name is, or a pattern of its beginning (``is_named``), in order."""
    exact: dict[str, list[int]] = {}
    beginnings: list[tuple[str, int]] = []
    for place, row in enumerate(rows):
        for name in row.names:
            exact.setdefault(name, []).append(place)
            beginnings += [(name[:-1], place)] if name.endswith("*") else []

    @lru_cache(maxsize=1 << 14)  # of any machine's names
    def found(name: str) -> tuple[NAMED, ...]:
        places = {*exact.get(name, ()), *(place for beginning, place in beginnings if name.startswith(beginning))}
        return tuple(rows[place] for place in sorted(places))

    return found
