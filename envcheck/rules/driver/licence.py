from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import never, rule

_LICENCE = (
    Fix(text="See what the licence client says", command=("systemctl", "status", "nvidia-gridd")),
    Fix(
        text="Put the client configuration token into /etc/nvidia/ClientConfigToken, make the licence server "
        "reachable (and the clock right), and restart the service",
        command=("sudo", "systemctl", "restart", "nvidia-gridd"),
        who="root",
    ),
)


@rule(layer="driver", scope="node", arises=never, remedy=_LICENCE, explains=("gpu-init-failed",))
def vgpu_unlicensed() -> None:
    """The virtual GPU has no licence."""
