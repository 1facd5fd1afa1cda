"""Tables of hardware: GPUs and their generations, drivers, CUDA, and how fast healthy GPUs and links are."""

import re
from typing import Literal, TypeAlias

import msgspec

from envcheck.knowledge.tables import Row
from envcheck.sources import Confidence

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
    bandwidth: float  # Bytes per second in one direction; data sheets print the sum of both
    pair: int = 0  # Links between two GPUs on the board that has the fewest of them; 0: some boards have none


class ArchitectureRow(Row, frozen=True, kw_only=True):
    """A GPU generation and the driver branches that drive it."""

    id_of = "architecture/{0.name}"
    name: str  # ``kepler`` … ``blackwell``
    capabilities: tuple[str, ...]  # Compute capabilities, oldest first: ``7.5``
    first_branch: int | None = None  # First Linux driver branch that supports any GPU of it
    last_branch: int | None = None  # Last one; ``None`` while current branches do
    kernel_module: Literal["proprietary", "open", "both"] | None = None
    """Which flavour of the kernel module can drive it; exceptions are in ``CapabilityRow`` and ``GpuRow``."""


class CapabilityRow(Row, frozen=True, kw_only=True):
    """A compute capability."""

    id_of = "capability/{0.capability}"
    capability: str
    architecture: str
    tegra: bool = False  # Integrated in a Tegra SoC: its cubins do not serve discrete GPUs, nor theirs it
    first_branch: int | None = None  # First Linux driver branch that supports a GPU of it, if not its architecture's
    open_module_only: bool = False
    family: tuple[str, ...] = ()  # Capabilities on which its ``f`` code runs
    renamed_to: str | None = None  # The capability that later toolkits call it
    own_from: str | None = None  # The first CUDA with its target ``sm_90a``; None where there is no such target
    family_from: str | None = None  # The first CUDA with its target ``sm_100f``


class GpuRow(Row, frozen=True, kw_only=True):
    """A GPU model, with the figures of its data sheet. A row without ``memory`` stands for all variants of a model: it
    has only the figures that they share.
    """

    name: str  # Marketing name without vendor, as in ``H100 80GB HBM3``
    aliases: tuple[str, ...] = ()
    compute_capability: str
    device_ids: tuple[str, ...] = ()  # PCI device ids as ``10de:2330``
    memory: int | None = None  # Bytes as sold (the driver shows a little less)
    bandwidth: float | None = None  # Bandwidth of its memory, in bytes per second
    sms: int | None = None  # Multiprocessors
    clock: float | None = None  # Boost clock of its data sheet, in Hz; the driver's maximum may be higher
    tensor_clock: float | None = None  # The lower clock that its tensor peaks refer to, where there is one
    tensor_cores: bool = True  # False for a model without, where others of its compute capability have them
    peaks: ByPrecision | None = None  # Operations per second, dense, of the whole GPU (of one where a board has two)
    pcie_generation: int | None = None
    pcie_width: int | None = None  # Lanes
    nvlink: SheetNvLink | None = None
    power: float | None = None  # Default power limit in watts (of the board, where it has several GPUs)
    sheet_confidence: Confidence = "high"  # How sure the figures are (memory to power), where it differs from the rest
    kind: Literal["data-center", "workstation", "geforce", "tegra", "other"] | None = None
    superchip: bool = False  # Whether it shares a module with a processor of Arm, in a system that is no Jetson
    first_drivers: tuple[str, ...] = ()
    """The first Linux release that supports it, and the first of each later branch that began without it; ascending.
    Empty where the generation's first branch will do, or none is documented."""
    added_by: str = ""
    """The Linux release that adds it to its branch, where no first release of all branches is documented: older
    branches may have been given it later."""
    lacked_by: str = ""  # The release before that one in the same document, which lacks it; between them, nobody knows
    listed_from: str = ""
    """The first Linux release whose list of GPUs has it, where it came later than its generation: nobody says whether
    earlier ones support it."""
    last_branch: int | None = None  # The last Linux branch that supports it, where its generation has later ones
    open_module_only: bool = False  # Whether it needs the open kernel module though others of its capability do not
    jetpack: str = ""  # Specifier of the JetPack releases that support a module, if fewer than of its capability

    @property
    def id(self) -> str:
        return f"gpu/{re.sub('[^a-z0-9]+', '-', self.name.lower()).strip('-')}"


