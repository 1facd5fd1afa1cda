"""Which driver runs which CUDA, and which toolkit compiles for which GPU."""

from hypothesis import given
from hypothesis import strategies as st

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations import driver as drivers_of
from envcheck.knowledge.relations.driver import driver_runs_cuda, known_cuda_of, newest_cuda_of
from envcheck.knowledge.relations.gpu_code import cuda_serves, cuda_targets, targets_of
from envcheck.knowledge.tables import Os
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from tests.every import cases, every
from tests.knowledge.asking import judged
from tests.known import known

MATRIX = load_matrix()


def release(text: str) -> DriverRelease:
    return known(DriverRelease.parse(text))


def cuda(text: str) -> CudaVersion:
    return known(CudaVersion.parse(text))


@every(
    # the minimum of the major, from CUDA 11 on
    ("525.60.13", "12.8", "linux", "compatible"), ("525.60.12", "12.8", "linux", "incompatible"),
    ("520.61.05", "12.0", "linux", "incompatible"), ("535.54.03", "12.8", "linux", "compatible"),
    ("510.47.03", "11.7", "linux", "compatible"), ("450.80.02", "11.8", "linux", "compatible"),
    ("450.66", "11.8", "linux", "incompatible"), ("580.65.06", "13.5", "linux", "compatible"),
    ("575.57.08", "13.0", "linux", "incompatible"),
    # 11.0 has its own
    ("450.36.06", "11.0", "linux", "compatible"), ("450.36.06", "11.1", "linux", "incompatible"),
    # the exact version's before CUDA 11
    ("440.33", "10.2", "linux", "compatible"), ("418.39", "10.2", "linux", "incompatible"),
    ("418.39", "10.1", "linux", "compatible"), ("418.39", "10.0", "linux", "compatible"),
    ("384.81", "9.0", "linux", "compatible"), ("396.26", "10.0", "linux", "incompatible"),
    # backward compatibility, without an end
    ("595.45.04", "9.0", "linux", "compatible"), ("999.99", "12.4", "linux", "compatible"),
    # two documents, two minima
    ("387.26", "9.1", "linux", "unknown"), ("390.46", "9.1", "linux", "compatible"),
    ("387.00", "9.1", "linux", "incompatible"), ("527.41", "12.4", "windows", "unknown"),
    ("528.32", "12.4", "windows", "unknown"), ("528.33", "12.4", "windows", "compatible"),
    ("527.40", "12.4", "windows", "incompatible"),
    # Windows has numbers of its own
    ("452.39", "11.8", "windows", "compatible"), ("451.22", "11.8", "windows", "incompatible"),
    ("411.31", "10.0", "wsl", "compatible"), ("526.00", "12.0", "linux", "compatible"),
    ("526.00", "12.0", "wsl", "incompatible"),
    # newer than the data
    ("580.65.06", "13.9", "linux", "compatible"), ("570.86.10", "13.9", "linux", "incompatible"),
    ("580.65.06", "14.0", "linux", "unknown"), ("570.86.10", "14.0", "linux", "incompatible"),
    ("999.99", "14.0", "linux", "unknown"),
    # a version that was never released within the data
    ("535.54.03", "9.5", "linux", "unknown"),
    # a system that the matrix has no minima for
    ("418.163", "10.1", "macos", "unknown"),
)  # fmt: skip
def test_which_driver_runs_which_cuda(driver: str, version: str, os: Os, verdict: str) -> None:
    fit = driver_runs_cuda(MATRIX, release(driver), cuda(version), os)
    assert fit.verdict == verdict, fit.reason
    assert version in fit.reason


def test_a_refusal_names_the_bound_its_row_and_what_would_do() -> None:
    fit = driver_runs_cuda(MATRIX, release("470.82.01"), cuda("12.4"))
    assert fit.reason == "CUDA 12.4 needs driver 525.60.13 or newer, this is 470.82.01"
    assert (fit.nearest_change, fit.rows) == ("driver >= 525.60.13", ("cuda/12.4",))
    assert any("Release Notes" in source.title for source in fit.sources)
    assert fit.bad
    assert not fit.ok


