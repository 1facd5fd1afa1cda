"""What ``--plan`` and ``--assume`` have the matrix answer; ``envcheck/pipeline`` asks it."""

from __future__ import annotations

from envcheck.rules.api import Facts, Outcome, elsewhere, rule
from envcheck.snapshot import Snapshot


@rule(layer="framework", arises=elsewhere)
def plan_does_not_fit(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """What a plan would install does not fit the machine, or that is open.

    What it checks
        With --plan: every package and base image of the file that needs a GPU, as envcheck matrix check
        answers it for the GPU, driver, system and Python of the machine or target. A range is judged by
        all known releases in it, within what the pinned packages require. A package of an image is also
        held to the CUDA and cuDNN that it takes from outside its wheel, as the base image and the
        system's packages have them, and its wheels to the image's C library. Pins that pip would refuse
        to install together fail. It fails where nothing that the file admits fits, and leaves no
        verdict where the file does not say what would be installed: several releases of which not all
        fit, no upper bound, a private index, an image or file that is not known, a library that nothing
        is known to bring.

    Why it matters
        The environment or image would be built, sent to the machine, and fail there.

    How to fix
        Change the named line to a release that fits. Pin a range to one release, or name the image by a
        tag that is known. Say what an image of your own holds in a row of your own: a folder that
        --matrix names, with a file such as images.toml:

            [sources.ours]
            title = "our base images"
            address = "https://git.example.org/images"
            read = "2026-11-25"

            [[image]]
            names = ["registry.example.org/base"]
            tags = 'cuda(?P<cuda>[0-9.]+)-.*'
            source = "ours"

        What you accept, or know better, can be set aside with a day and a reason in the configuration,
        under its name or, for one package alone, plan-does-not-fit@FILE:PACKAGE as --json has it.

    Sources
        Dependency specifiers:
          https://packaging.python.org/en/latest/specifications/dependency-specifiers/
        Dockerfile reference: https://docs.docker.com/reference/dockerfile/
        CUDA Compatibility: https://docs.nvidia.com/deploy/cuda-compatibility/
    """


@rule(layer="driver", scope="node", arises=elsewhere)
def assumption_not_known(_snapshot: Snapshot, _facts: Facts) -> Outcome | None:
    """It is not known whether the assumed driver supports the assumed GPU.

    What it checks
        Where --assume or a target names both a GPU and a driver: whether the matrix knows that the
        driver supports the GPU. That it does not is gpu-unsupported-by-driver.

    Why it matters
        Every other answer about this machine rests on it.

    How to fix
        Check the spelling of the GPU (envcheck matrix show lists models) and write the driver's release
        in full, as nvidia-smi prints it on that machine.

    Sources
        CUDA GPUs: https://developer.nvidia.com/cuda-gpus
        Driver documentation: https://docs.nvidia.com/datacenter/tesla/
    """
