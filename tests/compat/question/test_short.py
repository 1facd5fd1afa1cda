"""Short versions that stand for several releases: the answer says which fit and which do not, and is plain where none
differs. Swept over all rows that set a bound within such a version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from envcheck.compat.load import load_matrix
from envcheck.compat.matrix import Matrix
from envcheck.compat.names import scheme
from envcheck.compat.specifier import parse_specifier, parse_version
from envcheck.components import parse_components
from tests.compat.asking import judged, shown, verdict
from tests.every import every

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


@every(lambda: sorted(set(pythons_with_seams(load_matrix()))))
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


@every(compilers)
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


@every(lambda: families()[::7])
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