@cases("speaks, verdict", ("14.0", "compatible"), ("14.2", "compatible"), ("13.4", "unknown"))
def test_beyond_the_data_the_driver_s_own_word_counts(speaks: str, verdict: str) -> None:
    assert driver_runs_cuda(MATRIX, release("650.10"), cuda("14.0"), reported=cuda(speaks)).verdict == verdict


def test_what_the_driver_says_outranks_its_number() -> None:
    """A forward-compatibility package makes an old driver speak a newer CUDA."""
    assert driver_runs_cuda(MATRIX, release("470.82.01"), cuda("12.4"), reported=cuda("12.4")).ok
    assert driver_runs_cuda(MATRIX, release("550.54.14"), cuda("12.8"), reported=cuda("12.4")).ok


@every(
    ("550.54.14", "linux", "12.4"), ("565.57.01", "linux", "12.7"), ("535.288.01", "linux", "12.2"),
    ("615.71.09", "linux", "13.4"), ("390.157", "linux", "9.1"), ("551.61", "windows", "12.4"),
    ("553.74", "wsl", "12.4"), ("572.60", "wsl", "12.8"), ("582.78", "windows", "13.0"), ("616.92", "windows", "13.4"),
    ("551.61", "linux", None), ("430.26", "linux", None), ("650.10", "linux", None), ("650.10", "windows", None),
)  # fmt: skip
def test_what_a_branch_speaks(driver: str, os: Os, speaks: str | None) -> None:
    assert newest_cuda_of(MATRIX, release(driver), os) == (cuda(speaks) if speaks else None)


def test_the_branch_s_row_tells_its_life() -> None:
    row = known(drivers_of.branch_of(MATRIX, release("535.104.05")))
    assert (row.kind, row.ended) == ("long-term", "2026-06-01")


def test_the_minimum_of_a_version() -> None:
    assert known(drivers_of.minimum_driver(MATRIX, cuda("12.4"))).driver == "525.60.13"
    assert drivers_of.minimum_driver(MATRIX, cuda("6.5")) is None


drivers = st.builds(DriverRelease, st.integers(300, 700), st.integers(0, 250), st.integers(0, 20))
versions = st.builds(CudaVersion, st.integers(7, 15), st.integers(0, 11))


@given(drivers, drivers, versions, st.sampled_from(["linux", "windows", "wsl"]))
def test_a_newer_driver_loses_no_cuda(one: DriverRelease, other: DriverRelease, version: CudaVersion, os: Os) -> None:
    older, newer = sorted((one, other))
    if driver_runs_cuda(MATRIX, older, version, os).ok:
        assert driver_runs_cuda(MATRIX, newer, version, os).ok
    if driver_runs_cuda(MATRIX, newer, version, os).bad:
        assert driver_runs_cuda(MATRIX, older, version, os).bad


@given(drivers, versions, versions)
def test_a_newer_cuda_never_needs_an_older_driver(driver: DriverRelease, one: CudaVersion, other: CudaVersion) -> None:
    older, newer = sorted((one, other))
    if driver_runs_cuda(MATRIX, driver, newer).ok:
        assert not driver_runs_cuda(MATRIX, driver, older).bad


@given(drivers)
def test_what_a_driver_cuda_it_never_refuses(driver: DriverRelease) -> None:
    speaks = newest_cuda_of(MATRIX, driver)
    if speaks is not None and driver.minor >= 100:
        assert not driver_runs_cuda(MATRIX, driver, speaks).bad


@cases("os", "linux", "windows", "wsl")
def test_a_driver_newer_than_the_data_speaks_no_less_than_the_newest(os: Os) -> None:
    newest = known_cuda_of(MATRIX, release("900.10"), os)
    own = "linux" if os == "linux" else "windows"
    rows = [row for row in MATRIX.drivers if row.os == own]
    assert newest == max(spoken for row in rows if (spoken := CudaVersion.parse(row.cuda)))
    assert known_cuda_of(MATRIX, release("550.54.14"), os) == cuda("12.4")
    assert known_cuda_of(MATRIX, release("300.10"), os) is None


