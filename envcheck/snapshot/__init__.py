"""What a machine looks like: frozen records, no I/O.

Three things are kept apart. *Nobody looked*: the section or field is ``None``. *Looked and absent*: said inside the
record (``installed=False``, an empty list that is ``complete``, a name in ``Gpu.not_supported``). *Present*: the value.

Every record says where it was read (``source``); where one field was read elsewhere than the rest of its record,
``read`` names that field's own source. Values are kept as the machine said them (versions as text); units are base
units: bytes, bytes per second, hertz, watts, degrees Celsius, seconds.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import msgspec

from envcheck.snapshot.base import ApiResult, Identified, Listing, Record
from envcheck.snapshot.gpus import (
    Clocks,
    Ecc,
    Fabric,
    Gpu,
    GpuFabric,
    GpuLink,
    Memory,
    Mig,
    MigInstance,
    NvLink,
    Pcie,
    PeerAccess,
    Power,
    Process,
    RowRemap,
    Temperature,
    Throttle,
)
from envcheck.snapshot.runs import (
    Conditions,
    Disagreement,
    Measurement,
    ObservedError,
    ProbeRun,
    Reading,
    Span,
    Verification,
)
from envcheck.snapshot.software import (
    Damaged,
    DamagedFile,
    Distribution,
    Environment,
    Framework,
    Library,
    Load,
    Loaded,
    Shipped,
    Startup,
    Toolkit,
    Trial,
    TrialFile,
    Unreadable,
    VariablePath,
    Variables,
)
from envcheck.snapshot.system import (
    ContainerHost,
    DeviceNode,
    Driver,
    DriverLibrary,
    Kernel,
    KernelLog,
    KernelMessage,
    KernelModule,
    Platform,
)

__all__ = [
    "ApiResult",
    "Clocks",
    "Conditions",
    "ContainerHost",
    "Damaged",
    "DamagedFile",
    "DeviceNode",
    "Disagreement",
    "Distribution",
    "Driver",
    "DriverLibrary",
    "Ecc",
    "Environment",
    "Fabric",
    "Framework",
    "Gpu",
    "GpuFabric",
    "GpuLink",
    "Identified",
    "Kernel",
    "KernelLog",
    "KernelMessage",
    "KernelModule",
    "Library",
    "Listing",
    "Load",
    "Loaded",
    "Measurement",
    "Memory",
    "Mig",
    "MigInstance",
    "NvLink",
    "ObservedError",
    "Pcie",
    "PeerAccess",
    "Platform",
    "Power",
    "ProbeRun",
    "Process",
    "Reading",
    "Record",
    "RowRemap",
    "Shipped",
    "Snapshot",
    "Span",
    "Startup",
    "Temperature",
    "Throttle",
    "Toolkit",
    "Trial",
    "TrialFile",
    "Unreadable",
    "VariablePath",
    "Variables",
    "Verification",
]


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
    unreadable: tuple[Unreadable, ...] = ()
    """What probes could not read of the machine; what they read it for is not known."""
    measurements: tuple[Measurement, ...] = ()
    baseline: tuple[Measurement, ...] = ()
    """Earlier figures that the measured ones are compared with."""
    observed_errors: tuple[ObservedError, ...] = ()
    runs: tuple[ProbeRun, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()


class _Callable(ModuleType):
    """Lets ``envcheck.snapshot()`` be called: the public function has the name of this package, whose import would
    hide it.
    """

    def __call__(self, **arguments: Any) -> Snapshot:
        # By name: the records import nothing of what gathers them.
        taken: Snapshot = import_module("envcheck.api").snapshot(**arguments)
        return taken


sys.modules[__name__].__class__ = _Callable
