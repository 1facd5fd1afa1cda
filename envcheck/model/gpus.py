"""GPUs and what joins them."""

from typing import Literal

from envcheck.model.base import ApiResult, Identified, Record


class Memory(Record, frozen=True, kw_only=True):
    """Device memory, in bytes."""

    total: int | None = None  # In bytes
    reserved: int | None = None  # What the driver keeps for itself, in bytes
    used: int | None = None  # In bytes
    free: int | None = None  # In bytes
    bus_width: int | None = None  # Bits


class Ecc(Record, frozen=True, kw_only=True):
    """Error-correcting memory: mode, and errors counted since the driver was loaded and over the GPU's life."""

    enabled: bool | None = None  # Whether ECC is on
    pending: bool | None = None  # Whether ECC is on after the next reset or reboot
    volatile_corrected: int | None = None  # Corrected errors since the driver was loaded
    volatile_uncorrected: int | None = None  # Uncorrected errors since the driver was loaded
    aggregate_corrected: int | None = None  # Corrected errors over the GPU's life
    aggregate_uncorrected: int | None = None  # Uncorrected errors over the GPU's life
    retired_pages: int | None = None  # Number of retired memory pages (before Ampere)
    retirement_pending: bool | None = None  # Whether a page waits for the next reboot to be retired


class RowRemap(Record, frozen=True, kw_only=True):
    """Row remapping of device memory (Ampere and later)."""

    corrected: int | None = None  # Rows remapped after corrected errors
    uncorrected: int | None = None  # Rows remapped after uncorrected errors
    pending: bool | None = None  # Whether a remapping waits for the next reset
    failed: bool | None = None  # Whether a remapping has failed


class MigInstance(Record, frozen=True, kw_only=True):
    """A MIG device (a compute instance that CUDA can use)."""

    uuid: str | None = None  # As in ``MIG-…``
    name: str | None = None  # As in ``1g.10gb``
    memory: int | None = None  # In bytes
    sm_count: int | None = None  # Number of multiprocessors


class Mig(Record, frozen=True, kw_only=True):
    """Multi-Instance GPU mode."""

    enabled: bool | None = None  # Whether MIG mode is on
    pending: bool | None = None  # Whether MIG mode is on after the next reset
    instances: tuple[MigInstance, ...] | None = None  # The MIG devices; null: not known


class Clocks(Record, frozen=True, kw_only=True):
    """Clocks, in hertz."""

    sm: float | None = None  # Clock of the multiprocessors now, in Hz
    sm_max: float | None = None  # Highest clock of the multiprocessors, in Hz
    memory: float | None = None  # Memory clock now, in Hz
    memory_max: float | None = None  # Highest memory clock, in Hz
    sm_application: float | None = None  # Application clock that is set for the multiprocessors, in Hz
    sm_application_default: float | None = None  # Default application clock of the multiprocessors, in Hz


class Power(Record, frozen=True, kw_only=True):
    """Power, in watts."""

    draw: float | None = None  # In watts
    limit: float | None = None  # The limit in force
    limit_default: float | None = None  # The limit that the board was shipped with, in watts
    limit_min: float | None = None  # The lowest limit that can be set, in watts
    limit_max: float | None = None  # The highest limit that can be set, in watts


class Temperature(Record, frozen=True, kw_only=True):
    """Temperatures, in degrees Celsius."""

    gpu: float | None = None  # Current temperature of the chip, in degrees Celsius
    memory: float | None = None  # Current temperature of the memory, in degrees Celsius
    slowdown: float | None = None  # From which the hardware lowers the clocks, in degrees Celsius
    shutdown: float | None = None  # From which the GPU is switched off, in degrees Celsius
    gpu_max: float | None = None  # Highest operating temperature, in degrees Celsius


class Throttle(Record, frozen=True, kw_only=True):
    """Why the clocks are held below their maximum (NVML's clocks event reasons)."""

    reasons: tuple[str, ...] | None = None
    """``gpu_idle``, ``applications_clocks_setting``, ``sw_power_cap``, ``hw_slowdown``, ``sync_boost``,
    ``sw_thermal_slowdown``, ``hw_thermal_slowdown``, ``hw_power_brake_slowdown``, ``display_clock_setting``."""
    seconds: dict[str, float] | None = None  # Time spent under a reason since the driver was loaded


