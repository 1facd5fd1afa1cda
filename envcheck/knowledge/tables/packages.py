"""Tables of packages by name: what they are for, how they behave, and how package managers call and find them."""

from typing import Literal, TypeAlias

from envcheck.knowledge.tables import Os, Row


class RoleRow(Row, frozen=True, kw_only=True):
    """What people install a project for; it decides whose failure is shown first where several fail."""

    id_of = "role/{0.name}"
    name: str  # The project
    names: tuple[str, ...]  # Its distributions, as patterns: ``cupy-*``
    role: Literal["framework", "engine", "library", "compiler"]
    """``framework``: programs are written in it. ``engine``: it runs finished models. ``library``: programs use it
    beside a framework. ``compiler``: it compiles kernels, mostly on behalf of the others."""
    title: str = ""  # What it is called in text, where that is not its name: ``PyTorch``


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
    project: str  # Whose code decides it
    names: tuple[str, ...]  # Its frameworks, as patterns: ``cupy*``
    wheels: tuple[str, ...] = ()
    """NVIDIA's wheels, without CUDA's major, that bring what is taken from outside, by names alone: ``cublas``."""
    unless: tuple[str, ...] = ()  # Distributions beside which they do not


class ProductRow(Row, frozen=True, kw_only=True):
    """A framework whose documentation pages are cited; its source is the page on installing it."""

    id_of = "product/{0.names[0]}"
    names: tuple[str, ...]  # How titles of pages call it
    frameworks: tuple[str, ...]  # How the names of its distributions begin


class FamilyRow(Row, frozen=True, kw_only=True):
    """A family of libraries that CUDA programs load."""

    id_of = "family/{0.name}"
    name: str  # Name of its main library: ``cublas``
    files: str  # A regular expression for what stands between ``lib`` and ``.so``
    kind: Literal["cuda", "cudnn", "nccl", "tensorrt", "driver", "other"]  # Whose it is; rules know the first four
    numbered: Literal["cuda", "own", "apart"]
    """The first number of its soname is CUDA's major or its own, or its files are numbered apart from its releases."""
    once_cuda: str = ""  # The CUDA releases whose whole number its files carried, before it had an own one: ``<10.1``
    wheel: str = ""  # The distribution ``nvidia-WHEEL`` or ``nvidia-WHEEL-cuNN``
    wheel_is_cuda: bool = False  # Whether the version of that begins with CUDA's major
    sonames: tuple[str, ...] = ()  # Its libraries whose first number is that of the wheel's version
    apart: bool = False  # Whether it is released apart from the toolkit
    one_folder: bool = False  # Whether its files have the same names, in one folder, for every CUDA major
    part: str = ""  # Its part in a toolkit's ``version.json``; else ``lib`` and its name
    owners: str = ""  # How the names of packages begin that bring it; else its name
    version_unit: int = 0  # What its major counts in the number in headers and messages (cuDNN, from 9 on); 0: unknown
    told_by: str = ""
    """Of a library that is a component of its ``kind``: the distribution on PyPI, with CUDA's major for ``{}``, that
    holds it, or the part of it whose file names tell its glibc."""
    opened_first: tuple[str, ...] = ()
    """Its libraries that TensorFlow and XLA open when they start: without one of them they use no GPU."""
    brings: tuple[str, ...] = ()  # Families whose wheels its wheel requires, for the same CUDA
    shared: dict[str, str] = {}
    """File name with a minor version → the CUDA releases that have a file of that very name: ``>=11.2,<12``."""


class SystemPackageRow(Row, frozen=True, kw_only=True):
    """Packages of a system's package manager that bring a library: ``libcudnn9-cuda-12``."""

    id_of = "system-package/{0.component}"
    component: str
    packages: tuple[str, ...]  # Regular expressions for whole names; ``major`` and ``minor`` are its first numbers


