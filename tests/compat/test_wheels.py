"""Systems and Pythons, swept over every row of wheels: the answer is what the file names say."""

from collections.abc import Iterator
from functools import cache

import pytest

from envcheck.compat.candidates import release_candidates
from envcheck.compat.narrowing import pythons_in
from envcheck.compat.package_needs import marks_of
from envcheck.compat.question import Question
from envcheck.compat.wheels import wheel_fits, wheels_of
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import scheme
from envcheck.knowledge.relations.fit import FitVerdict
from envcheck.knowledge.specifier import Version, parse_specifier, speaks_of
from envcheck.knowledge.tables import Machine, Os
from envcheck.knowledge.tables.software import WheelRow
from tests.every import every
from tests.knowledge.asking import judged, shown, verdict
from tests.thorough import of_each_kind, sample

MATRIX = load_matrix()
SYSTEMS: tuple[tuple[Os, Machine], ...] = (
    ("linux", "x86_64"), ("linux", "aarch64"), ("windows", "x86_64"), ("macos", "x86_64"), ("macos", "aarch64"),
)  # fmt: skip
PYTHONS = [Version((3, minor), scheme=scheme("python")) for minor in range(5, 17)]


@pytest.mark.parametrize(("os", "machine"), SYSTEMS)
def test_a_plan_finds_the_wheels_of_its_system_and_its_markers_are_those_of_python(os: Os, machine: Machine) -> None:
    marks = marks_of(None, os, machine)
    words = {("macos", "aarch64"): "arm64", ("windows", "x86_64"): "AMD64"}
    assert marks["platform_machine"] == words.get((os, machine), machine)
    assert "3.11" in pythons_in(MATRIX, "torch", "2.2.2", marks)


def releases(row: WheelRow) -> list[Version]:
    """The releases that a row names and admits, as its own alone."""
    bounds = parse_specifier(row.versions).bounds
    named = [Version(bound.numbers, post=bound.post) for bound in bounds if bound.operator in ("==", ">=", "<=")]
    return [one for one in named if not one.family and wheels_of(MATRIX, row.name, one) == (row,)]


def asked(row: WheelRow, version: Version, os: Os, machine: Machine, python: Version) -> Question:
    labels = {row.name: f"{row.name}=={version}", "os": f"os=={os}", "machine": f"machine=={machine}"}
    versions = {row.name: (version,), "python": (python,)}
    return Question(MATRIX, {**labels, "python": f"python=={python}"}, os=os, machine=machine, versions=versions)


def expected(row: WheelRow, os: Os, machine: Machine, python: Version) -> FitVerdict:
    if row.archive_pythons:
        return "incompatible" if parse_specifier(row.archive_pythons).cover(python) == "none" else "unknown"
    specs = [spec for system, spec in row.pythons.items() if system in ("any", f"{os}-{machine}")]
    if any(parse_specifier(spec).cover(python) == "all" for spec in specs):
        return "compatible"
    return "incompatible" if specs else "unknown"


@cache
def cases() -> list[tuple[WheelRow, Version]]:
    return [(row, version) for row in MATRIX.wheels for version in releases(row)[:1]]


def test_most_rows_are_swept() -> None:
    assert len(cases()) > 0.9 * len(MATRIX.wheels)


@every(lambda: sample(of_each_kind(cases(), lambda case: (case[0].archive_pythons, *case[0].pythons.items()))))
def test_a_wheel_that_exists_can_be_installed_and_no_other(row: WheelRow, version: Version) -> None:
    for os, machine in SYSTEMS:
        for python in PYTHONS:
            question = asked(row, version, os, machine, python)
            found = {fit.verdict for fit in wheel_fits(question, row.name, row.name, (row,), ())}
            wanted = expected(row, os, machine, python)
            if wanted == "unknown":
                assert found <= {"unknown", "incompatible"}
                assert found
            else:
                assert wanted in found, (os, machine, python)
                assert found == {wanted} | (found & {"compatible"})


def kind_for_free_threading(case: tuple[WheelRow, Version]) -> tuple[object, ...]:
    row = case[0]
    return row.archive_pythons, row.pythons.get("any"), *row.pythons, *row.free_threaded.items()