class Pcie(Record, frozen=True, kw_only=True):
    """The PCI Express link. The current generation falls when the GPU is idle; the width does not."""

    generation: int | None = None  # Generation of the link now; it falls when the GPU is idle
    generation_max: int | None = None  # What GPU and slot can do together
    generation_device_max: int | None = None  # What the GPU can do in any slot
    width: int | None = None  # Lanes in use
    width_max: int | None = None  # Lanes that GPU and slot can use together
    replays: int | None = None  # Packets that had to be sent again
    upstream_generation_max: int | None = None  # What the port above the GPU can do
    upstream_width_max: int | None = None  # Lanes of the port above the GPU
    iommu: str | None = None
    """How the kernel's IOMMU treats the GPU: ``identity`` (passed through), ``DMA`` or ``DMA-FQ`` (addresses are
    translated) …; empty text where no IOMMU is in use."""
    redirecting: tuple[str, ...] | None = None
    """Ports of PCIe switches above the GPU whose Access Control Services send traffic between devices up to the root;
    empty: none."""


class NvLink(Record, frozen=True, kw_only=True):
    """One NVLink of a GPU."""

    link: int  # Its number on the GPU
    active: bool | None = None  # Whether it is up
    version: int | None = None  # Generation of NVLink
    remote_pci_bus_id: str | None = None  # PCI bus id of what is at the other end
    remote_kind: str | None = None  # ``gpu``, ``switch``, ``cpu`` (IBM Power, Grace) …
    bandwidth: float | None = None  # Bytes per second, one direction


class GpuFabric(Record, frozen=True, kw_only=True):
    """State of the GPU on an NVSwitch fabric, as NVML reports it."""

    state: Literal["not_supported", "not_started", "in_progress", "completed"] | None = None
    """How far the registration with the fabric is."""
    status: int | None = None  # ``nvmlReturn_t`` of the registration; meaningful when ``state`` is ``completed``
    status_name: str | None = None  # The status by name
    health: tuple[str, ...] = ()  # Conditions that the health mask reports, such as ``degraded_bandwidth``


class Process(Record, frozen=True, kw_only=True):
    """A process that has a context on the GPU."""

    pid: int  # Process id, in the namespace that the driver tells
    kind: Literal["compute", "graphics"] | None = None  # Whether it computes or draws
    memory: int | None = None  # Device memory that it uses, in bytes
    mps_server: bool | None = None  # Whether it is the server of MPS, whose clients share the GPU; null: not known


