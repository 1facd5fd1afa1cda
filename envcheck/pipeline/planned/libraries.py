"""What packages of an image take from outside their wheels: CUDA and cuDNN, nvcc and PyTorch where they are compiled,
the C library; what the Dockerfile brings of them; whose files another package takes the place of; and what comes with
them in too new a release.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePath
from typing import Literal

import msgspec

from envcheck.compat.candidates import named_by
from envcheck.compat.narrowing import contains, joined_bounds
from envcheck.compat.package_needs import release_fits
from envcheck.compat.question import exactly
from envcheck.compat.requirements import brought, declared, extras_of
from envcheck.compat.wheels import published
from envcheck.enrich.stated import FORWARD, forward_covers
from envcheck.knowledge.images import image_of
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import canonical, scheme
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.specifier import Version, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import ReleaseRow, WheelRow
from envcheck.model.checks import Check, Fix, Status
from envcheck.model.components import Component
from envcheck.model.snapshot import Framework, Planned, frameworks_in
from envcheck.model.versions import CudaVersion
from envcheck.pipeline.planned.checks import JudgedPlan, label_of
from envcheck.plans.readers import dockerfile
from envcheck.plans.readers.dockerfile import MUSL
from envcheck.rules.api import Facts

_OUTSIDE: tuple[tuple[str, str, Literal["cuda-from-outside", "cudnn-from-outside"]], ...] = (
    ("cuda", "CUDA", "cuda-from-outside"),
    ("cudnn", "cuDNN", "cudnn-from-outside"),
)
"""Component, what text calls it, and how packages behave that take it from outside."""


def without_libraries(item: Planned, plan: JudgedPlan) -> Check | None:
    """The check on a package whose libraries the image has in another version, or nothing that is read brings.

    None where they are there, and where the package brings them. What a machine has that a plan does not build is open.
    """
    if item.build or item.image is not None:
        return None
    files = {plan.environment.key, *(each.file for each in plan.entries)}
    of_image = any(dockerfile.FILES.fullmatch(PurePath(file).name) for file in files)
    if any(not each.name for each in plan.entries):
        return None  # what may bring anything leaves the verdict open
    for component, title, trait in _OUTSIDE:
        own = item.version or ""
        takers = [(item.name, own)]
        if not plan.matrix.has_trait(item.name, trait):
            # Extras may bring what takes its libraries from outside: ``jax[cuda12-local]``.
            rows = [row for row in extras_of(plan.matrix, item.name, own) if set(row.outside) & set(item.extras)]
            takers = [(name, own if bound == "=" else bound) for row in rows for name, bound in row.brings.items()]
        row = next((row for name, version in takers if (row := _row(name, version, component, plan.matrix))), None)
        if row is None or _by_wheels(item, component, row.needs[component] if item.build is not None else "", plan):
            continue
        needed, there = row.needs[component], list(_there(component, plan))
        versions = [(each, parse_version(_version(each), scheme(component))) for each in there]
        misfit = next((each for each, its in versions if its and parse_specifier(needed).cover(its) == "none"), None)
        if there and misfit is None:
            continue
        if misfit is not None and item.build is None:
            continue  # a private index may have it built otherwise
        status: Status = "unknown" if misfit is None else "fail"
        need = f"{label_of(item)} needs {title} {needed}"
        if misfit is not None:
            heading = f"{label_of(item)} does not fit the image's {title}"
            reason = f"{need}, and {misfit.image or misfit.asked} has {_version(misfit)}"
        else:
            heading = f"Nothing in the plan is known to bring the {title} that {label_of(item)} needs"
            reason = (
                f"{need}, which its wheel does not bring; neither the base image nor a package that is named has it, "
                "and whether other commands install it is not known"
                if of_image
                else f"{need}, which neither its wheel nor a package that is named brings: the machine must have it"
            )
        extra = next((row.extras[0] for row in extras_of(plan.matrix, item.name, own) if component in row.brings), "")
        fixes: tuple[Fix, ...] = (Fix(text=f"Ask for {item.name}[{extra}]{item.bounds}."),) if extra else ()
        start = "Start from an image with that" if of_image else "See that the machine has that"
        fixes = (*fixes, Fix(text=f"{start} {title}, or install its packages."))
        torch = next((each for each in frameworks_in(plan.environment) if each.name == "torch" and each.cuda), None)
        if torch and not there and item.build is not None and _excludes(needed, component, torch.cuda or ""):
            status, reason = "fail", f"{need}; PyTorch brings CUDA {torch.cuda}, and nothing that is read another one"
            if release := _beside_libraries_of(torch, item, plan):
                fixes = (Fix(text=f"Pin {item.name}=={release}, which is for the libraries of this PyTorch."),)
        return plan.check(item, status, heading, reason, fixes=fixes, sources=plan.matrix.cite(row))
    return None


def library_wheels(item: Planned, matrix: Matrix) -> dict[str, str]:
    """NVIDIA's wheels that bring what a release opens by its name alone, and the bounds on them."""
    found: dict[str, str] = {}
    cuda = _row(item.name, item.version or "", "cuda", matrix)
    major = parse_specifier(cuda.needs["cuda"]).bounds[0].numbers[0] if cuda else 0
    for component, _, trait in _OUTSIDE:
        row = _row(item.name, item.version or "", component, matrix)
        wheels = [
            name for each in matrix.traits if each.trait == trait and item.name in each.names for name in each.wheels
        ]
        bounds = row.needs[component] if row and component != "cuda" else ""
        found |= {f"nvidia-{wheel}-cu{major}": bounds for wheel in wheels if row and cuda}
    return found


