"""Platform, kernel and driver."""

from typing import Literal

from envcheck.snapshot.base import ApiResult, Identified, Listing, Record


class ContainerHost(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a host has for containers that are to use its GPUs."""

    engines: tuple[str, ...] | None = None
    """Paths of the programs that start containers (docker, podman, nerdctl …); empty: none was found."""
    toolkit: tuple[str, ...] | None = None
    """Paths of the programs of the NVIDIA Container Toolkit."""
    runtimes: tuple[str, ...] | None = None
    """Names of the runtimes that Docker's ``daemon.json`` adds."""
    cdi: tuple[str, ...] | None = None
    """Specifications of the Container Device Interface that name NVIDIA's devices."""
    mount_lists: tuple[str, ...] | None = None
    """On a Jetson: the lists (``*.csv``) of what its container runtime puts into containers."""
    mounts_missing: tuple[str, ...] | None = None
    """Entries of those lists that are not on this system (some, as they stand)."""


class Platform(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The operating system and what it runs in."""

    os: Literal["linux", "windows", "macos"] | None = None
    distribution: str | None = None
    """``ID`` of os-release: ``ubuntu``, ``debian``, ``rhel`` …"""
    distribution_like: tuple[str, ...] = ()
    distribution_version: str | None = None
    distribution_title: str | None = None
    kernel_release: str | None = None
    machine: str | None = None
    """``x86_64``, ``aarch64`` …"""
    libc: str | None = None
    """``glibc 2.39`` or ``musl``."""
    cpu_model: str | None = None
    cpus: int | None = None
    memory: int | None = None
    numa_nodes: int | None = None
    shared_memory: int | None = None
    """Size of ``/dev/shm``."""
    shared_memory_free: int | None = None
    container: str | None = None
    """``docker``, ``podman``, ``kubernetes``, ``lxc``, ``apptainer``, ``systemd-nspawn``, ``other``, or ``none``."""
    container_evidence: str | None = None
    container_host: ContainerHost | None = None
    wsl: bool | None = None
    windows_build: str | None = None
    """Windows by its full number, as in ``10.0.22631.4317``; under WSL, of the Windows around it."""
    virtualization: str | None = None
    """Hypervisor by name (``kvm``, ``firecracker``, ``gvisor``, ``vmware`` …), ``other``, or ``none``."""
    tegra_release: str | None = None
    """L4T release of a Jetson or DRIVE system, as in ``36.4.0``; empty text where this is none."""
    tegra: bool | None = None
    """Whether the GPU is that of a Tegra chip (Jetson, DRIVE), whatever its release is."""
    jetpack: str | None = None
    """JetPack release, where that is what was said."""
    image_tegra_release: str | None = None
    """L4T release that the container image was made for."""
    uid: int | None = None
    host: str | None = None


class KernelModule(Record, frozen=True, kw_only=True, omit_defaults=True):
    """NVIDIA's kernel module."""

    loaded: bool | None = None
    version: str | None = None
    flavour: Literal["open", "proprietary"] | None = None
    built: bool | None = None
    """Whether a module file exists for the running kernel (``False`` only after its folder was read)."""
    built_for: tuple[str, ...] = ()
    """Other kernels for which a module file exists."""
    file: str | None = None
    uvm_loaded: bool | None = None
    blacklisted_by: str | None = None
    """Configuration file that forbids loading it."""


class DeviceNode(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A device file such as ``/dev/nvidia0``."""

    path: str
    minor: int | None = None
    openable: bool | None = None
    """Whether this process has the permission to open it for reading and writing (judged without opening it); for a
    capability below ``/dev/nvidia-caps``, for reading, which is all that it is for."""
    mode: str | None = None
    owner: str | None = None


class KernelMessage(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the kernel log that speaks of an NVIDIA GPU."""

    text: str
    xid: int | None = None
    pci_bus_id: str | None = None
    seconds: float | None = None
    """Time since boot."""


class KernelLog(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The kernel log, as far as it may be read."""

    readable: bool | None = None
    why_not: str | None = None
    messages: tuple[KernelMessage, ...] = ()


class Kernel(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What the kernel knows of NVIDIA GPUs."""

    nvidia: KernelModule | None = None
    nouveau_loaded: bool | None = None
    nova_loaded: bool | None = None
    secure_boot: bool | None = None
    lockdown: str | None = None
    """``none``, ``integrity`` or ``confidentiality``."""
    device_nodes: tuple[DeviceNode, ...] | None = None
    log: KernelLog | None = None


class DriverLibrary(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A user-space library of the driver (libcuda, libnvidia-ml …) on disk."""

    path: str
    """Real path."""
    soname: str | None = None
    version: str | None = None
    """The driver release that the file belongs to."""
    kind: Literal["driver", "stub", "compat"] | None = None
    """``stub``: a toolkit's link-time stand-in; ``compat``: a forward-compatibility package."""
    found_as: tuple[str, ...] = ()
    """The paths under which the loader may meet it, in the order in which it would."""
    found_by: Literal["LD_PRELOAD", "LD_LIBRARY_PATH", "cache", "default"] | None = None
    """What leads the loader to the first of these paths; None where nothing does, or nobody looked."""
    listed_in: str | None = None
    """The configuration file that puts its folder into the loader's cache; None for the loader's own folders."""
    refused: str | None = None
    """Why the loader gives up at this file (``it is empty``); None where it would take it, or nobody looked."""
    machine: str | None = None
    """The processor it is for, where that is another one than this machine's: the loader passes over it."""
    mounted: bool | None = None
    """Whether it, or a folder above it, is a mount of its own; in a container, False says that it is the image's."""

    def identities(self) -> tuple[str, ...]:
        return (self.path,)


class Driver(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The driver: its user-space libraries and what they answer."""

    installed: bool | None = None
    """Whether any user-space library of the driver is present."""
    release: str | None = None
    """Release of the driver that runs (the kernel module's), as in ``580.159.04``."""
    cuda: str | None = None
    """The newest CUDA that the driver's libcuda speaks, as in ``13.0``."""
    nvml: ApiResult | None = None
    nvml_version: str | None = None
    cuda_init: ApiResult | None = None
    cuda_devices: int | None = None
    """Devices that CUDA enumerates under the present variables."""
    cuda_device_count: ApiResult | None = None
    libraries: Listing[DriverLibrary] | None = None
    smi_path: str | None = None
