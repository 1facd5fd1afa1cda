"""CUDA and cuDNN that a package of an image takes from outside its wheel: what the Dockerfile brings of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Literal

import msgspec

from envcheck.checks import Check, Fix, Status
from envcheck.compat.extras import brought, extras_of
from envcheck.compat.images import image_of
from envcheck.compat.matrix import Matrix
from envcheck.compat.names import canonical, scheme
from envcheck.compat.specifier import parse_specifier, parse_version
from envcheck.compat.tables import ReleaseRow
from envcheck.pipeline.planned.checks import check_of, label_of
from envcheck.plans.readers import dockerfile
from envcheck.snapshot import Environment, Planned

_OUTSIDE: tuple[tuple[str, str, Literal["cuda-from-outside", "cudnn-from-outside"]], ...] = (
    ("cuda", "CUDA", "cuda-from-outside"),
    ("cudnn", "cuDNN", "cudnn-from-outside"),
)
"""Component, what text calls it, and how packages behave that take it from outside."""


def without_libraries(item: Planned, environment: Environment, matrix: Matrix) -> Check | None:
    """The check on a package whose libraries the image has in another version, or nothing that is read brings.

    None where they are there, where the package brings them, and outside of images: a machine may have any.
    """
    planned = environment.planned or ()
    files = {environment.key, *(each.file for each in planned)}
    if (
        not any(dockerfile.recognise(PurePath(file).name) for file in files)
        or item.build != ""
        or item.image is not None
    ):
        return None
    if any(not each.name for each in planned):
        return None  # what may bring anything leaves the verdict open
    for component, title, trait in _OUTSIDE:
        takers = [(item.name, item.version or "")] if matrix.has_trait(item.name, trait) else _by_extras(item, matrix)
        row = next((row for name, version in takers if (row := _row(name, version, component, matrix))), None)
        if row is None or _by_wheels(item, component, environment, matrix):
            continue
        needed, there = row.needs[component], list(_there(component, environment, matrix))
        misfit = next((each for each in there if _is_other(each, component, needed)), None)
        if there and misfit is None:
            continue
        status: Status = "unknown" if misfit is None else "fail"
        told = f"{label_of(item)} needs {title} {needed}"
        if misfit is not None:
            heading = f"{label_of(item)} does not fit the image's {title}"
            reason = f"{told}, and {misfit.image or misfit.asked} has {_version(misfit)}"
        else:
            heading = f"Nothing in the plan is known to bring the {title} that {label_of(item)} needs"
            reason = (
                f"{told}, which its wheel does not bring; neither the base image nor a package that is named has it, "
                "and whether other commands install it is not known"
            )
        check = check_of(item, environment, status, heading, reason, fixes=_fixes(item, component, title, matrix))
        return msgspec.structs.replace(check, sources=matrix.cite(row))
    return None


def _by_extras(item: Planned, matrix: Matrix) -> list[tuple[str, str]]:
    """What extras bring that takes its libraries from outside: ``jax[cuda12-local]``."""
    own = item.version or ""
    rows = (row for row in extras_of(matrix, item.name, own) if set(row.outside) & set(item.extras))
    return [(name, own if bound == "=" else bound) for row in rows for name, bound in row.brings.items()]


def _row(name: str, release: str, component: str, matrix: Matrix) -> ReleaseRow | None:
    """The row that says what PyPI's release needs of a library."""
    version = parse_version(release)
    rows = matrix.rows_for(canonical(name), version) if version else []
    return next((row for row in rows if component in row.needs and not row.build), None)


def _version(there: Planned) -> str:
    """The version, or how it begins."""
    return there.version or there.bounds.removeprefix("==").removesuffix(".*")


def _is_other(there: Planned, component: str, needed: str) -> bool:
    version = parse_version(_version(there), scheme(component))
    return version is not None and parse_specifier(needed).cover(version) == "none"


def _by_wheels(item: Planned, component: str, environment: Environment, matrix: Matrix) -> bool:
    """Whether an extra, a wheel of NVIDIA's, a package of conda or PyTorch's requirements bring the library."""
    extras = brought(extras_of(matrix, item.name, item.version or ""), item.version or "", item.extras)
    if any(part.name == component for part in extras or ()):
        return True
    return any(
        each.image is None
        and each.brings is None
        and (
            each.name.startswith(f"nvidia-{component}")
            or (each.conda is not None and each.name.startswith(component))
            or matrix.has_trait(each.name, "distributes-torch")
        )
        for each in environment.planned or ()
    )


def _there(component: str, environment: Environment, matrix: Matrix) -> Iterator[Planned]:
    """What the base image and the system's packages bring of a library."""
    for each in environment.planned or ():
        known = image_of(matrix, each.image) if each.image is not None and each.name == component else None
        if each.brings == component or (known is not None and known.row is not None and known.row.libraries):
            yield each


def _fixes(item: Planned, component: str, title: str, matrix: Matrix) -> tuple[Fix, ...]:
    rows = extras_of(matrix, item.name, item.version or "")
    extra = next((row.extras[0] for row in rows if component in row.brings), "")
    ask = (Fix(text=f"Ask for {item.name}[{extra}]{item.bounds}."),) if extra else ()
    return (*ask, Fix(text=f"Start from an image with that {title}, or install its packages."))
