"""Jetsons: their system's Python, and the packages that have builds for them apart from PyPI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.specifier import covered, parse_version
from envcheck.compat.tables import ReleaseRow
from tests.compat.asking import assert_does_not_fit, assert_fits, assert_nobody_can_tell, judged, shown, verdict
from tests.compat.question.test_own_stack import named
from tests.every import every

MATRIX = load_matrix()
PYTHONS = ("3.6", "3.8", "3.10", "3.12")
JETSONS = {name for row in MATRIX.indexes if row.jetsons for name in row.packages}
BUILDS = [row for name in JETSONS for row in MATRIX.rows_of(f"{name}-for-jetson")]


@every([row for name in ("jetpack", "l4t") for row in MATRIX.rows_of(name)])
def test_another_python_than_the_systems_is_not_refused(row: ReleaseRow) -> None:
    own = row.bundles["python"]
    for python in PYTHONS:
        wanted = "compatible" if python == own else "unknown"
        assert verdict(f"{row.name}=={named(row.versions)} python=={python}") == wanted, python


@every([row for row in MATRIX.rows_of("jetpack") if row.bundles["python"] == "3.8"])
def test_the_systems_python_decides_about_no_package(row: ReleaseRow) -> None:
    found = judged(f"jetpack=={named(row.versions)} torch==2.5.1+cpu")
    assert not any("python" in reason.message for reason in found.reasons), shown(found)


def newest(name: str) -> Iterator[str]:
    """A few releases of a package, the newest first."""
    rows = MATRIX.wheels_by_name.get(name, ())
    yield from dict.fromkeys(named(row.versions) for row in reversed(rows[-8:]))


@every([(name, one) for name in sorted(JETSONS) for one in newest(name)])
def test_the_build_on_pypi_refuses_no_jetson(name: str, release: str) -> None:
    for jetson in ("gpu==Jetson,AGX,Orin", "gpu==Jetson,Nano", "jetpack==6.2", "jetpack==5.1.1", "l4t==32.7.1"):
        found = judged(f"{name}=={release} {jetson}")
        assert found.verdict != "incompatible", f"{jetson}\n{shown(found)}"


@every(BUILDS)
def test_a_build_for_jetsons_fits_the_jetpack_that_it_is_for(row: ReleaseRow) -> None:
    package, wanted = row.name.removesuffix("-for-jetson"), row.needs["jetpack"].split("|")
    for spec in wanted:
        assert_fits(f"{package}=={named(row.versions)} jetpack=={named(spec)}")
    assert verdict(f"{package}=={named(row.versions)} jetpack==7.0") == "unknown"
    assert_does_not_fit(f"{package}=={named(row.versions)} jetpack=={named(wanted[0])} cuda==9.0")


def test_every_package_with_such_builds_is_on_such_an_index() -> None:
    built = {row.name.removesuffix("-for-jetson") for row in MATRIX.releases if row.name.endswith("-for-jetson")}
    assert built
    assert built <= JETSONS


@pytest.mark.parametrize("gpu", ["A100", "RTX,4090", "GH200"])
def test_other_gpus_have_the_builds_on_pypi(gpu: str) -> None:
    assert verdict(f"bitsandbytes==0.45.0 gpu=={gpu} machine==aarch64") == "incompatible"


def test_what_is_said_of_both_indexes() -> None:
    (reason,) = judged("torch==2.5.1 jetpack==6.2").reasons
    assert "PyPI's torch 2.5.1 does not fit" in reason.message
    assert reason.message.endswith("the index decides")
    assert reason.sources
    assert_nobody_can_tell("torch==2.5.1 gpu==Jetson,Orin,Nano")


def test_a_tag_names_the_build() -> None:
    assert_does_not_fit("torch==2.5.1+cu124 gpu==Jetson,AGX,Orin")


def test_other_packages_still_refuse() -> None:
    assert_does_not_fit("torch==2.1.0 torchvision==0.17.0 jetpack==5.1.2")


@pytest.mark.parametrize(
    "name", ["NVIDIA Jetson AGX Orin Developer Kit", "Jetson Orin Nano Engineering Reference Developer Kit Super"]
)
def test_a_developer_kit_is_named_after_its_module(name: str) -> None:
    assert_fits(f"gpu=={name.replace(' ', ',')} jetpack==6.2")


TX = ("Jetson TX1", "Jetson TX2", "Jetson TX2i")
ALL_OF_32 = (*TX, "Jetson Nano", "Jetson AGX Xavier")
MODULES = {
    "28.3.2": TX,
    "28.4": TX,
    "28.5": TX,
    "31.1": ("Jetson AGX Xavier",),
    "32.1": ("Jetson TX2", "Jetson TX2i", "Jetson Nano", "Jetson AGX Xavier"),
    "32.2.1": ALL_OF_32,
    "32.2.3": ALL_OF_32,
    "32.3.1": ALL_OF_32,
    "32.4.4": (*ALL_OF_32, "Jetson Xavier NX"),
    "32.5.1": (*ALL_OF_32, "Jetson Xavier NX", "Jetson TX2 NX"),
    "32.7.1": (*ALL_OF_32, "Jetson Xavier NX", "Jetson TX2 NX", "Jetson Xavier NX 16GB", "Jetson AGX Xavier 64GB"),
}
"""The modules that the page of a Jetson Linux names."""


@every(MODULES.items())
def test_the_modules_of_a_jetson_linux(release: str, modules: tuple[str, ...]) -> None:
    l4t = parse_version(release)
    assert l4t is not None
    (row,) = [row for row in MATRIX.rows_of("jetpack") if covered(row.needs["l4t"], l4t) != "none"]
    jetpack = named(row.versions)
    others = [row.name for row in MATRIX.gpus if row.kind == "tegra" and row.confidence != "weak"]
    for gpu in {*others, *modules}:
        for asked in (f"l4t=={release}", f"jetpack=={jetpack}"):
            found = verdict(f"{asked} gpu=={gpu.replace(' ', ',')}")
            assert found == ("compatible" if gpu in modules else "incompatible"), (asked, gpu)


def test_a_module_whose_first_jetpack_is_not_documented() -> None:
    for jetpack, wanted in (
        ("4.6", "unknown"),
        ("4.6.1", "compatible"),
        ("5.1.2", "compatible"),
        ("6.0", "incompatible"),
    ):
        assert verdict(f"jetpack=={jetpack} gpu==Jetson,AGX,Xavier,Industrial") == wanted
