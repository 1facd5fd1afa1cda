"""Toolkits, libraries, Python environments and variables."""

from typing import Literal

import msgspec

from envcheck.model.base import Identified, Listing, Record, items_in

AS_STATED = ", as stated"  # How the path of a library ends that a text only says is installed: ``CUDA 12.1, as stated``
OF_IMAGE = "image tag"  # What tells the version of a library that lies in a container image
OF_FRAMEWORK_IMAGE = "tag of a framework's image"
"""The same, of an image whose framework was built for what lies in it, whatever its release on PyPI needs."""


class Toolkit(Identified, frozen=True, kw_only=True):
    """A CUDA toolkit on disk."""

    path: str  # Real path of its folder
    version: str | None = None  # As in ``12.4``
    nvcc: str | None = None  # Path of the compiler; null where there is none
    targets: tuple[str, ...] | None = None
    """What its compiler says that it compiles for, as in ``sm_90``; None: it was not asked."""
    on_path: bool | None = None  # Whether its ``bin`` folder is on PATH
    cuda_home: bool | None = None  # Whether CUDA_HOME or CUDA_PATH names it
    origin: Literal["system", "conda", "wheel"] | None = None  # What brought it
    aliases: tuple[str, ...] = ()  # Links that lead to it, such as ``/usr/local/cuda``

    def identities(self) -> tuple[str, ...]:
        return (self.path,)


class Library(Identified, frozen=True, kw_only=True):
    """A copy of a CUDA library on disk."""

    path: str  # Real path
    family: str  # The name without ``lib``: ``cudart``, ``cublas``, ``cublasLt``, ``cudnn``, ``cudnn_ops``, ``nccl`` …
    soname: str | None = None  # The name that the file gives itself, as in ``libcudnn.so.9``
    names: tuple[str, ...] = ()  # Links that lead to it, with their paths
    declared: str | None = None  # Version by the metadata of the package that owns the file
    on_disk: str | None = None  # Version that the file itself says (its name, or what it holds)
    loaded: str | None = None  # Version that the library answered when it was called
    cuda: str | None = None  # CUDA version, or its major alone, that it was built for
    owner: str | None = None
    """``nvidia-cudnn-cu12==9.1.0.70`` (wheel), ``libcudnn9-cuda-12 9.5.1.17-1`` (dpkg), ``cudnn 9.3.0`` (conda)."""
    claimed_by: tuple[str, ...] = ()  # All owners, where more than one package says that the file is its own
    altered: bool | None = None  # Whether its size is another than the one that its owner's metadata records
    origin: Literal["wheel", "conda", "system", "toolkit", "driver", "vendor", "other"] | None = None  # What brought it
    environment: str | None = None  # Key of the environment in which it lies
    stub: bool | None = None  # Whether it is a link-time stand-in (``lib64/stubs``) that cannot work at run time
    gpu_code: tuple[str, ...] | None = None  # Architectures that it holds code for, as in ``sm_90``; null: not listed

    def identities(self) -> tuple[str, ...]:
        return (self.path,)

    @property
    def stated(self) -> bool:
        """Whether a text only says that it is installed: it has no file."""
        return self.path.endswith(AS_STATED)


class Load(Record, frozen=True, kw_only=True):
    """A library that a framework asks for by name, and the file that its process would be given.

    It is searched as the dynamic loader and the framework's own preloading search it.
    """

    name: str  # As it is asked for: ``libcudnn.so.9``
    needed_by: str  # Path of the file that asks; of the framework's package where its code asks (``dlopen``)
    path: str | None = None  # Real path; None when the search finds nothing
    found_by: (
        Literal["preloaded", "LD_PRELOAD", "rpath", "runpath", "LD_LIBRARY_PATH", "cache", "default", "absolute"] | None
    ) = None
    """The rule of the search by which it was found."""
    optional: bool = False  # Whether the framework goes on without it
    version: str | None = None  # Version of the found file
    owner: str | None = None  # The package that brought the found file
    others: tuple[str, ...] = ()  # Real paths of further copies, which the same search would have taken next
    unfound: tuple[str, ...] = ()
    """For one that is not found: copies of that name on this system, outside the loader's search."""
    lacks: tuple[str, ...] = ()  # Symbol versions that are asked of it and not in the file found: ``GLIBCXX_3.4.32``
    offers: str | None = None  # For a file that lacks some: the highest of the kind that it has
    missing_symbols: tuple[str, ...] | None = None
    """Symbols that a file linked against it (``needed_by``) asks of it and that nothing in the process defines (some);
    empty: every one is there. None: not checked, as of a library that only code opens by name."""
    refused: str | None = None
    """Why the loader gives up at the file in ``path``: ``it is empty``. Nothing is loaded then."""


