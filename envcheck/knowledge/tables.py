"""The rows of the matrix. Every row has an id, a source and the day it was read; versions are kept as text.

A row is knowledge as its source states it. Whatever can be computed from rows (what a driver still supports, the
newest toolkit for a GPU) is computed by the relations, never typed in.

Without ``from __future__ import annotations``, as in ``envcheck.model.snapshot``: rows are decoded.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec

from envcheck.sources import Confidence

Os: TypeAlias = Literal["linux", "windows", "macos", "wsl"]
"""Operating systems. WSL has the Windows driver (and its numbers) under Linux programs."""

Machine: TypeAlias = Literal["x86_64", "aarch64"]

Precision: TypeAlias = Literal["fp64", "fp64_tensor", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4"]


class ByPrecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A count of operations for each precision, a fused multiply-add being two. Dense: never with sparsity.

    ``fp32`` and ``fp64`` are those of the vector units. ``fp16``, ``bf16`` and ``fp8`` go through tensor cores and
    accumulate in FP32; without tensor cores ``fp16`` is that of the vector units, and ``int8`` that of DP4A.
    """

    fp64: float | None = None
    fp64_tensor: float | None = None
    fp32: float | None = None
    tf32: float | None = None
    fp16: float | None = None
    bf16: float | None = None
    fp8: float | None = None
    int8: float | None = None
    fp4: float | None = None

    def of(self, precision: Precision) -> float | None:
        value: float | None = getattr(self, precision)
        return value


