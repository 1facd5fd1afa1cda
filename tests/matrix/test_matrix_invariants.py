"""What must hold between rows: tables grow where the world does, and one table does not contradict another."""

import itertools
import re
from collections import defaultdict

from packaging.version import Version

from envcheck.compat.wheels import covering, published
from envcheck.knowledge.gpu_names import name_keys
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import SETS
from envcheck.knowledge.relations.gpu_code import read_targets, runs_natively
from envcheck.knowledge.relations.torch import builds, minors_within, pythons_with_wheels
from envcheck.knowledge.specifier import parse_specifier, speaks_of
from envcheck.knowledge.tables import Os
from envcheck.knowledge.tables.hardware import CudaRow, GpuRow
from envcheck.knowledge.tables.software import ReleaseRow, TorchBuild, TorchRow
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion, DriverRelease, PtxVersion
from tests.every import cases, every
from tests.known import known

MATRIX = load_matrix()
CUDA = {version: row for row in MATRIX.cuda if (version := CudaVersion.parse(row.version))}
BUILDS = [(row, build) for row in MATRIX.torch for build in row.builds]


WHEELS = {
    name
    for name in MATRIX.wheels_by_name
    if any(key != "any" for row in MATRIX.wheels_by_name[name] for key in row.pythons)
}


def served(row: ReleaseRow) -> set[str]:
    """The systems for which PyPI has a wheel of any of the releases."""
    releases = [version for version in published(MATRIX, row.name) if speaks_of(row.versions, version) == "all"]
    wheels = [one for version in releases for one in covering(MATRIX.wheels_by_name[row.name], version)]
    return {str(system) for one in wheels for system in one.pythons}


def cuda(text: str | None) -> CudaVersion:
    return known(CudaVersion.parse(text))


def driver(text: str | None) -> DriverRelease:
    return known(DriverRelease.parse(text))


def sm(text: str) -> CodeTarget:
    return known(CodeTarget.parse(text))


# --- CUDA ---------------------------------------------------------------------------------------------------------
def test_cuda_is_listed_from_6_0_without_a_gap() -> None:
    versions = list(CUDA)
    assert (versions, versions[:5]) == (sorted(versions), [(6, 0), (6, 5), (7, 0), (7, 5), (8, 0)])
    assert [minor for major, minor in versions if major == 9] == [0, 1, 2]
    assert [minor for major, minor in versions if major == 10] == [0, 1, 2]
    assert [minor for major, minor in versions if major == 11] == list(range(9))
    assert [minor for major, minor in versions if major == 12] == list(range(10))
    assert [minor for major, minor in versions if major == 13] == list(range(6))


@cases("field", "driver_linux", "driver_windows")
def test_minimum_drivers_grow_with_cuda(field: str) -> None:
    minima = [driver(getattr(row, field)) for version, row in CUDA.items() if version >= (7, 0)]
    assert minima == sorted(minima)


@cases("field", "driver_linux", "driver_windows")
def test_from_cuda_11_on_a_major_has_one_minimum(field: str) -> None:
    minima = defaultdict(set)
    for version, row in CUDA.items():
        if version > (11, 0):
            minima[version.major].add(getattr(row, field))
    assert {major: len(found) for major, found in minima.items()} == dict.fromkeys(minima, 1)


def test_a_disputed_minimum_is_the_lower_one() -> None:
    for row in CUDA.values():
        if row.disputed_linux:
            assert driver(row.disputed_linux) < driver(row.driver_linux)
        if row.disputed_windows:
            assert driver(row.disputed_windows) < driver(row.driver_windows)


@cases("field", "driver_linux", "driver_windows")
def test_releases_of_a_minor_need_ever_newer_drivers(field: str) -> None:
    for row in MATRIX.cuda:
        releases = [Version(update.release) for update in row.updates]
        assert all(f"{release.major}.{release.minor}" == row.version for release in releases)
        assert releases == sorted(releases)
        minima = [driver(getattr(update, field)) for update in row.updates]
        assert minima == sorted(minima)
        stated = {text for text in (getattr(row, field), getattr(row, f"disputed_{field.partition('_')[2]}")) if text}
        assert not minima or minima[0] in map(driver, stated)


def test_the_bundled_driver_runs_its_toolkit_and_grows() -> None:
    bundled = [(row, driver(row.bundled_driver)) for row in CUDA.values() if row.bundled_driver]
    assert [release for _, release in bundled] == sorted(release for _, release in bundled)
    for row, release in bundled:
        assert release >= driver(row.disputed_linux or row.driver_linux)


def test_the_bundled_driver_s_branch_speaks_the_toolkit_s_cuda() -> None:
    speaks = {row.branch: row.cuda for row in MATRIX.drivers if row.os == "linux"}
    for row in CUDA.values():
        if row.bundled_driver:
            assert speaks[driver(row.bundled_driver).branch] == row.version


