"""What NCCL needs between nodes: a network that connects them, and IMEX within an NVLink domain."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import never, rule

_REACHABLE_INTERFACE = (
    Fix(
        text="First read the log of the rank at the other end: if that process died, its error is the cause, and "
        "the lost connection follows from it"
    ),
    Fix(
        text="Otherwise choose the interface that connects the nodes (not docker0 or virbr0), the "
        "same on all of them, and open the firewall between them: export NCCL_SOCKET_IFNAME=eth0"
    ),
    Fix(
        text="For InfiniBand and RoCE: look for a port that is down, then test with ib_write_bw between the nodes",
        command=("ibstat",),
    ),
)


@rule(layer="fabric", arises=never, remedy=_REACHABLE_INTERFACE)
def nodes_not_connected() -> None:
    """The network between a job's nodes fails."""


_CHANNEL = (
    Fix(text="See whether the service runs on every node of the domain", command=("nvidia-imex-ctl", "-N")),
    Fix(
        text="Create channel 0 in /dev/nvidia-caps-imex-channels at each boot; in Kubernetes, request it with a "
        "ComputeDomain",
        who="root",
    ),
    Fix(text="Until then, do without NVLink between nodes: export NCCL_MNNVL_ENABLE=0"),
)


@rule(layer="fabric", arises=never, remedy=_CHANNEL, explains=("nodes-not-connected",))
def imex_not_ready() -> None:
    """IMEX, which shares GPU memory between nodes over NVLink, is not ready."""
