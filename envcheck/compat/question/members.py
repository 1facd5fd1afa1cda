"""What one written component stands for: a release, or every known one of a family or within bounds."""

from __future__ import annotations

import re

from envcheck.compat.cuda_rows import admitted_toolkits, toolkits
from envcheck.compat.gpu_names import find_gpu
from envcheck.compat.question.names import scheme
from envcheck.compat.question.question import AnyPatch, AskedGpu, BranchHead
from envcheck.compat.question.rows import known_versions
from envcheck.compat.specifier import Specifier, Version, parse_specifier, parse_version
from envcheck.compat.tables import Os, Tables
from envcheck.components import Component
from envcheck.versions import ComputeCapability, CudaVersion, DriverRelease

_CAPABILITY = re.compile(r"(?:sm|compute)[_ ]?[0-9]{2,3}[af]?|[0-9]{1,2}\.[0-9]", re.IGNORECASE)
_TWO_NUMBERS = 2


def driver_members(tables: Tables, component: Component, os: Os) -> tuple[tuple[DriverRelease, ...], str]:
    """The releases that are meant, ascending, and what was assumed. A branch alone is its newest release."""
    if component.exact is None:
        return _drivers_within(tables, component, os)
    release = DriverRelease.parse(component.exact)
    if release is None:
        return (), ""
    numbers = component.exact.count(".") + 1
    if numbers == 1:
        return (BranchHead.of(release.branch),), f"the newest release of R{release.branch}"
    if numbers == _TWO_NUMBERS and os == "linux":
        return (release, AnyPatch.of(release)), ""
    return (release,), ""


def _drivers_within(tables: Tables, component: Component, os: Os) -> tuple[tuple[DriverRelease, ...], str]:
    """Both ends of each known branch, and the bounds themselves: between them nothing changes."""
    spec = _specifier(component)
    if spec is None:
        return (), ""
    kind = "linux" if os == "linux" else "windows"
    branches = [number for row in tables.drivers if row.os == kind for number in {row.branch, row.until or row.branch}]
    ends = [release for branch in branches for release in (DriverRelease(branch, 0), BranchHead.of(branch))]
    named = [DriverRelease(*(*bound.numbers, 0, 0)[:3]) for bound in spec.bounds]
    lowest = {bound.numbers[0] for bound in spec.bounds if bound.operator == ">=" and len(bound.numbers) == 1}
    starts = {DriverRelease(branch, 0) for branch in lowest}
    admitted = {release for release in (*ends, *named) if spec.cover(Version(tuple(release))) == "all"} - starts
    admitted |= {BranchHead.of(branch) for branch in lowest if spec.cover(Version((branch,))) == "all"}
    return tuple(sorted(admitted)), "".join(
        f"from the newest release of R{branch} on" for branch in sorted(lowest)[-1:]
    )


def cuda_members(tables: Tables, component: Component) -> tuple[CudaVersion, ...]:
    """The CUDA versions that are meant: one, or the known toolkits of a family or within bounds."""
    text = component.exact
    if text is None:
        spec = _specifier(component)
        return tuple(admitted_toolkits(tables, spec)) if spec else ()
    version = CudaVersion.parse(text)
    if version is None or "." in text:
        return (version,) if version else ()
    return tuple(member for member in toolkits(tables) if member.major == version.major)


def gpu_of(tables: Tables, component: Component) -> AskedGpu | None:
    """The GPU that is meant, by marketing name or compute capability."""
    text = component.exact or ""
    if _CAPABILITY.fullmatch(text):
        capability = ComputeCapability.parse(text.lower().replace(" ", "_"))
        return AskedGpu(capability.sm, capability, None) if capability else None
    model = find_gpu(tables, text)
    capability = ComputeCapability.parse(model.compute_capability) if model else None
    return AskedGpu(model.name, capability, model) if model and capability else None


def version_members(tables: Tables, name: str, component: Component) -> tuple[Version, ...]:
    """The version that is meant, or the known ones within bounds."""
    numbering = scheme(name)
    if component.exact is not None:
        version = parse_version(component.exact, numbering)
        return (version,) if version else ()
    spec = _specifier(component)
    single = numbering._replace(numbers=1)
    known = [version._replace(scheme=single) for version in known_versions(tables, name)]
    return tuple(version for version in known if spec and spec.cover(version) == "all")


def _specifier(component: Component) -> Specifier | None:
    try:
        return parse_specifier(",".join(str(bound) for bound in component.bounds))
    except ValueError:
        return None
