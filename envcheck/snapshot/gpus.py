"""GPUs and what joins them."""

from typing import Literal

from envcheck.snapshot.base import ApiResult, Identified, Record


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
    iommu: str | None = None
    """How the kernel's IOMMU treats the GPU: ``identity`` (passed through), ``DMA`` or ``DMA-FQ`` (addresses are
    translated) …; empty text where no IOMMU is in use."""
    redirecting: tuple[str, ...] | None = None
    """Ports of PCIe switches above the GPU whose Access Control Services send traffic between devices up to the root;
    empty: none."""


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
    """NVML's advice: ``none``, ``gpu_reset``, ``node_reboot``, ``drain_p2p``, ``drain_and_reset``,
    ``recover_imex_domain``, ``bus_reset``, ``system_reboot``."""
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
    peer_read: str | None = None
    """What NVML says of one reading the other's memory: ``ok``, ``chipset_not_supported``, ``gpu_not_supported``,
    ``ioh_topology_not_supported``, ``disabled_by_regkey``, ``not_supported``, ``unknown``."""


class PeerAccess(Record, frozen=True, kw_only=True, omit_defaults=True):
    """Whether CUDA lets one GPU reach another's memory (``cuDeviceCanAccessPeer``)."""

    first: str
    second: str
    """PCI bus ids."""
    allowed: bool


class Fabric(Record, frozen=True, kw_only=True, omit_defaults=True):
    """What joins the GPUs."""

    nvswitches: int | None = None
    """NVSwitch chips on this system's PCI bus (none are shown to a guest)."""
    manager_running: bool | None = None
    """Whether an nv-fabricmanager process is seen; one outside this container or guest is not."""
    links: tuple[GpuLink, ...] | None = None
    peers: tuple[PeerAccess, ...] | None = None
