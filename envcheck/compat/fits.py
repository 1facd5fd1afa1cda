"""Everything that the relations say about a question: hardware pairs, the rows of each component, TensorRT engines,
packages that are compiled during installation, and what no relation covers.

The version of an engine does not tell whether it was built to be version-compatible. Builders do that only on request,
so the answer assumes that it was not, and says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import msgspec

from envcheck.compat.candidates import TORCH, Candidate, elsewhere, release_candidates, torch_readings, with_implied
from envcheck.compat.containers import REGISTRY, container_fits, distribution_fits
from envcheck.compat.hardware import data_center_fits, hardware_fits, on_jetsons
from envcheck.compat.narrowing import third_fits
from envcheck.compat.question import (
    CONTAINER,
    Container,
    Question,
    agree,
    listed,
    overall,
    reworded,
    soften,
    summary,
    unknown_release,
)
from envcheck.compat.requirements import one_of_fits, rank, requirement_fits
from envcheck.compat.software import candidate_fits, need_fits, part_fits
from envcheck.compat.wheels import is_published, not_published, python_fits, toolkit_fits
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import COMPILERS, HARDWARE, PLATFORM, SETS
from envcheck.knowledge.relations.fit import Fit, conclude
from envcheck.knowledge.relations.torch import tag_of
from envcheck.knowledge.specifier import Version, parse_specifier, parse_version
from envcheck.model.versions import CudaVersion

ENGINE = "tensorrt-engine"
ENGINE_ASSUMED = "not built to be version-compatible"
_RUNTIME = "tensorrt"
_COMPUTING = ("framework", "engine")  # Roles of distributions with GPU code of their own
EXTENSION = "torch-extension"
_NVCC = "nvcc"
_KNOWN_OTHERWISE = frozenset({"cuda", "nvcc", "python", "gcc", ENGINE})
"""A version of these, and of a distribution, that no row of releases covers may be known all the same."""

_Option: TypeAlias = tuple[str, Sequence[Fit]]
"""One way to read a named component, and what the relations say of it so read."""


def engine_fits(question: Question) -> Iterator[Fit]:
    """An engine loads in the version that built it; one built to be version-compatible, in those that its row needs."""
    if ENGINE not in question.versions:
        return
    runtime = question.versions.get(_RUNTIME)
    by, label = _RUNTIME, ""
    if runtime is None and _RUNTIME in question.implied:
        implied = question.implied[_RUNTIME]
        runtime, by, label = (implied.version,), implied.by, f" (it comes with {implied.label})"
    for engine in question.versions[ENGINE]:
        for version in runtime or ():
            yield _loads(question.matrix, engine, version, label).concerning(ENGINE, by)


def _loads(matrix: Matrix, engine: Version, runtime: Version, where: str) -> Fit:
    row = next(iter(matrix.rows_for(ENGINE, engine)), None)
    this = f"an engine built by TensorRT {engine}, this is {runtime}{where}"
    if row is None:
        return conclude(matrix, "unknown", f"the matrix does not know where engines of TensorRT {engine} load")
    shortest = min(len(engine.numbers), len(runtime.numbers))
    if engine.numbers[:shortest] == runtime.numbers[:shortest]:
        if engine.numbers != runtime.numbers and (engine.family or runtime.family):
            return conclude(matrix, "unknown", f"an engine loads in the very version that built it: {this}", row)
        return conclude(matrix, "compatible", f"an engine loads in the version that built it, TensorRT {engine}", row)
    admitted = _RUNTIME in row.needs and parse_specifier(row.needs[_RUNTIME]).cover(runtime) != "none"
    if admitted and runtime.numbers > engine.numbers:
        reason = f"only an engine built to be version-compatible loads in a newer TensorRT: {this}"
    else:
        reason = f"an engine loads in the version of TensorRT that built it: {this}"
    return conclude(matrix, "incompatible", reason, row, change=f"TensorRT {engine}, or an engine built by {runtime}")


def held_fits(question: Question) -> Iterator[Fit]:
    """Whether the framework in a container runs on each GPU that was named, and with the driver.

    Some images install the wheels that are published; what code others were built with, only their notes tell.
    """
    container = question.container
    if container is None or not (question.gpus or question.drivers):
        return
    has_capability = container.row.capability_min is not None
    for part in container.holds:
        fits: list[Fit] = []
        if part in container.row.frameworks.values() and (part in container.row.holds or not has_capability):
            fits = list(_published_code(question, part, container))
            yield from fits
        computes = question.matrix.has_role(part, *_COMPUTING) and not container.row.names[0].startswith(REGISTRY)
        if computes and question.gpus and not fits and not has_capability:
            reason = f"for which GPUs {part} in {container.label} was built is not documented"
            yield conclude(question.matrix, "unknown", reason, container.row).concerning(CONTAINER, "gpu")


def _published_code(question: Question, part: str, container: Container) -> Iterator[Fit]:
    """What the published build of a framework for the CUDA in the container says of the GPUs; where the container's
    CUDA is that of the build alone, of the driver too.
    """
    cuda = CudaVersion.parse(container.holds.get("cuda"))
    release = container.holds[part]
    tagged = cuda is not None and part in question.matrix.wheels_by_name and "+" not in release
    version = parse_version(f"{release}+{tag_of(str(cuda))}" if tagged else release)
    if version is None:
        return
    drivers = () if cuda or container.row.driver else question.drivers
    asked = {"gpu", *(["driver"] if drivers else ())} & question.labels.keys()
    labels = {part: f"{part}=={version}", **{about: question.labels[about] for about in asked}}
    own = question._replace(container=None, drivers=drivers, cuda=(), labels=labels, implied={})
    own = own._replace(versions={part: (version,)})
    for _, fits in _options(own, part, version):
        for fit in fits:
            about = asked & set(fit.about)
            if len(about) == 1 and part in fit.about:
                reason = f"{container.label}: {fit.reason}"
                yield reworded(question.matrix, fit, reason, container.row).concerning(CONTAINER, *about)


def extension_fits(question: Question) -> Iterator[Fit]:
    """The nvcc beside PyTorch, for each package that is compiled against it; for none, whether one could be.

    PyTorch's tools refuse an nvcc of another CUDA major. The rows of such a package need both ``nvcc`` and ``torch``;
    rows of ``torch-extension`` say for which releases of PyTorch that holds, which itself runs without nvcc.
    """
    torch = question.torch_cuda
    matrix = question.matrix
    checks = [row for version in question.versions.get(TORCH, ()) for row in matrix.rows_for(EXTENSION, version)]
    if torch is None or not question.nvcc or not checks:
        return
    label, built = question.labels[_NVCC], f"{torch.label} (CUDA {torch.version})"
    compiled = [
        (name, f"{name} {version}", row)
        for name, versions in question.versions.items()
        for version in versions
        for row in matrix.rows_for(name, version)
        if {_NVCC, TORCH} <= row.needs.keys()
    ]
    for name, package, row in compiled:
        here = f"{package} is compiled during installation, against {built}"
        fits = []
        for nvcc in question.nvcc:
            same_major = nvcc.major == torch.version.numbers[0]
            if tuple(nvcc) == torch.version.numbers[:2] or (same_major and not row.exact_nvcc):
                reason = f"{here}; nvcc {nvcc} has the same major version"
                fit = conclude(matrix, "compatible", reason, torch.row, row, *checks)
            else:
                who, which = ("it", "minor") if same_major else ("PyTorch", "major")
                reason = f"{here}; {who} refuses nvcc {nvcc}, which has another {which} version"
                change = f"nvcc {torch.version}"
                fit = conclude(matrix, "incompatible", reason, torch.row, row, *checks, change=change)
            fits.append((str(nvcc), fit))
        yield agree(fits, label).concerning(name, _NVCC, TORCH)
    if not compiled:
        fits = []
        for nvcc in question.nvcc:
            if nvcc.major == torch.version.numbers[0]:
                reason = f"nvcc {nvcc} compiles extensions of {built}"
                fit = conclude(matrix, "compatible", reason, torch.row, *checks)
            else:
                reason = f"{built} runs without nvcc, but refuses to compile extensions with nvcc {nvcc}"
                fit = conclude(matrix, "unknown", f"{reason}; no extension was named", torch.row, *checks)
            fits.append((str(nvcc), fit))
        yield agree(fits, label).concerning(_NVCC, TORCH)


def all_fits(question: Question) -> list[Fit]:
    """Everything that the matrix says of a question; a weak source decides nothing."""
    full, matrix = with_implied(question), question.matrix
    found = [*full.problems, *hardware_fits(full), *data_center_fits(full), *container_fits(full)]
    found += [*held_fits(full), *library_fits(full), *part_fits(full), *toolkit_fits(full), *distribution_fits(full)]
    found += [*python_fits(full), *third_fits(full)]
    for row in matrix.rows_of("kernel-module-open") if full.flavour == "open" and full.drivers else ():
        found += need_fits(full, Candidate("kernel-module", "the open kernel module", (row,)), row)
    found += [*engine_fits(full), *extension_fits(full)]
    for name, versions in full.versions.items():
        options = [option for version in versions for option in _options(full, name, version)]
        found += _joined(options, full.labels.get(name, name))
    # Host compilers, and systems, and the toolkit of the CUDA that was named, where no nvcc was.
    asked = COMPILERS | {"os"}
    if "nvcc" not in full.versions and asked & full.labels.keys():
        options = [option for version in full.versions.get("cuda", ()) for option in _options(full, "nvcc", version)]
        fits = _joined(options, full.labels.get("cuda", ""))
        found += [fit.concerning("cuda", *fit.about[1:]) for fit in fits if asked & set(fit.about)]
    wheels = full.libraries
    found = [  # a library by the name of the distribution that was written
        fit.concerning(*dict.fromkeys(wheels[name].name if name in wheels else name for name in fit.about))
        if wheels.keys() & set(fit.about)
        else fit
        for fit in _known_by_others(full, found)
    ]
    found += _unrelated(full, found)
    return [soften(fit) for fit in on_jetsons(full, _as_made(full, found))]


def library_fits(question: Question) -> Iterator[Fit]:
    """NVIDIA's wheels beside the CUDA that was named: they are built for one major."""
    rows = {row.wheel: row for row in question.matrix.families if row.wheel}
    for name, wheel in question.libraries.items():
        if wheel.major is None or not question.cuda:
            continue
        fits = []
        reason, answer = f"{wheel.name} is built for CUDA {wheel.major}", partial(conclude, question.matrix)
        for cuda in question.cuda:
            if cuda.major == wheel.major:
                fit = answer("compatible", f"{reason}, as CUDA {cuda} is", rows[wheel.part])
            else:
                change = f"CUDA {wheel.major}"
                fit = answer("incompatible", f"{reason}, not for CUDA {cuda}", rows[wheel.part], change=change)
            fits.append((str(cuda), fit))
        yield agree(fits, question.labels["cuda"]).concerning(name, "cuda")


