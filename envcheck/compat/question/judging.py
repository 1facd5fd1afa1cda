"""TensorRT engines: which runtime loads an engine that a given TensorRT built.

Whether an engine was built to be version-compatible, its version does not tell; builders do not unless they are asked
to, so an engine is taken for one that was not, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from envcheck.compat.matrix import Matrix
from envcheck.compat.names import COMPILERS, PLATFORM
from envcheck.compat.question.candidates import TORCH, Candidate, release_candidates, torch_readings, with_implied
from envcheck.compat.question.hardware import judge_hardware
from envcheck.compat.question.question import (
    Implied,
    Judgement,
    Question,
    agree,
    listed,
    overall,
    soften,
    unknown_release,
)
from envcheck.compat.question.software import judge_candidate, judge_needs
from envcheck.compat.relations.fit import Fit, FitVerdict, conclude
from envcheck.compat.specifier import Version, parse_specifier
from envcheck.compat.tables import ReleaseRow
from envcheck.versions import CudaVersion

ENGINE = "tensorrt-engine"
ASSUMED = "not built to be version-compatible"
_RUNTIME = "tensorrt"


def judge_engine(matrix: Matrix, question: Question) -> Iterator[Judgement]:
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
            yield Judgement((ENGINE, by), _loads(matrix, engine, version, label))


def _loads(matrix: Matrix, engine: Version, runtime: Version, where: str) -> Fit:
    row = next((row for row in matrix.rows_of(ENGINE) if parse_specifier(row.versions).cover(engine) == "all"), None)
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


# What is compiled where it is installed, against PyTorch, whose tools refuse an nvcc of another major of CUDA.
#
# Such a package is one whose rows need both ``nvcc`` and ``torch``. Rows of ``torch-extension``, by releases of
# PyTorch, say for which that holds. PyTorch itself runs without nvcc: where nothing is compiled, another major settles
# nothing.


EXTENSION = "torch-extension"
_NVCC = "nvcc"


def judge_extension(matrix: Matrix, question: Question) -> Iterator[Judgement]:
    """The nvcc beside PyTorch, for each package that is compiled against it; for none, whether one could be."""
    torch = question.torch_cuda
    checks = [row for version in question.versions.get(TORCH, ()) for row in _covering(matrix, EXTENSION, version)]
    if torch is None or not question.nvcc or not checks:
        return
    label = question.labels[_NVCC]
    compiled = list(_compiled(matrix, question))
    for name, package, row in compiled:
        fits = [(str(nvcc), _compiles(matrix, nvcc, torch, package, [row, *checks])) for nvcc in question.nvcc]
        yield Judgement((name, _NVCC, TORCH), agree(fits, label))
    if not compiled:
        fits = [(str(nvcc), _could_compile(matrix, nvcc, torch, checks)) for nvcc in question.nvcc]
        yield Judgement((_NVCC, TORCH), agree(fits, label))


def _compiled(matrix: Matrix, question: Question) -> Iterator[tuple[str, str, ReleaseRow]]:
    for name, versions in question.versions.items():
        for version in versions:
            for row in _covering(matrix, name, version):
                if {_NVCC, TORCH} <= row.needs.keys():
                    yield name, f"{name} {version}", row


def _covering(matrix: Matrix, name: str, version: Version) -> Iterator[ReleaseRow]:
    yield from (row for row in matrix.rows_of(name) if parse_specifier(row.versions).cover(version) == "all")


def _compiles(matrix: Matrix, nvcc: CudaVersion, torch: Implied, package: str, rows: list[ReleaseRow]) -> Fit:
    here = f"{package} is compiled where it is installed, against {_told(torch)}"
    if nvcc.major == torch.version.numbers[0]:
        return conclude(matrix, "compatible", f"{here}; nvcc {nvcc} is of the same major", torch.row, *rows)
    reason = f"{here}; PyTorch refuses nvcc {nvcc}, which is of another major"
    return conclude(matrix, "incompatible", reason, torch.row, *rows, change=f"nvcc {torch.version}")


def _could_compile(matrix: Matrix, nvcc: CudaVersion, torch: Implied, rows: list[ReleaseRow]) -> Fit:
    if nvcc.major == torch.version.numbers[0]:
        reason = f"nvcc {nvcc} compiles extensions of {_told(torch)}"
        return conclude(matrix, "compatible", reason, torch.row, *rows)
    reason = f"{_told(torch)} runs without nvcc, but refuses to have extensions compiled by nvcc {nvcc}"
    return conclude(matrix, "unknown", f"{reason}; whether one is to be, was not said", torch.row, *rows)


def _told(torch: Implied) -> str:
    return f"{torch.label} (CUDA {torch.version})"


# The open kernel module and the driver releases that have one.


_OPEN = "kernel-module-open"


def judge_module(matrix: Matrix, question: Question) -> Iterator[Judgement]:
    """Whether the named driver has the named flavour; every Linux driver has the proprietary one."""
    if question.flavour == "open" and question.drivers:
        for row in matrix.rows_of(_OPEN):
            candidate = Candidate("kernel-module", "the open kernel module", (row,))
            yield from judge_needs(matrix, question, candidate, row)


# All judgements about a question: hardware pairs, each component's rows, and what nothing speaks of.


_TOLD_BY_OTHERS = frozenset({"cuda", "nvcc", "python", "gcc", ENGINE})
"""A version of these that no row of releases covers may be known all the same."""


class Option(NamedTuple):
    """One way to read a named component, and what is said of it so read."""

    label: str
    judgements: Sequence[Judgement]


def judge(matrix: Matrix, question: Question) -> list[Judgement]:
    """Everything that the matrix says of a question, weak sources set aside."""
    full = with_implied(matrix, question)
    found = [*full.problems, *judge_hardware(matrix, full)]
    found += [*judge_module(matrix, full), *judge_engine(matrix, full), *judge_extension(matrix, full)]
    for name, versions in full.versions.items():
        options = [option for version in versions for option in _options(matrix, full, name, version)]
        found += _joined(full, name, options)
    found += _compiling(matrix, full)
    found += _alone(full, found)
    return [Judgement(about, soften(fit)) for about, fit in found]


def _compiling(matrix: Matrix, question: Question) -> list[Judgement]:
    """Host compilers, and systems, and the toolkit of the CUDA that was named, where no nvcc was."""
    asked = COMPILERS | {"os"}
    if "nvcc" in question.versions or not asked & question.labels.keys():
        return []
    options = [
        option
        for version in question.versions.get("cuda", ())
        if matrix.rows_of("nvcc")
        for option in _options(matrix, question, "nvcc", version)
    ]
    found = _joined(
        question._replace(labels={**question.labels, "nvcc": question.labels.get("cuda", "")}), "nvcc", options
    )
    return [Judgement(("cuda", *about[1:]), fit) for about, fit in found if asked & set(about)]


def _options(matrix: Matrix, question: Question, name: str, version: Version) -> list[Option]:
    """The releases that a version stands for, each in the build that fits best."""
    if name == TORCH:
        return _torch_options(matrix, question, version)
    if name == ENGINE or not matrix.rows_of(name):
        return []
    candidates = release_candidates(matrix, question, name, version)
    if not candidates:
        return (
            [] if name in _TOLD_BY_OTHERS else [Option(name, [_open([name], unknown_release(question, name, version))])]
        )
    return _best([_expanded(matrix, question, candidate) for candidate in candidates])


def _torch_options(matrix: Matrix, question: Question, version: Version) -> list[Option]:
    options = []
    for reading in torch_readings(matrix, question, version):
        problem = [Judgement((TORCH, *reading.about), reading.problem)] if reading.problem else []
        candidates = [candidate._replace(rows=(*candidate.rows, *reading.rows)) for candidate in reading.candidates]
        best = _best([_expanded(matrix, question, candidate) for candidate in candidates])
        options.append(Option(reading.label, [*problem, *(item for option in best for item in option.judgements)]))
    return options


def _expanded(matrix: Matrix, question: Question, candidate: Candidate) -> list[Option]:
    """A candidate as one option, or as one for each release of a family that its rows tell apart."""
    if not candidate.partial:
        return [Option(candidate.label, judge_candidate(matrix, question, candidate))]
    members = [candidate._replace(rows=(*candidate.rows, row)) for row in candidate.partial]
    return [
        Option(f"{candidate.name} {row.versions}", judge_candidate(matrix, question, member))
        for row, member in zip(candidate.partial, members, strict=True)
    ]


def _best(builds: Sequence[list[Option]]) -> list[Option]:
    """The build with the fewest objections; the first of equals."""
    return min(builds, key=_objections, default=[])


def _objections(options: list[Option]) -> tuple[int, int]:
    verdicts = [judgement.fit.verdict for option in options for judgement in option.judgements]
    return verdicts.count("incompatible"), verdicts.count("unknown")


def _joined(question: Question, name: str, options: Sequence[Option]) -> list[Judgement]:
    """What all readings of a component agree on; unknown, with those that fit, where they do not."""
    spoken = [option for option in options if option.judgements]
    verdicts = {_verdict(option) for option in spoken}
    if len(verdicts) <= 1:
        return list(spoken[-1].judgements) if spoken else []
    about = dict.fromkeys(other for option in spoken for judgement in option.judgements for other in judgement.about)
    members = [(option.label, Fit(verdict=_verdict(option), reason="")) for option in spoken]
    return [Judgement(tuple(about), agree(members, question.labels[name]))]


def _verdict(option: Option) -> FitVerdict:
    return overall(judgement.fit for judgement in option.judgements)


def _alone(question: Question, found: Iterable[Judgement]) -> list[Judgement]:
    """What no relation speaks of. Where something runs is no component; python is none where nothing is Python's."""
    related = {name for judgement in found if len(judgement.about) > 1 for name in judgement.about}
    named = {name for judgement in found if len(judgement.about) == 1 for name in judgement.about}
    left = [name for name in question.labels if name not in related | named | PLATFORM]
    if named and not related:
        return []
    labels = question.labels
    if related:
        return [_open([name], f"nothing in the matrix relates {labels[name]} to anything else here") for name in left]
    told = listed([labels[name] for name in left or labels])
    if len(left) > 1:
        return [_open(left, f"nothing in the matrix relates {told} to each other")]
    return [_open(list(labels), f"nothing else is named that {told} could be held against")]


def _open(names: Sequence[str], reason: str) -> Judgement:
    return Judgement(tuple(names), Fit(verdict="unknown", reason=reason))
