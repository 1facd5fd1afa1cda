"""What a Jetson's system software comes with, and which libraries were looked for in vain there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from envcheck.checks import Evidence, Fix
from envcheck.compat.families import row_of
from envcheck.compat.names import rows_of
from envcheck.compat.specifier import parse_specifier, parse_version
from envcheck.compat.tables import FamilyRow, ReleaseRow
from envcheck.rules.api import Facts, Outcome, passed, rule, seen
from envcheck.rules.facts.frameworks import named
from envcheck.rules.facts.machine import cuda_answers, driver_of, in_container, on_tegra
from envcheck.rules.messages.driver import NOT_LOADABLE, shown
from envcheck.rules.messages.observed import quoted_error
from envcheck.snapshot import Framework, Platform, Snapshot

_MISSING = re.compile(
    r"(?P<soname>lib[A-Za-z][\w+-]{1,60}\.so(?:\.\d{1,3}){0,3})\b.{0,40}"
    r"(?:cannot open shared object file|file too short|not found)"
)

_L4T = re.compile(r"lib(?:cuda|nvcucompat|nvcudla|nvdla\w*|nvrm_\w+|nvrm|nvos|nvmap|nvsci\w*|nvbuf\w*|tegra\w*)$")
"""The driver's side, which every release mounts."""


class Wanted(NamedTuple):
    """A library of JetPack that a program did not find."""

    soname: str
    part: str
    """``cuda``, ``cudnn``, ``tensorrt`` or ``l4t``."""
    number: int | None
    """First number of the soname, where it is that of the part's release."""
    evidence: Evidence


def _comes_with_jetpack(row: FamilyRow) -> bool:
    return row.kind in ("cudnn", "tensorrt") or (row.kind == "cuda" and not row.apart)


def wanted(facts: Facts) -> tuple[Wanted, ...]:
    """The libraries that error lines, or frameworks by their files, miss; each soname once."""
    found: dict[str, Wanted] = {}
    for soname, evidence in (*_of_errors(facts), *_of_frameworks(facts)):
        name, _, numbers = soname.partition(".so")
        row = row_of(name.removeprefix("lib"))
        comes_with_it = row is not None and (
            row.kind in ("cudnn", "tensorrt") or (row.kind == "cuda" and not row.apart)
        )
        part = "l4t" if _L4T.match(name) else row.kind if row and comes_with_it else None
        first = numbers.strip(".").partition(".")[0]
        numbered = part in ("cudnn", "tensorrt") or bool(row and row.numbered == "cuda")
        if part:
            number = int(first[:9]) if first and numbered else None
            found.setdefault(soname, Wanted(soname, part, number, evidence))
    return tuple(found.values())


def _of_errors(facts: Facts) -> Iterator[tuple[str, Evidence]]:
    for error in facts.snapshot.observed_errors:
        for match in _MISSING.finditer(error.text):
            yield match["soname"], quoted_error(error)


def _of_frameworks(facts: Facts) -> Iterator[tuple[str, Evidence]]:
    environment = facts.environment
    frameworks = environment.frameworks.items if environment and environment.frameworks else ()
    for framework in frameworks:
        for load in framework.loads or ():
            if load.path is None and not load.optional:
                yield load.name, Evidence(what=load.name, value=f"not found, for {load.needed_by}", source=load.source)


def system(facts: Facts) -> ReleaseRow | None:
    """What the matrix knows of this Jetson's system software, by its L4T release, else by its JetPack."""
    platform = facts.snapshot.platform or Platform()
    row = covering("l4t", platform.tegra_release, facts)
    return row or covering("jetpack", platform.jetpack, facts)


def covering(name: str, version: str | None, facts: Facts) -> ReleaseRow | None:
    """The row of a release; of a family of releases (``32.7``) the newest that agrees with all that is named."""
    number = parse_version(version or "")
    if number is None:
        return None
    rows = [row for row in rows_of(facts.tables, name) if parse_specifier(row.versions).cover(number) != "none"]
    return next(
        (row for row in rows if parse_specifier(row.versions).cover(number) == "all"), rows[-1] if rows else None
    )


def branch(version: str | None) -> int | None:
    """The first number of an L4T release: systems and images of different ones do not share libraries."""
    number = parse_version(version or "")
    return number.numbers[0] if number else None