def test_ptx_never_shrinks() -> None:
    versions = [PtxVersion.parse(row.ptx) for row in CUDA.values()]
    assert None not in versions
    assert versions == sorted(version for version in versions if version)


def test_targets_are_capabilities_and_come_and_go_once() -> None:
    toolkits = [row for row in CUDA.values() if row.toolkit]
    seen = {target for row in toolkits for target in row.targets}
    known = {f"sm_{row.capability.replace('.', '')}" for row in MATRIX.capabilities}
    assert all(not set(row.targets) & set(row.disputed_targets) for row in toolkits)
    assert seen - known == {"sm_88"}, "sm_88 is in NVRTC's list, and nothing public says what it is"
    for target in seen:
        held = "".join("1" if target in row.targets else "0" for row in toolkits)
        assert re.fullmatch("0*1+0*", held), (target, held)


def test_only_12_7_is_no_toolkit() -> None:
    assert [row.version for row in CUDA.values() if not row.toolkit] == ["12.7"]
    assert all(row.targets for row in CUDA.values() if row.toolkit)


# --- drivers ------------------------------------------------------------------------------------------------------
@cases("system", "linux", "windows")
def test_cuda_grows_with_the_branch(system: str) -> None:
    rows = [row for row in MATRIX.drivers if row.os == system]
    assert [row.branch for row in rows] == sorted(row.branch for row in rows)
    speaks = [cuda(row.cuda) for row in rows if row.cuda]
    assert speaks == sorted(speaks)
    assert {str(version) for version in speaks} <= {row.version for row in MATRIX.cuda}


def test_windows_branches_do_not_overlap() -> None:
    rows = [row for row in MATRIX.drivers if row.os == "windows"]
    for row, after in itertools.pairwise(rows):
        assert row.branch <= (row.until or row.branch) < after.branch


def test_what_a_branch_speaks_it_also_runs() -> None:
    for row in MATRIX.drivers:
        if row.cuda:
            minimum = CUDA[cuda(row.cuda)]
            least = minimum.driver_linux if row.os == "linux" else minimum.driver_windows
            disputed = minimum.disputed_linux if row.os == "linux" else minimum.disputed_windows
            assert (row.until or row.branch) >= driver(disputed or least).branch


# --- architectures and capabilities -------------------------------------------------------------------------------
def test_capabilities_belong_to_one_architecture() -> None:
    listed = [capability for row in MATRIX.architectures for capability in row.capabilities]
    assert sorted(listed) == sorted(row.capability for row in MATRIX.capabilities)
    for row in MATRIX.capabilities:
        (owner,) = (arch.name for arch in MATRIX.architectures if row.capability in arch.capabilities)
        assert row.architecture == owner


def test_branches_of_architectures_are_branches() -> None:
    branches = {row.branch for row in MATRIX.drivers if row.os == "linux"}
    for row in MATRIX.architectures:
        assert {row.first_branch, row.last_branch} - {None} <= branches
        assert (row.first_branch or 0) <= (row.last_branch or 9999)


def test_first_drivers_ascend_by_branch_and_follow_the_generation() -> None:
    assert sum(bool(row.first_drivers) for row in MATRIX.gpus) > 50
    for row in MATRIX.gpus:
        firsts = [driver(text) for text in row.first_drivers]
        branches = [first.branch for first in firsts]
        assert branches == sorted(set(branches)), row.id
        architecture = next(one for one in MATRIX.architectures if row.compute_capability in one.capabilities)
        capability = next(one for one in MATRIX.capabilities if one.capability == row.compute_capability)
        least = capability.first_branch or architecture.first_branch or 0
        assert all(branch >= least for branch in branches), row.id
        assert set(branches) <= {one.branch for one in MATRIX.drivers if one.os == "linux"}, row.id


def test_families_hold_the_capability_itself_and_newer_ones_of_its_major() -> None:
    for row in MATRIX.capabilities:
        if row.family:
            own = ComputeCapability.parse(row.capability)
            members = [ComputeCapability.parse(name) for name in row.family]
            assert own == members[0]
            assert all(member is not None and own is not None and member.major == own.major for member in members)


def test_a_generation_s_first_branch_speaks_a_cuda_that_compiles_for_it() -> None:
    speaks = {row.branch: row.cuda for row in MATRIX.drivers if row.os == "linux"}
    for row in MATRIX.capabilities:
        (architecture,) = (arch for arch in MATRIX.architectures if arch.name == row.architecture)
        first = row.first_branch or architecture.first_branch
        if first is not None and not row.tegra:
            assert f"sm_{row.capability.replace('.', '')}" in CUDA[cuda(speaks[first])].targets, row.id


