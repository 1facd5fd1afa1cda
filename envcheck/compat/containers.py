"""Containers (``nvcr==pytorch:24.10``) and Linux distributions: what they hold, and what a container's notes require of
driver and GPU.

What is named beside a container and the container holds is what is in it: it must be the version that it holds. CUDA
can be unpacked on any distribution; so one that NVIDIA's images or wheels are not for refuses nothing, but is not said
to fit either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from envcheck.compat.hardware import NAME as FORWARD
from envcheck.compat.hardware import compat_fits, runs
from envcheck.compat.question import CONTAINER, AskedGpu, Container, Question, agree, listed, readable, reworded
from envcheck.compat.wheels import libcs
from envcheck.knowledge.images import also_contained, image_of
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import COMPILERS, canonical, scheme
from envcheck.knowledge.relations.driver import known_cuda_of
from envcheck.knowledge.relations.fit import Fit, FitVerdict, conclude
from envcheck.knowledge.relations.gpu_code import cuda_serves
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import ImageRow
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from envcheck.text.lazy import lazy_pattern

REGISTRY = "nvcr.io/nvidia/"
_FORMS = ("", "-py3", "-tf2-py3", "-base")  # How tags of a release go on where only its number is named
_RELEASE = lazy_pattern(r"([0-9]{2}\\\.[0-9]{2})(-[a-z]+-python-py3)?-?")
"""How the pattern of the tags of a release by month begins."""
_NAMED_BY_SYSTEM = "ubuntu"  # A part that the operating system in question names too


def read_container(matrix: Matrix, text: str) -> Container | str:
    """The container ``NAME:TAG`` (with or without the registry and the end of the tag), or another image of a
    repository that the matrix knows, by its whole name; or why there is none.
    """
    label = text.strip().removeprefix(REGISTRY)
    found = [image_of(matrix, f"{REGISTRY}{label}{form}") for form in _FORMS] if ":" in label else []
    found = found if any(found) else [image_of(matrix, label)]
    if not any(found):
        names = dict.fromkeys(name for row in matrix.images for name in row.names)
        known = listed(sorted(name.removeprefix(REGISTRY) for name in names if name.startswith(REGISTRY)))
        if re.fullmatch(r"[\w./-]+:[\w.-]+", label):
            return f"the matrix has no notes of the container {label.partition(':')[0]}; it knows {known}"
        return f"write {CONTAINER}==NAME:TAG, where NAME is {known}"
    for image in found:
        if image and image.row:
            return Container(label, image.row, {**image.holds, **also_contained(image.row, image.name)}, {})
    return f"the matrix does not know the container {label}, as the notes of its release could not be read"


def known_containers(matrix: Matrix) -> list[str]:
    """The releases with a separate row, as they are asked for; by the whole tag, where it is a further one."""
    return [
        f"{name.removeprefix(REGISTRY)}:{(release[1] + (release[2] or '')).replace(chr(92), '')}"
        for row in matrix.images
        if (release := _RELEASE.match(row.tags))
        for name in row.names
    ]


def inside(container: Container, fields: dict[str, Any], versions: dict[str, tuple[Version, ...]]) -> Container:
    """The container with the named parts that it holds, which are taken from the other fields of the question."""
    named: dict[str, tuple[Version, ...]] = {}
    # A container holds its publisher's own build of what its repository is named after.
    namesake = canonical(container.label.partition(":")[0].rpartition("/")[2])
    names = {*container.holds, namesake, *(("nvcc",) if "cuda" in container.holds else ())}
    for part in names & versions.keys():
        named[part] = versions.pop(part)
        fields.pop(part, None)
    return container._replace(named=named)


def container_fits(question: Question) -> Iterator[Fit]:
    """Everything about the container that was named: its parts, the GPUs, the driver and the system."""
    container = question.container
    if container is None:
        return
    for part, versions in container.named.items():
        if part != _NAMED_BY_SYSTEM or "os" not in question.labels:
            fits = [(str(version), _holds(question.matrix, container, part, version)) for version in versions]
            yield agree(fits, question.labels.get(part, part)).concerning(CONTAINER, part)
    cuda = CudaVersion.parse(container.holds.get("cuda"))
    for gpu in question.gpus if cuda or container.row.capability_min else ():
        yield _on_gpu(question.matrix, container, cuda, gpu).concerning(CONTAINER, "gpu")
    if question.drivers and (cuda or container.row.driver or container.row.capability_min):
        yield _on_driver(question, container, cuda).concerning(CONTAINER, "driver")
    if "os" in question.labels:
        fit = conclude(question.matrix, "compatible", f"{container.label} is a Linux container", container.row)
        if question.os not in ("linux", "wsl"):
            reason = f"{fit.reason}; on {question.os} it cannot use the GPU"
            fit = conclude(question.matrix, "incompatible", reason, container.row, change="os linux")
        yield fit.concerning(CONTAINER, "os")


def _holds(matrix: Matrix, container: Container, part: str, version: Version) -> Fit:
    """Whether the container holds a version, by the numbers that both name."""
    text = container.holds.get("cuda" if part == "nvcc" else part)
    if text is None:
        reason = f"{container.label} holds its publisher's own build of {part}"
        return conclude(matrix, "unknown", f"{reason}, and the matrix does not know which version", container.row)
    other = container.row.disputed.get(part, "")
    pair = [parse_version(each, scheme(part)) for each in (text, other)]
    same, disputed = (
        one is not None and all(a == b for a, b in zip(one.numbers, version.numbers, strict=False)) for one in pair
    )
    reason = f"{container.label} holds {part} {text}"
    if disputed != same and other:
        return conclude(matrix, "unknown", f"documents disagree: {reason}, or {other}", container.row)
    if same:
        return conclude(matrix, "compatible", reason, container.row)
    return conclude(matrix, "incompatible", f"{reason}, not {version}", container.row, change=f"{part} {text}")


def _on_gpu(matrix: Matrix, container: Container, cuda: CudaVersion | None, gpu: AskedGpu) -> Fit:
    row, answer = container.row, partial(conclude, matrix)
    capability = matrix.capability_rows.get(gpu.capability)
    least, greatest = ComputeCapability.parse(row.capability_min), ComputeCapability.parse(row.capability_max)
    if capability and capability.tegra:
        return answer("unknown", f"Jetsons have separate images; {container.label} may not be one of them", row)
    if least and gpu.capability < least:
        reason = f"{container.label} needs compute capability {least} or higher; {gpu.label} has {gpu.capability}"
        return answer("incompatible", reason, row, change=f"a GPU of compute capability >= {least}")
    if greatest and gpu.capability > greatest:
        reason = f"{container.label} supports compute capability up to {greatest}; {gpu.label} has {gpu.capability}"
        return answer("incompatible", reason, row, change=f"a GPU of compute capability <= {greatest}")
    if cuda is None:
        reason = f"{container.label} supports compute capability {least} or higher; {gpu.label} has {gpu.capability}"
        return answer("compatible", reason, row)
    fit = cuda_serves(matrix, gpu.capability, cuda)
    # The releases of this repository before and after whose notes name a least compute capability.
    known = [one for one in matrix.images if one.capability_min and _month(one) and set(one.names) & set(row.names)]
    before = sorted((one for one in known if _month(one) < _month(row)), key=_month)[-1:]
    after = sorted((one for one in known if _month(one) > _month(row)), key=_month)[:1]
    least_around = [(one, ComputeCapability.parse(one.capability_min)) for one in (*before, *after) if _month(row)]
    around = [one for one, its in least_around if its and gpu.capability < its]
    if fit.ok and not least and around:
        around_it = listed([f"{_month(other)} needs {other.capability_min}" for other in around])
        reason = f"which GPUs {container.label} needs could not be read; of the months around it, {around_it} or higher"
        return answer("unknown", f"{reason}, and {gpu.label} has {gpu.capability}", row, *around)
    return reworded(matrix, fit, f"{container.label} holds CUDA {cuda}: {fit.reason}", row)


def _month(row: ImageRow) -> str:
    """As in ``24.10``; empty for images that have no releases by month."""
    found = _RELEASE.match(row.tags)
    return found[1].replace("\\", "") if found else ""


def _on_driver(question: Question, container: Container, cuda: CudaVersion | None) -> Fit:
    """What the notes ask for, what CUDA itself does, and the package cuda-compat in the container.

    Where the notes ask for more than CUDA does, or for less, its documents disagree, and it is not known.
    """
    matrix, row = question.matrix, container.row
    floor = DriverRelease.parse(row.driver)
    asked = floor is None or min(question.drivers) >= floor
    if cuda is None:  # it is not known, or the container holds several
        reason = f"{container.label} needs driver {row.driver} or newer"
        if floor is None:
            return conclude(matrix, "unknown", f"which driver {container.label} needs is not known", row)
        if asked:
            return conclude(matrix, "compatible", reason, row)
        return conclude(matrix, "incompatible", reason, row, change=f"driver >= {row.driver}")
    alone = question._replace(compat=None)
    numbers = parse_version(container.holds["cuda"])
    if refused := not_started(question):
        return refused
    native = runs(alone, cuda, numbers.numbers if numbers else ())
    here = f"{container.label} holds CUDA {cuda}: {native.reason}"
    if native.ok and asked:
        return reworded(matrix, native, here, row)
    forward = _forward(alone, container, cuda)
    if forward.ok or (native.ok and forward.verdict == "unknown" and not question.gpus):
        return forward if forward.ok else reworded(matrix, native, here, row)
    if native.ok or (floor and asked):
        notes = f"the notes of {container.label} ask for driver {floor} or newer"
        disputed = Fit(verdict="unknown", reason=native.reason, rows=native.rows, sources=native.sources)
        return reworded(matrix, disputed, f"documents disagree: {notes}, and {native.reason}", row)
    if native.bad and forward.verdict == "unknown":
        return reworded(matrix, forward, f"{here}; {forward.reason}", row)
    return reworded(matrix, native, here, row)


def not_started(question: Question) -> Fit | None:
    """That Docker does not start the container with a driver which its image does not admit, though its CUDA runs."""
    matrix, container = question.matrix, question.container
    cuda = CudaVersion.parse(container.holds.get("cuda")) if container and container.row.demands else None
    row = next((row for row in matrix.image_demands if row.cuda == str(cuda)), None)
    if container is None or cuda is None or row is None or question.windows_driver:
        return None
    supported = [known_cuda_of(matrix, driver) for driver in question.drivers]
    geforce = bool(question.gpus) and all(gpu.model and gpu.model.kind == "geforce" for gpu in question.gpus)
    older = row.branches if row.geforce or not geforce else ()
    if not supported or any(
        own is None or own >= cuda or driver.branch in older
        for own, driver in zip(supported, question.drivers, strict=True)
    ):
        return None
    admits = f", and of older drivers it admits {listed([f'R{branch}' for branch in older])} alone" if older else ""
    admits = " and admits no older one on GeForce" if geforce and not older else admits
    reason = f"{container.label} asks for a driver that supports CUDA {cuda} (NVIDIA_REQUIRE_CUDA){admits}"
    label = question.labels["driver"].replace("==", " ")
    reason = f"{reason}; {label} supports CUDA {supported[-1]}, so Docker does not"
    needed = next((one.branch for one in matrix.drivers if one.os == "linux" and one.cuda == str(cuda)), None)
    change = f"driver R{needed}" if needed else ""
    return conclude(matrix, "incompatible", f"{reason} start it", row, container.row, change=change)


def _forward(question: Question, container: Container, cuda: CudaVersion) -> Fit:
    """Whether the container's cuda-compat stands in for the driver."""
    matrix = question.matrix
    rows = matrix.rows_for(FORWARD, Version((cuda.major, cuda.minor), scheme=scheme(FORWARD)))
    specs = [spec for row in rows if (spec := row.needs.get("driver-linux"))]
    covers = {parse_specifier(spec).cover(Version(tuple(driver))) for spec in specs for driver in question.drivers}
    answer = partial(conclude, matrix)
    if container.row.forward is False:
        return answer("incompatible", f"{container.label} holds no {FORWARD}", container.row)
    if covers == {"none"}:
        reason = f"{FORWARD} {cuda} needs {readable('driver', specs[0])}"
        return answer("incompatible", reason, container.row, *rows, change=readable("driver", specs[0]))
    fits = list(compat_fits(question, cuda))
    refusal = next((fit for fit in fits if fit.bad), None)
    if refusal:
        return refusal
    if container.row.forward is None or covers != {"all"}:
        return answer("unknown", f"whether {container.label} holds {FORWARD} for it is not documented", container.row)
    doubt = next((fit for fit in fits if not fit.ok), None)
    if doubt or not question.gpus:
        reason = doubt.reason if doubt else f"its {FORWARD} {cuda} serves data center GPUs alone"
        return answer("unknown", reason, container.row, *rows)
    reason = f"{container.label} holds {FORWARD} {cuda}, which serves data center GPUs with this driver"
    return answer("compatible", reason, container.row, *rows)


