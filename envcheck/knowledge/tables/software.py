"""Tables of releases: what they need, hold and break, by component, wheel or container image."""

from typing import Literal, TypeAlias

import msgspec

from envcheck.knowledge.tables import Machine, Os, Row
from envcheck.sources import Confidence


class ReleaseRow(Row, frozen=True, kw_only=True):
    """Releases of one component that need the same things: a library, a framework, a package on top of one.

    A *specifier* is a list of bounds that must all hold (``>=12.1,<13``); alternatives are separated by ``|``
    (``==10.2|>=11.0,<=11.6``). ``envcheck/knowledge/specifier.py`` says what a bound means: ``<=11.6`` admits 11.6.2.
    """

    name: str  # The component: ``cudnn``, ``tensorrt``, ``jetpack``, or a distribution by its name on PyPI
    versions: str  # The releases that the row covers, as a specifier: ``==2.16.*``, ``>=0.4.26,<0.4.29``
    build: str = ""
    """Local tag of the build that the row covers (``cu118``), where a release has several; empty for the one on
    PyPI, or the only one."""
    index: str = ""  # The index with this ``build`` under the bare version, as PyPI has another: ``PyTorch's index``
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
    instead: str = ""  # The package that takes over its part on the GPU where installed: its rows decide about CUDA
    optional: tuple[str, ...] = ()  # Needs that it does without: CuPy uses a cuDNN of these versions, and no other one
    bundles: dict[str, str] = {}
    """Components that come with it, and their versions: ``{cudnn = "9.3.0", nccl = "2.21.5"}``; another copy beside
    it does no harm."""
    os: tuple[Os, ...] = ()  # Systems that it runs on with a GPU; empty when the source does not say
    machine: tuple[Machine, ...] = ()
    targets: tuple[str, ...] = ()  # What it holds GPU code for: ``sm_90``, ``compute_90``
    ptx: str | None = None  # PTX ISA version of that code, if by another compiler than its CUDA's, as clang: ``8.3``
    code: dict[str, tuple[str, ...]] = {}
    """The same by the CUDA of the program around it, where it brings a library for each: ``{"12.8" = ["sm_75"]}``."""
    capability_min: str | None = None
    """Least compute capability that it supports, where its documents say so (they outrank ``targets``)."""
    capability_max: str | None = None  # Greatest one, where documented
    capability_max_with: dict[str, str] = {}
    """Greatest one by the CUDA beside it, where documents list fewer GPUs for some: ``{"<10" = "7.2"}``."""
    capability_known: str | None = None
    """Greatest one that it knows of, where documents set no end: on newer GPUs it may run code for an older one."""
    capability_toolkit: str | None = None
    """The CUDA that knows every GPU which it holds code for, where it holds no PTX: it refuses GPUs of a later one."""
    capabilities: tuple[str, ...] = ()  # The only ones that it runs on, where that is a list
    toolkits: str = ""  # Of a Linux distribution: the CUDA toolkits that NVIDIA provides for it, as a specifier
    superseded: str = ""  # For a project that ended: one sentence with the last stack that works

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


