"""GPUs that a scheduler does not have: Slurm's, or that of Kubernetes."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.compat.error_lines import lines_with
from envcheck.rules.api import Facts, Outcome, never, rule

_WHAT_IT_OFFERS = (
    Fix(text="List the GPUs that each partition offers, and ask for these", command=("sinfo", "-o", "%P %G")),
    Fix(
        text="If a node with GPUs lists none: correct Gres in slurm.conf and gres.conf, and restart slurmd",
        who="root",
    ),
)


def _not_scheduled(facts: Facts) -> Outcome | None:
    """Of a pod that no node can take: nothing about how a container is started helps."""
    if not lines_with("pod-not-scheduled", facts.snapshot.observed_errors):
        return None
    return Outcome(
        status="fail",
        title="No node of the cluster offers the GPUs that the pod asks for",
        message="Their device plugin reports none, or other pods hold them.",
        fixes=(
            Fix(
                text="Compare nvidia.com/gpu under Allocatable with what is allocated, and read the node's taints",
                command=("kubectl", "describe", "nodes"),
            ),
            Fix(
                text="If Allocatable lists none: read the log of the node's device plugin. It needs the driver on the "
                "node, and NVIDIA's runtime as the default of containerd or CRI-O (or the plugin's runtimeClassName)",
                command=("kubectl", "get", "pods", "-A", "-o", "wide"),
                who="cluster-admin",
            ),
            Fix(text="If all are allocated: ask for fewer, or wait until another pod ends"),
        ),
    )


@rule(
    layer="container",
    scope="container",
    arises=never,
    remedy=_WHAT_IT_OFFERS,
    doubt=_not_scheduled,
    explains=("no-gpu-visible",),
)
def scheduler_lacks_gpu() -> None:
    """The scheduler has no GPU as requested.

    What it checks
        Reads error lines of Slurm: "Invalid generic resource (gres) specification", and what slurmd
        says of gres.conf; and of Kubernetes: "Insufficient nvidia.com/gpu", and what NVIDIA's GPU
        Operator says while a node offers none.

    Why it matters
        Slurm grants only the GPUs that its configuration names. A request for a type, number or
        partition that it does not know is refused, and a node whose gres.conf names a missing device
        file does not start. Kubernetes grants what the device plugin of a node reports, and a pod
        waits until a node has as many left as it asks for.

    How to fix
        Slurm: ask for what `sinfo -o "%P %G"` lists. On the node, compare gres.conf with /dev/nvidia*,
        and load the driver before slurmd starts. Kubernetes: see what the nodes report as allocatable;
        where that is none, the device plugin, the driver or NVIDIA's runtime is missing there.

    Sources
        Kubernetes, schedule GPUs: https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/
        Slurm, generic resources: https://slurm.schedmd.com/gres.html
        Slurm, gres.conf: https://slurm.schedmd.com/gres.conf.html
    """