def _as_made(question: Question, found: list[Fit]) -> list[Fit]:
    """What a set is made of fits together within it, whatever the documents of its parts list."""
    for name in sorted(SETS & question.versions.keys()):
        rows = [row for version in question.versions[name] for row in question.matrix.rows_for(name, version)]
        listing = {key for row in rows for key in (*row.needs, *row.bundles)}
        parts = listing & {other for fit in found if fit.ok and name in fit.about for other in fit.about}
        parts -= {other for fit in found if fit.bad and name in fit.about for other in fit.about}
        parts -= HARDWARE | COMPILERS
        for place, fit in enumerate(found):
            if fit.bad and set(fit.about) <= parts:
                both = listed([question.labels.get(part, part) for part in fit.about])
                reason = f"{question.labels[name]} is made with {both}, though elsewhere {fit.reason}"
                found[place] = msgspec.structs.replace(fit, verdict="compatible", reason=reason, nearest_change="")
    return found


def _options(question: Question, name: str, version: Version) -> list[_Option]:
    """The releases that a version stands for, each in the build that fits best."""
    missing = not_published(question, name, version)
    if missing:
        return [(name, [missing.concerning(name)])]
    if name == TORCH:
        return [
            (label, [*filter(None, [problem]), *(fit for _, fits in _best_build(question, builds) for fit in fits)])
            for label, builds, problem in torch_readings(question, version)
        ]
    matrix = question.matrix
    spoken_of = matrix.rows_of(name) or name in matrix.wheels_by_name or name in matrix.requirements_by_name
    if name == ENGINE or not spoken_of:
        return []
    candidates = release_candidates(question, name, version)
    known = any(one.rows or one.partial or one.wheels for one in candidates)
    if not known and name not in _KNOWN_OTHERWISE | question.matrix.distribution_names:
        doubts: list[Fit] = []
        if not is_published(question.matrix, name, version):
            doubts.append(Fit(verdict="unknown", about=(name,), reason=unknown_release(question, name, version)))
        elif "python" in question.versions:  # of one that PyPI lists, other packages may tell
            reason = f"PyPI lists {name} {version}, and no row tells for which Python"
            doubts.append(Fit(verdict="unknown", about=(name, "python"), reason=reason))
        return [(name, [*doubts, *(fit for _, fits in _best_build(question, candidates) for fit in fits)])]
    found = _best_build(question, candidates)
    listed = name in matrix.wheels_by_name and not any(one.wheels for one in candidates)
    if listed and version.pre and "python" in question.versions:
        doubt = Fit(
            verdict="unknown", about=(name, "python"), reason=f"of {name} {version}, no row tells for which Python"
        )
        found = [(label, [*fits, doubt]) for label, fits in found]
    return _or_elsewhere(question, found, candidates, version)