class CondaRow(Row, frozen=True, kw_only=True):
    """A package that conda-forge has under another name than PyPI."""

    id_of = "conda/{0.name}"
    name: str  # On PyPI, without the CUDA major behind it: ``nvidia-cublas``
    package: str  # On conda-forge: ``libcublas``


class CondaBuildRow(Row, frozen=True, kw_only=True):
    """The GPU code of a package's builds in a channel of conda, on Linux."""

    id_of = "conda-build/{0.channel}/{0.name}/{0.versions}/{0.cuda}"
    name: str  # The package in the channel: ``pytorch``
    channel: str
    versions: str  # The releases, as a specifier
    builds: str  # Regular expression for their whole build strings
    selector: str = ""  # The package whose version chooses the CUDA: ``pytorch-cuda``
    selector_elsewhere: bool = False
    """Whether other channels have builds that the selector chooses too, so that the channel must be looked in first."""
    cuda: str  # As in ``11.7``
    targets: tuple[str, ...]  # What they hold GPU code for: ``sm_80``, ``compute_37``


class CondaCpuBuildRow(Row, frozen=True, kw_only=True):
    """Build strings of conda that mean a build for the CPU, beside those that say ``cpu``."""

    id_of = "conda-cpu-build/{0.names[0]}"
    names: tuple[str, ...]  # The packages: ``tensorflow``
    builds: str  # Regular expression for their whole build strings
    selector: str = ""  # The package that chooses such a build: ``cpuonly``


class VirtualPackageRow(Row, frozen=True, kw_only=True):
    """What a virtual package of conda tells of a machine, whose solver takes it for installed in that version, or a
    property that a provider of wheel variants finds.
    """

    id_of = "virtual-package/{0.name}"
    name: str  # As in ``__cuda``
    means: Literal["driver-cuda", "capability", "newest-capability", "glibc"]
    """The newest CUDA that the driver supports, the least or the highest compute capability of the GPUs, or the release
    of glibc.
    """
    writes: str = "{name}={value}"  # How it is written of a machine; ``digits`` are the value without its dot
    title: str  # That in words: ``the newest CUDA that the driver supports``
    majors_of: tuple[str, ...] = ()  # Packages that ask for at least their own major version of it: ``cuda-version``
    demanded_by: str = ""  # Variable of an image that bounds it, in place of its base image's: ``NVIDIA_REQUIRE_CUDA``
    waived_by: str = ""  # Variable of an image that waives them: ``NVIDIA_DISABLE_REQUIRE``


class PlainRow(Row, frozen=True, kw_only=True):
    """Projects that are installed from repositories: they compile nothing, and set no bounds on packages for GPUs."""

    id_of = "plain/{0.names[0]}"
    names: tuple[str, ...]  # Normalized names of the repositories, and of the projects in them


class InstallerRow(Row, frozen=True, kw_only=True):
    """A program that installs packages for Python, and the words with which it does."""

    id_of = "installer/{0.name}"
    name: str
    commands: str  # Regular expression for what it is called by, without a folder: ``pip3.11``
    verbs: tuple[str, ...] = ()  # Words behind it with which it installs; empty: any word
    apart: tuple[str, ...] = ()  # First words behind it with which the verbs mean something else: ``uv python install``


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
    value: bool = True  # Whether a value follows
    holds: str = ""  # What its value holds, if it is one


class IndexRow(Row, frozen=True, kw_only=True):
    """A package index, and which builds of PyTorch it serves."""

    id_of = "index/{0.address}"
    address: str
    """Regular expression for the whole address, without a trailing slash. A group ``build`` is the local tag of the
    builds that it serves (``cu118``), which has several if it matches nothing; without a group, PyPI's or none."""
    packages: tuple[str, ...] = ()  # The distributions of which it has wheels besides PyPI's
    os: tuple[Os, ...] = ()  # The systems for which it has them
    jetsons: bool = False  # Whether all that it has is for Jetsons; its address does not tell the build then
    others: bool = False  # Whether it has builds of other packages than PyTorch that PyPI does not have