class Gpu(Identified, frozen=True, kw_only=True):
    """One NVIDIA GPU: what PCI, the kernel, NVML and CUDA say of it, joined by PCI bus id or UUID."""

    pci_bus_id: str | None = None  # Canonical: ``0000:1b:00.0`` (lower case, four digits of domain or more)
    uuid: str | None = None  # As in ``GPU-…``, from NVML or CUDA
    label: str | None = None
    """An identity of its own for a GPU that has neither (assumed, or read in a text): ``assumed-0``."""
    index: int | None = None  # NVML's index, which nvidia-smi shows
    cuda_ordinal: int | None = None
    """CUDA's number for it under the present variables; ``None`` when CUDA does not enumerate it."""
    minor: int | None = None  # Number of its device node, ``/dev/nvidia<minor>``
    excluded: bool | None = None  # Whether an option of the kernel module keeps the driver from starting it
    name: str | None = None  # Product name, as in ``NVIDIA H200``
    brand: str | None = None  # NVML's brand, such as ``GeForce`` or ``Tesla``
    architecture: str | None = None  # ``hopper``, ``blackwell`` …
    compute_capability: str | None = None  # As in ``9.0``
    pci_device_id: str | None = None  # Vendor and device: ``10de:2335``
    pci_subsystem_id: str | None = None  # PCI subsystem vendor and device
    kernel_driver: str | None = None
    """Kernel driver bound to the device: ``nvidia``, ``nouveau``, ``vfio-pci``; empty text for none."""
    numa_node: int | None = None  # The NUMA node that it is attached to
    processors_near: int | None = None  # How many of the processors that envcheck's process may use are beside it
    adapters: dict[str, Literal["switch", "root", "node", "far"]] | None = None
    """What it shares with each InfiniBand or RoCE adapter: a PCIe switch, the root, or the NUMA node alone."""
    cores: int | None = None  # Number of CUDA cores
    sm_count: int | None = None  # Number of multiprocessors
    serial: str | None = None  # Serial number of the board
    vbios: str | None = None  # Version of the video BIOS
    part_number: str | None = None  # Part number of the board
    gsp_firmware: str | None = None  # Version of the firmware of the GPU's system processor (GSP)
    performance_state: str | None = None  # As in ``P0``, the fastest
    compute_mode: Literal["default", "exclusive_thread", "prohibited", "exclusive_process"] | None = None
    """How many processes may use it."""
    persistence_mode: bool | None = None  # Whether the driver keeps it initialized while nothing uses it
    virtualization: str | None = None  # ``none``, ``passthrough``, ``vgpu``, ``host_vgpu``, ``host_vsga``
    recovery_action: str | None = None
    """NVML's advice: ``none``, ``gpu_reset``, ``node_reboot``, ``drain_p2p``, ``drain_and_reset``,
    ``recover_imex_domain``, ``bus_reset``, ``system_reboot``."""
    addressing_mode: str | None = None  # ``hmm``, ``ats`` or ``none``
    memory: Memory | None = None  # Device memory
    bar1: Memory | None = None  # Memory window on the PCI bus
    ecc: Ecc | None = None  # Error-correcting memory
    row_remap: RowRemap | None = None  # Row remapping
    mig: Mig | None = None  # Multi-Instance GPU mode
    clocks: Clocks | None = None  # Clocks
    power: Power | None = None  # Power draw and limits
    temperature: Temperature | None = None  # Temperatures
    fan: float | None = None  # Share of the maximum speed, 0 to 1
    throttle: Throttle | None = None  # Why the clocks are held down
    pcie: Pcie | None = None  # The PCI Express link
    nvlinks: tuple[NvLink, ...] | None = None  # Its NVLinks; null: not checked
    fabric: GpuFabric | None = None  # Its state on an NVSwitch fabric
    utilisation: float | None = None  # Share of the sampling period in which a kernel ran, 0 to 1
    memory_utilisation: float | None = None  # Share of time in which memory was read or written, from 0 to 1
    processes: tuple[Process, ...] | None = None  # Processes that use it; null: not known
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

    @property
    def title(self) -> str:
        """``GPU 3 (NVIDIA H200)``."""
        number = str(self.index) if self.index is not None else self.pci_bus_id or self.uuid
        if number is None:
            return self.name or "the GPU"
        return f"GPU {number} ({self.name})" if self.name else f"GPU {number}"

    @property
    def lacks_handle(self) -> bool:
        """Whether the driver counts it but gives no handle to query it."""
        return any("handle" in error.call.lower() for error in self.errors)


class GpuLink(Record, frozen=True, kw_only=True):
    """How two GPUs are joined."""

    first: str  # PCI bus id of one GPU
    second: str  # PCI bus id of the other GPU
    nvlinks: int | None = None  # Number of active NVLinks between them
    path: str | None = None
    """The PCIe path, closest first: ``internal``, ``single``, ``multiple``, ``hostbridge``, ``node``, ``system``."""
    peer_read: str | None = None
    """What NVML says of one reading the other's memory: ``ok``, ``chipset_not_supported``, ``gpu_not_supported``,
    ``ioh_topology_not_supported``, ``disabled_by_regkey``, ``not_supported``, ``unknown``."""


class PeerAccess(Record, frozen=True, kw_only=True):
    """Whether CUDA lets one GPU reach another's memory (``cuDeviceCanAccessPeer``)."""

    first: str  # PCI bus id of the GPU that reads
    second: str  # PCI bus id of the other GPU
    allowed: bool  # Whether CUDA allows it


class Fabric(Record, frozen=True, kw_only=True):
    """What joins the GPUs."""

    nvswitches: int | None = None  # NVSwitch chips on this system's PCI bus (none are shown to a guest)
    manager_running: bool | None = None
    """Whether an nv-fabricmanager process is seen; one outside this container or guest is not."""
    links: tuple[GpuLink, ...] | None = None  # How each pair of GPUs is joined; null: not checked
    peers: tuple[PeerAccess, ...] | None = None  # Whether CUDA allows peer access, for each pair; null: not checked