class SharedNameRow(Row, frozen=True, kw_only=True):
    """A name under which GPUs of several compute capabilities have been sold, or that people write for several."""

    id_of = "shared-name/{0.name}"
    name: str
    aliases: tuple[str, ...] = ()
    compute_capabilities: tuple[str, ...]


class MigRow(Row, frozen=True, kw_only=True):
    """The instances into which GPUs can be divided."""

    id_of = "mig/{0.name}"
    name: str  # Name of the models together: ``A100 40GB``
    gpus: tuple[str, ...]  # Their names, as in the rows of GPUs
    profiles: tuple[str, ...]  # As ``nvidia-smi`` writes them, without ``MIG``: ``1g.10gb+me``
    driver: str | None = None  # The least Linux driver that divides them
    drivers: dict[str, str] = {}  # The least one by profile, for those that came later


class LinkRow(Row, frozen=True, kw_only=True):
    """What a lane of PCI Express carries in one direction, after the line's own coding."""

    id_of = "link/pcie-{0.generation}"
    generation: int
    lane: float  # Bytes per second


class DriverBranchRow(Row, frozen=True, kw_only=True):
    """A driver branch (R550): the newest CUDA that it supports, and how long it is maintained."""

    branch: int
    os: Literal["linux", "windows"] = "linux"
    until: int | None = None  # Highest first number of its releases on Windows, where R550 covers 550 to 553
    cuda: str | None = None  # Newest CUDA version that its libcuda supports
    kind: Literal["long-term", "production", "new-feature", "legacy"] | None = None
    ended: str | None = None  # The day (or month) its support ended or ends
    first: str | None = None  # Its first release, where that is known
    capabilities: tuple[str, ...] = ()  # The compute capabilities that it supports, of an old branch of unknown CUDA
    developer: str = ""  # Specifier of its releases for developers of Vulkan: their numbers tell of no GPUs

    @property
    def id(self) -> str:
        return f"driver/{self.branch}" if self.os == "linux" else f"driver/{self.branch}-{self.os}"


class DriverLibrariesRow(Row, frozen=True, kw_only=True):
    """How the driver's libraries of one release are installed beside a kernel module that is there."""

    id_of = "driver-libraries/{0.family}"
    family: Literal["ubuntu", "debian", "fedora", "suse", "any"]
    """The distributions, by the name of their family; ``any``: NVIDIA's installer, for all of them."""
    command: tuple[str, ...]  # With ``{release}``, ``{branch}`` and ``{machine}`` for the driver's and the processor's