def _or_elsewhere(
    question: Question, found: list[_Option], candidates: Sequence[Candidate], version: Version
) -> list[_Option]:
    """Where PyPI's build does not fit and another index's of the same version may, the index decides."""
    fits = [fit for _, fits in found for fit in fits]
    refusals = [fit for fit in fits if fit.bad]
    others = elsewhere(question, candidates, version) if refusals else ()
    options = [(one, _all_of(question, one)) for one in others]
    fitting = [(one, its) for one, its in options if overall(its) != "incompatible"]
    if not fitting:
        return found
    one, its = min(fitting, key=lambda option: rank(option[1]))
    row = next(row for row in one.rows if row.index)
    what = f"PyPI's {one.label.partition('+')[0]} does not fit: {refusals[0].reason}"
    doubt = "" if overall(its) == "compatible" else "; whether it fits is not known"
    other = f"{row.index} has {one.label} under the same version, built with CUDA {row.cuda}"
    about = dict.fromkeys(name for fit in refusals for name in fit.about)
    reason = f"{what}; {other}: the index decides{doubt}"
    open_fit = summary("unknown", reason, [*refusals, *its]).concerning(*about)
    open_fit = msgspec.structs.replace(open_fit, nearest_change=refusals[0].nearest_change)
    return [(one.label, [open_fit, *(fit for fit in fits if not fit.bad)])]


