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
    """The network between a job's nodes fails.

    What it checks
        Reads warnings of NCCL: "connect to … failed", "exceeded error retry count", "Got completion …
        with error 12", "ibv_modify_qp failed … timed out", "async fatal event".

    Why it matters
        NCCL chooses interfaces by itself. One that is up may still not lead to the other nodes: a
        container's bridge, another subnet, a firewall, a RoCE network without its GID index. Then a job
        stops in its first collective operation. A rank that died closes its connections too.

    How to fix
        Read the first error of all ranks. Then set NCCL_SOCKET_IFNAME (and NCCL_IB_HCA) to what
        connects the nodes, open the ports between them, and test the network without NCCL.
        NCCL_IB_DISABLE=1 shows whether only InfiniBand fails.

    Sources
        NCCL user guide, troubleshooting:
          https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html
        NCCL, warnings about connections: https://github.com/NVIDIA/nccl/blob/master/src/os/linux.cc
    """


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
    """IMEX, which shares GPU memory between nodes over NVLink, is not ready.

    What it checks
        Reads warnings of NCCL: "MNNVL … is available but not working … Check the IMEX …", and "Cuda
        failure 'operation not permitted'" beside lines about IMEX, MNNVL or fabric handles.

    Why it matters
        In systems whose NVLink spans several nodes, CUDA exports memory to other nodes through the
        service nvidia-imex and a channel in /dev/nvidia-caps-imex-channels. Neither is there by
        default; without them the calls end with a permission error.

    How to fix
        Start nvidia-imex with the same nodes_config.cfg on all nodes of the domain, and create channel
        0. Channels do not survive a reboot. NCCL_MNNVL_ENABLE=0 makes NCCL use the network instead.

    Sources
        NVIDIA, IMEX channels:
          https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/imexchannels.html
        NCCL, mnnvl.cc: https://github.com/NVIDIA/nccl/blob/master/src/mnnvl.cc
    """