def _beside_libraries_of(torch: Framework, item: Planned, plan: JudgedPlan) -> Version | None:
    """The first later release of a package that takes the CUDA and cuDNN which the plan's PyTorch brings."""
    own, cuda = parse_version(item.version or ""), CudaVersion.parse(torch.cuda)
    required = declared(plan.matrix, "torch", torch.version or "", plan.markers)
    cudnn = required.get(f"nvidia-cudnn-cu{cuda.major}", "") if cuda else ""
    brings = {"cuda": str(cuda), "cudnn": cudnn.removeprefix("==")}
    for release in published(plan.matrix, canonical(item.name)):
        rows = {name: _row(item.name, str(release), name, plan.matrix) for name in brings}
        taken = [
            parse_specifier(row.needs[name]).cover(version) != "none"
            for name, text in brings.items()
            if (row := rows[name]) and (version := parse_version(text, scheme(name)))
        ]
        if own and release.numbers > own.numbers and len(taken) == len(brings) and all(taken):
            return release
    return None


def _row(name: str, release: str, component: str, matrix: Matrix) -> ReleaseRow | None:
    version = parse_version(release)
    rows = matrix.rows_for(canonical(name), version) if version else []
    return next((row for row in rows if component in row.needs and not row.build), None)


def _version(there: Planned) -> str:
    return there.version or there.bounds.removeprefix("==").removesuffix(".*")


def _excludes(needed: str, component: str, cuda: str) -> bool:
    """Whether it is another major of CUDA than ``needed``, which is empty for what an index may have built anew."""
    version = parse_version(cuda.partition(".")[0], scheme("cuda")) if component == "cuda" and needed else None
    return version is not None and parse_specifier(needed).cover(version) == "none"


def _by_wheels(item: Planned, component: str, needed: str, plan: JudgedPlan) -> bool:
    """Whether an extra, a wheel of NVIDIA's, a package of conda or PyTorch's requirements bring the library."""
    cuda = next((each.cuda for each in frameworks_in(plan.environment) if each.name == "torch"), None) or ""
    extras = brought(extras_of(plan.matrix, item.name, item.version or ""), item.version or "", item.extras)
    own = library_wheels(item, plan.matrix) if component == "cuda" else ()
    if any(part.name == component for part in extras or ()):
        return True
    return any(
        each.image is None
        and each.brings is None
        and (
            (
                (each.name.startswith(f"nvidia-{component}") or each.name in own)
                and not _excludes(needed, component, each.name.rpartition("-cu")[2])
            )
            or (each.conda is not None and each.name.startswith(component))
            or (plan.matrix.has_trait(each.name, "distributes-torch") and not _excludes(needed, component, cuda))
        )
        for each in plan.entries
    )


