"""The Windows Subsystem for Linux: which libcuda a program gets there."""

from __future__ import annotations

import re

from envcheck.checks import Evidence, Fix
from envcheck.compat.relations.visible_devices import hides_all
from envcheck.rules.api import Facts, Outcome, passed, rule, seen
from envcheck.rules.facts.machine import cuda_answers, driver_of
from envcheck.rules.fixes.driver import family
from envcheck.rules.messages.driver import naming, shown
from envcheck.rules.messages.observed import problems_met, quoted_error
from envcheck.rules.variables.visible_devices import VISIBLE
from envcheck.snapshot import DriverLibrary, Snapshot

_OWN_FOLDER = "/usr/lib/wsl/"
_LINUX_RELEASE = re.compile(r"libcuda reported version is: \d{3}\.\d")
"""What TensorFlow reads from the name of the file that libcuda.so.1 leads to; WSL's own has no release in it."""


def _inside_wsl(_subject: Snapshot, facts: Facts) -> bool:
    return facts.driver_os == "wsl"


def _use_windows_libcuda(facts: Facts) -> tuple[Fix, ...]:
    return _ways_out(None, facts)


@rule(
    layer="driver",
    scope="node",
    arises=_inside_wsl,
    remedy=_use_windows_libcuda,
    explains=("driver-library-mismatch", "driver-not-loaded", "gpu-init-failed", "no-gpu-visible"),
)
def wsl_libcuda_shadowed(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Inside WSL, another libcuda shadows the one from Windows.

    What it checks
        Checks, inside the Windows Subsystem for Linux, whether the first libcuda.so.1 (or libcuda.so)
        that the loader finds is the one below /usr/lib/wsl or that of a Linux driver. In a pasted text,
        reads what it says about libcuda's path or version. Text that only reports no CUDA device yields
        a warning, since this is the most common cause.

    Why it matters
        In WSL the driver belongs to Windows, which puts its libcuda into /usr/lib/wsl/lib. The libcuda
        of a Linux driver has no GPU to talk to there: CUDA reports no device, while nvidia-smi (from
        Windows) works.

    How to fix
        Remove the Linux driver from the distribution (the cuda-toolkit-* packages contain only the
        toolkit), and run `sudo ldconfig`. As a workaround, put /usr/lib/wsl/lib first in
        LD_LIBRARY_PATH.

    Sources
        CUDA on WSL user guide: https://docs.nvidia.com/cuda/wsl-user-guide/
        libcuda of WSL not found first: https://github.com/microsoft/WSL/issues/8587
    """
    driver = driver_of(facts)
    foreign = [library for library in _found(facts) if _is_foreign(library)]
    first = next((library for library in _found(facts)), None)
    if cuda_answers(facts):
        return _works(foreign, facts)
    if first is None or first not in foreign:
        return _by_text(snapshot, facts)
    failed = naming("no-gpu-visible", (driver.cuda_init,)) if driver.cuda_init else ()
    whose = "A Linux driver's" if first.version else "Another"
    return Outcome(
        status="fail",
        title=f"{whose} libcuda shadows the one of Windows",
        message=f"Programs are given {first.found_as[0]}, which cannot reach the GPU inside WSL.",
        evidence=(
            Evidence(what="libcuda", value=f"{first.path}, met as {first.found_as[0]}", source=first.source),
            *(shown(result) for result in failed),
        ),
        decided_by="driver-answered" if failed else "inferred",
        fixes=_ways_out(first, facts),
    )


def _found(facts: Facts) -> tuple[DriverLibrary, ...]:
    """The files that programs would be given for libcuda, in the loader's order."""
    listing = driver_of(facts).libraries
    found = listing.items if listing else ()
    return tuple(library for library in found if library.found_as and "libcuda.so" in library.found_as[0])


def _is_foreign(library: DriverLibrary) -> bool:
    """Whether it is none of Windows': its real path is elsewhere, and no container runtime mounted it from there."""
    own = library.path.startswith(_OWN_FOLDER) or (library.mounted is True and library.version is None)
    return library.kind == "driver" and not own


def _works(foreign: list[DriverLibrary], facts: Facts) -> Outcome:
    driver = driver_of(facts)
    if not foreign:
        evidence = (shown(driver.cuda_init),) if driver.cuda_init else ()
        return passed("libcuda is the one that Windows provides", *evidence, decided_by="driver-answered")
    return Outcome(
        status="note",
        title="A Linux driver is installed inside WSL",
        message="Programs are given Windows' libcuda all the same; the Linux driver does nothing here.",
        evidence=tuple(Evidence(what="libcuda", value=library.path, source=library.source) for library in foreign),
        decided_by="driver-answered",
        fixes=_ways_out(foreign[0], facts),
    )


def _by_text(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """What the error lines of a text tell, where the libraries do not."""
    told = [error for error in snapshot.observed_errors if _LINUX_RELEASE.search(error.text)]
    if told:
        return Outcome(
            status="fail",
            title="A Linux driver's libcuda is loaded inside WSL",
            message="The libcuda that answered has a Linux driver's release in its name.",
            evidence=tuple(quoted_error(error) for error in told),
            decided_by="framework-ran",
            fixes=_ways_out(None, facts),
        )
    met = {found.line.problem: found for found in problems_met(snapshot)}
    no_device = met.get("no-gpu-visible")
    others = [problem for problem, found in met.items() if found.line.status == "fail" and found is not no_device]
    value = facts.variable(VISIBLE)
    if no_device is None or others or (value is not None and hides_all(value)):
        return None
    system = (seen("WSL", snapshot.platform, "wsl"),) if snapshot.platform else ()
    return Outcome(
        status="warn",
        title="CUDA finds no device inside WSL: most often another libcuda is loaded",
        message="If /usr/lib/wsl/lib/nvidia-smi lists the GPU, a Linux driver's libcuda (or a stub) is met first.",
        evidence=(*no_device.evidence, *system),
        confidence="weak",
        fixes=(
            Fix(text="See which libcuda the loader knows: all should lie in /usr/lib/wsl", command=("ldconfig", "-p")),
            *_ways_out(None, facts),
        ),
    )


def _ways_out(library: DriverLibrary | None, facts: Facts) -> tuple[Fix, ...]:
    path = facts.variable("LD_LIBRARY_PATH") or ""
    folder = library.found_as[0].rpartition("/")[0] if library and library.found_as else ""
    if folder and folder in path.split(":"):
        return (Fix(text=f"Take {folder} out of LD_LIBRARY_PATH, or put /usr/lib/wsl/lib before it"),)
    remove = {
        "ubuntu": ("sudo", "apt-get", "remove", "--purge", "^libnvidia-compute-[0-9].*", "^nvidia-driver-[0-9].*"),
        "debian": ("sudo", "apt-get", "remove", "--purge", "libcuda1", "nvidia-driver"),
    }
    return (
        Fix(
            text="Remove the Linux driver from this distribution; Windows' stays",
            command=remove.get(family(facts), ()),
            who="root",
            risk="packages that depend on the Linux driver go with it",
        ),
        Fix(text="Then write the loader's cache anew", command=("sudo", "ldconfig"), who="root"),
        Fix(text="Until then: export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH"),
    )
