"""Which driver runs which CUDA, and which toolkit compiles for which GPU."""

from hypothesis import given
from hypothesis import strategies as st

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.relations import driver as drivers_of
from envcheck.knowledge.relations.driver import driver_runs_cuda, known_cuda_of, newest_cuda_of
from envcheck.knowledge.relations.gpu_code import cuda_serves, cuda_targets, targets_of
from envcheck.knowledge.tables import Os
from envcheck.model.versions import ComputeCapability, CudaVersion, DriverRelease
from tests.every import cases, every_tabled
from tests.knowledge.asking import judged
from tests.known import known

MATRIX = load_matrix()


def release(text: str) -> DriverRelease:
    return known(DriverRelease.parse(text))


def cuda(text: str) -> CudaVersion:
    return known(CudaVersion.parse(text))


@every_tabled
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


@every_tabled
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


@every_tabled
def test_releases_of_a_minor_have_own_minimums(driver: str, numbers: tuple[int, ...], os: Os, verdict: str) -> None:
    version = CudaVersion(*numbers[:2])
    fit = driver_runs_cuda(MATRIX, release(driver), version, os, release=numbers)
    assert fit.verdict == verdict, fit.reason
    assert verdict == "unknown" or not fit.reason or str(version) in fit.reason


@every_tabled
def test_what_a_toolkit_compiles_for(capability: str, toolkit: str, verdict: str, change: str) -> None:
    fit = cuda_targets(MATRIX, known(ComputeCapability.parse(capability)), cuda(toolkit))
    assert (fit.verdict, fit.nearest_change) == (verdict, change), fit.reason


def test_the_targets_of_a_toolkit() -> None:
    assert [str(target) for target in targets_of(MATRIX, CudaVersion(11, 7))][-3:] == ["sm_80", "sm_86", "sm_87"]
    assert targets_of(MATRIX, CudaVersion(12, 7)) == ()


@every_tabled
def test_software_built_for_an_older_gpu_of_the_major_serves(capability: str, toolkit: str, verdict: str) -> None:
    assert cuda_serves(MATRIX, known(ComputeCapability.parse(capability)), cuda(toolkit)).verdict == verdict


def test_a_toolkit_older_than_the_major_leaves_ptx_alone() -> None:
    assert "only PTX could run there" in cuda_serves(MATRIX, ComputeCapability(8, 0), CudaVersion(10, 2)).reason


def test_of_a_target_on_which_sources_disagree_nobody_can_tell() -> None:
    disputed = [(row, target) for row in MATRIX.cuda for target in row.disputed_targets]
    assert disputed
    for row, target in disputed:
        assert judged(f"nvcc=={row.version} gpu=={target}").verdict == "unknown", (row.version, target)
