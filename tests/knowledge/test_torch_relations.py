"""Which builds of PyTorch there are, what they bring, and what they run on."""

from envcheck.compat.package_needs import marks_of, needed_of
from envcheck.compat.requirements import declared
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.torch import build_of, builds_that_fit, python_runs_torch, torch_row
from envcheck.knowledge.tables import Machine, Os
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from tests.every import cases, every_tabled, tabled
from tests.known import known

MATRIX = load_matrix()


@every_tabled
def test_which_python_has_a_wheel(torch: str, python: str, os: Os, machine: Machine, verdict: str) -> None:
    fit = python_runs_torch(MATRIX, torch, python, os, machine)
    assert fit.verdict == verdict, fit.reason


def test_a_python_too_new_is_told_the_newest_that_has_a_wheel() -> None:
    fit = python_runs_torch(MATRIX, "2.1.2", "3.12")
    assert fit.reason == "torch 2.1.2 has wheels for CPython 3.8 to 3.11, not for 3.12"
    assert fit.nearest_change == "Python 3.11"


@tabled
def test_only_a_release_has_a_row(version: str, row: str | None) -> None:
    found = torch_row(MATRIX, version)
    assert (found.version if found else None) == row


@tabled
def test_the_gpu_code_of_a_build(version: str, cuda: str, os: Os, machine: Machine, targets: str) -> None:
    parsed = CudaVersion.parse(cuda)
    build = build_of(MATRIX, version, known(parsed), os, machine)
    assert " ".join(known(build).targets) == targets


def test_there_is_no_build_for_a_cuda_that_was_not_built() -> None:
    assert build_of(MATRIX, "2.5.1", CudaVersion(12, 6)) is None
    assert build_of(MATRIX, "9.9.9", CudaVersion(12, 6)) is None


@every_tabled
def test_the_newest_build_that_fits(
    version: str | None, gpus: list[str], driver: str, os: Os, python: str | None, first: tuple[str, str] | None
) -> None:
    capabilities = [parsed for text in gpus if (parsed := ComputeCapability.parse(text))]
    found = builds_that_fit(MATRIX, version, capabilities, DriverRelease.parse(driver), os, python)
    assert ((found[0][0].version, found[0][1].cuda) if found else None) == first


def test_without_a_driver_or_gpu_these_are_no_constraint() -> None:
    assert [build.cuda for _, build in builds_that_fit(MATRIX, "2.5.1", [], None)] == ["12.4", "12.1", "11.8"]


# --- What a build of PyTorch brings, by the matrix ------------------------------------------------------------------
ROW = next(row for row in MATRIX.torch if row.triton and row.cudnn and len(row.builds) > 1)


@cases("label", "", "+cu999")
def test_builds_for_every_cuda_pin_the_same_triton(label: str) -> None:
    """Else a fix that changes the build would seem to leave the old Triton, and be rejected."""
    pins = needed_of(MATRIX, "torch", f"{ROW.version}{label}")
    assert f"triton=={ROW.triton}" in pins
    assert any(pin.startswith("nvidia-cudnn") for pin in pins) is (label == "")


def test_a_build_for_cpus_pins_none() -> None:
    assert needed_of(MATRIX, "torch", f"{ROW.version}+cpu") == ()


@cases("label", "+cpu", "+rocm6.2")
def test_builds_for_other_processors_require_none(label: str) -> None:
    names = declared(MATRIX, "torch", f"{ROW.version}{label}", marks_of("3.10", "linux", "x86_64"))
    assert not [name for name in names if name.startswith(("nvidia-", "triton"))]