_BESIDE = frozenset({"cuda", "nvcc", "glibc", "python", *COMPILERS})
"""What a question about the toolkit alone names besides a distribution; beside a package, CUDA means what that one is
built with.
"""


def distribution_fits(question: Question) -> Iterator[Fit]:
    """Whether NVIDIA provides the toolkit, or the library, that was named for the distribution that was."""
    for name in question.labels:
        # A library has a wheel for each major of CUDA, or one for that in its name (``tensorrt-cu12``).
        library, _, cuda = name.partition("-cu")
        wheel = question.matrix.wheels_of_libraries.get(library)
        majors = [cuda] if cuda else sorted({toolkit.major for toolkit in question.matrix.toolkits})
        yield from _by_glibc(question, name, [wheel.format(major) for major in majors] if wheel else [])
    distributions = question.matrix.distribution_names
    if question.container or question.versions.keys() - _BESIDE - distributions:
        return
    tool = "nvcc" if "nvcc" in question.versions else "cuda"
    for name in sorted(distributions & question.versions.keys()):
        by = "os" if "os" in question.labels else name
        for release in question.versions[name]:
            for toolkit in question.versions.get(tool, ()):
                row = next((row for row in question.matrix.rows_for(name, release) if row.toolkits), None)
                toolkits = readable("CUDA", row.toolkits) if row else ""
                reason = f"NVIDIA provides images of {toolkits} with {name} {release}"
                verdict: FitVerdict = "unknown"
                if row is None:
                    reason = f"whether NVIDIA provides CUDA {toolkit} for {name} {release} is not known"
                elif covered(row.toolkits, toolkit) == "all":
                    verdict = "compatible"
                else:
                    reason = f"{reason}; whether CUDA {toolkit} can be installed there is not documented"
                change = toolkits if verdict == "unknown" else ""
                yield conclude(question.matrix, verdict, reason, row, change=change).concerning(tool, by)


def _by_glibc(question: Question, name: str, wheels: list[str]) -> Iterator[Fit]:
    """What the wheels of a library tell of the glibc that it was linked against."""
    for version in question.versions.get(name, ()) if question.os in ("linux", "wsl") else ():
        needs = [
            (needed, row)
            for wheel in wheels
            for row in question.matrix.wheels_by_name.get(wheel, ())
            if speaks_of(row.versions, version) != "none"
            if (needed := parse_version(row.glibc.get(question.machine, ""), scheme("glibc")))
        ]
        needs.sort(key=lambda need: need[0].numbers)
        for there, by, source, rows in libcs(question) if needs else ():
            (least, _), (greatest, row) = needs[0], needs[-1]
            libc = str(least) if least == greatest else f"{least} to {greatest}"
            reason = f"NVIDIA's wheels of {name} {version} need glibc {libc} or newer, this is {there}{source}"
            if covered(f">={greatest}", there) == "all":
                fit = conclude(question.matrix, "compatible", reason, row, *rows)
            else:
                reason = f"{reason}; whether another package of it serves there is not documented"
                fit = conclude(question.matrix, "unknown", reason, row, *rows, change=f"glibc >= {greatest}")
            yield fit.concerning(name, by)
