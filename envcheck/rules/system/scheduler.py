"""GPUs that a batch scheduler does not know."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import never, rule

_WHAT_IT_OFFERS = (
    Fix(text="List the GPUs that each partition offers, and ask for these", command=("sinfo", "-o", "%P %G")),
    Fix(
        text="If a node with GPUs lists none: correct Gres in slurm.conf and gres.conf, and restart slurmd",
        who="root",
    ),
)


@rule(layer="container", scope="container", arises=never, remedy=_WHAT_IT_OFFERS, explains=("no-gpu-visible",))
def scheduler_lacks_gpu() -> None:
    """The batch scheduler has no GPU as requested.

    What it checks
        Reads error lines of Slurm: "Invalid generic resource (gres) specification", and what slurmd
        says of gres.conf.

    Why it matters
        Slurm grants only the GPUs that its configuration names. A request for a type, number or
        partition that it does not know is refused, and a node whose gres.conf names a missing device
        file does not start.

    How to fix
        Ask for what `sinfo -o "%P %G"` lists. On the node, compare gres.conf with /dev/nvidia*, and
        load the driver before slurmd starts.

    Sources
        Slurm, generic resources: https://slurm.schedmd.com/gres.html
        Slurm, gres.conf: https://slurm.schedmd.com/gres.conf.html
    """