class Loaded(Record, frozen=True, kw_only=True):
    """A library in the memory map of a process, after a real call."""

    path: str  # Real path
    family: str | None = None  # The CUDA library that it belongs to, as in ``cudnn``
    version: str | None = None  # What the library answered, where it was asked


class TrialFile(Record, frozen=True, kw_only=True):
    """A file that the failure of a trial names."""

    path: str
    """Absolute. A library's bare name, or a module's name with slashes, where nothing that is installed has it."""
    role: Literal["error", "frame", "module"]
    """``error``: the message is about it. ``frame``: it was being run. ``module``: it is what the import did not find.
    """
    line: int | None = None  # Number of the line, from 1
    owner: str | None = None  # The distribution whose RECORD lists it, as ``numpy==2.4.0``; None: no RECORD does
    state: Literal["as installed", "differs", "gone", "unreadable"] | None = None
    """None: there is nothing that it could be compared with, or it was not compared."""
    detail: str | None = None  # How it differs: ``it is empty``


class Trial(Record, frozen=True, kw_only=True):
    """What happened when a framework was imported in a process of its own and put to work on the GPU."""

    imported: bool | None = None
    """None: it is not known, because the process was ended from outside (a deadline, the kernel) before it could be.
    """
    import_seconds: float | None = None  # How long the import took, in seconds
    ran_on_gpu: bool | None = None
    """Whether an operation's result was right and lay in, or came from, the GPU's memory; None: not tried."""
    seconds: float | None = None  # From the end of the import to the first result, in seconds
    device: str | None = None  # The device as the framework names it
    gpu: str | None = None  # PCI bus id or UUID of that GPU, as the driver told the process
    proof: str | None = None  # How it is known where it ran: ``the result's pointer is device memory``
    error: str | None = None  # What went wrong: the exact line that was raised, with its type, or how the process died
    files: tuple[TrialFile, ...] | None = None
    """Files that the error and its traceback name, the nearest to the cause first; None: nothing was raised."""
    as_found: bool | None = None
    """Whether the package that was imported is the one that the files let expect; None: that cannot be told."""
    path: str | None = None
    """The file of the package that was imported, or that its import begins with; None: it is not known, or a package
    without one (a namespace)."""
    version: str | None = None  # The version that the imported package says; None: it says none
    warnings: tuple[str, ...] = ()  # Lines that it printed and that name a problem
    libraries: tuple[Loaded, ...] | None = None  # CUDA libraries in its memory map at the end
    answers: dict[str, str] = {}
    """What it said of itself: ``{"cuda": "13.0", "cudnn": "9.19.0", "providers": "CUDA, CPU"}``."""
    skipped: str | None = None  # Why it was not tried


class Distribution(Record, frozen=True, kw_only=True):
    """An installed Python distribution (or conda package), by its metadata; or a package without any that is imported
    in the stead of one that a framework requires.
    """

    name: str  # Normalised
    version: str  # Empty: it is not known
    path: str | None = None  # Folder of its metadata
    led_by: str | None = None  # What puts its folder on Python's search path, as of ``Framework.led_by``
    build: str | None = None  # Build string of a conda package
    channel: Literal["pip", "conda"] | None = None  # Which package manager its record belongs to
    installer: str | None = None  # The program that says it installed it, as in ``pip``
    requires: tuple[str, ...] | None = None
    """``Requires-Dist``; of what is neither a framework nor required by one, without the lines of extras."""
    requires_python: str | None = None  # ``Requires-Python``, read for frameworks and for what they require
    editable: bool | None = None  # Whether it is imported from a source folder
    record: bool | None = None
    """Whether the list of its files (``RECORD``) is there, which pip needs to replace or remove it."""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".rstrip()


