"""Platform, kernel and driver."""

from typing import Literal

from envcheck.model.base import ApiResult, Identified, Listing, Record
from envcheck.model.versions import Flavour


class ContainerHost(Record, frozen=True, kw_only=True):
    """What a host has for containers that are to use its GPUs."""

    engines: tuple[str, ...] | None = None
    """Paths of the programs that start containers (docker, podman, nerdctl …); empty: none was found."""
    toolkit: tuple[str, ...] | None = None  # Paths of the programs of the NVIDIA Container Toolkit
    runtimes: tuple[str, ...] | None = None  # Names of the runtimes that Docker's ``daemon.json`` adds
    cdi: tuple[str, ...] | None = None  # Specifications of the Container Device Interface that name NVIDIA's devices
    mount_lists: tuple[str, ...] | None = None
    """On a Jetson: the lists (``*.csv``) of what its container runtime puts into containers."""
    mounts_missing: tuple[str, ...] | None = None
    """Entries of those lists that are not on this system (some, as they stand)."""


class Platform(Record, frozen=True, kw_only=True):
    """The operating system and what it runs in."""

    os: Literal["linux", "windows", "macos"] | None = None  # The operating system
    distribution: str | None = None  # ``ID`` of os-release: ``ubuntu``, ``debian``, ``rhel`` …
    distribution_like: tuple[str, ...] = ()  # Distributions that it derives from (``ID_LIKE``)
    distribution_version: str | None = None  # As in ``24.04``
    distribution_title: str | None = None  # Name and version for people
    kernel_release: str | None = None  # As in ``6.8.0-48-generic``
    machine: str | None = None  # ``x86_64``, ``aarch64`` …
    libc: str | None = None  # ``glibc 2.39`` or ``musl``
    cpu_model: str | None = None  # Model of the processor
    cpus: int | None = None  # Number of processors that may be used
    memory: int | None = None  # Main memory, in bytes
    numa_nodes: int | None = None  # Number of NUMA nodes
    shared_memory: int | None = None  # Size of ``/dev/shm``
    shared_memory_free: int | None = None  # Free space of ``/dev/shm``, in bytes
    limits: dict[str, int] | None = None
    """The soft limits of the process that are set (``open-files``, ``address-space`` …); others are unlimited."""
    memory_limit: int | None = None
    """The memory of its control group, in bytes; None where that is unlimited or not known."""
    task_limit: int | None = None
    """The processes and threads that its control group grants; None where that is unlimited or not known."""
    cpu_limit: float | None = None
    """The processors whose time its control group grants; None where that is unlimited or not known."""
    perf_event_paranoid: int | None = None
    """How far the kernel restricts performance events for users without privilege; 2 is its own default."""
    capabilities: tuple[str, ...] | None = None
    """Of the capabilities that admit to performance counters, ``sys_admin`` and ``perfmon``, those in effect."""
    programs: tuple[str, ...] | None = None
    """Paths of ``ninja``, Nsight Compute (``ncu``) and Nsight Systems (``nsys``) on PATH or in a toolkit."""
    processors: int | None = None  # Processors of the machine that are online, whoever may use them
    processor_nodes: tuple[int, ...] | None = None  # The NUMA nodes of the processors that may be used
    memory_nodes: tuple[int, ...] | None = None
    """The NUMA nodes to which the memory of the process is bound; None where it is not."""
    nodes_without_memory: tuple[int, ...] | None = None  # The NUMA nodes that have processors and no memory
    interfaces: tuple[str, ...] | None = None  # Its network interfaces
    adapters: tuple[str, ...] | None = None  # InfiniBand and RoCE adapters
    container: str | None = None
    """``docker``, ``podman``, ``kubernetes``, ``lxc``, ``apptainer``, ``systemd-nspawn``, ``other``, or ``none``."""
    container_evidence: str | None = None  # What shows that it is a container
    started_without_gpu: bool | None = None
    """Whether a text shows what starts its container, and that this asks for no GPU."""
    container_host: ContainerHost | None = None  # What can be seen of the container's host
    wsl: bool | None = None  # Whether it runs in WSL
    windows_build: str | None = None
    """Windows by its full number, as in ``10.0.22631.4317``; under WSL, of the Windows around it."""
    virtualization: str | None = None
    """Hypervisor by name (``kvm``, ``firecracker``, ``gvisor``, ``vmware`` …), ``other``, or ``none``."""
    tegra_release: str | None = None
    """L4T release of a Jetson or DRIVE system, as in ``36.4.0``; empty text where this is none."""
    tegra: bool | None = None  # Whether the GPU is that of a Tegra chip (Jetson, DRIVE), whatever its release is
    jetpack: str | None = None  # JetPack release, where that is what was said
    image_tegra_release: str | None = None  # L4T release that the container image was made for
    uid: int | None = None  # The user's number
    host: str | None = None  # Name of the machine

    @property
    def on_arm(self) -> bool:
        """Whether the processor is a 64-bit Arm, by Linux's name or macOS's."""
        return self.machine in ("aarch64", "arm64") or bool(self.machine is None and self.tegra_release)


class KernelModule(Record, frozen=True, kw_only=True):
    """NVIDIA's kernel module."""

    loaded: bool | None = None  # Whether it is loaded
    version: str | None = None  # Its version
    flavour: Flavour | None = None  # Whether it is the open or the proprietary module
    built: bool | None = None
    """Whether a module file exists for the running kernel (``False`` only after its folder was read)."""
    built_for: tuple[str, ...] = ()  # Other kernels for which a module file exists
    file: str | None = None  # Path of the module file for the running kernel
    uvm_loaded: bool | None = None  # Whether nvidia-uvm is loaded
    peer_memory_loaded: bool | None = None
    """Whether nvidia-peermem, or the older nv_peer_mem, gives network adapters access to GPU memory."""
    blacklisted_by: str | None = None  # Configuration file that forbids loading it
    counters_for_admins: bool | None = None
    """Whether it keeps the performance counters of the GPUs for administrators (RmProfilingAdminOnly)."""


