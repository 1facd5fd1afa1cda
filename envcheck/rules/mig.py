"""Multi-Instance GPU mode."""

from __future__ import annotations

from envcheck.checks import Fix
from envcheck.rules.api import Facts, Outcome, passed, rule, seen
from envcheck.rules.fixes import smi_choice
from envcheck.rules.machine import called, plural
from envcheck.snapshot import Gpu, Mig


def _give_instances(_facts: Facts) -> tuple[Fix, ...]:
    return _ways_out(None)


def _in_mig_mode(gpu: Gpu, _facts: Facts) -> bool:
    return bool(gpu.mig and gpu.mig.enabled)


@rule(
    layer="gpu",
    scope="node",
    per="gpu",
    needs=("gpu.mig.instances",),
    arises=_in_mig_mode,
    remedy=_give_instances,
    explains=("gpu-init-failed", "no-gpu-visible"),
)
def mig_without_instances(gpu: Gpu, _facts: Facts) -> Outcome | None:
    """MIG mode is on, but the GPU has no instance.

    What it checks
        Whether a GPU in MIG mode has at least one compute instance that is shown here.

    Why it matters
        In MIG mode CUDA uses instances only. A GPU without one offers nothing, and device plugins
        advertise no GPU.

    How to fix
        Create instances (`nvidia-smi mig -lgip` lists the profiles, `nvidia-smi mig -cgi PROFILE -C`
        creates one), or switch MIG mode off. In a container, give it the instance.

    Sources
        MIG user guide: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
    """
    mig = gpu.mig or Mig()
    count = len(mig.instances or ())
    evidence = (seen("MIG mode", mig, "enabled"), seen("instances", mig, "instances"))
    if count:
        return passed(f"MIG with {plural(count, 'instance')}", evidence[0], decided_by="driver-answered")
    return Outcome(
        status="fail",
        title=f"{called(gpu)} is in MIG mode without any instance",
        message="CUDA can use instances only, and there is none.",
        evidence=evidence,
        decided_by="driver-answered",
        fixes=_ways_out(gpu),
    )


def _ways_out(gpu: Gpu | None) -> tuple[Fix, ...]:
    """For one GPU by its PCI bus id where it is known, else for all."""
    place = smi_choice(gpu)
    return (
        Fix(
            text="See which instances the GPU can have",
            command=("sudo", "nvidia-smi", "mig", *place, "-lgip"),
            who="root",
        ),
        Fix(text="Create one by its profile: nvidia-smi mig -cgi PROFILE -C", who="root"),
        Fix(
            text="Or switch MIG mode off",
            command=("sudo", "nvidia-smi", *place, "-mig", "0"),
            who="root",
            risk="resets the GPU; what runs on it ends",
        ),
    )