class Damaged(Record, frozen=True, kw_only=True):
    """Metadata of an installed distribution, or a ``.pth`` file, that cannot be used."""

    path: str  # Folder or file of the metadata
    problem: str  # ``METADATA is missing``, ``it is not UTF-8``, ``left by an interrupted installation`` …
    name: str | None = None
    """Normalised name of the distribution, where what is left of its metadata or its folder's name tells."""
    version: str | None = None  # Its version, where what is left tells


class Unreadable(Record, frozen=True, kw_only=True):
    """A file or folder of an environment, or of the machine, whose content is not known."""

    path: str  # Path of the file or folder
    problem: str  # The system's reason: ``Permission denied``; or ``it is a dangling link`` …


class DamagedFile(Record, frozen=True, kw_only=True):
    """A file of an installed package that is not the one that the package's own list says was installed."""

    path: str  # Path of the file
    package: str  # Normalised name of its distribution
    version: str | None = None  # Version of the distribution
    kind: Literal["missing", "size", "content", "hash", "foreign"]
    """How it differs; ``content``: the list says nothing against it, and it still cannot be used; ``foreign``: it, and
    every compiled part of its package, is for another system, machine, C library or Python."""
    recorded: str | None = None  # What the list says: ``104664 bytes``, ``sha256=…``
    found: str | None = None  # The same of the present file
    problem: str | None = None  # Why the present file cannot be loaded or imported; None: nothing shows that it cannot
    dead_link: str | None = None
    """Where it is missing: the link that leads nowhere in its place, or in that of a folder above it."""
    as_published: bool = False
    """Whether a file of another size, which can be loaded, is no newer than the list of its package: installers write
    the list last, so that the list was wrong when the package was published."""
    aside: bool = False
    """Whether nothing is seen to need it: a module deep in its package that neither the packages above it nor a module
    beside it import, or a program that the uppermost package does not name."""
    stripped: bool | None = None
    """Whether a shorter library has what ``strip`` leaves: no symbols and no debugging data; None: not looked for, or
    it has some.
    """


class Shipped(Record, frozen=True, kw_only=True):
    """What the frameworks and what they require were installed with, compared with what lies there."""

    packages: tuple[str, ...] = ()  # Normalised names of those whose files were compared
    unlisted: tuple[str, ...] = ()
    """Those whose files could not be: they have no RECORD, or it does not list them (editable, conda, the system's)."""
    files: int = 0  # How many files were compared
    bytes: int | None = None  # How much of them was read; None: presence and size alone were compared
    damaged: tuple[DamagedFile, ...] = ()  # The files that differ
    complete: bool = False  # Whether none that was to be compared was left out