def _there(component: str, plan: JudgedPlan) -> Iterator[Planned]:
    """What the base image and the system's packages bring of a library."""
    for each in plan.entries:
        known = image_of(plan.matrix, each.image) if each.image is not None and each.name == component else None
        if each.brings == component or (known is not None and known.row is not None and known.row.libraries):
            yield each


def perhaps_runs(check: Check) -> Check:
    """The failure by a driver, open: an image's own cuda-compat may stand in for it."""
    message = f"{check.message.removesuffix('.')}; whether the image holds {FORWARD} for it is not known."
    return msgspec.structs.replace(check, status="unknown", message=message)


def perhaps_forward(facts: Facts) -> Component | None:
    """The newest cuda-compat that may stand in for the driver, where an image of the plan may hold one: it is not read,
    or nothing says whether it does.
    """
    entries = facts.environment.planned or ()
    known = [image_of(facts.matrix, each.image) for each in entries if each.image and each.name == "cuda"]
    unread = any(not each.name and each.asked.startswith("FROM ") for each in entries)
    if not unread and not any(each and each.row and each.row.forward is None for each in known):
        return None
    versions = (CudaVersion.parse(str(each)) for each in reversed(facts.matrix.known_versions(FORWARD)))
    covering = (each for each in versions if each and forward_covers(each, facts.snapshot, facts.matrix) == {"all"})
    newest = next(covering, None)
    return exactly(FORWARD, str(newest)) if newest else None


def uncompiled(item: Planned, plan: JudgedPlan) -> Check | None:
    """The open question of a package that must be compiled, where its build sees no PyTorch, or the image no nvcc."""
    rows = _rows(item, plan.matrix)
    if rows is None:
        return None
    images = {each.image for each in plan.entries if each.image is not None}
    torches = [each for each in plan.entries if plan.matrix.has_trait(each.name, "distributes-torch")]
    first = f"Install PyTorch first, then {item.name} with --no-build-isolation, or a compiled wheel."
    if item.isolated:
        cause, fix = "pip builds it in isolation, where it sees no PyTorch unless its source asks for it", first
    # pip builds before it installs, so PyTorch must come from the base image or another command.
    elif not torches or (images and not any(each.image or each.together != item.together for each in torches)):
        cause, fix = "no command before this one is known to install PyTorch", first
    elif images and not any(
        known.row.nvcc and re.fullmatch(known.row.nvcc, name.rpartition(":")[2])
        for name in images
        if (known := image_of(plan.matrix, name)) is not None and known.row is not None
    ):
        cause = "nothing that was read brings nvcc into the image"
        fix = "Start from an image with the CUDA toolkit (nvcc), or install a compiled wheel."
    else:
        return None
    why = f"PyPI has its source alone, which is compiled against PyTorch with nvcc; {cause}."
    title = f"Whether {label_of(item)} can be built is not known"
    message, sources = f"{label_of(item)}: {why}", plan.matrix.cite(*rows)
    return plan.check(item, "unknown", title, message, fixes=(Fix(text=fix),), sources=sources)


def _rows(item: Planned, matrix: Matrix) -> tuple[WheelRow, ReleaseRow] | None:
    """The rows that say of PyPI's package that there is no wheel for Linux, and that PyTorch and nvcc compile it."""
    from_pypi = item.conda is None and item.image is None and not item.problem and "+" not in (item.version or "")
    if not from_pypi or matrix.has_trait(item.name, "compiles-where-it-runs"):
        return None
    name, version = canonical(item.name), parse_version(item.version or "")
    known = matrix.wheels_by_name.get(name, ())
    wheels = [row for row in known if row.archive and not {"any", "linux"} & {*row.pythons}]
    if version is not None:
        wheels = [row for row in wheels if speaks_of(row.versions, version) == "all"]
    releases = [row for row in matrix.rows_of(name) if {"nvcc", "torch"} <= row.needs.keys()]
    return (wheels[-1], releases[-1]) if wheels and releases else None


