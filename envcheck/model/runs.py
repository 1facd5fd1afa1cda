"""What was measured, the errors that were met, what a text tells besides, how probes ended, where sources disagreed."""

from typing import Literal

import msgspec

from envcheck.model.base import Record

PASTED_TITLE = "Pasted: "  # How the titles of the runs begin that read a text: ``Pasted: lspci``


class Span(Record, frozen=True, kw_only=True):
    """The samples of a reading that changes, in its base unit."""

    low: float  # The lowest sample
    median: float  # The median of the samples
    high: float  # The highest sample


class Conditions(Record, frozen=True, kw_only=True):
    """A GPU while a quantity was measured on it, sampled side by side by NVML."""

    samples: int = 0  # Number of samples taken during the run
    sm_clock: Span | None = None  # Clock of the multiprocessors, in Hz
    memory_clock: Span | None = None  # Memory clock, in Hz
    power: Span | None = None  # Power draw, in watts
    temperature: Span | None = None  # Degrees Celsius
    utilisation: Span | None = None  # Percent of the time in which a kernel ran
    throttle: dict[str, float] = {}
    """Share of the samples in which each reason held the clocks down, by the names of ``Throttle.reasons``."""
    power_limit: float | None = None  # The power limit in force, in watts
    power_limit_default: float | None = None  # The limit that the board was shipped with, in watts
    pcie_generation: int | None = None  # Highest generation of the link seen during the run
    pcie_width: int | None = None  # Under load
    ecc: bool | None = None  # Whether ECC was on
    utilisation_before: float | None = None  # Percent, before envcheck put anything on it
    memory_before: int | None = None  # Bytes that others held on it before envcheck put anything on it
    temperature_before: float | None = None  # Temperature of the chip before the run, in degrees Celsius
    temperature_after: float | None = None  # Temperature of the chip after the run, in degrees Celsius
    rose: dict[str, int] = {}
    """How much the counters of errors rose during the run: ``pcie-replays``, ``pcie-errors`` (AER of the kernel),
    ``ecc-corrected``, ``ecc-uncorrected``, ``rows-remapped``, ``nvlink-errors``; of collectives, on all GPUs."""
    xids: tuple[int, ...] = ()  # Numbers of the errors (Xid) that the driver told of the GPU during the run
    used_by_others: float | None = None  # Percent of the run in which kernels of other programs ran on the GPU


class Verification(Record, frozen=True, kw_only=True):
    """Whether what was computed is right."""

    right: bool  # Whether every compared element is within the tolerance
    checked: int  # Elements that were compared
    how: str  # ``1,024 random elements against FP64 on the CPU``, ``every byte`` …
    wrong: int = 0  # Number of elements that are not
    worst: float | None = None  # Greatest error found, and in the same unit what is tolerated
    tolerance: float | None = None  # The greatest error that is tolerated, in the unit of ``worst``


class CollectivePoint(Record, frozen=True, kw_only=True):
    """A collective operation of one size."""

    size: int  # Bytes of the larger of a rank's two buffers
    seconds: float | None = None  # Seconds of one run with separate buffers; null: not measured
    bandwidth: float | None = None  # Bus bandwidth by nccl-tests' definition, in separate buffers, in bytes per second
    seconds_in_place: float | None = None  # Seconds of one run in a single buffer
    bandwidth_in_place: float | None = None  # Bus bandwidth in one buffer, in bytes per second


class Collective(Record, frozen=True, kw_only=True):
    """How several GPUs did a collective operation through NCCL."""

    ranks: int  # How many took part; each has a GPU
    processes: int  # How many processes they were in
    gpus: tuple[str, ...] = ()  # UUIDs of the GPUs, by rank
    transports: tuple[str, ...] = ()
    """What NCCL's log says that it connected them over, most frequent first: ``P2P/CUMEM``, ``SHM/direct`` …"""
    channels: int | None = None  # Channels of rings and trees, by NCCL's log
    nvls_channels: int | None = None  # Channels that sum inside the switch (NVLink SHARP), by NCCL's log
    algorithm: str | None = None  # What NCCL's log says that it chose for this size: ``ring``, ``tree``, ``nvls`` …
    protocol: str | None = None  # Likewise: ``simple``, ``ll``, ``ll128``
    points: tuple[CollectivePoint, ...] = ()  # Each size that was measured
    log: tuple[str, ...] = ()  # After a failure: warnings of NCCL's log, else its last lines