def brings(row: ReleaseRow, part: str) -> int | None:
    """First number of the version of a part that comes with the system."""
    number = parse_version(row.bundles.get(part, ""))
    return number.numbers[0] if number else None


def admits(row: ReleaseRow, item: Wanted) -> bool:
    """Whether any release of the part with the library's number can be on the system."""
    number = parse_version(str(item.number))
    need = row.needs.get(item.part) or f"=={brings(row, item.part)}"
    return number is None or parse_specifier(need).cover(number) != "none"


def is_one(row: ReleaseRow) -> bool:
    """Whether the system and its CUDA are one: no other CUDA can be put on it, and containers are given the host's."""
    need = row.needs.get("cuda")
    return need is not None and need == f"=={row.bundles.get('cuda')}"


def on_aarch64(facts: Facts) -> bool:
    """Whether it is a Jetson, or an ARM machine of which a text does not say more."""
    platform = facts.snapshot.platform
    unsaid = platform is not None and platform.machine == "aarch64" and platform.tegra is None
    return on_tegra(facts) or (unsaid and platform is not None and not platform.tegra_release)


# Jetson: software made for another JetPack, and containers without the host's libraries.


_CONTAINERS = "https://github.com/dusty-nv/jetson-containers"
_SHOWN = 4


def _on_a_jetson(_subject: Snapshot, facts: Facts) -> bool:
    return on_aarch64(facts)


def _get_the_fitting(facts: Facts) -> tuple[Fix, ...]:
    platform = facts.snapshot.platform or Platform()
    release = f" {platform.tegra_release}" if platform.tegra_release else ""
    ours = platform.tegra_release or "the release in /etc/nv_tegra_release"
    return (
        Fix(text=f"Use an image whose tag names this L4T release{release} (r{ours}), or one of the same branch")
        if platform.tegra_release
        else Fix(text="See the L4T release of the system, and use an image made for it", command=_SEE_RELEASE),
        Fix(text="Install wheels that were built for this JetPack (its CUDA, cuDNN and Python)"),
        Fix(
            text="Or update the Jetson to the JetPack that the software was built for",
            who="root",
            risk="a new major release of JetPack means flashing the device",
        ),
    )


_SEE_RELEASE = ("cat", "/etc/nv_tegra_release")