# --- GPUs ---------------------------------------------------------------------------------------------------------
@every(MATRIX.gpus)
def test_a_gpu_is_plausible(row: GpuRow) -> None:
    assert row.compute_capability in {known.capability for known in MATRIX.capabilities}
    assert row.name == row.name.strip()
    assert not row.name.startswith(("NVIDIA", "Tesla"))
    assert all(re.fullmatch("10de:[0-9a-f]{4}", device) for device in row.device_ids)
    assert row.memory is None or 2**30 <= row.memory <= 2**39
    tegra = next(known.tegra for known in MATRIX.capabilities if known.capability == row.compute_capability)
    assert tegra == (row.kind == "tegra")


def test_no_two_gpus_can_be_taken_for_each_other() -> None:
    owners = defaultdict(set)
    for row in MATRIX.gpus:
        for name in (row.name, *row.aliases):
            owners[name_keys((name,))[0]].add(row.name)
        for device in row.device_ids:
            owners[device].add(row.name)
    assert {key: names for key, names in owners.items() if len(names) > 1} == {}
    assert "" not in owners


def test_every_generation_since_kepler_has_models() -> None:
    held = {row.compute_capability for row in MATRIX.gpus}
    without = {row.capability for row in MATRIX.capabilities if row.architecture != "fermi"} - held
    assert without == {"3.2", "10.1", "10.7"}


# --- PyTorch ------------------------------------------------------------------------------------------------------
def test_torch_releases_are_in_order_and_whole() -> None:
    versions = [Version(row.version) for row in MATRIX.torch]
    assert versions == sorted(versions)
    minors = {version.release[:2] for version in versions}
    assert minors == {(1, minor) for minor in range(14)} | {(2, minor) for minor in range(16)}


@every("linux", "windows", "macos")
def test_pythons_and_the_default_cuda_only_move_on(os: Os) -> None:
    spans = [minors_within(pythons_with_wheels(MATRIX, row, os)) for row in MATRIX.torch]
    for values in (
        [span[0] for span in spans],
        [span[-1] for span in spans],
        [row.default_cuda for row in MATRIX.torch],
    ):
        versions = [Version(value or "") for value in values]
        assert versions == sorted(versions)


@cases("field", "cudnn", "nccl")
def test_pins_only_move_on(field: str) -> None:
    values = [Version(value) for row in MATRIX.torch if (value := getattr(row, field))]
    assert values == sorted(values)


@every(MATRIX.torch)
def test_a_torch_release_is_consistent(row: TorchRow) -> None:
    assert row.default_cuda in {build.cuda for build in builds(row)}
    if row.default_cuda_aarch64:
        assert row.default_cuda_aarch64 in {build.cuda for build in builds(row, machine="aarch64")}
    keys = [(build.cuda, build.os, build.machine) for build in row.builds]
    assert len(keys) == len(set(keys))


@every(BUILDS)
def test_a_torch_build_s_toolkit_exists_and_compiles_its_targets(row: TorchRow, build: TorchBuild) -> None:
    toolkit: CudaRow = CUDA[cuda(build.cuda)]
    assert toolkit.toolkit
    assert len(read_targets(build.targets)) == len(build.targets)
    for text in build.targets:
        assert sm(text).capability.sm in toolkit.targets, (row.id, build.cuda, text)


def test_every_gpu_since_maxwell_has_a_torch_that_runs_on_it() -> None:
    for row in MATRIX.capabilities:
        capability = ComputeCapability.parse(row.capability)
        if capability is None or capability < (5, 0) or row.tegra or row.capability == "10.7":
            continue
        codes = (code for _, build in BUILDS for code in read_targets(build.targets))
        assert any(runs_natively(MATRIX, code, capability) for code in codes), row.id


# --- GPU code of wheels -------------------------------------------------------------------------------------------
@every([row for row in MATRIX.releases if (row.targets or row.code) and not row.build and row.name in WHEELS])
def test_gpu_code_is_that_of_a_wheel_for_each_system_of_the_row(row: ReleaseRow) -> None:
    """Wheels for Windows, and for aarch64, often hold other code than those for Linux x86_64, or none."""
    assert row.os
    assert row.machine
    pure = served(row) == {"any"}
    if not pure and not row.name.startswith("jax"):  # of those, older ones for another processor were taken away
        assert {f"{os}-{machine}" for os in row.os if os != "wsl" for machine in row.machine} <= served(row)


@every([row for name in SETS for row in MATRIX.rows_of(name)])
def test_a_row_of_a_set_is_of_one_series_alone(row: ReleaseRow) -> None:
    first, *rest = parse_specifier(row.versions).bounds
    major, minor = (*first.numbers, 0)[:2]
    assert first.operator in ("==", ">=")
    assert all(bound.numbers[:2] <= (major, minor + 1) for bound in rest)
    assert rest or first.operator == "=="