@every(
    ("367.48", (8, 0, 44), "linux", "compatible"), ("367.44", (8, 0, 44), "linux", "incompatible"),
    ("367.48", (8, 0, 61), "linux", "incompatible"), ("375.26", (8, 0, 61), "linux", "compatible"),
    ("375.26", (8, 0, 61, 2), "linux", "compatible"), ("367.48", (8, 0, 27), "linux", "unknown"),
    ("367.48", (8, 0), "linux", "unknown"), ("396.26", (9, 2, 88), "linux", "compatible"),
    ("396.26", (9, 2, 148), "linux", "incompatible"), ("396.26", (9, 2, 148, 1), "linux", "incompatible"),
    ("397.44", (9, 2, 148), "windows", "incompatible"), ("398.26", (9, 2, 148), "wsl", "compatible"),
    ("418.39", (10, 1, 243), "linux", "compatible"),
)  # fmt: skip
def test_releases_of_a_minor_have_own_minimums(driver: str, numbers: tuple[int, ...], os: Os, verdict: str) -> None:
    version = CudaVersion(*numbers[:2])
    fit = driver_runs_cuda(MATRIX, release(driver), version, os, release=numbers)
    assert fit.verdict == verdict, fit.reason
    assert verdict == "unknown" or not fit.reason or str(version) in fit.reason


@every(
    ("8.6", "11.0", "incompatible", "CUDA >= 11.1"), ("8.6", "11.1", "compatible", ""),
    ("8.9", "11.7", "incompatible", "CUDA >= 11.8"), ("9.0", "11.8", "compatible", ""),
    ("12.0", "12.6", "incompatible", "CUDA >= 12.8"), ("12.1", "12.8", "incompatible", "CUDA >= 12.9"),
    ("10.3", "12.9", "compatible", ""), ("7.0", "12.9", "compatible", ""),
    ("7.0", "13.0", "incompatible", "CUDA <= 12.9"), ("3.7", "12.0", "incompatible", "CUDA <= 11.8"),
    ("3.0", "11.0", "incompatible", "CUDA <= 10.2"), ("7.5", "9.2", "incompatible", "CUDA >= 10.0"),
    ("7.5", "13.5", "compatible", ""),
    # 10.1 was renamed 11.0
    ("11.0", "12.9", "unknown", ""), ("11.0", "13.0", "compatible", ""),
    # beyond the data, and the version that only drivers report
    ("9.0", "14.0", "unknown", ""), ("9.0", "12.7", "unknown", ""), ("13.0", "13.5", "unknown", ""),
)  # fmt: skip
def test_what_a_toolkit_compiles_for(capability: str, toolkit: str, verdict: str, change: str) -> None:
    fit = cuda_targets(MATRIX, known(ComputeCapability.parse(capability)), cuda(toolkit))
    assert (fit.verdict, fit.nearest_change) == (verdict, change), fit.reason


def test_the_targets_of_a_toolkit() -> None:
    assert [str(target) for target in targets_of(MATRIX, CudaVersion(11, 7))][-3:] == ["sm_80", "sm_86", "sm_87"]
    assert targets_of(MATRIX, CudaVersion(12, 7)) == ()


@every(
    ("8.9", "11.7", "compatible"), ("8.6", "11.0", "compatible"), ("10.3", "12.8", "compatible"),
    ("8.0", "10.2", "incompatible"), ("9.0", "11.7", "incompatible"), ("8.7", "11.3", "incompatible"),
    ("7.0", "13.0", "incompatible"), ("9.0", "14.0", "unknown"),
)  # fmt: skip
def test_software_built_for_an_older_gpu_of_the_major_serves(capability: str, toolkit: str, verdict: str) -> None:
    assert cuda_serves(MATRIX, known(ComputeCapability.parse(capability)), cuda(toolkit)).verdict == verdict


def test_a_toolkit_older_than_the_major_leaves_ptx_alone() -> None:
    assert "only PTX could run there" in cuda_serves(MATRIX, ComputeCapability(8, 0), CudaVersion(10, 2)).reason


def test_of_a_target_on_which_sources_disagree_nobody_can_tell() -> None:
    disputed = [(row, target) for row in MATRIX.cuda for target in row.disputed_targets]
    assert disputed
    for row, target in disputed:
        assert judged(f"nvcc=={row.version} gpu=={target}").verdict == "unknown", (row.version, target)
