"""What a machine looks like: frozen records, no I/O.

Three things are kept apart. *Nobody looked*: the section or field is ``None``. *Looked and absent*: said inside the
record (``installed=False``, an empty list that is ``complete``, a name in ``Gpu.not_supported``). *Present*: the value.

Every record says where it was read (``source``); where one field was read elsewhere than the rest of its record,
``read`` names that field's own source. Values are kept as the machine said them (versions as text); units are base
units: bytes, bytes per second, hertz, watts, degrees Celsius, seconds.
"""

import msgspec

# A record is declared in its module alone; this package has them all.
# ruff: noqa: F403, F405
from envcheck.model.base import *
from envcheck.model.gpus import *
from envcheck.model.runs import *
from envcheck.model.software import *
from envcheck.model.system import *


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A machine. Every section is ``None`` until somebody looked."""

    platform: Platform | None = None  # Operating system, processor and container; null: not checked
    kernel: Kernel | None = None  # Kernel modules, device nodes and kernel log; null: not checked
    driver: Driver | None = None  # The driver's user-space libraries and their answers; null: not checked
    dcgm: Dcgm | None = None  # What NVIDIA's DCGM reports; null: not checked, or not installed
    gpus: Listing[Gpu] | None = None  # The GPUs; null: not checked
    fabric: Fabric | None = None  # What joins the GPUs; null: not checked
    toolkits: Listing[Toolkit] | None = None  # CUDA toolkits; null: not checked
    libraries: Listing[Library] | None = None  # Copies of CUDA's libraries; null: not checked
    environments: Listing[Environment] | None = None  # Python environments; null: not checked
    variables: Variables | None = None  # Environment variables that matter to the stack; null: not checked
    unreadable: tuple[Unreadable, ...] = ()
    """What probes could not read of the machine; what they read it for is not known."""
    measurements: tuple[Measurement, ...] = ()
    """Measured figures; empty in a report, which has them beside the snapshot."""
    baseline: tuple[Measurement, ...] = ()  # Earlier figures that the measured ones are compared with
    observed_errors: tuple[ObservedError, ...] = ()  # Error lines that were read or pasted
    told: Told | None = None  # What a pasted text tells that stands in no other section; null: nothing
    runs: tuple[ProbeRun, ...] = ()  # How each probe ended; empty in a report, which has them beside the snapshot
    disagreements: tuple[Disagreement, ...] = ()  # Facts on which two sources differ

    @property
    def judged_environment(self) -> Environment | None:
        """The environment that the verdict is about; None where none was found."""
        listing = self.environments
        return next((found for found in listing.items if found.judged), None) if listing else None