class SheetNvLink(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """NVLink of a GPU, all links together."""

    version: int
    links: int
    bandwidth: float
    """Bytes per second in one direction; data sheets print the sum of both."""


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A piece of knowledge."""

    source: tuple[str, ...]
    """Keys of the sources that state it, in ``[sources.KEY]`` of the same file."""
    confidence: Confidence = "high"
    note: str = ""

    id_of: ClassVar[str]
    """``cuda/{0.version}``: how a row of the table makes its id."""

    @property
    def id(self) -> str:
        """Names the row in reports; unique in its table."""
        return self.id_of.format(self)


class SourceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page, or a metadata field of a distribution on PyPI, and the day it was read."""

    title: str
    address: str
    read: str


class ArchitectureRow(Row, frozen=True, kw_only=True):
    """A GPU generation and the driver branches that drive it."""

    id_of = "architecture/{0.name}"
    name: str
    """``kepler`` … ``blackwell``."""
    capabilities: tuple[str, ...]
    """Compute capabilities, oldest first: ``7.5``."""
    first_branch: int | None = None
    """First Linux driver branch that supports any GPU of it."""
    last_branch: int | None = None
    """Last one; ``None`` while current branches do."""
    kernel_module: Literal["proprietary", "open", "both"] | None = None
    """Which flavour of the kernel module can drive it; exceptions are in ``CapabilityRow`` and ``GpuRow``."""


class CapabilityRow(Row, frozen=True, kw_only=True):
    """A compute capability."""

    id_of = "capability/{0.capability}"
    capability: str
    architecture: str
    tegra: bool = False
    """Integrated in a Tegra SoC: its cubins do not serve discrete GPUs, nor theirs it."""
    first_branch: int | None = None
    """First Linux driver branch that supports a GPU of it, where later than its architecture's."""
    open_module_only: bool = False
    family: tuple[str, ...] = ()
    """Capabilities on which its ``f`` code runs."""
    renamed_to: str | None = None
    """The capability that later toolkits call it."""
    own_from: str | None = None
    """The first CUDA with its target ``sm_90a``; None where there is no such target."""
    family_from: str | None = None
    """The first CUDA with its target ``sm_100f``."""


class DriverBranchRow(Row, frozen=True, kw_only=True):
    """A driver branch (R550): the newest CUDA that it supports, and how long it is maintained."""

    branch: int
    os: Literal["linux", "windows"] = "linux"
    until: int | None = None
    """Highest first number of its releases on Windows, where R550 covers 550 to 553."""
    cuda: str | None = None
    """Newest CUDA version that its libcuda supports."""
    kind: Literal["long-term", "production", "new-feature", "legacy"] | None = None
    ended: str | None = None
    """The day (or month) its support ended or ends."""
    first: str | None = None
    """Its first release, where that is known."""
    capabilities: tuple[str, ...] = ()
    """The compute capabilities that it supports, of an old branch about whose CUDA nothing is known."""
    developer: str = ""
    """Specifier of its releases for developers of Vulkan: their numbers do not show which GPUs they support."""

    @property
    def id(self) -> str:
        return f"driver/{self.branch}" if self.os == "linux" else f"driver/{self.branch}-{self.os}"


class DriverLibrariesRow(Row, frozen=True, kw_only=True):
    """How the driver's libraries of one release are installed beside a kernel module that is there."""

    id_of = "driver-libraries/{0.family}"
    family: Literal["ubuntu", "debian", "fedora", "suse", "any"]
    """The distributions, by the name of their family; ``any``: NVIDIA's installer, for all of them."""
    command: tuple[str, ...]
    """With ``{release}``, ``{branch}`` and ``{machine}`` for the driver's and the processor's."""


class CudaUpdate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A release of a CUDA minor whose least driver is another one than that of the releases before it."""

    release: str
    """Its three numbers, as in ``8.0.61``; what it says holds up to the next one."""
    driver_linux: str | None = None
    driver_windows: str | None = None


class CudaRow(Row, frozen=True, kw_only=True):
    """A CUDA toolkit release (major.minor)."""

    id_of = "cuda/{0.version}"
    version: str
    driver_linux: str | None = None
    """Least Linux driver for programs built with it (from CUDA 11 on: for any minor of the major)."""
    driver_windows: str | None = None
    disputed_linux: str | None = None
    """A lower minimum that another of NVIDIA's documents states: between the two, it is not known."""
    disputed_windows: str | None = None
    updates: tuple[CudaUpdate, ...] = ()
    """The releases of the minor, oldest first, where their least drivers differ."""
    releases: tuple[str, ...] = ()
    """All releases of the minor, oldest first, by three numbers."""
    bundled_driver: str | None = None
    """Linux driver that its first release came with; it knows everything the toolkit can produce."""
    ptx: str | None = None
    """PTX ISA version that it writes."""
    targets: tuple[str, ...] = ()
    """Compute capabilities that it can compile for, as ``sm_90``."""
    disputed_targets: tuple[str, ...] = ()
    """Those for which one source says that it does, another that a later one does first."""
    toolkit: bool = True
    """False for a version that only drivers report (12.7)."""


class GpuRow(Row, frozen=True, kw_only=True):
    """A GPU model, with the figures of its data sheet. A row without ``memory`` stands for all variants of a model: it
    has only the figures that they share.
    """

    name: str
    """Marketing name without vendor, as in ``H100 80GB HBM3``."""
    aliases: tuple[str, ...] = ()
    compute_capability: str
    device_ids: tuple[str, ...] = ()
    """PCI device ids as ``10de:2330``."""
    memory: int | None = None
    """Bytes as sold (the driver shows a little less)."""
    bandwidth: float | None = None
    """Bandwidth of its memory, in bytes per second."""
    sms: int | None = None
    """Multiprocessors."""
    clock: float | None = None
    """Boost clock of its data sheet, in Hz; the driver's maximum may be higher."""
    tensor_clock: float | None = None
    """The lower clock that its tensor peaks refer to, where there is one."""
    tensor_cores: bool = True
    """False for a model without, where others of its compute capability have them."""
    peaks: ByPrecision | None = None
    """Operations per second, dense, of the whole GPU (of one GPU where a board has several)."""
    pcie_generation: int | None = None
    pcie_width: int | None = None
    """Lanes."""
    nvlink: SheetNvLink | None = None
    power: float | None = None
    """Default power limit in watts (of the board, where it has several GPUs)."""
    sheet_confidence: Confidence = "high"
    """How sure the figures are (memory to power), where that differs from the rest."""
    kind: Literal["data-center", "workstation", "geforce", "tegra", "other"] | None = None
    superchip: bool = False
    """Whether it shares a module with a processor of Arm, in a system that is no Jetson."""
    first_drivers: tuple[str, ...] = ()
    """The first Linux release that supports it, and the first of each later branch that began without it; ascending.
    Empty where the generation's first branch will do, or none is documented."""
    added_by: str = ""
    """The Linux release that adds it to its branch, where no first release of all branches is documented: older
    branches may have been given it later."""
    lacked_by: str = ""
    """The release before that one in the same document, which lacks it; of those between nobody says anything."""
    listed_from: str = ""
    """The first Linux release whose list of GPUs has it, where it came later than its generation: nobody says whether
    earlier ones support it."""
    last_branch: int | None = None
    """The last Linux branch that supports it, where its generation has later ones."""
    open_module_only: bool = False
    """Whether it needs the open kernel module though other models of its compute capability do not."""
    jetpack: str = ""
    """Specifier of the JetPack releases that support a module, where others of its compute capability have more."""

    @property
    def id(self) -> str:
        return f"gpu/{re.sub('[^a-z0-9]+', '-', self.name.lower()).strip('-')}"


class SharedNameRow(Row, frozen=True, kw_only=True):
    """A name under which GPUs of several compute capabilities have been sold, or that people write for several."""

    id_of = "shared-name/{0.name}"
    name: str
    aliases: tuple[str, ...] = ()
    compute_capabilities: tuple[str, ...]


class RateRow(Row, frozen=True, kw_only=True):
    """What a multiprocessor does in a clock: a peak is the number of multiprocessors, times the clock, times that."""

    compute_capability: str
    variant: Literal["", "geforce", "no-tensor-cores"] = ""
    """``geforce`` where GeForce models do less than others, ``no-tensor-cores`` for models without."""
    cores: int
    """FP32 units, which NVML and data sheets count as cores."""
    operations: ByPrecision
    """Operations per clock of one multiprocessor."""

    @property
    def id(self) -> str:
        return f"rate/{self.compute_capability}" + (f"-{self.variant}" if self.variant else "")


class EfficiencyRow(Row, frozen=True, kw_only=True):
    """What share of its ceiling a measured quantity reaches on healthy GPUs."""

    quantity: str
    """Name of the measurement: ``gemm``, ``device-memory-copy``, ``host-to-device`` …"""
    method: str
    """What does it: ``cublasLt``, ``kernel``, ``mma.sync``, ``copy engine``."""
    architecture: str = ""
    """Empty: every one that no other row covers."""
    gpu: str = ""
    """A model's name, where it has a band of its own; empty: every GPU of the architecture."""
    precision: str = ""
    variant: str = ""
    """``Measurement.variant``; empty: every one that no other row covers."""
    run: Literal["", "burst", "sustained"] = ""
    """Whether it holds for runs too short to reach the power limit, or for those that go on at it; empty: for both."""
    low: float
    """Least share that is expected."""
    high: float
    """Greatest share that was seen."""
    wide: bool = False
    """Whether it is only a floor, because it was never measured here."""

    @property
    def id(self) -> str:
        words = (self.quantity, self.method, self.precision, self.variant, self.architecture, self.gpu, self.run)
        return f"efficiency/{'-'.join(word.replace(', ', '-').replace(' ', '-') for word in words if word)}"


class MeasuredModelsRow(Row, frozen=True, kw_only=True):
    """The models on which the bands of an architecture were measured; its other models have the floors."""

    id_of = "measured-models/{0.architecture}"
    architecture: str
    gpus: tuple[str, ...]
    """Names of models."""


class CollectiveRow(Row, frozen=True, kw_only=True):
    """What share of its links' bandwidth a collective operation reaches through NCCL on healthy machines."""

    operation: str
    """Name of the measurement: ``nccl-all-reduce`` …"""
    link: Literal["nvswitch", "nvlink", "pcie", "host", "network"]
    """What joins the GPUs: NVLink through a switch or directly, PCI Express, host memory, a network."""
    architecture: str = ""
    """Empty: every one that no other row covers."""
    least: int
    """Fewest GPUs that it holds for."""
    most: int
    """Most GPUs that it holds for."""
    in_switch: bool = False
    """Whether it holds for sums inside the switch (NVLink SHARP), or for those on the GPUs."""
    size: int
    """Bytes from which on it holds, by nccl-tests' definition of size."""
    low: float
    """Least share that is expected of the bus bandwidth by nccl-tests' definition."""
    high: float
    """Greatest share that was seen."""
    wide: bool = False
    """Whether it is only a floor, because it was never measured here."""

    latency: float | None = None
    """Seconds that the smallest size takes at most where each GPU has a process: twice the greatest that was seen,
    since the host's processor counts too; None: not measured."""

    @property
    def id(self) -> str:
        words = (self.operation, self.link, self.architecture, f"{self.least}-{self.most}", self.in_switch and "switch")
        return f"collective/{'-'.join(word for word in words if word)}"


class LinkRow(Row, frozen=True, kw_only=True):
    """What a lane of PCI Express carries in one direction, after the line's own coding."""

    id_of = "link/pcie-{0.generation}"
    generation: int
    lane: float
    """Bytes per second."""


class TorchBuild(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One build of a PyTorch release."""

    cuda: str
    """CUDA version, as ``12.4``; empty for the CPU build."""
    targets: tuple[str, ...] = ()
    """What it holds GPU code for: ``sm_90``, ``compute_90``."""
    os: Literal["linux", "windows"] = "linux"
    machine: Machine = "x86_64"
    cudnn: str | None = None
    """What it comes with, where that is not the default wheel's."""
    nccl: str | None = None
    cusparselt: str | None = None
    pinned: bool = True
    """Whether its wheel for Linux pins the distributions of these; False where it holds them itself."""
    confidence: Confidence = "high"


class TorchRow(Row, frozen=True, kw_only=True):
    """A PyTorch release. What it pins is what its default wheel for Linux x86_64 pins."""

    id_of = "torch/{0.version}"
    version: str
    default_cuda: str | None = None
    """CUDA of the wheel on PyPI for Linux x86_64. (For Windows, PyPI has CPU builds only.)"""
    default_cuda_aarch64: str | None = None
    """CUDA of the wheel on PyPI for Linux aarch64; empty text where that is a CPU build."""
    builds: tuple[TorchBuild, ...] = ()
    tagged: bool = True
    """Whether wheels for another CUDA than the default one have it in their version: ``1.3.1+cu100``."""
    all_builds: bool = True
    """Whether ``builds`` lists every CUDA build there is, for each system that it covers."""
    pythons: str = ""
    """The Pythons with a wheel, as a specifier, where PyPI has no wheels of the release."""
    cudnn: str | None = None
    nccl: str | None = None
    cusparselt: str | None = None
    triton: str | None = None


class ReleaseRow(Row, frozen=True, kw_only=True):
    """Releases of one component that need the same things: a library, a framework, a package on top of one.

    A *specifier* is a list of bounds that must all hold (``>=12.1,<13``); alternatives are separated by ``|``
    (``==10.2|>=11.0,<=11.6``). ``envcheck/knowledge/specifier.py`` says what a bound means: ``<=11.6`` admits 11.6.2.
    """

    name: str
    """The component: ``cudnn``, ``tensorrt``, ``jetpack``, or a distribution by its name on PyPI."""
    versions: str
    """The releases that the row covers, as a specifier: ``==2.16.*``, ``>=0.4.26,<0.4.29``."""
    build: str = ""
    """Local tag of the build that the row covers (``cu118``), where a release has several; empty for the one on
    PyPI, or the only one."""
    index: str = ""
    """The index that carries this ``build`` under the bare version, as PyPI does another one: ``PyTorch's index``."""
    cuda: str | None = None
    """CUDA that it was built with, as ``12.3``; empty text for a build without GPU support. It is held against
    drivers; the CUDA versions that may be beside it are in ``needs``."""
    needs: dict[str, str] = {}
    """Specifiers of other components: ``{cuda = ">=12.1,<13", cudnn = ">=8.9,<9", torch = "==2.5.1",
    python = ">=3.9,<3.13", driver-linux = ">=525.60.13", driver-windows = …, gcc = …}``. A component that is not
    named here is not constrained by this row."""
    one_of: tuple[tuple[str, ...], ...] = ()
    """Groups of needs of which one is enough: ``[["jax-cuda12-plugin", "jax-cuda13-plugin"]]``. The rows of that one
    decide about GPUs, drivers and CUDA."""
    exact_nvcc: bool = False
    """For a package that is compiled against PyTorch: whether it refuses an nvcc of another minor than PyTorch's CUDA
    too; an nvcc of another major is refused by PyTorch itself."""
    known: dict[str, str] = {}
    """By need, the greatest version that its documents name where they set no end: ``{cuda = "12"}``."""
    disputed: dict[str, str] = {}
    """By need, the versions within it that one source admits and another refuses: ``{python = "<3.10"}``; of compute
    capabilities from ``capability_min`` on, ``{capability = "<8.0"}``, with a ``note`` that says why."""
    instead: str = ""
    """The package that takes over its part on the GPU where it is installed: that one's rows decide about CUDA then."""
    optional: tuple[str, ...] = ()
    """Needs that it does without: CuPy uses a cuDNN of these versions, and no other one."""
    bundles: dict[str, str] = {}
    """Components that come with it, and their versions: ``{cudnn = "9.3.0", nccl = "2.21.5"}``; another copy beside
    it does no harm."""
    os: tuple[Os, ...] = ()
    """Systems that it runs on with a GPU; empty when the source does not say."""
    machine: tuple[Machine, ...] = ()
    targets: tuple[str, ...] = ()
    """What it holds GPU code for: ``sm_90``, ``compute_90``."""
    ptx: str | None = None
    """PTX ISA version of that code, where another compiler than its CUDA's wrote it, as clang does: ``8.3``."""
    code: dict[str, tuple[str, ...]] = {}
    """The same by the CUDA of the program around it, where it brings a library for each: ``{"12.8" = ["sm_75"]}``."""
    capability_min: str | None = None
    """Least compute capability that it supports, where its documents say so (they outrank ``targets``)."""
    capability_max: str | None = None
    """Greatest one, where documented."""
    capability_max_with: dict[str, str] = {}
    """Greatest one by the CUDA beside it, where documents list fewer GPUs for some: ``{"<10" = "7.2"}``."""
    capability_known: str | None = None
    """Greatest one that it knows of, where documents set no end: on newer GPUs it may run code for an older one."""
    capability_toolkit: str | None = None
    """The CUDA that knows every GPU which it holds code for, where it holds no PTX: it refuses GPUs of a later one."""
    capabilities: tuple[str, ...] = ()
    """The only ones that it runs on, where that is a list."""
    toolkits: str = ""
    """Of a Linux distribution: the CUDA toolkits that NVIDIA provides for it, as a specifier."""
    superseded: str = ""
    """For a project that ended: one sentence with the last stack that works."""

    @property
    def id(self) -> str:
        systems = "/".join(",".join(part) for part in (self.os, self.machine) if part)
        return f"{self.builds}@{systems}" if systems else self.builds

    @property
    def alternatives(self) -> list[str]:
        """The needs of which one is enough, of all groups."""
        return [name for group in self.one_of for name in group]

    @property
    def builds(self) -> str:
        """The id without the systems that the row covers."""
        return f"{self.name}/{self.versions}" + (f"+{self.build}" if self.build else "")


class DistributionRow(Row, frozen=True, kw_only=True):
    """A Linux distribution."""

    id_of = "distribution/{0.name}"
    name: str
    """Its ``ID`` in os-release."""
    component: str = ""
    """What it is called in rows of releases and in questions; empty: no question names it."""
    titles: tuple[str, ...]
    """How its titles begin, in lower case."""


System: TypeAlias = Literal["any", "linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-x86_64", "macos-aarch64"]
"""What a wheel is for; ``any`` for one without compiled code."""


class WheelRow(Row, frozen=True, kw_only=True):
    """The wheels on PyPI of some releases of a package, by their file names."""

    id_of = "wheel/{0.name}/{0.versions}"
    name: str
    """The distribution."""
    versions: str
    """The releases, as a specifier."""
    pythons: dict[System, str]
    """For each system with a wheel, the CPythons that have one, as a specifier. A system that is not named has none."""
    glibc: dict[Machine, str] = {}
    """The least glibc with which any of the wheels for Linux can be installed (PEP 600)."""
    free_threaded: dict[System, str] = {}
    """The same for builds of CPython without the global interpreter lock, which most wheels do not serve."""
    archive: bool = False
    """Whether there is also a source archive, from which the package could be compiled."""
    archive_pythons: str = ""
    """Where that is all there is, the CPythons that it takes, as a specifier."""


class PublishedRow(Row, frozen=True, kw_only=True):
    """The final releases of a package that PyPI lists, whatever their files are, the yanked ones too."""

    id_of = "published/{0.name}/{0.releases[0]}"
    name: str
    """The distribution."""
    releases: tuple[str, ...]
    """Versions, ascending; several, parted by blanks, are one text. What PyPI no longer has is in a row of its own."""
    days: str = ""
    """The day on which each of them came, as ``envcheck.knowledge.days`` writes it."""
    yanked: str = ""
    """Those that installers pass over unless they are named exactly, parted by blanks."""


class RequirementRow(Row, frozen=True, kw_only=True):
    """What the wheels on PyPI, or else the source archive, require without extras; rows of releases outrank it."""

    name: str
    """The distribution."""
    versions: str
    """The releases, as a specifier."""
    needs: dict[str, str]
    """Specifiers of other distributions, by their names."""
    python: str = ""
    """The CPythons for which they require it, as a specifier; empty for all."""
    os: tuple[Os, ...] = ()
    """The systems for which they do; empty for all."""
    machine: tuple[Machine, ...] = ()
    """The machines for which they do; empty for all."""

    @property
    def id(self) -> str:
        where = (self.python, *self.os, *self.machine)
        return "/".join(part for part in ("requirement", self.name, self.versions, *where) if part)


class ExtraRequirementRow(RequirementRow, frozen=True, kw_only=True):
    """What they require besides where an extra is asked for; rows by hand (``ExtraRow``) decide about GPUs."""

    extras: tuple[str, ...]
    """Normalized names, each of which brings the same."""

    @property
    def id(self) -> str:
        return f"extra-{super().id}/{self.extras[0]}"


class MigRow(Row, frozen=True, kw_only=True):
    """The instances into which GPUs can be divided."""

    id_of = "mig/{0.name}"
    name: str
    """Name of the models together: ``A100 40GB``."""
    gpus: tuple[str, ...]
    """Their names, as in the rows of GPUs."""
    profiles: tuple[str, ...]
    """As ``nvidia-smi`` writes them, without ``MIG``: ``1g.10gb+me``."""
    driver: str | None = None
    """The least Linux driver that divides them."""
    drivers: dict[str, str] = {}
    """The least one by profile, for those that came later."""


class FlawRow(Row, frozen=True, kw_only=True):
    """Releases of a component that are known to be broken."""

    name: str
    """The component: ``driver``, ``windows`` (by its build, also around WSL), ``nccl``, ``torch`` …"""
    versions: str
    """The releases, as a specifier."""
    os: tuple[Os, ...] = ()
    """Systems on which it matters; empty for all."""
    cuda: str = ""
    """The CUDA versions of the builds that are broken, as a specifier; empty for all."""
    compute_capability: str = ""
    """The GPUs on which it matters, as a specifier; empty for all."""
    beside: dict[str, str] = {}
    """Components with a specifier each: it matters only with such releases, and is not said where one is not known."""
    only_ptx: bool = False
    """Whether it matters only on GPUs for which a build has no native code, only PTX."""
    status: Literal["fail", "warn", "note"] = "warn"
    """``fail`` where GPUs cannot be used at all with such a release."""
    problem: str
    """What is broken, as a sentence."""
    change: str
    """What to do, as a sentence: the nearest release without it."""
    mended_by: dict[str, str] = {}
    """Libraries with a specifier each: beside such releases it is whole, though it requires others."""

    @property
    def id(self) -> str:
        return f"flaw/{self.name}/{self.versions}" + (f"/{'+'.join(self.os)}" if self.os else "")


def is_named(name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns is the name, or its beginning with ``*`` behind it."""
    return any(name == each or (each.endswith("*") and name.startswith(each[:-1])) for each in patterns)


class VariableOption(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A setting within the value of a variable (``max_split_size_mb:128``)."""

    name: str
    pattern: str = ""
    """A regular expression for the whole of what may stand behind the name; empty: anything."""
    versions: str = ""
    """The releases of the reader that know it, as a specifier; empty: all."""
    leads_to: Literal["", "file", "folder"] = ""
    """What the path behind the name must lead to."""


class VariableEffect(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What certain values of a variable do to programs."""

    values: str
    """A regular expression for the whole value."""
    on: Literal["speed", "precision", "correctness", "gpu", "memory", "output"]
    """``gpu``: whether the reader, a framework, uses the GPU at all; ``output``: what is printed or written."""
    status: Literal["note", "warn"] = "note"
    text: str
    """What it does, as the rest of a sentence that begins with the variable and its value."""
    figures: tuple[str, ...] = ()
    """Measured quantities that it can lower, a precision behind a slash: ``gemm/tf32``."""


class VariableRow(Row, frozen=True, kw_only=True):
    """An environment variable, and what reads it."""

    name: str
    reader: tuple[str, ...]
    """Frameworks that read it, as patterns (``cupy*``); ``cuda`` for every program that uses CUDA, ``nccl`` for those
    that use several GPUs by NCCL, ``loader`` and ``python`` for every program and every Python."""
    versions: str = ""
    """The releases of the reader that it is about, as a specifier; empty: all."""
    meaning: str
    """What it sets, as a sentence."""
    valid: str = ""
    """The valid values, in words."""
    pattern: str = ""
    """A regular expression for the whole of a valid value; empty: any."""
    open_values: bool = False
    """Whether the reader may refuse a value that fits the pattern: only what it says decides then."""
    options: tuple[VariableOption, ...] = ()
    """Where the value is a list of settings: all that are known."""
    assign: str = ":"
    """What stands between a setting and its value; settings are separated by commas, or blanks where this is ``=``."""
    known: str = ""
    """The releases of the reader whose settings are all listed, as a specifier; in others an unknown one may exist."""
    leads_to: Literal["", "file", "folder", "program"] = ""
    """What the value must lead to."""
    names: Literal["", "interface", "adapter", "device", "host"] = ""
    """What the value names on this machine: network interfaces, InfiniBand adapters, either of them, or a host."""
    several: bool = False
    """Whether the value is a list of paths."""
    weight: Literal["note", "warn"] = "warn"
    """How much it matters that it leads nowhere."""
    invalid: Literal["ignored", "start", "import", "first-use", "cpu"] = "ignored"
    """What an invalid value, or a path that leads nowhere, does: nothing; CUDA does not start; the reader cannot be
    imported; it fails at its first use of the GPU; or it falls back to the CPU."""
    codes: tuple[int, ...] = ()
    """What cuInit answers then."""
    said: tuple[str, ...] = ()
    """Regular expressions for what the reader says then: words that nothing else prints."""
    hinted: tuple[str, ...] = ()
    """The same for words that other causes print too: they count only where the variable is set."""
    effects: tuple[VariableEffect, ...] = ()
    gpus: int = 1
    """The least number of visible GPUs for which it matters."""
    change: str = ""
    """What to do, as a sentence; empty: unset it."""

    @property
    def id(self) -> str:
        return "/".join(part for part in ("variable", self.name, "+".join(self.reader), self.versions) if part)


class CacheRow(Row, frozen=True, kw_only=True):
    """A folder that a program makes, and writes in, when it runs on the GPU."""

    id_of = "cache/{0.name}"
    name: str
    title: str
    """What lies there, in words."""
    reader: tuple[str, ...]
    """The frameworks and distributions that write there, as patterns; ``cuda`` for every program that uses CUDA."""
    places: tuple[str, ...]
    """Where it is: the first whose variable is set. ``$NAME`` is a variable, ``$NAME --flag`` a flag in one,
    ``$TEMPORARY`` Python's temporary folder, ``~`` home, and ``{user}`` the user's name."""
    off: dict[str, str] = {}
    """Variables, each with the value by which the folder is not used."""
    runs: bool = False
    """Whether code is loaded from it, which ``noexec`` forbids."""
    status: Literal["fail", "warn", "note"] = "warn"
    """How bad it is; where a variable names the folder, it is a warning at least."""
    effect: str
    """What happens where it cannot be written, as a sentence."""

    @property
    def variables(self) -> frozenset[str]:
        """The variables that decide where it is, and whether it is used."""
        named = {re.split("[/ ]", place[1:])[0] for place in self.places if place.startswith("$")}
        return frozenset(named - {"TEMPORARY"} | self.off.keys())


class LimitRow(Row, frozen=True, kw_only=True):
    """A limit of the operating system below which programs on the GPU fail."""

    id_of = "limit/{0.name}-{0.least}"
    name: str
    """``address-space``, ``locked-memory``, ``open-files``, ``processes``; ``memory`` is the control group's."""
    title: str
    """The limit, in words."""
    least: int
    """A lower one is reported; in bytes where it is about memory."""
    beside: Literal["", "infiniband"] = ""
    """The hardware without which it does not matter."""
    codes: tuple[int, ...] = ()
    """What cuInit answers where the limit is too low."""
    status: Literal["warn", "note"] = "warn"
    """How bad it is; where cuInit answers so, it is a failure."""
    effect: str
    """What fails, as a sentence."""
    flag: str = ""
    """How Docker and Podman raise it: ``--ulimit memlock=-1``."""
    shell: str = ""
    """How a shell raises it, and limits.conf calls it: ``ulimit -l unlimited``, ``memlock``."""


class RoleRow(Row, frozen=True, kw_only=True):
    """What people install a project for; it decides whose failure is shown first where several fail."""

    id_of = "role/{0.name}"
    name: str
    """The project."""
    names: tuple[str, ...]
    """Its distributions, as patterns: ``cupy-*``."""
    role: Literal["framework", "engine", "library", "compiler"]
    """``framework``: programs are written in it. ``engine``: it runs finished models. ``library``: programs use it
    beside a framework. ``compiler``: it compiles kernels, mostly on behalf of the others."""
    title: str = ""
    """What it is called in text, where that is not its name: ``PyTorch``."""


Trait: TypeAlias = Literal[
    "falls-back-to-cpu",  # it computes on the CPU, without an error, where a CUDA library is missing
    "compiles-at-run-time",  # its files hold only a part of the GPU code that it runs
    "compiles-with-xla",  # XLA compiles its programs, or some of them
    "refuses-older-cudnn",  # it stops at an older cuDNN than it was built with
    "builds-listed",  # the rows of its releases cover every build with GPU support
    # Current releases have no GPU support on native Windows; the rows of its releases say which have.
    "no-gpu-on-windows",
    "own-kernels",  # its documentation says which GPUs its own kernels need, apart from those of the framework below it
    "needs-its-kernels",  # on other GPUs it is of no use, where others have an alternative or lose a part
    "compiles-where-it-runs",  # it compiles CUDA code on the machine that runs it
    "toolkit-of-torch",  # it refuses to compile with a toolkit of another CUDA major version than PyTorch's
    "needs-compiled-parts",  # without its compiled files nothing of it works
    "loses-compiled-parts",  # without its compiled files the rest of it works
    "compiled-by-pip",  # PyPI has its sources alone, which pip compiles against the PyTorch that it is shown
    "cuda-of-torch",  # its import compares the CUDA that it was built with to PyTorch's, and refuses another one
    "distributes-torch",  # it holds PyTorch itself or, in conda, chooses a build of it; pip's name comes first
    "pure-python",  # nothing of it is compiled, so that PyTorch's C++ interface does not matter to it
    "released-with-torch",  # it has one release for each of PyTorch's
    "on-torch-index",  # PyTorch's package index has a build of it for each CUDA
    "chooses-cuda-of-torch",  # in conda, the version that is asked of it chooses the CUDA of PyTorch's build
    "for-windows-alone",  # conda's channels have it for no other system
    "refuses-other-numpy",  # it checks NumPy's version when it is imported, and raises
    "shares-its-folder",  # the project's other distributions of these names install the same files
    "has-cuda-provider",  # this one is built for CUDA
    # What is compiled against a major version of it need not run beside another one, whatever the requirement admits.
    "binary-interface",
    "for-a-part",  # only a part of the project needs it; one of its own project, only a part of whatever needs it
    "for-several-gpus",  # programs on one GPU call nothing of it
    "for-cpu-and-gpu",  # programs use it for the CPU as well, where no GPU matters to it
    "part-for-cuda",  # it is what the project's own package uses NVIDIA's GPUs by
    "brings-cuda",  # it holds parts of the CUDA toolkit, besides NVIDIA's wheels of libraries
    # Neither its wheel nor what that requires brings CUDA's libraries; a machine or an image must have them.
    "cuda-from-outside",
    "cudnn-from-outside",  # the same of cuDNN
]
"""How frameworks behave."""


class TraitRow(Row, frozen=True, kw_only=True):
    """How the frameworks of some names behave."""

    id_of = "trait/{0.trait}/{0.project}"
    trait: Trait
    project: str
    """Whose code decides it."""
    names: tuple[str, ...]
    """Its frameworks, as patterns: ``cupy*``."""
    wheels: tuple[str, ...] = ()
    """NVIDIA's wheels, without CUDA's major, that bring what is taken from outside, by names alone: ``cublas``."""
    unless: tuple[str, ...] = ()
    """Distributions beside which they do not."""


class TorchSymbolRow(Row, frozen=True, kw_only=True):
    """Symbols that only some releases of PyTorch define: what asks for them was compiled for one of those."""

    id_of = "torch-symbol/{0.first}-{0.last}"
    names: tuple[str, ...]
    """Mangled, without what depends on the C++ ABI unless the releases differ in that."""
    first: str = ""
    """The first minor release that has them; empty: the first that was read."""
    last: str = ""
    """The last one; empty: the newest."""


class ExtensionBuildRow(Row, frozen=True, kw_only=True):
    """How extensions of PyTorch are compiled, and where their wheels for one PyTorch, CUDA and Python lie."""

    id_of = "extension-build/{0.names[0]}"
    names: tuple[str, ...]
    architectures: str = ""
    """The variables that choose the GPUs, with their values; empty: that of PyTorch."""
    wheel: str = ""
    """Address of a wheel; not every combination has one."""
    page: str = ""
    """Address of the page that lists them."""
    releases: str = ""
    """Address of the page of a release, which has wheels for other CUDA versions than that of PyPI's."""


class CondaRow(Row, frozen=True, kw_only=True):
    """A package that conda-forge has under another name than PyPI."""

    id_of = "conda/{0.name}"
    name: str
    """On PyPI, without the CUDA major behind it: ``nvidia-cublas``."""
    package: str
    """On conda-forge: ``libcublas``."""


class CondaBuildRow(Row, frozen=True, kw_only=True):
    """The GPU code of a package's builds in a channel of conda, on Linux."""

    id_of = "conda-build/{0.channel}/{0.name}/{0.versions}/{0.cuda}"
    name: str
    """The package in the channel: ``pytorch``."""
    channel: str
    versions: str
    """The releases, as a specifier."""
    builds: str
    """Regular expression for their whole build strings."""
    selector: str = ""
    """The package whose version chooses the CUDA: ``pytorch-cuda``."""
    selector_elsewhere: bool = False
    """Whether other channels have builds that the selector chooses too, so that the channel must be looked in first."""
    cuda: str
    """As in ``11.7``."""
    targets: tuple[str, ...]
    """What they hold GPU code for: ``sm_80``, ``compute_37``."""


class VirtualPackageRow(Row, frozen=True, kw_only=True):
    """What a virtual package of conda tells of a machine, whose solver takes it for installed in that version, or a
    property that a provider of wheel variants finds.
    """

    id_of = "virtual-package/{0.name}"
    name: str
    """As in ``__cuda``."""
    means: Literal["driver-cuda", "capability", "newest-capability", "glibc"]
    """The newest CUDA that the driver supports, the least or the highest compute capability of the GPUs, or the release
    of glibc.
    """
    writes: str = "{name}={value}"
    """How it is written of a machine; ``digits`` are the value without its dot."""
    title: str
    """That in words: ``the newest CUDA that the driver supports``."""
    majors_of: tuple[str, ...] = ()
    """Packages that ask for at least their own major version of it: ``cuda-version``."""
    demanded_by: str = ""
    """Variable of an image that asks for bounds of it, in the place of its base image's: ``NVIDIA_REQUIRE_CUDA``."""
    waived_by: str = ""
    """Variable of an image that waives them: ``NVIDIA_DISABLE_REQUIRE``."""


class CondaCpuBuildRow(Row, frozen=True, kw_only=True):
    """Build strings of conda that mean a build for the CPU, beside those that say ``cpu``."""

    id_of = "conda-cpu-build/{0.names[0]}"
    names: tuple[str, ...]
    """The packages: ``tensorflow``."""
    builds: str
    """Regular expression for their whole build strings."""
    selector: str = ""
    """The package that chooses such a build: ``cpuonly``."""


class ProductRow(Row, frozen=True, kw_only=True):
    """A framework whose documentation pages are cited; its source is the page on installing it."""

    id_of = "product/{0.names[0]}"
    names: tuple[str, ...]
    """How titles of pages call it."""
    frameworks: tuple[str, ...]
    """How the names of its distributions begin."""


class SecretRow(Row, frozen=True, kw_only=True):
    """Keys that are known by how they begin."""

    id_of = "secret/{0.name}"
    name: str
    """Whose they are."""
    starts: tuple[Annotated[str, msgspec.Meta(pattern=r"^[\w.~-]{3,}$")], ...]
    of: Literal["letters", "capitals", "word", "dotted", "base64"]
    """What follows is made of."""
    least: Annotated[int, msgspec.Meta(ge=8, le=500)]
    """Characters of it, at least."""


class FamilyRow(Row, frozen=True, kw_only=True):
    """A family of libraries that CUDA programs load."""

    id_of = "family/{0.name}"
    name: str
    """Name of its main library: ``cublas``."""
    files: str
    """A regular expression for what stands between ``lib`` and ``.so``."""
    kind: Literal["cuda", "cudnn", "nccl", "tensorrt", "driver", "other"]
    """Whose it is; rules know the first four."""
    numbered: Literal["cuda", "own", "apart"]
    """The first number of its soname is CUDA's major or its own, or its files are numbered apart from its releases."""
    once_cuda: str = ""
    """The CUDA releases whose whole number its files carried, before it had an own one: ``<10.1``."""
    wheel: str = ""
    """The distribution ``nvidia-WHEEL`` or ``nvidia-WHEEL-cuNN``."""
    wheel_is_cuda: bool = False
    """Whether the version of that begins with CUDA's major."""
    sonames: tuple[str, ...] = ()
    """Its libraries whose first number is that of the wheel's version."""
    apart: bool = False
    """Whether it is released apart from the toolkit."""
    one_folder: bool = False
    """Whether its files have the same names, in one folder, for every CUDA major."""
    part: str = ""
    """Its part in a toolkit's ``version.json``; else ``lib`` and its name."""
    owners: str = ""
    """How the names of packages begin that bring it; else its name."""
    version_unit: int = 0
    """What its major counts in the number in headers and messages (of cuDNN, from 9 on); 0: not known."""
    told_by: str = ""
    """Of a library that is a component of its ``kind``: the distribution on PyPI, with CUDA's major for ``{}``, that
    holds it, or the part of it whose file names tell its glibc."""
    opened_first: tuple[str, ...] = ()
    """Its libraries that TensorFlow and XLA open when they start: without one of them they use no GPU."""
    brings: tuple[str, ...] = ()
    """Families whose wheels its wheel requires, for the same CUDA."""
    shared: dict[str, str] = {}
    """File name with a minor version → the CUDA releases that have a file of that very name: ``>=11.2,<12``."""


class FragmentRow(Row, frozen=True, kw_only=True):
    """A part that patterns of error lines share, or what rules look for in the lines of a text."""

    id_of = "fragment/{0.name}"
    name: str
    """As patterns write it between double braces, and as code asks for it."""
    pattern: str


class ErrorRow(Row, frozen=True, kw_only=True):
    """Lines that name a problem."""

    id_of = "error/{0.priority}"
    problem: str
    """Name of the rule."""
    priority: Annotated[int, msgspec.Meta(ge=1)]
    """Where several rows match a line, the lowest priority names its problem."""
    said_by: Literal["driver-answered", "framework-ran"]
    status: Literal["fail", "warn", "note"] = "fail"
    """What the line alone proves."""
    lines: tuple[str, ...] = ()
    """Regular expressions; case does not count."""
    codes: tuple[int, ...] = ()
    """With which a call of CUDA's driver or runtime ends."""
    after: tuple[str, ...] = ()
    """Problems whose consequence such a line is: beside a line of one of them it says nothing new."""
    beside: str = ""
    """What another line of the same text must match, where one line alone does not identify the problem."""
    unless: str = ""
    """What no line of the same text may match: it shows that there is no problem, or another one."""
    programs: dict[str, str] = {}
    """Whose line it is, where another program's than PyTorch's: names, and what such lines match."""


class FixText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A fix that is the same on every machine."""

    text: str
    command: tuple[str, ...] = ()
    who: Literal["user", "root", "cluster-admin"] = "user"
    risk: str = ""


class RuleRow(Row, frozen=True, kw_only=True):
    """What follows from the finding of a rule that has a function, and what helps wherever it is found."""

    id_of = "rule/{0.name}"
    name: str
    explains: tuple[str, ...] = ()
    """Names of the rules whose findings are consequences of it."""
    explains_failing: tuple[str, ...] = ()
    """Further consequences of its failures, but not of its warnings."""
    told_by: tuple[str, ...] = ()
    """The rules that report the same fault more fully; they explain it where they name the same packages (or files)."""
    yields_to: tuple[str, ...] = ()
    """Names of the rules whose findings on the same subject, or the machine, suppress its own; ``*``: any."""
    fixes: tuple[FixText, ...] = ()
    """Offered where the rule's outcome has none, and no function finds them."""


class ProblemRow(RuleRow, frozen=True, kw_only=True):
    """A problem that error lines alone reveal: a rule without a function, whose page is ``docs/rules/NAME.md``."""

    id_of = "problem/{0.name}"
    title: str
    """The problem in a sentence, without a full stop."""
    layer: Literal["gpu", "kernel", "driver", "fabric", "container", "toolkit", "library", "framework"]
    scope: Literal["node", "container", "env"] = "env"
    since: str = "0.1"
    """The minor release of envcheck that brought it."""


class RemedyFix(FixText, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fix with words of the text and facts of the machine, each between braces: without one of them it is none."""

    installs: tuple[str, ...] = ()
    """Requirements, for the installer of the environment: its command stands in place of ``command``."""
    removes: tuple[str, ...] = ()
    index: str = ""
    build: tuple[str, ...] = ()
    """Options for what is compiled."""
    variables: tuple[str, ...] = ()
    again: bool = False
    """Also where the same release is there, and without what it requires."""
    then: bool = False
    """Whether it is the next step after the fix before it, and no alternative."""
    otherwise: bool = False
    """Whether it stands in for the fix before it, where that one lacks a word."""

    def __post_init__(self) -> None:
        if not self.installs and (self.variables or self.build or self.index):
            raise ValueError("variables, build and index are for what it installs, and it installs nothing")


class RemedyRow(Row, frozen=True, kw_only=True):
    """What ends reports of one kind, where it says more than what the rule offers for its problem."""

    id_of = "remedy/{0.name}"
    name: str
    problems: tuple[str, ...]
    """Names of the rules whose findings it remedies."""
    lines: tuple[str, ...] = ()
    """One of these regular expressions matches a line of the text; groups with a name are words. None: any text."""
    beside: str = ""
    """What another line of the text must match; its groups are words too."""
    unless: str = ""
    """What no line of the text may match."""
    facts: dict[str, str] = {}
    """What else is known: words of the machine, and what each of them must match whole."""
    title: str = ""
    """The problem in a sentence, where that of the rule says too much or too little."""
    message: str = ""
    """What such lines mean."""
    fixes: tuple[RemedyFix, ...]


class FailureRow(Row, frozen=True, kw_only=True):
    """Words by which a line is known to speak of a failure, whatever it means."""

    id_of = "failure/{0.where}"
    where: Literal["word", "anywhere", "as-written", "request", "harmless"]
    """``word``, at the beginning of a word, and ``anywhere``: in lower case. ``as-written``; ``request``, as written
    too: the line asks for CUDA. ``harmless``: the line speaks of no failure after all; case does not count.
    """
    patterns: tuple[str, ...]
    """Regular expressions."""


class ReadingRow(Row, frozen=True, kw_only=True):
    """A line of pasted text, and what it tells."""

    id_of = "reading/{0.importer}/{0.name}"
    importer: str
    """The format that it belongs to, which a report names."""
    name: str
    rank: Literal["output", "message", "prose"]
    """What counts where two formats tell different things: output of a tool before a message before prose."""
    has: tuple[str, ...] = ()
    """Texts in lower case of which a line has one: the patterns are tried on such lines alone."""
    patterns: tuple[str, ...]
    """Regular expressions; the first that matches anywhere in the line, or a whole answer, counts."""
    unless: str = ""
    """Regular expression of lines that tell it of something else: a wish, a requirement."""
    beside: str = ""
    """What else the text has, in lower case."""
    above: str = ""
    """Regular expression of the line above."""
    asked: str = ""
    """Regular expression for the question in Python to which the patterns are answers."""
    fills: dict[str, Any]
    """The records and their fields: ``{driver = {cuda = "{major}.{minor}"}}``, by the groups of the pattern."""


class ImageRow(Row, frozen=True, kw_only=True):
    """Tags of a container image, and what GPU software the images hold."""

    id_of = "image/{0.names[0]}:{0.tags}"
    names: tuple[str, ...]
    """Repositories, without ``docker.io/``: ``nvidia/cuda``, ``nvcr.io/nvidia/pytorch``."""
    tags: str
    """Regular expression for a whole tag; a named group is a component whose version it states: ``(?P<cuda>…)``."""
    holds: dict[str, str] = {}
    """Versions that the tag does not state: ``{cuda = "11.0.3", cudnn = "8.0.4"}``."""
    frameworks: dict[str, str] = {}
    """By repository, the framework that its images bring, where the CUDA that they hold is that of its build."""
    beside_torch: tuple[str, ...] = ()
    """Packages that it holds in the release for its PyTorch: ``torchvision``."""
    also: dict[str, dict[str, str]] = {}
    """Versions that the images of one repository also hold, or those whose name matches (``REPOSITORY:*-tf2-*``): a
    build of its publisher, not a release on PyPI."""
    disputed: dict[str, str] = {}
    """Versions of what they hold that another document names, or the same one elsewhere: ``{python = "3.10"}``."""
    base: str = ""
    """The image with its tag that they are made from: they hold what it holds, and need what it needs."""
    demands: bool = False
    """Whether it asks for its CUDA as NVIDIA's images do (``ImageDemandRow``)."""
    forward: bool | None = None
    """Whether it holds cuda-compat, with which a data-center GPU can do with an older driver; None: not known."""
    driver: str | None = None
    """The least Linux driver that its notes ask for; what they allow data-center GPUs is in rows of ``cuda-compat``."""
    capability_min: str | None = None
    """Least compute capability that its notes name."""
    capability_max: str | None = None
    """Greatest one of the generations that its notes name."""
    libraries: bool = True
    """Whether CUDA's libraries are in it where CUDA is, and not its runtime alone."""
    nvcc: str = ""
    """Regular expression for those of the tags whose images are known to hold the CUDA toolkit with nvcc."""
    variables: dict[str, str] = {}
    """Environment variables that it sets to the version of a component: ``{CUDA_VERSION = "cuda"}``."""
    written: str = ""
    """How the tag is written from which to start anew, by component: ``{cuda}-devel-ubuntu22.04``."""
    musl: bool = False
    """Whether its C library is musl, for which wheels for glibc are not."""


class ImageDemandRow(Row, frozen=True, kw_only=True):
    """What NVIDIA_REQUIRE_CUDA of NVIDIA's images admits besides drivers for their CUDA; on others none starts."""

    id_of = "image-demand/{0.cuda}"
    cuda: str
    branches: tuple[int, ...]
    """Driver branches that do not support it and are admitted all the same."""
    geforce: bool = False
    """Whether they are on GeForce too."""


class ExtraRow(Row, frozen=True, kw_only=True):
    """What extras of a package bring that decides about GPUs: ``jax[cuda13]``."""

    id_of = "extra/{0.name}[{0.extras[0]}]{0.versions}"
    name: str
    versions: str
    """The releases, as a specifier."""
    extras: tuple[str, ...]
    """Normalized names, each of which brings the same."""
    brings: dict[str, str]
    """Components and their versions; ``=`` is the release's own."""
    needed: bool = False
    """Whether the package computes on the CPU alone without any such extra, or what it brings."""
    built: str = ""
    """The distribution that has GPU support where its version has a local tag: ``jaxlib==0.4.25+cuda12.cudnn89``."""
    outside: tuple[str, ...] = ()
    """Those of the extras with which CUDA and cuDNN must be there: ``cuda12-local``."""


class SystemPackageRow(Row, frozen=True, kw_only=True):
    """Packages of a system's package manager that bring a library: ``libcudnn9-cuda-12``."""

    id_of = "system-package/{0.component}"
    component: str
    packages: tuple[str, ...]
    """Regular expressions for whole names; groups ``major`` and ``minor`` are the version's first numbers."""


class PlainRow(Row, frozen=True, kw_only=True):
    """Projects that are installed from repositories: they compile nothing, and set no bounds on packages for GPUs."""

    id_of = "plain/{0.names[0]}"
    names: tuple[str, ...]
    """Normalized names of the repositories, and of the projects in them."""


class InstallerRow(Row, frozen=True, kw_only=True):
    """A program that installs packages for Python, and the words with which it does."""

    id_of = "installer/{0.name}"
    name: str
    commands: str
    """Regular expression for what it is called by, without a folder: ``pip3.11``."""
    verbs: tuple[str, ...] = ()
    """Words behind it with which it installs; empty: any word."""
    apart: tuple[str, ...] = ()
    """First words behind it with which the verbs mean something else, as in ``uv python install``."""


class OptionRow(Row, frozen=True, kw_only=True):
    """Options of pip and uv, or variables that they read, that do the same."""

    id_of = "option/{0.of}/{0.names[0]}"
    of: Literal["file", "requirement", "command", "variable"]
    """``file``: in a requirements file and in commands; ``requirement``: behind one; ``command``: in commands alone."""
    names: tuple[str, ...]
    does: Literal[
        "", "include", "constrain", "index", "extra", "links", "none", "file", "backend", "project", "shares-builds"
    ] = ""
    """``extra``: a further index; ``none``: no index; ``backend``: PyTorch's index by a name; ``project``: an extra of
    the project; empty: nothing that decides what is installed.
    """
    value: bool = True
    """Whether a value follows."""
    holds: str = ""
    """What its value holds, if it is one."""


class IndexRow(Row, frozen=True, kw_only=True):
    """A package index, and which builds of PyTorch it serves."""

    id_of = "index/{0.address}"
    address: str
    """Regular expression for the whole address, without a trailing slash. A group ``build`` is the local tag of the
    builds that it serves (``cu118``); without it, the index serves what PyPI serves, or nothing of PyTorch."""
    packages: tuple[str, ...] = ()
    """The distributions of which it has wheels besides PyPI's."""
    os: tuple[Os, ...] = ()
    """The systems for which it has them."""
    jetsons: bool = False
    """Whether all that it has is for Jetsons; its address does not tell the build then."""
    others: bool = False
    """Whether it has builds of other packages than PyTorch that PyPI does not have."""


class StepRow(Row, frozen=True, kw_only=True):
    """What to do next about a failed trial whose error names no problem by itself."""

    id_of = "step/{0.priority}"
    priority: Annotated[int, msgspec.Meta(ge=1)]
    """Where several rows match an error, the lowest priority is shown."""
    lines: tuple[str, ...]
    """Regular expressions; case does not count."""
    text: str
    command: tuple[str, ...] = ()
    """``PYTHON`` and ``MODULE`` stand for the environment's interpreter and for the imported module."""


class SpokenRow(Row, frozen=True, kw_only=True):
    """How the name of a component is written."""

    id_of = "spoken/{0.name}"
    name: str
    """The component, by its name in other rows."""
    pattern: str
    """Regular expression for the whole name; case does not count."""


class WordingRow(Row, frozen=True, kw_only=True):
    """How people and programs word something that is looked for in text."""

    id_of = "wording/{0.name}"
    name: str
    """As code asks for it, and as other patterns write it between double braces."""
    flags: str = ""
    """``i``: case does not count; ``m``: ``^`` and ``$`` are a line's; ``a``: only ASCII makes words."""
    patterns: tuple[str, ...]
    """Alternatives of one regular expression."""


class WordRow(Row, frozen=True, kw_only=True):
    """Words of other languages in sentences about a machine."""

    id_of = "word/{0.means}"
    means: Literal["driver", "version", "graphics-card", "system", "answers", "own", "another", "wanted"]
    """``answers``: between a question and its answer; ``own``: says that something is here; ``another``: the sentence
    is about another machine, a wish or a condition; ``wanted``: before a version that is asked for or gone.
    """
    said: dict[str, tuple[str, ...]]
    """Regular expressions, by the name of the locale; case does not count."""


class TranslationRow(Row, frozen=True, kw_only=True):
    """How a system program words a message in other languages."""

    id_of = "translation/{0.english}"
    english: str
    """As it is printed without a locale; ``{1}``, ``{2}`` stand for words that both texts hold."""
    said: dict[str, tuple[str, ...]]
    """The same, by the name of the locale; more than one where releases differ."""


class XidRow(Row, frozen=True, kw_only=True):
    """An event that NVIDIA's kernel module logs by its number."""

    id_of = "xid/{0.number}"
    number: Annotated[int, msgspec.Meta(ge=1)]
    name: str
    """What the driver calls it."""
    kind: Literal[
        "program", "consequence", "memory", "link", "bus", "firmware", "microcontroller", "hang", "power", "recovery",
        "other", "unused",
    ]  # fmt: skip
    """``program``: most often a program's fault; ``consequence``: of an earlier event."""
    action: Literal[
        "restart-program", "reset", "reboot", "check-links", "check-hardware", "update", "see-earlier", "see-text",
        "support", "none",
    ]  # fmt: skip
    """What NVIDIA says to do first."""
    problem: str
    """Name of the rule about it."""


class SettingRow(Row, frozen=True, kw_only=True):
    """A setting of a framework that makes its work slower, as the framework itself reports it."""

    id_of = "setting/{0.framework}/{0.answer}={0.value}"
    framework: str
    """As quantities begin with it: ``torch``."""
    answer: str
    """What it was asked: a key of ``Trial.answers``."""
    value: str
    """The answer that means slower work."""
    quantities: tuple[str, ...]
    """The work that it slows."""
    text: str
    """What is so, as a sentence without its end."""
    fix: str
    """What to do, as a sentence without its end."""
    slow: str = ""
    fast: str = ""
    """Figures of these quantities with and without the setting, by the end of what they are called (``fp32 eager``):
    the setting is remarked on where both were measured and differ. Empty: it slows whatever is slow."""


class AnswerRow(Row, frozen=True, kw_only=True):
    """A status that the driver's own libraries return."""

    id_of = "answer/{0.api}/{0.code}"
    api: Literal["cuda", "nvml"]
    """``CUresult``, and what the runtime adds to it, or ``nvmlReturn_t``."""
    code: Annotated[int, msgspec.Meta(ge=1)]
    problem: str
    """Name of the rule that explains it most exactly."""
    meaning: str
