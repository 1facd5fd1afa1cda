"""libnvJitLink, whose functions carry the number of their release in their names."""

from __future__ import annotations

from collections.abc import Iterator

from envcheck.compat.fit import Fit
from envcheck.compat.libraries import nvjitlink_serves
from envcheck.rules.api import Facts, FrameworkSubject, Outcome, passed, rule
from envcheck.rules.fits import does_not_fit
from envcheck.rules.framework_facts import named
from envcheck.rules.libraries_facts import asked, followed, loads_of, name_in, own_loads
from envcheck.rules.libraries_fixes import see_loader
from envcheck.rules.libraries_symbols import take_away
from envcheck.rules.trial_facts import ran_on_gpu
from envcheck.snapshot import Framework, Load

_LINKS = ("cusparse", "cusolver")


@rule(
    layer="library",
    scope="env",
    per="framework",
    arises=followed,
    explains=("framework-import-fails", "framework-cannot-use-gpu", "library-lacks-symbols"),
    remedy=see_loader,
)
def nvjitlink_mismatch(subject: FrameworkSubject, facts: Facts) -> Outcome | None:
    """LibnvJitLink is older than the CUDA library that links with it.

    What it checks
        The release of the libnvJitLink that a framework would be given against the CUDA release that
        its cuSPARSE and cuSOLVER came with.

    Why it matters
        The functions of libnvJitLink carry the number of their release (`__nvJitLinkCreate_12_8`), so
        that an older one, though it has the right name, lacks what cuSPARSE asks for: `import torch`
        fails with "undefined symbol", and JAX says that cuSPARSE was not found.

    How to fix
        Keep the older toolkit off LD_LIBRARY_PATH; or update nvidia-nvjitlink to the CUDA release of
        the other wheels.

    Sources
        NVIDIA, linking at run time: https://docs.nvidia.com/cuda/nvjitlink/index.html
        PyTorch, a libnvJitLink from LD_LIBRARY_PATH:
            https://github.com/pytorch/pytorch/issues/152783
    """
    framework = subject.framework
    fits = list(jitlink_fits(framework, facts)) if own_loads(subject, "nvJitLink") else []
    wrong = [(load, fit) for load, fit in fits if fit.bad]
    if not fits or ran_on_gpu(framework):
        return None
    if not wrong:
        known = all(fit.ok for _, fit in fits)
        return passed("libnvJitLink is as new as what links with it") if known else None
    load, fit = wrong[0]
    jitlink = loads_of(framework, "nvJitLink")[0]
    return does_not_fit(
        f"{named(framework)} is given an older libnvJitLink",
        fit,
        evidence=asked([jitlink, load]),
        fixes=take_away(jitlink, subject, facts),
    )


def jitlink_fits(framework: Framework, facts: Facts) -> Iterator[tuple[Load, Fit]]:
    """Whether its libnvJitLink serves what links with it, for each library of which the CUDA release is known."""
    jitlink = next((load for load in loads_of(framework, "nvJitLink") if load.version), None)
    if jitlink is None or jitlink.version is None:
        return
    for load in loads_of(framework, *_LINKS):
        name = name_in(load)
        if name and load.version and load.version.count("."):
            yield load, nvjitlink_serves(facts.tables, jitlink.version, name.family, load.version)
