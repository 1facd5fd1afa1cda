"""Which builds of PyTorch there are, what they bring, and what they run on."""

from envcheck.compat.package_needs import marks_of, needed_of
from envcheck.compat.requirements import declared
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations.torch import build_of, builds_that_fit, python_runs_torch, torch_row
from envcheck.knowledge.tables import Machine, Os
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from tests.every import cases, every
from tests.known import known

MATRIX = load_matrix()


@every(
    ("2.5.1", "3.9", "linux", "x86_64", "compatible"), ("2.5.1", "3.13.1", "linux", "x86_64", "compatible"),
    ("2.5.1", "3.13", "windows", "x86_64", "incompatible"), ("2.5.1", "3.13", "linux", "aarch64", "incompatible"),
    ("2.5.1", "3.13", "wsl", "x86_64", "compatible"), ("2.5.1+cu124", "3.8", "linux", "x86_64", "incompatible"),
    ("2.1.2", "3.12", "linux", "x86_64", "incompatible"), ("2.2.0", "3.12", "linux", "x86_64", "compatible"),
    ("1.13.1", "3.11", "linux", "x86_64", "compatible"), ("1.13.1", "3.11", "windows", "x86_64", "incompatible"),
    ("1.4.0", "2.7.18", "linux", "x86_64", "compatible"), ("1.5.0", "2.7.18", "linux", "x86_64", "incompatible"),
    ("2.15.0", "3.10", "linux", "x86_64", "incompatible"), ("2.15.0", "3.15", "linux", "x86_64", "compatible"),
    ("2.99.0", "3.12", "linux", "x86_64", "unknown"), ("2.6.0.dev20241112", "3.12", "linux", "x86_64", "unknown"),
    ("2.5.1", "3", "linux", "x86_64", "unknown"), ("2.5.1", "three", "linux", "x86_64", "unknown"),
)  # fmt: skip
def test_which_python_has_a_wheel(torch: str, python: str, os: Os, machine: Machine, verdict: str) -> None:
    fit = python_runs_torch(MATRIX, torch, python, os, machine)
    assert fit.verdict == verdict, fit.reason


def test_a_python_too_new_is_told_the_newest_that_has_a_wheel() -> None:
    fit = python_runs_torch(MATRIX, "2.1.2", "3.12")
    assert fit.reason == "torch 2.1.2 has wheels for CPython 3.8 to 3.11, not for 3.12"
    assert fit.nearest_change == "Python 3.11"


@cases("version, row",
    ("2.5.1", "2.5.1"), ("2.5.1+cu124", "2.5.1"), ("2.5", "2.5.0"), ("2.5.0a0+872d972e41.nv24.8", None),
    ("2.7.0.dev20250131+cu128", None), ("2.5.1.post1", None), ("not a version", None),
)  # fmt: skip
def test_only_a_release_has_a_row(version: str, row: str | None) -> None:
    found = torch_row(MATRIX, version)
    assert (found.version if found else None) == row


@cases("version, cuda, os, machine, targets",
    ("2.5.1", "12.4", "linux", "x86_64", "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90"),
    ("2.7.1", "12.8", "linux", "x86_64", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"),
    ("2.8.0", "12.8", "linux", "x86_64", "sm_70 sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
    ("2.8.0", "12.8", "windows", "x86_64", "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"),
    ("2.11.0", "13.0", "linux", "aarch64", "sm_80 sm_90 sm_100 sm_110 sm_120"),
    ("1.13.1", "11.7", "linux", "x86_64", "sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86"),
)  # fmt: skip
def test_the_gpu_code_of_a_build(version: str, cuda: str, os: Os, machine: Machine, targets: str) -> None:
    parsed = CudaVersion.parse(cuda)
    build = build_of(MATRIX, version, known(parsed), os, machine)
    assert " ".join(known(build).targets) == targets


def test_there_is_no_build_for_a_cuda_that_was_not_built() -> None:
    assert build_of(MATRIX, "2.5.1", CudaVersion(12, 6)) is None
    assert build_of(MATRIX, "9.9.9", CudaVersion(12, 6)) is None


@every(
    # a driver older than CUDA 12's minimum
    ("2.5.1", ["9.0"], "470.82.01", "linux", None, ("2.5.1", "11.8")),
    # Volta: only CUDA 12 builds, and CUDA 12.8 ones until 2.11
    ("2.11.0", ["7.0"], "580.65.06", "linux", None, ("2.11.0", "12.6")),
    ("2.12.0", ["7.0"], "580.65.06", "linux", None, ("2.12.0", "12.6")),
    # Blackwell: nothing before 2.7
    ("2.7.0", ["12.0"], "570.86.16", "linux", None, ("2.7.0", "12.8")),
    ("2.6.0", ["12.0"], "570.86.16", "linux", None, None),
    (None, ["12.0"], "572.60", "wsl", "3.12", ("2.13.0", "12.9")),
    # Kepler: CUDA 11.8
    (None, ["3.7"], "470.256.02", "linux", None, ("2.7.1", "11.8")),
    # two GPUs that no single build serves
    ("2.8.0", ["5.2", "12.0"], "580.65.06", "linux", None, None),
    ("2.8.0", ["7.5", "12.0"], "580.65.06", "linux", None, ("2.8.0", "12.9")),
    # Python
    (None, ["8.0"], "525.60.13", "linux", "3.8", ("2.4.1", "12.4")),
    # a driver newer than the data
    ("2.15.0", ["9.0"], "700.10", "linux", None, ("2.15.0", "13.2")),
)
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
