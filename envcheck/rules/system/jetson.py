"""Jetson: which libraries its system software includes, and which are missing."""

from __future__ import annotations

import re
from typing import NamedTuple

from envcheck.knowledge.error_lines import matches_fragment
from envcheck.knowledge.relations.libraries import row_of
from envcheck.knowledge.specifier import parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.checks import Evidence, Fix
from envcheck.model.snapshot import Snapshot
from envcheck.rules.api import Facts, Outcome, evidence_of, failure, if_known, passed, rule
from envcheck.rules.messages.observed import NOT_LOADABLE, call_evidence, line_evidence, observed_problems
from envcheck.text.lazy import lazy_pattern

_MISSING = lazy_pattern(
    r"(?P<soname>lib[A-Za-z][\w+-]{1,60}\.so(?:\.\d{1,3}){0,3})\b.{0,40}"
    r"(?:cannot open shared object file|file too short|not found)"
    r"|(?:ImportError|OSError): (?P<bare>lib[A-Za-z][\w+-]{1,60}\.so(?:\.\d{1,3}){0,3})$"
)


class MissingLibrary(NamedTuple):
    soname: str
    part: str  # ``cuda``, ``cudnn``, ``tensorrt`` or ``l4t``
    number: int | None  # First number of the soname, if it is the major version of the part
    evidence: Evidence


def missing_libraries(facts: Facts) -> tuple[MissingLibrary, ...]:
    """The libraries that error lines or framework files show as missing; each soname once."""
    found: dict[str, MissingLibrary] = {}
    # Sonames with the error line, or the framework's load, that shows them as missing.
    errors = ((match, error) for error in facts.snapshot.observed_errors for match in _MISSING.finditer(error.text))
    reported = [(match["soname"] or match["bare"], line_evidence(error)) for match, error in errors]
    loads = (load for each in facts.frameworks for load in each.loads or ())
    lost = (load for load in loads if load.path is None and not load.optional)
    reported += [(load.name, Evidence(load.name, f"not found, for {load.needed_by}", load.source)) for load in lost]
    for soname, evidence in reported:
        name, _, numbers = soname.partition(".so")
        row = row_of(name.removeprefix("lib"))
        comes_with_it = row is not None and (
            row.kind in ("cudnn", "tensorrt") or (row.kind == "cuda" and not row.apart) or row.part.startswith("cuda_")
        )
        of_driver = matches_fragment("driver-library-of-jetson", name)
        part = "l4t" if of_driver else row.kind if row and comes_with_it else None
        first = re.match(r"\.([0-9]{1,9})(?![^.])", numbers)
        numbered = part in ("cudnn", "tensorrt") or bool(row and row.numbered == "cuda")
        if part:
            number = int(first[1]) if first and numbered else None
            found.setdefault(soname, MissingLibrary(soname, part, number, evidence))
    return tuple(found.values())


def jetson_release(facts: Facts) -> ReleaseRow | None:
    """The row of this Jetson's system software, by its L4T release, else by its JetPack."""
    return covering("l4t", facts.platform.tegra_release, facts) or covering("jetpack", facts.platform.jetpack, facts)


def covering(name: str, version: str | None, facts: Facts) -> ReleaseRow | None:
    """The row of a release; of a series (``32.7``) the newest row that matches."""
    number = parse_version(version or "")
    if number is None:
        return None
    rows = [row for row in facts.matrix.rows_of(name) if speaks_of(row.versions, number) != "none"]
    return next((row for row in rows if speaks_of(row.versions, number) == "all"), rows[-1] if rows else None)


def branch(version: str | None) -> int | None:
    """The major version of an L4T release: systems and images of different ones cannot share libraries."""
    number = parse_version(version or "")
    return number.numbers[0] if number else None


def bundled_major(row: ReleaseRow, part: str) -> int | None:
    """The major version of a part that the system includes."""
    number = parse_version(row.bundles.get(part, ""))
    return number.numbers[0] if number else None


