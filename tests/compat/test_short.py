"""Short versions stand for several releases: the answer says which fit, in bounded time."""

import re
from collections.abc import Iterator

import pytest

from envcheck.compat.candidates import Candidate
from envcheck.compat.choose import MOST_WORK, families_of, work
from envcheck.compat.question import Question
from envcheck.compat.reading import read_question
from envcheck.compat.software import candidate_fits
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.matrix import Matrix
from envcheck.knowledge.names import scheme
from envcheck.knowledge.relations.fit import Fit
from envcheck.knowledge.specifier import parse_specifier, parse_version
from envcheck.model.components import parse_components
from tests.every import every, every_tabled
from tests.knowledge.asking import (
    answer,
    assert_fits,
    judged,
    questions,
    shown,
    verdict,
)
from tests.thorough import sample

_PATCHES = 30
"""Patch releases of Python that are asked one by one."""
Numbers = tuple[int, ...]


def numbers(text: str) -> Numbers:
    return tuple(int(part) for part in text.split("."))


def says(spans: str, release: Numbers) -> bool:
    """Whether spans in words (``<3.14.1 and >=3.14.2``, ``12.2.1 to 12.2.4``) have a release."""
    return any(_has(span, release) for span in re.split(r", | and ", spans))


def _has(span: str, release: Numbers) -> bool:
    first, to, last = span.partition(" to ")
    if to:
        return numbers(first) <= release <= numbers(last)
    bounds = re.findall(r"(>=|<)([0-9.]+)", span)
    if not bounds:
        return numbers(span) == release
    return all(release >= numbers(text) if sign == ">=" else release < numbers(text) for sign, text in bounds)


def told(question: str, name: str) -> tuple[str, str, str]:
    """The verdict, the releases that fit, and the line; what JSON has of them must be the same."""
    found = judged(question)
    lines = [reason.message for reason in found.reasons if "stands for several releases:" in reason.message]
    lines = [line for line in lines if line.startswith(f"{name}==")]
    assert len(lines) <= 1, shown(found)
    fitting = re.search(r"several releases: ([^;]+?) fits?;", lines[0]) if lines else None
    if lines:
        assert fitting, lines[0]
        taken = found.assumed[name]
        listed = taken == fitting[1] or taken in re.split(r", | and ", fitting[1])
        assert listed or says(fitting[1], numbers(taken.partition("+")[0]))
    return found.verdict, fitting[1] if fitting else "", lines[0] if lines else ""