class TorchBuild(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One build of a PyTorch release."""

    cuda: str  # CUDA version, as ``12.4``; empty for the CPU build
    targets: tuple[str, ...] = ()  # What it holds GPU code for: ``sm_90``, ``compute_90``
    os: Literal["linux", "windows"] = "linux"
    machine: Machine = "x86_64"
    cudnn: str | None = None  # What it comes with, where that is not the default wheel's
    nccl: str | None = None
    cusparselt: str | None = None
    pinned: bool = True  # Whether its wheel for Linux pins the distributions of these; False where it holds them itself
    confidence: Confidence = "high"


class TorchRow(Row, frozen=True, kw_only=True):
    """A PyTorch release. What it pins is what its default wheel for Linux x86_64 pins."""

    id_of = "torch/{0.version}"
    version: str
    default_cuda: str | None = None  # CUDA of the wheel on PyPI for Linux x86_64. (Windows has CPU builds only.)
    default_cuda_aarch64: str | None = None  # The same for Linux aarch64; empty text where that is a CPU build
    builds: tuple[TorchBuild, ...] = ()
    tagged: bool = True  # Whether wheels for another CUDA than the default have it in their version: ``1.3.1+cu100``
    all_builds: bool = True  # Whether ``builds`` lists every CUDA build there is, for each system that it covers
    pythons: str = ""  # The Pythons with a wheel, as a specifier, where PyPI has no wheels of the release
    cudnn: str | None = None
    nccl: str | None = None
    cusparselt: str | None = None
    triton: str | None = None


class TorchSymbolRow(Row, frozen=True, kw_only=True):
    """Symbols that only some releases of PyTorch define: what asks for them was compiled for one of those."""

    id_of = "torch-symbol/{0.first}-{0.last}"
    names: tuple[str, ...]  # Mangled, without what depends on the C++ ABI unless the releases differ in that
    first: str = ""  # The first minor release that has them; empty: the first that was read
    last: str = ""  # The last one; empty: the newest


class ExtensionBuildRow(Row, frozen=True, kw_only=True):
    """How extensions of PyTorch are compiled, and where their wheels for one PyTorch, CUDA and Python lie."""

    id_of = "extension-build/{0.names[0]}"
    names: tuple[str, ...]
    architectures: str = ""  # The variables that choose the GPUs, with their values; empty: that of PyTorch
    wheel: str = ""  # Address of a wheel; not every combination has one
    page: str = ""  # Address of the page that lists them
    releases: str = ""  # Address of the page of a release, which has wheels for other CUDA versions than that of PyPI's


class DistributionRow(Row, frozen=True, kw_only=True):
    """A Linux distribution."""

    id_of = "distribution/{0.name}"
    name: str  # Its ``ID`` in os-release
    component: str = ""  # What it is called in rows of releases and in questions; empty: no question names it
    titles: tuple[str, ...]  # How its titles begin, in lower case
    kernels: str = ""  # A regular expression: releases of its kernels, and of those of distributions made of it


System: TypeAlias = Literal["any", "linux-x86_64", "linux-aarch64", "windows-x86_64", "macos-x86_64", "macos-aarch64"]
"""What a wheel is for; ``any`` for one without compiled code."""


class WheelRow(Row, frozen=True, kw_only=True):
    """The wheels on PyPI of some releases of a package, by their file names."""

    id_of = "wheel/{0.name}/{0.versions}"
    name: str  # The distribution
    versions: str  # The releases, as a specifier
    pythons: dict[System, str]
    """For each system with a wheel, the CPythons that have one, as a specifier. A system that is not named has none."""
    glibc: dict[Machine, str] = {}  # The least glibc with which any of the wheels for Linux can be installed (PEP 600)
    free_threaded: dict[System, str] = {}
    """The same for builds of CPython without the global interpreter lock, which most wheels do not serve."""
    archive: bool = False  # Whether there is also a source archive, from which the package could be compiled
    archive_pythons: str = ""  # Where that is all there is, the CPythons that it takes, as a specifier


class PublishedRow(Row, frozen=True, kw_only=True):
    """The final releases of a package that PyPI lists, whatever their files are, the yanked ones too."""

    id_of = "published/{0.name}/{0.releases[0]}"
    name: str  # The distribution
    releases: tuple[str, ...]
    """Versions, ascending; several, parted by blanks, are one text. What PyPI no longer has is in a row of its own."""
    days: str = ""  # The day on which each of them came, as ``envcheck.knowledge.days`` writes it
    yanked: str = ""  # Those that installers pass over unless they are named exactly, parted by blanks


class RequirementRow(Row, frozen=True, kw_only=True):
    """What the wheels on PyPI, or else the source archive, require without extras; rows of releases outrank it."""

    name: str  # The distribution
    versions: str  # The releases, as a specifier
    needs: dict[str, str]  # Specifiers of other distributions, by their names
    python: str = ""  # The CPythons for which they require it, as a specifier; empty for all
    os: tuple[Os, ...] = ()  # The systems for which they do; empty for all
    machine: tuple[Machine, ...] = ()  # The machines for which they do; empty for all

    @property
    def id(self) -> str:
        where = (self.python, *self.os, *self.machine)
        return "/".join(part for part in ("requirement", self.name, self.versions, *where) if part)


class ExtraRequirementRow(RequirementRow, frozen=True, kw_only=True):
    """What they require besides where an extra is asked for; rows by hand (``ExtraRow``) decide about GPUs."""

    extras: tuple[str, ...]  # Normalized names, each of which brings the same

    @property
    def id(self) -> str:
        return f"extra-{super().id}/{self.extras[0]}"


class ExtraRow(Row, frozen=True, kw_only=True):
    """What extras of a package bring that decides about GPUs: ``jax[cuda13]``."""

    id_of = "extra/{0.name}[{0.extras[0]}]{0.versions}"
    name: str
    versions: str  # The releases, as a specifier
    extras: tuple[str, ...]  # Normalized names, each of which brings the same
    brings: dict[str, str]  # Components and their versions; ``=`` is the release's own
    needed: bool = False  # Whether the package computes on the CPU alone without any such extra, or what it brings
    built: str = ""  # The distribution with GPU support where its version has a tag: ``jaxlib==0.4.25+cuda12.cudnn89``
    outside: tuple[str, ...] = ()  # Those of the extras with which CUDA and cuDNN must be there: ``cuda12-local``


class FlawRow(Row, frozen=True, kw_only=True):
    """Releases of a component that are known to be broken."""

    name: str  # The component: ``driver``, ``windows`` (by its build, also around WSL), ``nccl``, ``torch`` …
    versions: str  # The releases, as a specifier
    os: tuple[Os, ...] = ()  # Systems on which it matters; empty for all
    cuda: str = ""  # The CUDA versions of the builds that are broken, as a specifier; empty for all
    compute_capability: str = ""  # The GPUs on which it matters, as a specifier; empty for all
    beside: dict[str, str] = {}
    """Components with a specifier each: it matters only with such releases, and is not said where one is not known."""
    only_ptx: bool = False  # Whether it matters only on GPUs for which a build has no native code, only PTX
    status: Literal["fail", "warn", "note"] = "warn"  # ``fail`` where GPUs cannot be used at all with such a release
    problem: str  # What is broken, as a sentence
    change: str  # What to do, as a sentence: the nearest release without it
    mended_by: dict[str, str] = {}  # Libraries with a specifier each: beside these it is whole, though it asks others

    @property
    def id(self) -> str:
        return f"flaw/{self.name}/{self.versions}" + (f"/{'+'.join(self.os)}" if self.os else "")


class ImageRow(Row, frozen=True, kw_only=True):
    """Tags of a container image, and what GPU software the images hold."""

    id_of = "image/{0.names[0]}:{0.tags}"
    names: tuple[str, ...]  # Repositories, without ``docker.io/``: ``nvidia/cuda``, ``nvcr.io/nvidia/pytorch``
    tags: str  # Regular expression for a whole tag; a named group is a component's version: ``(?P<cuda>…)``
    holds: dict[str, str] = {}  # Versions that the tag does not state: ``{cuda = "11.0.3", cudnn = "8.0.4"}``
    frameworks: dict[str, str] = {}
    """By repository, the framework that its images bring, where the CUDA that they hold is that of its build."""
    beside_torch: tuple[str, ...] = ()  # Packages that it holds in the release for its PyTorch: ``torchvision``
    also: dict[str, dict[str, str]] = {}
    """Versions that the images of one repository also hold, or those whose name matches (``REPOSITORY:*-tf2-*``): a
    build of its publisher, not a release on PyPI."""
    disputed: dict[str, str] = {}
    """Versions of what they hold that another document names, or the same one elsewhere: ``{python = "3.10"}``."""
    base: str = ""  # The image with its tag that they are made from: they hold what it holds, and need what it needs
    demands: bool = False  # Whether it asks for its CUDA as NVIDIA's images do (``ImageDemandRow``)
    forward: bool | None = None  # Whether it holds cuda-compat, for data-center GPUs on older drivers; None: not known
    driver: str | None = None
    """The least Linux driver that its notes ask for; what they allow data-center GPUs is in rows of ``cuda-compat``."""
    capability_min: str | None = None  # Least compute capability that its notes name
    capability_max: str | None = None  # Greatest one of the generations that its notes name
    libraries: bool = True  # Whether CUDA's libraries are in it where CUDA is, and not its runtime alone
    nvcc: str = ""  # Regular expression for those of the tags whose images are known to hold the CUDA toolkit with nvcc
    variables: dict[str, str] = {}  # Variables that it sets to the version of a component: ``{CUDA_VERSION = "cuda"}``
    each_build: str = ""  # Releases of PyTorch, as a specifier, each CUDA build of which has a tag with these parts
    written: str = ""  # How the tag is written from which to start anew, by component: ``{cuda}-devel-ubuntu22.04``
    musl: bool = False  # Whether its C library is musl, for which wheels for glibc are not


class ImageDemandRow(Row, frozen=True, kw_only=True):
    """What NVIDIA_REQUIRE_CUDA of NVIDIA's images admits besides drivers for their CUDA; on others none starts."""

    id_of = "image-demand/{0.cuda}"
    cuda: str
    branches: tuple[int, ...]  # Driver branches that do not support it and are admitted all the same
    geforce: bool = False  # Whether they are on GeForce too