class CudaUpdate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A release of a CUDA minor whose least driver is another one than that of the releases before it."""

    release: str  # Its three numbers, as in ``8.0.61``; what it says holds up to the next one
    driver_linux: str | None = None
    driver_windows: str | None = None


class CudaRow(Row, frozen=True, kw_only=True):
    """A CUDA toolkit release (major.minor)."""

    id_of = "cuda/{0.version}"
    version: str
    driver_linux: str | None = None  # Least Linux driver for what is built with it (from CUDA 11 on: any minor)
    driver_windows: str | None = None
    disputed_linux: str | None = None  # A lower minimum that another document of NVIDIA states: between, unknown
    disputed_windows: str | None = None
    updates: tuple[CudaUpdate, ...] = ()  # The releases of the minor, oldest first, where their least drivers differ
    releases: tuple[str, ...] = ()  # All releases of the minor, oldest first, by three numbers
    bundled_driver: str | None = None  # Linux driver that its first release came with; it knows all it can produce
    ptx: str | None = None  # PTX ISA version that it writes
    targets: tuple[str, ...] = ()  # Compute capabilities that it can compile for, as ``sm_90``
    disputed_targets: tuple[str, ...] = ()  # Those for which one source says that it does, another that a later does
    toolkit: bool = True  # False for a version that only drivers report (12.7)


class RateRow(Row, frozen=True, kw_only=True):
    """What a multiprocessor does in a clock: a peak is the number of multiprocessors, times the clock, times that."""

    compute_capability: str
    variant: Literal["", "geforce", "no-tensor-cores"] = ""
    """``geforce`` where GeForce models do less than others, ``no-tensor-cores`` for models without."""
    cores: int  # FP32 units, which NVML and data sheets count as cores
    operations: ByPrecision  # Operations per clock of one multiprocessor

    @property
    def id(self) -> str:
        return f"rate/{self.compute_capability}" + (f"-{self.variant}" if self.variant else "")


class EfficiencyRow(Row, frozen=True, kw_only=True):
    """What share of its ceiling a measured quantity reaches on healthy GPUs."""

    quantity: str  # Name of the measurement: ``gemm``, ``device-memory-copy``, ``host-to-device`` …
    method: str  # What does it: ``cublasLt``, ``kernel``, ``mma.sync``, ``copy engine``
    architecture: str = ""  # Empty: every one that no other row covers
    gpu: str = ""  # A model's name, where it has a band of its own; empty: every GPU of the architecture
    precision: str = ""
    variant: str = ""  # ``Measurement.variant``; empty: every one that no other row covers
    run: Literal["", "burst", "sustained"] = ""
    """Whether it holds for runs too short to reach the power limit, or for those that go on at it; empty: for both."""
    low: float  # Least share that is expected
    high: float  # Greatest share that was seen
    wide: bool = False  # Whether it is only a floor, because it was never measured here

    @property
    def id(self) -> str:
        words = (self.quantity, self.method, self.precision, self.variant, self.architecture, self.gpu, self.run)
        return f"efficiency/{'-'.join(word.replace(', ', '-').replace(' ', '-') for word in words if word)}"


class MeasuredModelsRow(Row, frozen=True, kw_only=True):
    """The models on which the bands of an architecture were measured; its other models have the floors."""

    id_of = "measured-models/{0.architecture}"
    architecture: str
    gpus: tuple[str, ...]  # Names of models


class CollectiveRow(Row, frozen=True, kw_only=True):
    """What share of its links' bandwidth a collective operation reaches through NCCL on healthy machines."""

    operation: str  # Name of the measurement: ``nccl-all-reduce`` …
    link: Literal["nvswitch", "nvlink", "pcie", "host", "network"]
    """What joins the GPUs: NVLink through a switch or directly, PCI Express, host memory, a network."""
    architecture: str = ""  # Empty: every one that no other row covers
    least: int  # Fewest GPUs that it holds for
    most: int  # Most GPUs that it holds for
    in_switch: bool = False  # Whether it holds for sums inside the switch (NVLink SHARP), or for those on the GPUs
    size: int  # Bytes from which on it holds, by nccl-tests' definition of size
    low: float  # Least share that is expected of the bus bandwidth by nccl-tests' definition
    high: float  # Greatest share that was seen
    wide: bool = False  # Whether it is only a floor, because it was never measured here

    latency: float | None = None
    """Seconds that the smallest size takes at most where each GPU has a process: twice the greatest that was seen,
    since the host's processor counts too; None: not measured."""

    @property
    def id(self) -> str:
        words = (self.operation, self.link, self.architecture, f"{self.least}-{self.most}", self.in_switch and "switch")
        return f"collective/{'-'.join(word for word in words if word)}"


class SettingRow(Row, frozen=True, kw_only=True):
    """A setting of a framework that makes its work slower, as the framework itself reports it."""

    id_of = "setting/{0.framework}/{0.answer}={0.value}"
    framework: str  # As quantities begin with it: ``torch``
    answer: str  # What it was asked: a key of ``Trial.answers``
    value: str  # The answer that means slower work
    quantities: tuple[str, ...]  # The work that it slows
    text: str  # What is so, as a sentence without its end
    fix: str  # What to do, as a sentence without its end
    slow: str = ""
    fast: str = ""
    """Figures of these quantities with and without the setting, by the end of what they are called (``fp32 eager``):
    the setting is remarked on where both were measured and differ. Empty: it slows whatever is slow."""