def pythons_with_seams(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """The first release of each row of wheels that sets a bound within a minor version of Python, and that version."""
    for row in matrix.wheels:
        bounds = [bound for spec in row.pythons.values() for bound in parse_specifier(spec).bounds]
        for minor in sorted({bound.numbers[:2] for bound in bounds if len(bound.numbers) > 2}):
            start = next(b for b in parse_specifier(row.versions).bounds if b.operator in ("==", ">="))
            yield f"{row.name}=={'.'.join(map(str, start.numbers))}", ".".join(map(str, minor))


@every(lambda: sample(sorted(set(pythons_with_seams(load_matrix()))), 2))
def test_of_each_python_that_a_wheel_divides_the_patch_releases_are_told(package: str, minor: str) -> None:
    releases = [(*numbers(minor), patch) for patch in range(_PATCHES)]
    found = {one: verdict(f"{package} python=={'.'.join(map(str, one))}") for one in releases}
    answer, fitting, line = told(f"{package} python=={minor}", "python")
    if len(set(found.values())) == 1:
        assert not line
        assert answer == next(iter(found.values()))
    else:
        assert answer == "compatible"
        assert {one for one in releases if says(fitting, one)} == {o for o in releases if found[o] == "compatible"}


def compilers() -> list[tuple[str, str]]:
    """Each minor version of nvcc with each major version of a host compiler that a row names, and the one beside."""
    matrix = load_matrix()
    minors = [str(version) for version in matrix.toolkits]
    needs = [
        (key, spec) for row in matrix.rows_of("nvcc") for key, spec in row.needs.items() if key in ("gcc", "clang")
    ]
    majors = {
        (key, bound.numbers[0] + step)
        for key, spec in needs
        for bound in parse_specifier(spec).bounds
        for step in (0, 1)
    }
    return [(minor, f"{key}=={major}") for minor in minors for key, major in sorted(majors)]


@every(lambda: sample(compilers()))
def test_of_each_nvcc_the_releases_that_take_a_compiler_are_told(minor: str, compiler: str) -> None:
    row = next(row for row in load_matrix().cuda if row.version == minor)
    found = {release: verdict(f"nvcc=={release} {compiler}") for release in row.releases}
    answer, fitting, line = told(f"nvcc=={minor} {compiler}", "nvcc")
    if "compatible" not in found.values() or len(set(found.values())) == 1:
        assert not line
    else:
        assert answer == "compatible"
        assert {one for one in found if says(fitting, numbers(one))} == {o for o in found if found[o] == "compatible"}


def driver_branches() -> list[tuple[str, str]]:
    """Each branch of drivers with each CUDA of whose minimum it has a part."""
    matrix = load_matrix()
    texts = {
        (row.version, text)
        for row in matrix.cuda
        for text in (row.driver_linux, row.disputed_linux, *(update.driver_linux for update in row.updates))
        if text
    }
    return sorted({(text.partition(".")[0], version) for version, text in texts})


@every(driver_branches)
def test_of_each_branch_the_drivers_below_the_minimum_are_told(branch: str, cuda: str) -> None:
    row = next((row for row in load_matrix().drivers if row.os == "linux" and str(row.branch) == branch), None)
    first = (row.first if row else None) or f"{branch}.0"
    oldest = verdict(f"driver=={first if first.count('.') > 1 else first + '.0'} cuda=={cuda}")
    answer, fitting, line = told(f"driver=={branch} cuda=={cuda}", "driver")
    assert bool(line) == (answer == "compatible" and oldest != "compatible")
    assert not line or not says(fitting, numbers(first))


def families() -> list[tuple[str, str]]:
    """Releases that pin one of a package with several patch releases, and that package by two numbers."""
    matrix = load_matrix()
    found: dict[tuple[str, str], str] = {}
    for row in matrix.requirements:
        for key, spec in row.needs.items():
            pin = parse_version(spec.removeprefix("=="))
            start = next((b for b in parse_specifier(row.versions).bounds if b.operator in ("==", ">=")), None)
            if pin and start and spec.startswith("==") and len(pin.numbers) > 2 and not scheme(key).builds:
                short = ".".join(map(str, pin.numbers[:2]))
                found.setdefault((key, short), f"{row.name}=={'.'.join(map(str, start.numbers))}")
    return [(package, f"{key}=={short}") for (key, short), package in sorted(found.items())]


@every(lambda: sample(families()[::7], 2))
def test_of_a_series_the_releases_that_a_pin_leaves_out_are_told(package: str, short: str) -> None:
    name = parse_components(short)[0].name
    answer, fitting, line = told(f"{package} {short}", name)
    if line:
        assert answer == "compatible"
        assert verdict(f"{package} {name}=={fitting.split(' ')[0].rstrip(',')}") == "compatible"


def test_the_grammar_of_spans() -> None:
    assert says("<3.14.1 and >=3.14.2", (3, 14, 2))
    assert not says("<3.14.1 and >=3.14.2", (3, 14, 1))
    assert says("12.2.1 to 12.2.4", (12, 2, 3))
    assert not says("12.2.1 and 12.2.2", (12, 2, 0))


# --- Short versions: one release of each that fits is enough, and is named; none that does is not -------------------
@every_tabled
def test_one_release_of_each_that_fits_is_enough(question: str, members: dict[str, str]) -> None:
    assert_fits(question)
    found = answer(question)
    assert found.assumed.items() >= members.items()
    told = " ".join(reason.message for reason in found.reasons if "for several releases" in reason.message)
    assert told
    assert all(name in told for name in members)


def test_the_releases_that_do_not_fit_are_told() -> None:
    found = answer("torch==2.5 torchvision==0.20.0 torchaudio==2.5.1")
    assert found.reasons[0].message == (
        "no release that torch==2.5 stands for fits: torchvision 0.20.0 needs torch 2.5.0; this is 2.5.1; "
        "torchaudio 2.5.1 needs torch 2.5.1; this is 2.5.0"
    )
    assert "torchvision 0.20.1" in found.suggestions


# --- Questions of majors alone: bounded in work, so in time ---------------------------------------------------------
MANY = questions("""
torch==2 torchvision==0 torchaudio==2 cuda==12
torch==2 nvcc==12 deepspeed==0 flash-attn==2 driver==470
torch==2 cuda==12 vllm==0 gpu==sm_120 driver==470
torch==2 torchvision==0 torchaudio==2 triton==3 cuda==12 nccl==2 cudnn==9
""")
MOST_JUDGED = 4 * MOST_WORK
"""Builds of releases that may be judged: some two for a unit of work, for families and for suggestions."""


@pytest.mark.parametrize("question", MANY)
def test_the_work_of_trials_is_bounded(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []

    def counted(asked: Question, candidate: Candidate) -> list[Fit]:
        judged.append(candidate.label)
        return candidate_fits(asked, candidate)

    monkeypatch.setattr("envcheck.compat.fits.candidate_fits", counted)
    assert answer(question).verdict in ("unknown", "incompatible")
    assert 0 < len(judged) <= MOST_JUDGED


def test_a_question_of_majors_costs_more_than_one_of_releases() -> None:
    questions = (MANY[0].split(), ["torch==2.5.1", "cuda==12.4"])
    asked = [[each for word in words for each in parse_components(word)] for words in questions]
    costs = [work(families_of(named, read_question(load_matrix(), named))) for named in asked]
    assert costs[0] > 10 * costs[1]