class DeviceNode(Record, frozen=True, kw_only=True):
    """A device file such as ``/dev/nvidia0``."""

    path: str  # As in ``/dev/nvidia0``
    minor: int | None = None  # The GPU's number, which its name has
    number: str | None = None
    """Major and minor number of the device that it is (``195:0``); null where it is no character device."""
    openable: bool | None = None
    """Whether this process has the permission to open it for reading and writing (judged without opening it); for a
    capability below ``/dev/nvidia-caps``, for reading, which is all that it is for."""
    mode: str | None = None  # Kind of file and permissions, as ``ls -l`` shows them
    owner: str | None = None  # Name or number of its user and of its group


class KernelMessage(Record, frozen=True, kw_only=True):
    """A line of the kernel log that mentions an NVIDIA GPU."""

    text: str  # The message
    xid: int | None = None  # Number of the Xid error; null where it is none
    pci_bus_id: str | None = None  # The GPU that it names
    seconds: float | None = None  # Time since boot


class Incident(KernelMessage, frozen=True, kw_only=True):
    """What DCGM reports of a GPU or of what joins them."""

    subject: str  # ``GPU 3``, ``Switch 0``: by DCGM's own number
    status: Literal["fail", "warn"]  # ``fail``: DCGM calls it a failure
    watch: str = ""  # What found it: ``Memory system``, or a test of its diagnostic; empty: all watches together


class Dcgm(Record, frozen=True, kw_only=True):
    """NVIDIA's DCGM on this machine."""

    incidents: tuple[Incident, ...] | None = None
    """What its health watches found since its host engine started, and its diagnostic; null: it did not say."""
    tests: tuple[str, ...] | None = None  # Tests of the diagnostic whose results were kept; null: none were
    why_not: str | None = None  # What did not answer, and why: no watches are set, no host engine runs …


class KernelLog(Record, frozen=True, kw_only=True):
    """The kernel log, as far as it may be read."""

    readable: bool | None = None  # Whether it could be read
    why_not: str | None = None  # Why it could not be read
    messages: tuple[KernelMessage, ...] = ()  # The messages of the driver and of the bus


class Kernel(Record, frozen=True, kw_only=True):
    """What the kernel knows of NVIDIA GPUs."""

    nvidia: KernelModule | None = None  # NVIDIA's kernel module
    nouveau_loaded: bool | None = None  # Whether the module nouveau is loaded
    nova_loaded: bool | None = None  # Whether the module nova is loaded
    secure_boot: bool | None = None  # Whether Secure Boot is on
    lockdown: str | None = None  # ``none``, ``integrity`` or ``confidentiality``
    device_nodes: tuple[DeviceNode, ...] | None = None  # NVIDIA's device nodes; null: not checked
    device_numbers: dict[str, int] | None = None
    """Major numbers under which the kernel module's devices are reached, by their names in ``/proc/devices``."""
    log: KernelLog | None = None  # What the kernel logged about the GPUs


class DriverLibrary(Identified, frozen=True, kw_only=True):
    """A user-space library of the driver (libcuda, libnvidia-ml …) on disk."""

    path: str  # Real path
    soname: str | None = None  # The name that the file gives itself
    version: str | None = None  # The driver release that the file belongs to
    kind: Literal["driver", "stub", "compat"] | None = None
    """``stub``: a toolkit's link-time stand-in; ``compat``: a forward-compatibility package."""
    found_as: tuple[str, ...] = ()  # The paths under which the loader may meet it, in the order in which it would
    found_by: Literal["LD_PRELOAD", "LD_LIBRARY_PATH", "cache", "default"] | None = None
    """What leads the loader to the first of these paths; None where nothing does, or it was not checked."""
    listed_in: str | None = None
    """The configuration file that puts its folder into the loader's cache; None for the loader's own folders."""
    refused: str | None = None
    """Why the loader gives up at this file (``it is empty``); None where it would take it, or it was not checked."""
    machine: str | None = None
    """The processor it is for, where that is another one than this machine's: the loader passes over it."""
    mounted: bool | None = None
    """Whether it, or a folder above it, is a mount of its own; in a container, False says that it is the image's."""

    def identities(self) -> tuple[str, ...]:
        return (self.path,)


class Driver(Record, frozen=True, kw_only=True):
    """The driver: its user-space libraries and what they answer."""

    installed: bool | None = None  # Whether any user-space library of the driver is present
    release: str | None = None  # Release of the driver that runs (the kernel module's), as in ``580.159.04``
    cuda: str | None = None  # The newest CUDA that the driver's libcuda supports, as in ``13.0``
    nvml: ApiResult | None = None  # The answer of NVML's initialization
    nvml_version: str | None = None  # Version of NVML
    cuda_init: ApiResult | None = None  # The answer of ``cuInit``
    cuda_devices: int | None = None  # Devices that CUDA enumerates under the present variables
    cuda_device_count: ApiResult | None = None  # The answer of ``cuDeviceGetCount``
    libraries: Listing[DriverLibrary] | None = None  # Its user-space libraries; null: not checked
    smi_path: str | None = None  # Path of nvidia-smi; null where it was not found

    @property
    def names_release(self) -> bool:
        """Whether ``release`` is one; a text may tell only its branch, as in ``580``."""
        return "." in (self.release or "")