@rule(
    layer="framework",
    scope="env",
    arises=_on_a_jetson,
    remedy=_get_the_fitting,
    explains=(
        "driver-too-old",
        "gpu-code-missing",
        "gpu-init-failed",
        "no-gpu-visible",
        "cuda-library-missing",
        "cuda-major-mismatch",
        "cudnn-missing",
        "cudnn-major-mismatch",
        "library-not-found",
        "tensorrt-missing",
    ),
)
def jetpack_mismatch(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Software was made for another JetPack than the one on this Jetson.

    What it checks
        On a Jetson: whether a container image was made for another branch of L4T than the host's,
        whether a framework was built with a CUDA that this L4T release cannot have, and whether
        libraries that are missing (libcublas, libcudnn, libnvinfer …) belong to another JetPack.

    Why it matters
        A Jetson's driver, CUDA, cuDNN and TensorRT come with its system software, JetPack. Up to
        JetPack 4 they are one and cannot be exchanged; wheels and images are built for one release.
        Those of another one look for libraries that are not there, or ask the driver for too much.

    How to fix
        Choose the image by the L4T release in /etc/nv_tegra_release, and wheels by the JetPack; or
        update the Jetson. From JetPack 5 on a newer CUDA can be installed for some releases.

    Sources
        JetPack archive: https://developer.nvidia.com/embedded/jetpack-archive
        Jetson containers, versions: https://github.com/dusty-nv/jetson-containers
        CUDA for Tegra: https://docs.nvidia.com/cuda/cuda-for-tegra-appnote/index.html
    """
    found = _other_image(snapshot, facts) or _other_build(facts) or _other_libraries(facts)
    if found is not None:
        return found
    platform, row = snapshot.platform or Platform(), system(facts)
    environment = facts.environment
    frameworks = environment.frameworks.items if environment and environment.frameworks else ()
    known = row is not None and any(framework.cuda for framework in frameworks)
    if not known and not (platform.tegra_release and platform.image_tegra_release):
        return None
    release = (seen("L4T", platform, "tegra_release"),) if platform.tegra_release else ()
    return passed("What is installed was made for this JetPack", *release)


def _other_image(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    platform = snapshot.platform or Platform()
    own = platform.tegra_release or _l4t_of(platform.jetpack, facts)
    host, image = branch(own), branch(platform.image_tegra_release)
    if host is None or image is None or host == image:
        return None
    return Outcome(
        status="fail",
        title=f"The image was made for L4T {platform.image_tegra_release}, the Jetson has {own}",
        message="Images for another branch of L4T cannot use this system's driver and libraries.",
        evidence=(
            Evidence(what="L4T of the system", value=own or "", source=platform.source_of("tegra_release")),
            seen("L4T of the image", platform, "image_tegra_release"),
        ),
        decided_by="declared",
    )


def _l4t_of(jetpack: str | None, facts: Facts) -> str | None:
    row = covering("jetpack", jetpack, facts)
    return row.needs.get("l4t", "").partition("|")[0].strip("=") or None if row else None


def _other_build(facts: Facts) -> Outcome | None:
    """A framework built with a CUDA that the system's release does not admit."""
    row = system(facts)
    admitted = row.needs.get("cuda") if row and on_tegra(facts) else None
    environment = facts.environment
    frameworks = environment.frameworks.items if environment and environment.frameworks else ()
    for framework in frameworks:
        version = parse_version(framework.cuda or "")
        if row is None or admitted is None or version is None or _ran(framework):
            continue
        if parse_specifier(admitted).cover(version) == "none" and not _is_older_in_major(framework, row):
            return _built_for_another(framework, row, facts)
    return None


def _ran(framework: Framework) -> bool:
    return bool(framework.gpu_available or (framework.trial and framework.trial.ran_on_gpu))


def _is_older_in_major(framework: Framework, row: ReleaseRow) -> bool:
    """A build with an older minor of the system's CUDA major runs; containers and wheels bring their own libraries."""
    built, brought = parse_version(framework.cuda or ""), parse_version(row.bundles.get("cuda", ""))
    if built is None or brought is None or is_one(row):
        return False
    return built.numbers[0] == brought.numbers[0] and built.numbers <= brought.numbers


def _built_for_another(framework: Framework, row: ReleaseRow, facts: Facts) -> Outcome:
    platform = facts.snapshot.platform or Platform()
    driver = driver_of(facts)
    spoken = (seen("CUDA of the driver", driver, "cuda"),) if driver.cuda else ()
    return Outcome(
        status="warn" if row.confidence == "weak" else "fail",
        title=f"{named(framework)} was built with CUDA {framework.cuda}, not for this JetPack",
        message=f"L4T {platform.tegra_release or '?'} has CUDA {row.bundles.get('cuda', '?')} "
        f"and admits {row.needs.get('cuda', '?')}.",
        evidence=(
            seen(f"{framework.name}: CUDA", framework, "cuda"),
            Evidence(what="L4T", value=platform.tegra_release or row.id, source=platform.source_of("tegra_release")),
            *spoken,
        ),
        confidence=row.confidence,
        sources=facts.tables.cite(row),
    )


def _other_libraries(facts: Facts) -> Outcome | None:
    """Missing libraries whose numbers are those of another JetPack."""
    row = system(facts)
    numbered = [item for item in wanted(facts) if item.number is not None]
    foreign = [item for item in numbered if _is_of_another(item, row, facts)]
    if not foreign:
        return None
    first = foreign[0]
    here = f"This one has {first.part} {row.bundles[first.part]}." if row and first.part in row.bundles else ""
    return Outcome(
        status="fail",
        title=f"{first.soname} belongs to another JetPack",
        message=f"The program was built for a JetPack that brings it. {here}".strip(),
        evidence=tuple(item.evidence for item in foreign[:_SHOWN]),
        decided_by="framework-ran" if facts.snapshot.observed_errors else "inferred",
        confidence="high" if row else "medium",
        sources=facts.tables.cite(row) if row else (),
    )


def _is_of_another(item: Wanted, row: ReleaseRow | None, facts: Facts) -> bool:
    if row is not None:
        return brings(row, item.part) is not None and not admits(row, item)
    return item.part == "tensorrt" and item.number in _only_in_jetpack(facts)


def _only_in_jetpack(facts: Facts) -> frozenset[int]:
    """Majors of TensorRT that for ARM came with JetPack alone: those of the time when it was one with its system."""
    rows = rows_of(facts.tables, "jetpack")
    then, later = ({brings(row, "tensorrt") for row in rows if is_one(row) is one} for one in (True, False))
    return frozenset(number for number in then - later if number is not None)


# --- containers ---------------------------------------------------------------------------------------------------


def _container_on_a_jetson(_subject: Snapshot, facts: Facts) -> bool:
    platform = facts.snapshot.platform or Platform()
    return on_tegra(facts) and (in_container(facts) or platform.image_tegra_release is not None)


def _mount_them(_facts: Facts) -> tuple[Fix, ...]:
    return (
        Fix(text="Start the container with --runtime nvidia (on a Jetson, --gpus alone mounts nothing)"),
        Fix(
            text="If that does not help, install the runtime and its mount lists anew on the Jetson",
            command=("sudo", "apt-get", "install", "--reinstall", "nvidia-container", "nvidia-container-toolkit"),
            who="root",
        ),
        Fix(text=f"Or start it with jetson-containers run, which chooses the options: {_CONTAINERS}"),
    )


@rule(
    layer="container",
    scope="container",
    arises=_container_on_a_jetson,
    remedy=_mount_them,
    explains=(
        "container-without-gpu",
        "driver-not-installed",
        "gpu-init-failed",
        "no-gpu-visible",
        "cuda-library-missing",
        "cudnn-missing",
        "library-not-found",
        "tensorrt-missing",
    ),
)
def jetson_libraries_not_mounted(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """A container on a Jetson was not given the system's libraries.

    What it checks
        In a container on a Jetson: whether libcuda can be loaded and the chip's device nodes are there;
        whether libraries are missing that this release's container runtime mounts from the host (up to
        JetPack 4 CUDA, cuDNN and TensorRT too). Libraries of another JetPack have a rule of their own.

    Why it matters
        Images for Jetson hold little or nothing of the driver: the NVIDIA runtime mounts the host's
        files by its lists when a container starts with --runtime nvidia. Without it libraries are
        missing, or are empty place-holders ("file too short").

    How to fix
        Start the container with --runtime nvidia, or make that the default in Docker's daemon.json.
        If files are still missing, the host's packages nvidia-container* and nvidia-l4t-* are of
        different releases: install those of the same JetPack.

    Sources
        NVIDIA container runtime on Jetson: https://nvidia.github.io/container-wiki/toolkit/jetson.html
        Jetson containers, system setup:
          https://github.com/dusty-nv/jetson-containers/blob/master/docs/setup.md
    """
    missing = _mounted_ones(facts)
    if missing:
        return Outcome(
            status="fail",
            title=f"The container lacks the system's {missing[0].soname}",
            message="The container runtime mounts it from the Jetson when the container starts.",
            evidence=tuple(item.evidence for item in missing[:_SHOWN]),
            decided_by="framework-ran" if snapshot.observed_errors else "inferred",
        )
    driver = driver_of(facts)
    if cuda_answers(facts):
        return passed("The container has the Jetson's libraries", decided_by="driver-answered")
    started, nodes = driver.cuda_init, snapshot.kernel.device_nodes if snapshot.kernel else None
    if started is None or started.code != NOT_LOADABLE or not in_container(facts):
        return None
    chip = [node for node in nodes or () if node.path.startswith(("/dev/nvhost", "/dev/nvmap", "/dev/nvgpu"))]
    return Outcome(
        status="fail",
        title="The container was not given the Jetson's libraries",
        message="libcuda cannot be loaded"
        + ("." if chip or nodes is None else ", and no device of the chip is there."),
        evidence=(shown(started), Evidence(what="devices of the chip", value=str(len(chip)), source="/dev")),
        decided_by="driver-answered",
    )


def _mounted_ones(facts: Facts) -> list[Wanted]:
    """Missing libraries that the host of this release supplies."""
    row = system(facts)
    if row is None:
        return [item for item in wanted(facts) if item.part == "l4t"]
    return [item for item in wanted(facts) if item.part == "l4t" or _comes_from_host(item, row)]


def _comes_from_host(item: Wanted, row: ReleaseRow) -> bool:
    return is_one(row) and item.number in (None, brings(row, item.part))
