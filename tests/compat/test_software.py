"""Libraries, frameworks and packages on top, PyTorch among them, swept over their rows."""

from envcheck.compat.wheels import covering, published
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import scheme
from envcheck.knowledge.relations.torch import builds, tag_of
from envcheck.knowledge.specifier import Version, covered, parse_specifier, parse_version, speaks_of
from envcheck.knowledge.tables.software import ReleaseRow
from tests.every import every
from tests.knowledge.asking import answer, assert_does_not_fit, judged, verdict
from tests.thorough import sample

MATRIX = load_matrix()


@every([row for name in ("cuda-bindings", "cuda-python") for row in MATRIX.rows_of(name)])
def test_python_bindings_take_the_toolkits_of_their_major(row: ReleaseRow) -> None:
    release = parse_specifier(row.versions).bounds[0].numbers
    for cuda in MATRIX.toolkits:
        wanted = "compatible" if cuda.major == release[0] else "incompatible"
        asked = f"{row.name}=={'.'.join(map(str, release))} cuda=={cuda}"
        assert verdict(asked) == wanted, asked


@every(sorted({row.name for row in MATRIX.releases if "windows" in row.os and len(row.os) > 1}))
def test_software_for_windows_and_for_arm_is_not_thereby_for_windows_on_arm(name: str) -> None:
    newest = next(reversed(MATRIX.known_versions(name)), "1.0")
    found = judged(f"{name}=={newest} os==windows machine==aarch64")
    assert found.verdict != "compatible" or any("has a wheel" in reason.message for reason in found.reasons)


BUILDS = [row for row in MATRIX.releases if row.build and row.versions.startswith("==") and "*" not in row.versions]
"""Builds of one release each, beside PyPI's."""


def pythons_of_release(row: ReleaseRow) -> str:
    """For which Python the release is, where the row of its build does not say so itself."""
    version = parse_version(row.versions.removeprefix("=="))
    rows = MATRIX.rows_for(row.name, version) if version and "python" not in row.needs else []
    return next((one.needs["python"] for one in rows if not one.build and "python" in one.needs), "")


@every([row for row in BUILDS if pythons_of_release(row)])
def test_every_build_of_a_release_is_for_the_same_pythons(row: ReleaseRow) -> None:
    spec = parse_specifier(pythons_of_release(row))
    for python in (Version((3, minor), scheme=scheme("python")) for minor in (2, 6, 9, 11, 20)):
        found = verdict(f"{row.name}{row.versions}+{row.build} python=={python}")
        assert found == {"all": "compatible", "none": "incompatible"}[spec.cover(python)], python


@every(lambda: sorted({name for row in MATRIX.indexes if "cpu" in row.address for name in row.packages} - {"torch"}))
def test_builds_without_gpu_support_are_known_as_such(name: str) -> None:
    spec = next((row.versions for row in MATRIX.rows_of(name) if not row.build), "")
    version = next((one for one in published(MATRIX, name) if spec and covered(spec, one) == "all"), None)
    if version:
        assert_does_not_fit(f"{name}=={version}+cpu gpu==A100")


BY_CUDA = [row for row in MATRIX.releases if row.build and row.cuda and "cuda" in row.needs and row.name != "torch"]
"""Builds for a CUDA version each, of one release or several."""


def releases(row: ReleaseRow) -> list[Version]:
    return [one for one in published(MATRIX, row.name) if speaks_of(row.versions, one) == "all"]


@every(BY_CUDA)
def test_a_build_of_several_releases_is_known_for_each_of_them(row: ReleaseRow) -> None:
    for version in releases(row):
        rows = covering(MATRIX.rows_of(row.name), version)
        assert [one.build for one in rows].count(row.build) == 1, version


@every(lambda: [(row, version) for row in BY_CUDA for version in releases(row)[::3]])
def test_a_build_that_loads_into_pytorch_is_for_its_major_version_of_cuda(row: ReleaseRow, version: Version) -> None:
    rows = covering(MATRIX.rows_of(row.name), version)
    pin = next((one.needs["torch"] for one in rows if "torch" in one.needs), "")
    torch = next((one for one in MATRIX.torch if pin == f"=={one.version}"), None)
    for build in builds(torch) if torch else ():
        same = build.cuda == row.cuda
        if same or build.cuda.partition(".")[0] != str(row.cuda).partition(".")[0]:
            found = verdict(f"{row.name}=={version}+{row.build} {pin.replace('==', 'torch==')}+{tag_of(build.cuda)}")
            assert found == ("compatible" if same else "incompatible"), build.cuda


# --- PyTorch --------------------------------------------------------------------------------------------------------
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


@every(sample(RELEASED_WITH_IT))
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