class Framework(Identified, frozen=True, kw_only=True):
    """A framework in one environment, as its files describe it (and, after a deep probe, as it behaved)."""

    name: str  # Name of the distribution: ``torch``; of the several that hold one package, the installed one
    version: str | None = None  # With its local part, as in ``2.5.1+cu124``
    path: str | None = None  # Folder of the package
    led_by: str | None = None
    """What puts its folder on Python's search path, where that is not a site folder of the environment itself:
    ``PYTHONPATH``, ``user site`` or the path of a ``.pth`` file."""
    instead_of: tuple[str, ...] = ()
    """Paths of what the same import would take otherwise: packages, or the metadata of installed ones."""
    extends: str | None = None  # The framework that it is an extension of: ``torch`` for torchvision, flash-attn …
    built_for: dict[str, str] = {}
    """What it was built against, by name of the distribution: ``{"torch": "2.5"}``; as its files or its version say."""
    cuda: str | None = None  # CUDA version that it was built with
    cpu_only: bool | None = None  # Whether it was built without any GPU support
    hip: str | None = None  # ROCm version that it was built with
    cudnn: str | None = None  # The cuDNN that it was built with
    nccl: str | None = None  # The NCCL that it was built with
    tensorrt: str | None = None  # The TensorRT that it was built with
    providers: tuple[str, ...] | None = None
    """ONNX Runtime: the execution providers whose libraries are there (``CUDA``, ``TensorRT``, ``CPU``)."""
    gpu_code: tuple[str, ...] | None = None
    """What it holds GPU code for, as targets: ``sm_90``, ``sm_90a``, ``compute_120``."""
    gpu_available: bool | None = None  # Whether it said, when asked, that it can use a GPU
    requires: tuple[str, ...] = ()
    """The distributions that its metadata asks for and that matter here (nvidia-*, jaxlib, torch …), as requirement
    lines."""
    needs_one_of: tuple[tuple[str, ...], ...] | None = None
    """Groups of requirement lines of which one must be met whole, because the import refuses to do without: those of
    extras for one CUDA each. None: there are none, or it was not checked."""
    compiles_with: dict[str, str] = {}
    """What of this system its code compiles with when a program runs: ``{"C compiler": "/usr/bin/gcc", "Python.h":
    ""}``; empty text where there is none."""
    binaries: tuple[str, ...] | None = None  # Paths of its own compiled parts; empty: it has none. None: not checked.
    loads: tuple[Load, ...] | None = None
    """Libraries of CUDA and of C++ that its parts ask for, and what the loader would give them."""
    loads_complete: bool = False  # Whether it asks for no other library
    looks_in_wheels: bool | None = None
    """Whether it looks for CUDA's libraries where NVIDIA's wheels lay them: by preloading, or by a search path of its
    parts."""
    preload_call: str | None = None
    """The call by which a program lets it look there, where its own code has one: ``onnxruntime.preload_dlls()``. None:
    it has none, or it was not checked."""
    unresolved: tuple[str, ...] | None = None
    """Undefined symbols of its parts that no library of the framework it extends defines (some, as they stand)."""
    trial: Trial | None = None  # What happened when it was tried (``--deep``)
    unknown_flags: tuple[str, ...] | None = None
    """Flags that a variable sets for its compiler (XLA) and whose names none of its libraries holds; None: none set,
    or it was not checked."""
    incomplete: bool = False
    """Whether files are gone that its own metadata lists and that it cannot do without; ``problem`` names them."""
    problem: str | None = None  # What is wrong with its files, or why they could not be read

    def identities(self) -> tuple[str, ...]:
        return (self.name,)

    @property
    def title(self) -> str:
        return f"{self.name} {self.version or ''}".rstrip()

    @property
    def module(self) -> str:
        """Its import name, from its path if possible, which is foreign text: only an identifier is taken from it."""
        name = (self.path or "").rpartition("/")[2].removesuffix(".py")
        return name if name.isidentifier() else self.name.partition("-")[0]

    @property
    def is_known_cuda_build(self) -> bool:
        """Whether its files show that it is built for CUDA."""
        return self.cpu_only is False or self.cuda is not None

    @property
    def imported(self) -> bool | None:
        """Whether importing it worked; None when that was not tried or the trial did not finish."""
        return self.trial.imported if self.trial else None

    @property
    def ran_on_gpu(self) -> bool | None:
        """Whether it provably computed on a GPU; None when that was not tried or the trial did not finish.

        For a rule that infers whether a framework can use the GPU, True settles the question.
        """
        return self.trial.ran_on_gpu if self.trial else None

    @property
    def failed(self) -> bool:
        """Whether its trial failed; a trial that was ended from outside did not."""
        failed = self.imported is False or self.ran_on_gpu is False
        return failed or (self.trial is not None and self.trial.ran_on_gpu is True and self.trial.error is not None)


class Extension(Identified, frozen=True, kw_only=True):
    """Compiled files of no framework, with or without metadata beside them, that hold GPU code or link PyTorch."""

    name: str  # Name of the distribution, else of the folder or file
    path: str  # Path of its metadata, else of the folder or file
    version: str | None = None  # By its metadata
    cache: str | None = None
    """The build that PyTorch's cache of extensions has it for (``py312_cu128``), or the variable that names it."""
    binaries: tuple[str, ...] = ()  # Paths of these files (some)
    gpu_code: tuple[str, ...] | None = None
    """What they hold GPU code for, as targets, all together; None: none of them holds any, or not all could be read."""
    ptx: dict[str, str] = {}  # The newest PTX ISA of each target that is PTX: ``{"compute_90": "8.4"}``
    unresolved: tuple[str, ...] | None = None
    """Symbols that PyTorch's libraries lack (some, as they stand); None: they do not link it, or nobody checked."""

    def identities(self) -> tuple[str, ...]:
        return (self.path,)

    @property
    def title(self) -> str:
        return f"{self.name} {self.version or ''}".rstrip()