class Measurement(Record, frozen=True, kw_only=True):
    """A measured quantity, or why it could not be measured."""

    name: str  # ``device-memory-copy``, ``gemm``, ``host-to-device``, ``peer-to-peer`` …
    gpu: str | None = None  # UUID of the GPU; in pasted text its label
    peer: str | None = None  # UUID of the other GPU of a pair, or its label
    value: float | None = None  # Median of the samples
    unit: str = ""  # ``B/s``, ``FLOP/s``, ``OP/s`` (integers) or ``s``
    samples: tuple[float, ...] = ()  # The value of each repetition, in ``unit``
    method: str = ""  # What did it: ``kernel``, ``mma.sync``, ``cublasLt``, ``copy engine``; bands are given by it
    detail: str = ""  # The method in words, with versions: ``cuBLASLt 13.1.0.3``, ``NVRTC 13.0, sm_90``
    precision: str | None = None  # As the matrix names it: ``fp32``, ``tf32``, ``bf16``, ``fp8``, ``int8`` …
    shape: tuple[int, ...] = ()  # M, N, K of a matrix product
    size: int | None = None  # Bytes of the buffer, or moved by a transfer
    burst: bool | None = None
    """Whether it was short enough to run before the GPU reached its power limit; False: sustained."""
    variant: str | None = None
    """What else distinguishes it from others of its name: ``pageable``, ``both directions``, ``NVLink`` …"""
    library: str | None = None  # Real path of the library that did it
    algorithm: str | None = None
    """What the library chose among several ways to do it, in its own numbers; null: it has one, or does not say."""
    verification: Verification | None = None  # Whether the result is right; null: it was not verified
    conditions: Conditions | None = None  # What was observed of the GPU during the run; null: nothing
    missing: str | None = None
    """Why there is no value; without value and reason, the work was done and verified but not timed."""
    collective: Collective | None = None  # How several GPUs did it together; null: it is no collective operation
    failed: bool = False  # Whether the library that was to do it is here and failed, as ``missing`` says


class ObservedError(Record, frozen=True, kw_only=True):
    """An error line found in pasted text."""

    text: str  # The line as it was read, with its system messages in English
    as_written: str = ""  # The line as it stands in the text, where that is in another language
    line: int | None = None  # Its number in the text, from 1


class Told(Record, frozen=True, kw_only=True):
    """What a pasted text tells of its program and machine that is no fact of another section; null: it does not."""

    on_tpu: bool | None = None  # Whether the program computes on a TPU, so that no GPU is missed
    hidden_on_purpose: bool | None = None
    """Whether one command hides every GPU from itself, and another program finds GPUs."""
    other_gpu: str | None = None  # A GPU of another maker, in a text that names none of NVIDIA's
    job_without_gpu: str | None = None  # How it starts a batch job that asks its scheduler for no GPU
    torch_of_pypi: bool | None = None  # Whether a command installs PyTorch from PyPI and names no release
    silent_smi: bool | None = None  # Whether a report asked nvidia-smi and got neither GPUs nor a driver
    direct_copies: float | None = None
    """GB/s of copies from one GPU to another with peer access, of the pair that gains least by it."""
    staged_copies: float | None = None  # GB/s of the same copies through host memory


class ProbeRun(Record, frozen=True, kw_only=True):
    """How a probe ended; one for every probe that was meant to run."""

    name: str  # Name of the probe
    title: str = ""  # What it looks at, in words
    status: Literal["ok", "absent", "failed", "crashed", "timed-out", "skipped"]
    """``absent``: there is nothing here for it to look at; ``skipped``: it was not started, ``detail`` says why."""
    seconds: float = 0.0  # How long it took, in seconds
    processor: float | None = None
    """Seconds of processor time that it took with the processes it waited for, the start of its process included where
    it was the first in it; null: not measured, or it did not end by itself.
    """
    detail: str = ""  # One sentence: ``crashed: SIGSEGV while importing torch``
    cut_short: bool = False
    """Whether it was not started, or ended, because the time for all was over or the user wished so."""
    limit: Literal["", "open-files", "processes", "tasks"] = ""
    """The limit of the operating system that kept it from being started: ``tasks`` is the control group's, which alone
    binds root; ``processes`` the user's, or that one.
    """
    noise: str = ""  # The tail of what it printed
    fills: tuple[str, ...] = ()  # Paths of the Snapshot that it was to fill
    environment: str | None = None  # Key of the environment that it was run in, for one that runs in an environment
    framework: str | None = None  # Name of the framework that it tried, for one that tries frameworks
    gpu: str | None = None  # UUID of the GPU that it was run on, for one that runs for each GPU


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """How long a part of a run took."""

    name: str  # ``start`` (of the program, until its options are read), ``gather``, ``enrich`` or ``judge``
    seconds: float = 0.0  # Seconds on the clock
    processor: float = 0.0  # Seconds of processor time of envcheck's own process; probes run in others


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """A value and where it was read."""

    value: str  # The fact, as text
    source: str  # Who says so


def not_asked_for(kind: str) -> str:
    """``ProbeRun.detail`` of a probe of a kind that nobody asked for."""
    return f"{kind} probes run only when they are asked for"


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A fact for which two sources gave different values; the first is the one that was kept."""

    path: str  # Path of the fact in the snapshot
    readings: tuple[Reading, ...]  # What each source says
