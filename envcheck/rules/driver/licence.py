"""Licences of virtual GPUs."""

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
    """The virtual GPU has no licence.

    What it checks
        Reads what nvidia-gridd, nvidia-smi and CUDA say: "Failed to acquire license", "License Status :
        Unlicensed", CUDA_ERROR_DEVICE_NOT_LICENSED.

    Why it matters
        Without a licence the driver limits a virtual GPU, and CUDA may refuse it.

    How to fix
        Install the client configuration token of your licence server in the virtual machine, let it
        reach the server, and restart nvidia-gridd. `nvidia-smi -q` shows "Licensed" afterwards.

    Sources
        NVIDIA, vGPU client licensing:
          https://docs.nvidia.com/grid/15.0/grid-licensing-user-guide/index.html
    """