def has_fixed_cuda(row: ReleaseRow) -> bool:
    """Whether the system has a fixed CUDA: no other can be installed, and containers use the host's."""
    need = row.needs.get("cuda")
    return need is not None and need == f"=={row.bundles.get('cuda')}"


_SHOWN = 4


def _use_matching_release(facts: Facts) -> tuple[Fix, ...]:
    release = facts.platform.tegra_release
    image = Fix("Show the L4T release of the system, and use an image for it", command=("cat", "/etc/nv_tegra_release"))
    if release:
        image = Fix(f"Use an image whose tag names L4T {release} (r{release}), or one of the same branch")
    return (
        image,
        Fix("Install wheels built for this JetPack (its CUDA, cuDNN and Python)"),
        Fix(
            "Update the Jetson to the JetPack that the software was built for",
            who="root",
            risk="a new JetPack major version requires flashing the device",
        ),
    )


@rule(layer="framework", remedy=_use_matching_release)
def jetpack_mismatch(_snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """Software was built for a different JetPack version."""
    platform, row = facts.platform, jetson_release(facts)
    # It may be one where a text says no more of a machine than that it is an ARM.
    if not facts.on_tegra and (platform.machine != "aarch64" or platform.tegra is not None):
        return None
    found = _other_image(facts) or _other_build(facts) or _other_libraries(facts)
    if found is not None:
        return found
    known = row is not None and any(framework.cuda for framework in facts.frameworks)
    if not known and not (platform.tegra_release and platform.image_tegra_release):
        return None
    return passed("The software matches this JetPack", if_known("L4T", platform, "tegra_release"))


def _other_image(facts: Facts) -> Outcome | None:
    platform = facts.platform
    row = covering("jetpack", platform.jetpack, facts)
    own = platform.tegra_release or (row.needs.get("l4t", "").partition("|")[0].strip("=") if row else None)
    host, image = branch(own), branch(platform.image_tegra_release)
    if host is None or image is None or host == image:
        return None
    return failure(
        title=f"The image is built for L4T {platform.image_tegra_release}, the Jetson has {own}",
        message="Images for another L4T branch cannot use this system's driver and libraries.",
        evidence=(
            Evidence("L4T of the system", own or "", platform.source_of("tegra_release")),
            evidence_of("L4T of the image", platform, "image_tegra_release"),
        ),
        decided_by="declared",
    )


def _other_build(facts: Facts) -> Outcome | None:
    """A framework built with a CUDA that the system's release does not support."""
    row = jetson_release(facts)
    admitted = row.needs.get("cuda") if row and facts.on_tegra else None
    for framework in facts.frameworks:
        version = parse_version(framework.cuda or "")
        ran = framework.gpu_available or (framework.trial and framework.trial.ran_on_gpu)
        if row is None or admitted is None or version is None or ran:
            continue
        if parse_specifier(admitted).cover(version) != "none":
            continue
        # A build with the system's CUDA major version that is no newer runs with its own libraries.
        brought = parse_version(row.bundles.get("cuda", ""))
        same_major = brought is not None and version.numbers[0] == brought.numbers[0]
        if brought is not None and same_major and version.numbers <= brought.numbers and not has_fixed_cuda(row):
            continue
        platform = facts.platform
        return Outcome(
            status="warn" if row.confidence == "weak" else "fail",
            title=f"{framework.title} was built with CUDA {framework.cuda}, not for this JetPack",
            message=f"L4T {platform.tegra_release or '?'} has CUDA {row.bundles.get('cuda', '?')} "
            f"and supports {row.needs.get('cuda', '?')}.",
            evidence=(
                evidence_of(f"{framework.name}: CUDA", framework, "cuda"),
                Evidence("L4T", platform.tegra_release or row.id, platform.source_of("tegra_release")),
                if_known("CUDA of the driver", facts.driver, "cuda"),
            ),
            confidence=row.confidence,
            sources=facts.matrix.cite(row),
        )
    return None


def _other_libraries(facts: Facts) -> Outcome | None:
    """Missing libraries whose versions belong to another JetPack."""
    row = jetson_release(facts)
    numbered = [item for item in missing_libraries(facts) if item.number is not None]
    foreign = [item for item in numbered if _is_of_another(item, row, facts)]
    if not foreign:
        return None
    first = foreign[0]
    here = f"This JetPack has {first.part} {row.bundles[first.part]}." if row and first.part in row.bundles else ""
    return failure(
        title=f"{first.soname} belongs to another JetPack",
        message=f"The program was built for a JetPack that includes it. {here}".strip(),
        evidence=tuple(item.evidence for item in foreign[:_SHOWN]),
        decided_by="framework-ran" if facts.snapshot.observed_errors else "inferred",
        confidence="high" if row else "medium",
        sources=facts.matrix.cite(row) if row else (),
    )


def _is_of_another(item: MissingLibrary, row: ReleaseRow | None, facts: Facts) -> bool:
    """Whether the system brings another version of a library than the one that is missing. A major version differs, or
    a minor version of CUDA that is part of the library's name.
    """
    if row is None:
        # Only old JetPacks, with a fixed CUDA, included some major versions of TensorRT.
        of_old, of_new = (
            {bundled_major(each, "tensorrt") for each in facts.matrix.rows_of("jetpack") if has_fixed_cuda(each) is one}
            for one in (True, False)
        )
        return item.part == "tensorrt" and item.number is not None and item.number in of_old - of_new
    if bundled_major(row, item.part) not in (None, item.number):
        return True
    name, _, number = item.soname.partition(".so.")
    family = row_of(name.removeprefix("lib"))
    brought = parse_version(row.bundles.get("cuda", "")) if family and item.part == "cuda" else None
    if family is None or brought is None or number.count(".") != 1:
        return False
    return parse_specifier(family.shared.get(item.soname) or f"=={number}").cover(brought) == "none"


@rule(layer="container")
def jetson_libraries_not_mounted(snapshot: Snapshot, facts: Facts) -> Outcome | None:
    """The Jetson's libraries are not mounted in the container."""
    if not facts.on_tegra or (not facts.in_container and facts.platform.image_tegra_release is None):
        return None
    missing = _mounted_from_host(facts)
    if missing:
        return failure(
            title=f"The container lacks the Jetson's {missing[0].soname}",
            message="The container runtime mounts it from the host when the container starts.",
            evidence=tuple(item.evidence for item in missing[:_SHOWN]),
            decided_by="framework-ran" if snapshot.observed_errors else "inferred",
        )
    if facts.cuda_answers:
        return passed("The container has the Jetson's libraries", decided_by="driver-answered")
    started, nodes = facts.driver.cuda_init, facts.kernel.device_nodes
    if started is None or started.code != NOT_LOADABLE or not facts.in_container:
        return None
    chip = [node for node in nodes or () if node.path.startswith(("/dev/nvhost", "/dev/nvmap", "/dev/nvgpu"))]
    return failure(
        message="libcuda cannot be loaded" + ("." if chip or nodes is None else ", and the chip has no device node."),
        evidence=(call_evidence(started), Evidence("devices of the chip", str(len(chip)), "/dev")),
        decided_by="driver-answered",
    )


_PARTS = {"cudnn-missing": "cuDNN", "tensorrt-missing": "TensorRT", "cuda-library-missing": "CUDA"}
"""By what a text says to be missing: what the host supplies."""


def _mounted_from_host(facts: Facts) -> list[MissingLibrary]:
    """The missing libraries that the host of this release supplies; an image is for a host of its own release."""
    image = facts.platform.image_tegra_release or ""
    row = jetson_release(facts) or covering("l4t", image, facts) or covering("l4t", image.rpartition(".")[0], facts)
    fixed, missing = row is not None and has_fixed_cuda(row), missing_libraries(facts)
    if missing:
        return [
            item
            for item in missing
            if item.part == "l4t" or (row and fixed and item.number in (None, bundled_major(row, item.part)))
        ]
    named = [(each.line.problem, each.evidence[0]) for each in observed_problems(facts) if image and fixed]
    return [MissingLibrary(_PARTS[problem], problem, None, line) for problem, line in named if problem in _PARTS]