class Startup(Record, frozen=True, kw_only=True):
    """A line of a ``.pth`` file that changes Python's search path by code, at every start of the interpreter."""

    path: str  # Path of the ``.pth`` file
    line: str  # The line
    module: str | None = None  # The file whose code does it, where the line only imports that
    folders: tuple[str, ...] = ()  # Existing folders that the code names
    shadows: tuple[str, ...] = ()  # Packages in them that the site folders have too


class StartupVariable(Record, frozen=True, kw_only=True):
    """An environment variable that code sets at every start of the interpreter."""

    path: str  # The ``.pth`` file, or the module ``sitecustomize`` or ``usercustomize``
    name: str  # The variable
    value: str | None = None  # Its value; null: the code computes it
    always: bool = False  # Whether the statement was seen to depend on nothing
    module: str | None = None  # The file whose code sets it, where a line of the ``.pth`` file only imports that


class Planned(Record, frozen=True, kw_only=True):
    """What a line of a plan (a requirements file, a lock file, a Dockerfile …) would install; ``source`` is its
    ``FILE:LINE``.
    """

    name: str
    """Normalized name of a distribution; ``cuda``, ``cudnn`` for what a base image holds, ``cudnn by libcudnn9`` for
    what a package of the system brings. Empty: a line that may install anything, as ``problem`` says."""
    asked: str  # As a requirement: ``torch>=2.0``; the image or the file for a line without a name
    bounds: str = ""  # Accepted versions (PEP 440): ``>=2.0,<2.1``; empty: any
    version: str | None = None  # The one version that is accepted; None: the plan leaves it open
    alternatives: tuple[str, ...] = ()  # Of several pins, which a Python that is not stated decides on, the versions
    extras: tuple[str, ...] = ()  # Normalized names of the extras that are asked for: ``cuda13``
    build: str | None = None
    """Local tag of the build that the package index serves: ``cu118``; empty: the default build of PyPI. None: not
    known, as with a private index."""
    conda: str | None = None  # Build string of a conda package, empty where none is given; None: no conda package
    channels: tuple[str, ...] = ()
    """Channels of conda that it is looked for in, the first that has it before the others; empty: not stated."""
    image: str | None = None  # Base image that holds it; None: something else installs it
    together: str | None = None
    """Which entries pip resolves as one, by the file or the command that names them; None: their requirements were
    resolved before, or are left out."""
    overridden: tuple[str, ...] = ()  # What ``override-dependencies`` of uv installs, whatever the entry requires of it
    isolated: bool | None = None
    """Whether a build from its source sees only what it asks for, as pip has it; None: not known."""
    brings: str | None = None
    """The component that a package of the system's package manager brings: ``cudnn``; None: it is another package."""
    file: str  # Path of the file, as the user gave it
    line: int | None = None  # Number of the line, from 1
    problem: str | None = None
    """Why the version is not known, or whether it is installed. Empty: it is the project that the plan belongs to."""
    newest: bool = False
    """Whether the plan leaves it open, and the version is the newest known one that an installer would choose."""
    as_of: str | None = None
    """The last day of which releases count where it is left open: ``2026-11-30``; None: all that are known."""
    refused: str | None = None  # Why it cannot be installed on the machine: all its wheels are for other systems