@every(lambda: of_each_kind(cases(), kind_for_free_threading))
def test_a_python_without_the_global_lock_takes_its_own_wheels_alone(row: WheelRow, version: Version) -> None:
    for os, machine in SYSTEMS:
        pure, built = row.pythons.get("any"), row.free_threaded.get(f"{os}-{machine}")  # type: ignore[call-overload]
        for python in PYTHONS[-4:]:
            question = asked(row, version, os, machine, python)._replace(free_threaded=True)
            found = {fit.verdict for fit in wheel_fits(question, row.name, row.name, (row,), ())}
            specs = [parse_specifier(spec) for spec in (pure, built) if spec and not row.archive_pythons]
            served = any(spec.cover(python) == "all" for spec in specs)
            assert ("compatible" in found and "incompatible" not in found) == served or found == {"unknown"}, python


@every(cases)
def test_a_release_has_one_row(row: WheelRow, version: Version) -> None:
    own = [each for each in MATRIX.wheels_by_name[row.name] if speaks_of(each.versions, version) == "all"]
    naming = [each for each in own if parse_specifier(each.versions).names_post]
    assert len(naming or own) == 1


@every(MATRIX.wheels)
def test_a_row_can_be_read(row: WheelRow) -> None:
    assert bool(row.pythons) != bool(row.archive_pythons)
    assert row.archive or not row.archive_pythons
    for spec in row.pythons.values():
        assert parse_specifier(spec).bounds
    for machine, least in row.glibc.items():
        assert f"linux-{machine}" in row.pythons
        assert least.startswith("2.")


def test_a_package_without_a_gpu_is_judged_as_one_for_the_cpu() -> None:
    """Every release of TensorFlow with a wheel for a system can be installed there, for the Pythons of that system."""
    asked_for = 0
    for row in sample(MATRIX.wheels_by_name["tensorflow"]):
        for version in releases(row)[:1]:
            for os, machine in SYSTEMS[1:]:
                spec = row.pythons.get(f"{os}-{machine}")  # type: ignore[call-overload]  # any text may be asked for
                for python in PYTHONS if spec else ():
                    question = f"tensorflow=={version} os=={os} machine=={machine} python=={python}"
                    fits = parse_specifier(spec).cover(python) == "all"
                    assert verdict(question) == ("compatible" if fits else "incompatible"), question
                    asked_for += 1
    assert asked_for > 100


@pytest.mark.parametrize("local", ["cu118", "cpu"])
def test_a_build_of_another_index_has_no_wheels_on_pypi(local: str) -> None:
    version = Version((0, 20, 1), local=local)
    question = Question(MATRIX, {"torchvision": f"torchvision==0.20.1+{local}"})
    assert all(not one.wheels for one in release_candidates(question, "torchvision", version))


def test_systems_and_pythons_are_told_once() -> None:
    found = judged("torch==2.12.0 os==macos machine==x86_64")
    assert found.verdict == "incompatible", shown(found)
    assert "macOS aarch64, none for macOS x86_64" in found.reasons[0].message
    *_, told = judged("soundfile==0.13.0 python==3.12 machine==x86_64").reasons
    assert told.message.endswith(" for Linux x86_64 or every system and Python ==2.7 or >=3.0")


@every(lambda: sample([(row, version) for row, version in cases() if "any" in row.pythons]))
def test_a_wheel_for_every_system_asks_for_no_glibc(row: WheelRow, version: Version) -> None:
    question = asked(row, version, "linux", "x86_64", PYTHONS[5])
    versions = {**question.versions, "glibc": (Version((2, 5), scheme=scheme("glibc")),)}
    found = wheel_fits(question._replace(versions=versions), row.name, row.name, (row,), ())
    assert [fit.verdict for fit in found if "glibc" in fit.about] == ["compatible"]


def of_one_system() -> Iterator[tuple[WheelRow, Version, str]]:
    """Releases with wheels for Windows or macOS alone, and nothing to compile or to be had elsewhere."""
    others = {name for row in MATRIX.indexes for name in row.packages}
    for row, version in cases():
        systems = {system.partition("-")[0] for system in row.pythons}
        if systems in ({"windows"}, {"macos"}) and not row.archive and row.name not in others:
            yield row, version, systems.pop()


@every(of_one_system)
def test_what_one_system_alone_has_is_asked_for_that_system(row: WheelRow, version: Version, os: str) -> None:
    every_python = [*PYTHONS, Version((2, 7), scheme=scheme("python"))]
    python = next(
        one for one in every_python if any(parse_specifier(s).cover(one) == "all" for s in row.pythons.values())
    )
    found = judged(f"{row.name}=={version} python=={python}")
    assert found.assumed["os"] == os
    assert found.verdict == "compatible", shown(found)
