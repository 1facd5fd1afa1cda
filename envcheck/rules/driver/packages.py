"""Packages of the driver that the package manager cannot install together."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import never, rule

_ONE_ORIGIN = (
    Fix(
        text="List the driver's packages, their versions and where they come from",
        command=("sh", "-c", "dpkg -l | grep -i nvidia; apt-cache policy nvidia-driver cuda-drivers"),
    ),
    Fix(
        text="Remove the driver's packages, keep one repository for it (the distribution's or NVIDIA's), and "
        "install it again",
        who="root",
    ),
)


@rule(
    layer="driver",
    scope="node",
    arises=never,
    remedy=_ONE_ORIGIN,
    explains=("driver-not-installed", "driver-library-mismatch", "kernel-module-missing"),
)
def driver_packages_conflict() -> None:
    """The driver's packages cannot be installed together."""
