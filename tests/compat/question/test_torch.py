"""PyTorch: its wheel on PyPI, its other builds, and what each runs on. A comma stands for a blank in a GPU's name."""

from __future__ import annotations

from envcheck.compat.load import load_matrix
from envcheck.compat.specifier import covered, parse_version
from envcheck.compat.tables import ReleaseRow
from tests.compat.asking import answer, assert_does_not_fit, verdict
from tests.every import every


def test_the_build_is_named() -> None:
    assert "torch 2.5.1+cu118" in answer("torch==2.5.1 cuda==11.8").reasons[0].message
    assert "torch 2.5.1+cu124" in answer("torch==2.5.1 driver==550").reasons[0].message
    assert "there are cu124, cu121, cu118" in answer("torch==2.5.1 cuda==11.7").reasons[0].message


def test_a_build_that_was_never_published_is_said_to_be_none() -> None:
    found = answer("torch==2.5.1+cu999 driver==550.54.14")
    assert found.reasons[0].message == "torch 2.5.1 has no build +cu999 for linux x86_64; there are cu124, cu121, cu118"
    assert found.suggestions == ("torch 2.5.1+cu124", "torch 2.5.1+cu121", "torch 2.5.1+cu118")
    assert answer("torch==2.5.1+cu126 driver==470.57.02").suggestions == ("torch 2.5.1+cu118",)
    assert answer("torch==2.5.1+cu126 gpu==B200").suggestions == ()


def test_the_wheel_on_pypi_is_said_to_be_assumed() -> None:
    assert answer("torch==2.5.1 driver==550.54.14").assumed["torch"] == "2.5.1+cu124, the wheel on PyPI"
    assert answer("torch==2.5.1 gpu==H100 os==windows").assumed["torch"] == "2.5.1+cpu, the wheel on PyPI"
    assert "torch" not in answer("torch==2.5.1+cu118 gpu==H100").assumed
    assert "torch" not in answer("torch==2.5.1 cuda==11.8").assumed


def test_naming_cuda_cannot_mend_what_the_wheel_on_pypi_does_not_run() -> None:
    """A further component narrows a question; the build that fits is suggested."""
    assert answer("torch==2.5.1 driver==470.57.02").verdict == "incompatible"
    found = answer("torch==2.5.1 driver==470.57.02 cuda==11.8")
    assert (found.verdict, found.suggestions) == ("unknown", ("torch 2.5.1+cu118", "driver >= 525.60.13"))
    assert answer("torch==2.5.1+cu118 driver==470.57.02 cuda==11.8").verdict == "compatible"


@every([row.version for row in load_matrix().torch])
def test_no_build_for_cuda_is_for_a_mac(version: str) -> None:
    assert_does_not_fit(f"torch=={version}+cu126 os==macos")


RELEASED_WITH_IT = [
    (name, row.versions.removeprefix("=="), row.needs["torch"].removeprefix("=="))
    for name in ("torchvision", "torchaudio")
    for row in load_matrix().rows_of(name)
    if row.versions.startswith("==") and "|" not in row.versions and row.needs.get("torch", "").startswith("==")
]


@every(RELEASED_WITH_IT)
def test_what_is_released_with_it_serves_the_gpus_of_its_build_on_pypi(name: str, own: str, torch: str) -> None:
    for gpu in ("3.7", "6.1", "8.6", "9.0", "12.0"):
        served = verdict(f"torch=={torch} gpu=={gpu}") == "compatible"
        assert (verdict(f"{name}=={own} gpu=={gpu}") == "compatible") is served, gpu


@every(load_matrix().rows_of("pytorch-cuda"))
def test_condas_package_chooses_the_build(row: ReleaseRow) -> None:
    """It stands for the CUDA of the build, for the releases of PyTorch that its channel has."""
    cuda, matrix = row.versions.removeprefix("=="), load_matrix()
    for release in matrix.torch:
        version = parse_version(release.version)
        assert version
        has = any(build.cuda == cuda and build.os == "linux" for build in release.builds)
        fits = covered(row.needs["torch"], version) == "all"
        asked = f"pytorch-cuda=={cuda} torch=={release.version}"
        assert verdict(asked) == ("compatible" if fits else "incompatible"), asked
        assert has or not fits
    kept = {one.versions for one in matrix.conda_builds if one.selector == row.name and one.cuda == cuda}
    releases = [version for spec in kept if (version := parse_version(spec.removeprefix("==").removesuffix(".*")))]
    assert releases
    assert {covered(row.needs["torch"], version) for version in releases} == {"all"}
