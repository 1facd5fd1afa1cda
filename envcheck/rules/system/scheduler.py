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
    """The scheduler has no GPU as requested."""
