"""What a machine looks like: frozen records, no I/O.

Three things are kept apart. *Nobody looked*: the section or field is ``None``. *Looked and absent*: said inside the
record (``installed=False``, an empty list that is ``complete``, a name in ``Gpu.not_supported``). *Present*: the value.

Every record says where it was read (``source``); where one field was read elsewhere than the rest of its record,
``read`` names that field's own source. Values are kept as the machine said them (versions as text); units are base
units: bytes, bytes per second, hertz, watts, degrees Celsius, seconds.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group of facts read together."""

    source: str = ""
    read: dict[str, str] = {}

    def source_of(self, field: str) -> str:
        """Where ``field`` was read."""
        return self.read.get(field, self.source)


class Identified(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A record that several sources may describe; two with a common identity are the same thing."""

    def identities(self) -> tuple[str, ...]:
        """Everything that identifies the thing, most lasting first; never an index."""
        raise NotImplementedError


Item = TypeVar("Item", bound=Identified)


class Listing(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    """A list of things. Absence may be concluded only from a ``complete`` one."""

    items: tuple[Item, ...] = ()
    complete: bool = False


class ApiResult(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What a call into a driver library returned: ``nvmlInit`` 18 DRIVER_NOT_LOADED."""

    call: str
    code: int
    """The library's own status number; 0 is success, -1 is "the library could not be loaded"."""
    name: str = ""
    """The status by name, as in ``CUDA_ERROR_SYSTEM_NOT_READY``."""
    text: str = ""
    """What the library, or the loader, says about it."""
    library: str | None = None
    """Real path of the library file that answered."""
    seconds: float | None = None


# --- platform -----------------------------------------------------------------------------------------------------


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
    container: str | None = None
    """``docker``, ``podman``, ``kubernetes``, ``lxc``, ``apptainer``, ``systemd-nspawn``, ``other``, or ``none``."""
    container_evidence: str | None = None
    wsl: bool | None = None
    virtualization: str | None = None
    """Hypervisor by name (``kvm``, ``firecracker``, ``gvisor``, ``vmware`` …), ``other``, or ``none``."""
    tegra_release: str | None = None
    """L4T release of a Jetson or DRIVE system, as in ``36.4.0``; empty text where this is none."""
    uid: int | None = None
    host: str | None = None


# --- kernel -------------------------------------------------------------------------------------------------------


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
    """Whether this process has the permission to open it for reading and writing (judged without opening it)."""
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


# --- driver -------------------------------------------------------------------------------------------------------


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


# --- GPUs ---------------------------------------------------------------------------------------------------------


class Memory(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Device memory, in bytes."""

    total: int | None = None
    reserved: int | None = None
    used: int | None = None
    free: int | None = None
    bus_width: int | None = None
    """Bits."""


class Ecc(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Error-correcting memory: mode, and errors counted since the driver was loaded and over the GPU's life."""

    enabled: bool | None = None
    pending: bool | None = None
    volatile_corrected: int | None = None
    volatile_uncorrected: int | None = None
    aggregate_corrected: int | None = None
    aggregate_uncorrected: int | None = None
    retired_pages: int | None = None
    retirement_pending: bool | None = None


class RowRemap(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Row remapping of device memory (Ampere and later)."""

    corrected: int | None = None
    uncorrected: int | None = None
    pending: bool | None = None
    failed: bool | None = None


class MigInstance(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A MIG device (a compute instance that CUDA can use)."""

    uuid: str | None = None
    name: str | None = None
    memory: int | None = None
    sm_count: int | None = None


class Mig(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Multi-Instance GPU mode."""

    enabled: bool | None = None
    pending: bool | None = None
    instances: tuple[MigInstance, ...] | None = None


class Clocks(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Clocks, in hertz."""

    sm: float | None = None
    sm_max: float | None = None
    memory: float | None = None
    memory_max: float | None = None
    sm_application: float | None = None
    sm_application_default: float | None = None


class Power(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Power, in watts."""

    draw: float | None = None
    limit: float | None = None
    """The limit in force."""
    limit_default: float | None = None
    limit_min: float | None = None
    limit_max: float | None = None


class Temperature(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Temperatures, in degrees Celsius."""

    gpu: float | None = None
    memory: float | None = None
    slowdown: float | None = None
    shutdown: float | None = None
    gpu_max: float | None = None


class Throttle(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Why the clocks are held below their maximum (NVML's clocks event reasons)."""

    reasons: tuple[str, ...] | None = None
    """``gpu_idle``, ``applications_clocks_setting``, ``sw_power_cap``, ``hw_slowdown``, ``sync_boost``,
    ``sw_thermal_slowdown``, ``hw_thermal_slowdown``, ``hw_power_brake_slowdown``, ``display_clock_setting``."""
    seconds: dict[str, float] | None = None
    """Time spent under a reason since the driver was loaded."""


class Pcie(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The PCI Express link. The current generation falls when the GPU is idle; the width does not."""

    generation: int | None = None
    generation_max: int | None = None
    """What GPU and slot can do together."""
    generation_device_max: int | None = None
    width: int | None = None
    width_max: int | None = None
    replays: int | None = None
    upstream_generation_max: int | None = None
    """What the port above the GPU can do."""
    upstream_width_max: int | None = None


class NvLink(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One NVLink of a GPU."""

    link: int
    active: bool | None = None
    version: int | None = None
    remote_pci_bus_id: str | None = None
    remote_kind: str | None = None
    """``gpu``, ``switch``, ``cpu`` (IBM Power, Grace) …"""
    bandwidth: float | None = None
    """Bytes per second, one direction."""


class GpuFabric(Record, frozen=True, kw_only=True, omit_defaults=True):
    """State of the GPU on an NVSwitch fabric, as NVML reports it."""

    state: Literal["not_supported", "not_started", "in_progress", "completed"] | None = None
    status: int | None = None
    """``nvmlReturn_t`` of the registration; meaningful when ``state`` is ``completed``."""
    status_name: str | None = None
    health: tuple[str, ...] = ()
    """Conditions that the health mask reports, such as ``degraded_bandwidth``."""


class Process(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A process that has a context on the GPU."""

    pid: int
    kind: Literal["compute", "graphics"] | None = None
    memory: int | None = None


class Gpu(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """One NVIDIA GPU: what PCI, the kernel, NVML and CUDA say of it, joined by PCI bus id or UUID."""

    pci_bus_id: str | None = None
    """Canonical: ``0000:1b:00.0`` (lower case, four digits of domain or more)."""
    uuid: str | None = None
    label: str | None = None
    """An identity of its own for a GPU that has neither (assumed, or read in a text): ``assumed-0``."""
    index: int | None = None
    """NVML's index, which nvidia-smi shows."""
    cuda_ordinal: int | None = None
    """CUDA's number for it under the present variables; ``None`` when CUDA does not enumerate it."""
    minor: int | None = None
    """Number of its device node, ``/dev/nvidia<minor>``."""
    name: str | None = None
    brand: str | None = None
    architecture: str | None = None
    """``hopper``, ``blackwell`` …"""
    compute_capability: str | None = None
    pci_device_id: str | None = None
    """Vendor and device: ``10de:2335``."""
    pci_subsystem_id: str | None = None
    kernel_driver: str | None = None
    """Kernel driver bound to the device: ``nvidia``, ``nouveau``, ``vfio-pci``; empty text for none."""
    numa_node: int | None = None
    cores: int | None = None
    sm_count: int | None = None
    serial: str | None = None
    vbios: str | None = None
    part_number: str | None = None
    gsp_firmware: str | None = None
    performance_state: str | None = None
    compute_mode: Literal["default", "exclusive_thread", "prohibited", "exclusive_process"] | None = None
    persistence_mode: bool | None = None
    virtualization: str | None = None
    """``none``, ``passthrough``, ``vgpu``, ``host_vgpu``, ``host_vsga``."""
    recovery_action: str | None = None
    """NVML's advice: ``none``, ``gpu_reset``, ``node_reboot``, ``drain_p2p``, ``drain_and_reset``."""
    addressing_mode: str | None = None
    """``hmm``, ``ats`` or ``none``."""
    memory: Memory | None = None
    bar1: Memory | None = None
    ecc: Ecc | None = None
    row_remap: RowRemap | None = None
    mig: Mig | None = None
    clocks: Clocks | None = None
    power: Power | None = None
    temperature: Temperature | None = None
    fan: float | None = None
    """Share of the maximum speed, 0 to 1."""
    throttle: Throttle | None = None
    pcie: Pcie | None = None
    nvlinks: tuple[NvLink, ...] | None = None
    fabric: GpuFabric | None = None
    utilisation: float | None = None
    """Share of the sampling period in which a kernel ran, 0 to 1."""
    memory_utilisation: float | None = None
    processes: tuple[Process, ...] | None = None
    errors: tuple[ApiResult, ...] = ()
    """Calls about this GPU that failed in a way that is not "not supported" (a lost GPU, a failed start)."""
    not_supported: tuple[str, ...] = ()
    """Fields of this record that the GPU or its driver says it does not have: looked, and absent."""

    def identities(self) -> tuple[str, ...]:
        return tuple(identity for identity in (self.pci_bus_id, self.uuid, self.label) if identity)

    @property
    def key(self) -> str:
        """The most lasting identity."""
        return next(iter(self.identities()), "?")


class GpuLink(Record, frozen=True, kw_only=True, omit_defaults=True):
    """How two GPUs are joined."""

    first: str
    second: str
    """PCI bus ids."""
    nvlinks: int | None = None
    path: str | None = None
    """The PCIe path, closest first: ``internal``, ``single``, ``multiple``, ``hostbridge``, ``node``, ``system``."""


class Fabric(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What joins the GPUs."""

    nvswitches: int | None = None
    """NVSwitch chips on this system's PCI bus (none are shown to a guest)."""
    manager_running: bool | None = None
    """Whether an nv-fabricmanager process is seen; one outside this container or guest is not."""
    links: tuple[GpuLink, ...] | None = None


# --- software -----------------------------------------------------------------------------------------------------


class Toolkit(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A CUDA toolkit on disk."""

    path: str
    """Real path of its folder."""
    version: str | None = None
    nvcc: str | None = None
    on_path: bool | None = None
    cuda_home: bool | None = None
    """Whether CUDA_HOME or CUDA_PATH names it."""
    origin: Literal["system", "conda", "wheel"] | None = None
    aliases: tuple[str, ...] = ()
    """Links that lead to it, such as ``/usr/local/cuda``."""

    def identities(self) -> tuple[str, ...]:
        return (self.path,)


class Library(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A copy of a CUDA library on disk."""

    path: str
    family: str
    """``cudart``, ``cublas``, ``cudnn``, ``nccl`` …"""
    soname: str | None = None
    declared: str | None = None
    """Version by the metadata of the package that owns the file."""
    on_disk: str | None = None
    """Version that the file itself says."""
    loaded: str | None = None
    """Version seen in the memory of a process after a real call."""
    owner: str | None = None
    gpu_code: tuple[str, ...] | None = None

    def identities(self) -> tuple[str, ...]:
        return (self.path,)


class Distribution(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An installed Python distribution (or conda package), by its metadata."""

    name: str
    """Normalised."""
    version: str
    path: str | None = None
    build: str | None = None
    """Build string of a conda package."""
    channel: Literal["pip", "conda"] | None = None
    installer: str | None = None
    requires: tuple[str, ...] | None = None
    """``Requires-Dist``, kept for frameworks."""
    editable: bool | None = None


class Framework(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A framework in one environment, as its files describe it (and, after a deep probe, as it behaved)."""

    name: str
    """Name of the distribution: ``torch``."""
    version: str | None = None
    path: str | None = None
    cuda: str | None = None
    """CUDA version that it was built with."""
    cpu_only: bool | None = None
    """Whether it was built without any GPU support."""
    hip: str | None = None
    """ROCm version that it was built with."""
    cudnn: str | None = None
    nccl: str | None = None
    gpu_code: tuple[str, ...] | None = None
    """What it holds GPU code for, as targets: ``sm_90``, ``sm_90a``, ``compute_120``."""
    gpu_available: bool | None = None
    """Whether it said, when asked, that it can use a GPU."""
    requires: tuple[str, ...] = ()
    """The nvidia-* distributions it declares, as requirement lines."""
    problem: str | None = None
    """Why its files could not be read."""

    def identities(self) -> tuple[str, ...]:
        return (self.name,)


class Environment(Identified, frozen=True, kw_only=True, omit_defaults=True):
    """A Python environment, examined as files: nothing of it was started."""

    key: str
    """Prefix, or the path asked for when there is no prefix."""
    why: str | None = None
    """Why it was examined: ``--python``, ``VIRTUAL_ENV``, ``CONDA_PREFIX``, ``./.venv``, ``PATH``, ``envcheck``."""
    judged: bool | None = None
    """Whether the verdict is about it; others are only named."""
    executable: str | None = None
    python: str | None = None
    """Version, as far as the files tell."""
    implementation: str | None = None
    prefix: str | None = None
    base_prefix: str | None = None
    manager: Literal["venv", "uv", "virtualenv", "conda", "pyenv", "system", "other"] | None = None
    externally_managed: bool | None = None
    """PEP 668: the system forbids pip to install into it."""
    site_packages: tuple[str, ...] = ()
    distributions: tuple[Distribution, ...] | None = None
    distributions_complete: bool = False
    frameworks: Listing[Framework] | None = None
    problem: str | None = None
    """Why it cannot be examined, or cannot run: ``its base interpreter /usr/bin/python3.9 is gone``."""

    def identities(self) -> tuple[str, ...]:
        return (self.key,)


class Variables(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The environment variables that matter here; one that is not in a complete list is not set."""

    values: dict[str, str] = {}
    complete: bool = False


# --- what was measured, met and done ------------------------------------------------------------------------------


class Measurement(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A measured quantity."""

    name: str
    gpu: str | None = None
    value: float | None = None
    unit: str = ""
    samples: tuple[float, ...] = ()
    method: str = ""
    context: dict[str, str] = {}


class ObservedError(Record, frozen=True, kw_only=True, omit_defaults=True):
    """An error line found in pasted text."""

    text: str
    line: int | None = None


class ProbeRun(Record, frozen=True, kw_only=True):
    """How a probe ended; one for every probe that was meant to run."""

    name: str
    title: str = ""
    status: Literal["ok", "absent", "failed", "crashed", "timed-out", "skipped"]
    """``absent``: there is nothing here for it to look at; ``skipped``: it was not started, ``detail`` says why."""
    seconds: float = 0.0
    detail: str = ""
    """One sentence: ``crashed: SIGSEGV while importing torch``."""
    noise: str = ""
    """The tail of what it printed."""
    fills: tuple[str, ...] = ()
    """Paths of the Snapshot that it was to fill."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A value and where it was read."""

    value: str
    source: str


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A fact for which two sources gave different values; the first is the one that was kept."""

    path: str
    readings: tuple[Reading, ...]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine. Every section is ``None`` until somebody looked."""

    platform: Platform | None = None
    kernel: Kernel | None = None
    driver: Driver | None = None
    gpus: Listing[Gpu] | None = None
    fabric: Fabric | None = None
    toolkits: Listing[Toolkit] | None = None
    libraries: Listing[Library] | None = None
    environments: Listing[Environment] | None = None
    variables: Variables | None = None
    measurements: tuple[Measurement, ...] = ()
    observed_errors: tuple[ObservedError, ...] = ()
    runs: tuple[ProbeRun, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