def beside_system(item: Planned, plan: JudgedPlan) -> Check | None:
    """The failure of a package whose wheels the image's system does not take; None where it does, or none is known."""
    if item.version is None or item.conda is not None or item.image is not None or item.brings is not None:
        return None
    release = f"{item.version}+{item.build}" if item.build and item.name == "torch" else item.version
    for part in plan.entries:
        if part.image is None or part.version is None:
            continue
        if part.name == MUSL:
            return _without_glibc(item, part, plan)
        if part.name in plan.matrix.distribution_names:
            answer = plan.asked(item.name, release, [exactly(part.name, part.version)])
            if answer.verdict == "incompatible":
                return plan.answered(item, answer, f" {part.image}")
    return None


def _without_glibc(item: Planned, part: Planned, plan: JudgedPlan) -> Check | None:
    """Rows of wheels leave out those for musl; no package for GPUs had any on 26 November 2026."""
    number = parse_version(item.version or "")
    wheels = plan.matrix.wheels_by_name.get(item.name, ())
    rows = [row for row in wheels if number and speaks_of(row.versions, number) == "all"]
    if not rows or any(row.archive or "any" in row.pythons for row in rows):
        return None
    title = f"{label_of(item)} does not fit {part.image}"
    why = f"the wheels of {label_of(item)} for Linux need glibc, and the C library of {part.image} is musl"
    fix = Fix(text="Start from an image of Debian or Ubuntu, as the tags without alpine are.")
    return plan.check(item, "fail", title, why, fixes=(fix,), sources=plan.matrix.cite(*rows))


def written_over(
    items: Sequence[Planned], needs: Mapping[str, Mapping[str, str]], matrix: Matrix
) -> Iterator[tuple[Planned, str, str]]:
    """Those of ``items`` that are built for CUDA and whose files another package takes the place of, with who requires
    that, and its name: faster-whisper requires the ONNX Runtime for processors.

    ``needs`` are the bounds that each package, of the items or required by them, sets on others.
    """
    there = {each.name for each in items}
    for item in items:
        for project in matrix.projects(item.name, "has-cuda-provider"):
            for owner, name in sorted((owner, name) for owner, own in needs.items() for name in own):
                if name in there or owner == item.name or project not in matrix.projects(name, "shares-its-folder"):
                    continue
                if contains(needs[owner][name], item.version or ""):
                    there.add(name)
                    yield item, owner, name


def newer_beside(
    items: Sequence[Planned],
    needs: Mapping[str, Mapping[str, str]],
    named: set[str],
    matrix: Matrix,
    newest: Callable[[str, str], str],
) -> Iterator[tuple[Planned, str, str, Fit]]:
    """What would come with the items in a release that is too new for one of them: that one, the name, the bounds that
    all set on it, and what rows say. ``newest`` finds what an installer takes within bounds; ``needs`` as above.
    What is ``named`` is judged itself.
    """
    comes, naming = defaultdict[str, list[str]](list), defaultdict[str, list[Planned]](list)
    for name, bounds in (need for own in needs.values() for need in own.items()):
        comes[name].append(bounds)
    for each in items:
        for name in (named_by(canonical(each.name), matrix) & comes.keys()) - named:
            naming[name].append(each)
    for name, owners in sorted(naming.items()):
        asked = joined_bounds(comes[name])
        taken = newest(name, asked) if name in matrix.wheels_by_name else ""
        fits = ((each, release_fits(matrix, each.name, each.version or "", name, taken)) for each in owners if taken)
        yield from islice(((each, name, asked, fit) for each, fit in fits if fit is not None and fit.bad), 1)