class Environment(Identified, frozen=True, kw_only=True):
    """A Python environment, examined as files: nothing of it was started."""

    key: str  # Prefix, or the path asked for when there is no prefix
    why: str | None = None
    """Why it was examined: ``--python``, ``VIRTUAL_ENV``, ``CONDA_PREFIX``, ``UV_PROJECT_ENVIRONMENT``,
    ``./.venv``, ``PATH``, ``envcheck``."""
    judged: bool | None = None  # Whether the verdict is about it; others are only named
    executable: str | None = None  # Path of its interpreter
    python: str | None = None  # Version, as far as the files tell
    implementation: str | None = None  # As in ``cpython``
    prefix: str | None = None  # Its folder (``sys.prefix``)
    base_prefix: str | None = None  # The folder of the Python that it is based on
    manager: Literal["venv", "uv", "virtualenv", "conda", "pyenv", "system", "other"] | None = None  # What made it
    lock_file: str | None = None
    """Path of the lock file beside it by which uv, Poetry, PDM or Pipenv fill it; None: none, or not checked."""
    externally_managed: bool | None = None  # PEP 668: the system forbids pip to install into it
    moved_from: str | None = None
    """The other folder that its programs (``activate``, ``pip``) take for it; None: there is none, or not checked."""
    site_packages: tuple[str, ...] = ()  # Folders that packages are imported from
    distributions: tuple[Distribution, ...] | None = None  # What is installed in it; null: not known
    distributions_complete: bool = False  # Whether nothing else is installed in it
    damaged: tuple[Damaged, ...] | None = None  # Metadata that cannot be used; null: not checked
    unrecorded: tuple[str, ...] | None = None
    """Paths of packages in its own folder for packages that no metadata names; null: not checked."""
    shipped: Shipped | None = None
    """Presence and size of the files that decide whether its frameworks can be imported. None: not checked."""
    verified: Shipped | None = None  # The hashes of all their files (``--verify``). None: not checked.
    startup: tuple[Startup, ...] | None = None
    """Lines of ``.pth`` files that change the search path by code; None: not checked."""
    startup_variables: tuple[StartupVariable, ...] | None = None
    """Variables that code sets at every start of the interpreter; None: not checked."""
    hides_pythons_own: tuple[str, ...] | None = None
    """Packages and modules on PYTHONPATH that are imported in place of the standard library's, and those in the working
    folder also in place of a framework or NumPy; None: not checked.
    """
    missing_in_copies: tuple[str, ...] = ()
    """What those in the working folder lack of the files that the installed package has, without which imports fail."""
    frameworks: Listing[Framework] | None = None  # Frameworks in it; null: not checked
    extensions: Listing[Extension] | None = None
    """Compiled parts of other packages that need a GPU or PyTorch; null: not checked."""
    planned: tuple[Planned, ...] | None = None
    """What plans would install (``--plan``); None: it is an environment on disk."""
    unreadable: tuple[Unreadable, ...] | None = None
    """What is there and could not be read, or is not where its interpreter looks; None: not checked."""
    problem: str | None = None
    """Why it cannot be examined, or cannot run: ``its base interpreter /usr/bin/python3.9 is gone``."""

    def identities(self) -> tuple[str, ...]:
        return (self.key,)


class VariablePath(msgspec.Struct, frozen=True, kw_only=True):
    """A path within the value of a variable, and what is there."""

    path: str  # As it stands in the value
    leads_to: Literal["file", "program", "folder", "nothing", "unknown"]
    """``program``: a file that may be run; ``unknown``: it could not be looked at."""


class FolderAccess(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A folder, which may yet have to be made, and whether a program of this user may write there."""

    path: str  # As a program finds it: links are not followed
    obstacle: str = ""  # Why it may not (``its file system is read-only``); empty where it may
    noexec: bool = False  # Whether its file system forbids running, and loading, what is written there
    free: int | None = None  # Free bytes, where these are little
    free_files: int | None = None  # Files that may still be made, where these are few


class Variables(Record, frozen=True, kw_only=True):
    """The environment variables that matter here; one that is not in a complete list is not set."""

    values: dict[str, str] = {}  # Value by name, of those that are set
    complete: bool = False  # Whether all that matter were looked at
    paths: tuple[VariablePath, ...] | None = None
    """The paths in these values, but for search paths, in which a missing folder is usual; None: not checked."""
    home: str | None = None  # The user's home folder, by HOME or the passwd file; empty: neither names one
    temporary: str | None = None
    """The folder in which Python makes temporary files; empty: there is none in which it may."""
    user_known: bool | None = None  # Whether the user has a name, by a variable or the passwd file
    hosts: tuple[str, ...] | None = None  # The values that are names of hosts in /etc/hosts
    name_server: bool | None = None  # Whether names of other hosts are asked of a name server
    places: tuple[FolderAccess, ...] | None = None
    """Whether programs may write in home, the temporary folder and those that variables name, and which folders below
    differ from the one above; None: not checked."""


def frameworks_in(environment: Environment | None) -> tuple[Framework, ...]:
    return items_in(environment.frameworks) if environment else ()