def _best_build(question: Question, candidates: Sequence[Candidate]) -> list[_Option]:
    """The candidate with the fewest objections, the first of equals; each release that its rows tell apart."""
    builds: list[list[_Option]] = []
    for candidate in candidates:
        partial = [(f"{candidate.name} {row.versions}", (*candidate.rows, row)) for row in candidate.partial]
        members = partial or [(candidate.label, candidate.rows)]
        builds.append([(label, _all_of(question, candidate._replace(rows=rows))) for label, rows in members])
    return min(builds, key=lambda options: rank(fit for _, fits in options for fit in fits), default=[])


def _all_of(question: Question, candidate: Candidate) -> list[Fit]:
    own = candidate_fits(question, candidate)
    return [*own, *requirement_fits(question, candidate), *one_of_fits(question, candidate)]


def _joined(options: Sequence[_Option], written: str) -> list[Fit]:
    """What all readings of a component agree on; unknown, with those that fit, where they do not."""
    options = [(label, fits) for label, fits in options if fits]
    verdicts = {overall(fits) for _, fits in options}
    if len(verdicts) <= 1:
        return list(options[-1][1]) if options else []
    about = dict.fromkeys(name for _, fits in options for fit in fits for name in fit.about)
    members = [(label, Fit(verdict=overall(fits), reason="")) for label, fits in options]
    return [agree(members, written).concerning(*about)]


def _known_by_others(question: Question, found: list[Fit]) -> list[Fit]:
    """Without the doubt about a release that only rows of others name, where all that was named speaks of it."""
    others = question.labels.keys() - PLATFORM
    doubts = {
        unknown_release(question, name, version): name
        for name, versions in question.versions.items()
        for version in versions
        if name != TORCH and len(others) > 1
    }
    for fit in [fit for fit in found if fit.reason in doubts]:
        name = doubts[fit.reason]
        related = {other for each in found if each.verdict != "unknown" and name in each.about for other in each.about}
        if others <= related and set(question.versions[name]) <= {*question.matrix.named_versions(name)}:
            found.remove(fit)
    return found


def _unrelated(question: Question, found: Iterable[Fit]) -> list[Fit]:
    """What no relation covers. Where something runs is no component, unless it is all that a component is asked with;
    python is none where nothing is Python's.
    """
    where = PLATFORM if len(question.labels.keys() - PLATFORM) > 1 else frozenset()
    related = {name for fit in found if len(set(fit.about) - where) > 1 for name in fit.about}
    named = {name for fit in found if len(fit.about) == 1 for name in fit.about}
    left = [name for name in question.labels if name not in related | named | PLATFORM]
    if named and not related:
        return []
    labels = question.labels
    names = listed([labels[name] for name in left or labels])
    reasons: list[tuple[tuple[str, ...], str]]
    if related:
        reasons = [((name,), f"nothing in the matrix relates {labels[name]} to anything else here") for name in left]
    elif len(left) > 1:
        reasons = [(tuple(left), f"nothing in the matrix relates {names} to each other")]
    else:
        reasons = [(tuple(labels), f"add another component to compare with {names}")]
    return [Fit(verdict="unknown", about=about, reason=reason) for about, reason in reasons]
