"""Rows of NVIDIA's libraries, compilers and systems: they parse, agree with each other and with the other tables."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import scheme
from envcheck.knowledge.specifier import Version, parse_specifier, parse_version
from envcheck.knowledge.tables.software import ReleaseRow
from envcheck.model.versions import CodeTarget, ComputeCapability, CudaVersion
from tests.every import cases, every, every_tabled
from tests.known import known

MATRIX = load_matrix()
FILES = {"compilers", "cuda-compat", "cudnn", "deepstream", "jetson", "libraries", "nccl", "tensorrt"}
ROWS = [row for row in MATRIX.releases if row.source[0].partition("/")[0] in FILES]
BY_NAME: dict[str, list[ReleaseRow]] = defaultdict(list)
for _row in ROWS:
    BY_NAME[_row.name].append(_row)
CUDA = {row.version: row for row in MATRIX.cuda}


def version(name: str, text: str) -> Version:
    return known(parse_version(text, scheme(name)))


def covers(name: str, spec: str, text: str) -> bool:
    """Whether a specifier of a component admits a version of it."""
    return parse_specifier(spec).cover(version(name, text)) == "all"


def rows_for(name: str, release: str, machine: str = "x86_64") -> list[ReleaseRow]:
    """The rows of a component that speak of a release on a machine."""
    found = [row for row in BY_NAME[name] if covers(name, row.versions, release)]
    return [row for row in found if not row.machine or machine in row.machine]


def admits(name: str, release: str, need: str, wanted: str, machine: str = "x86_64") -> bool:
    """Whether every row of a release that says something of a component admits a version of it."""
    specs = [row.needs[need] for row in rows_for(name, release, machine) if need in row.needs]
    assert specs, f"no row of {name} {release} says anything of {need}"
    return all(covers(need, spec, wanted) for spec in specs)


def named_versions(specs: Iterable[str]) -> set[str]:
    """Every version that the specifiers name: what they admit changes at these only."""
    bounds = (bound for spec in specs for bound in parse_specifier(spec).bounds)
    return {".".join(map(str, bound.numbers)) for bound in bounds}


def near(specs: Iterable[str]) -> set[str]:
    """The versions that the specifiers name, and the ones just below."""
    named = named_versions(specs)
    below = {".".join([*rest, str(max(0, int(last) - 1))]) for *rest, last in (text.split(".") for text in named)}
    return named | below


def first_of(row: ReleaseRow) -> tuple[int, ...]:
    return min(bound.numbers for bound in parse_specifier(row.versions).bounds)


# --- each row -----------------------------------------------------------------------------------------------------
def test_the_components_are_there() -> None:
    expected = {"cudnn", "tensorrt", "nccl", "cusparselt", "nvshmem", "cutensor", "deepstream", "jetpack", "l4t"}
    assert expected | {"nvcc", "cuda-compat", "cuda-toolkit"} <= set(BY_NAME)


@every([row for row in ROWS if row.bundles])
def test_what_is_bundled_is_a_version(row: ReleaseRow) -> None:
    for name, text in row.bundles.items():
        version(name, text)


@every([row for row in ROWS if row.bundles])
def test_what_comes_with_a_release_is_what_it_needs(row: ReleaseRow) -> None:
    for name, text in row.bundles.items():
        if name in row.needs:
            assert parse_specifier(row.needs[name]).cover(version(name, text)) != "none", name


@every([row for row in ROWS if row.targets])
def test_the_gpu_code_of_a_build_is_compiled_by_its_cuda(row: ReleaseRow) -> None:
    assert row.cuda in CUDA
    for text in row.targets:
        target = known(CodeTarget.parse(text))
        assert target.capability.sm in CUDA[row.cuda].targets, text


@every([row for row in ROWS if row.cuda])
def test_a_build_may_be_beside_the_cuda_it_was_made_with(row: ReleaseRow) -> None:
    assert covers("cuda", row.needs["cuda"], known(row.cuda))


# --- rows together ------------------------------------------------------------------------------------------------
def pairs() -> Iterator[tuple[ReleaseRow, ReleaseRow]]:
    """Rows that speak of the same release on the same machine and system."""
    for rows in BY_NAME.values():
        for one, other in itertools.combinations(rows, 2):
            apart = one.machine and other.machine and not set(one.machine) & set(other.machine)
            named = {
                f"{text}{patch}" for text in named_versions([one.versions, other.versions]) for patch in ("", ".0")
            }
            both = any(
                covers(one.name, one.versions, text) and covers(one.name, other.versions, text) for text in named
            )
            if both and not apart and one.build == other.build:
                yield one, other


@every(pairs)
def test_rows_of_the_same_release_can_hold_together(one: ReleaseRow, other: ReleaseRow) -> None:
    for need in set(one.needs) & set(other.needs):
        specs = (one.needs[need], other.needs[need])
        assert any(all(covers(need, spec, text) for spec in specs) for text in near(specs)), need


@cases("name", "cudnn", "tensorrt", "nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "tensorrt-cu12")
def test_generations_are_dropped_for_good(name: str) -> None:
    rows = sorted((row for row in BY_NAME[name] if row.capability_min), key=first_of)
    floors = [ComputeCapability.parse(row.capability_min) for row in rows]
    assert len(floors) > 1
    assert floors == sorted(floor for floor in floors if floor)


@cases("machine", "x86_64", "aarch64")
@cases("name", "cudnn", "tensorrt", "nccl", "cusparselt", "nvshmem")
def test_majors_of_cuda_only_move_on(name: str, machine: str) -> None:
    here = [row for row in by_age(name) if "cuda" in row.needs and machine in (row.machine or (machine,))]
    majors = [{int(text.split(".")[0]) for text in CUDA if covers("cuda", row.needs["cuda"], text)} for row in here]
    assert [max(found) for found in majors] == sorted(max(found) for found in majors)
    assert [min(found) for found in majors] == sorted(min(found) for found in majors)


def by_age(name: str) -> list[ReleaseRow]:
    return sorted(BY_NAME[name], key=first_of)


# --- compilers ----------------------------------------------------------------------------------------------------
@every([row.version for row in MATRIX.cuda if row.toolkit])
def test_every_toolkit_has_host_compilers(toolkit: str) -> None:
    assert any("gcc" in row.needs for row in rows_for("nvcc", toolkit))


@cases("compiler, newest, oldest", ("gcc", 30, "6.0"), ("clang", 40, "8.0"))
def test_newer_toolkits_take_newer_compilers(compiler: str, newest: int, oldest: str) -> None:
    toolkits = [row.version for row in MATRIX.cuda if row.toolkit]
    toolkits = toolkits[toolkits.index(oldest) :]
    heads = [max(n for n in range(3, newest) if admits("nvcc", toolkit, compiler, str(n))) for toolkit in toolkits]
    assert heads == sorted(heads)


@every_tabled
def test_gcc_of_nvcc(toolkit: str, gcc: str, *, accepted: bool) -> None:
    assert admits("nvcc", toolkit, "gcc", gcc) == accepted


@cases("toolkit, msvc, accepted", ("12.3", "19.40", False), ("12.4", "19.40", True), ("13.1", "19.50", False))
def test_msvc_of_nvcc(toolkit: str, msvc: str, *, accepted: bool) -> None:
    assert admits("nvcc", toolkit, "msvc", msvc) == accepted


# --- forward compatibility ----------------------------------------------------------------------------------------
@every(BY_NAME["cuda-compat"])
def test_a_compat_package_sits_on_known_branches_up_to_its_own(row: ReleaseRow) -> None:
    speaks = {known.branch: known.cuda for known in MATRIX.drivers if known.os == "linux" and known.cuda}
    package = CudaVersion.parse(row.versions.removeprefix("==").removesuffix(".*"))
    branches = sorted(
        min(bound.numbers[0] for bound in bounds) for bounds in parse_specifier(row.needs["driver-linux"]).alternatives
    )
    assert package is not None
    assert set(branches) <= set(speaks)
    assert CudaVersion.parse(speaks[branches[-1]]) == package
    assert all(found < package for branch in branches[:-1] if (found := CudaVersion.parse(speaks[branch])))


# --- Jetson -------------------------------------------------------------------------------------------------------
SHARED_L4T = {"28.2.0", "28.2.1"}  # What JetPack 3.2, 3.2.1 and 3.3 have under them, with different libraries


@every(BY_NAME["jetpack"])
def test_jetpack_and_its_l4t_say_the_same(row: ReleaseRow) -> None:
    release = row.versions.removeprefix("==")
    for l4t in named_versions([row.needs["l4t"]]) - SHARED_L4T:
        (below,) = rows_for("l4t", l4t, "aarch64")
        assert covers("jetpack", below.needs["jetpack"], release)
        assert (below.bundles, below.capabilities) == (row.bundles, row.capabilities)


def test_jetson_systems_are_for_tegra() -> None:
    tegra = {row.capability for row in MATRIX.capabilities if row.tegra}
    assert {
        capability for name in ("jetpack", "l4t") for row in BY_NAME[name] for capability in row.capabilities
    } <= tegra


@every_tabled
def test_what_a_jetpack_can_be_given(jetpack: str, need: str, wanted: str, *, fits: bool) -> None:
    assert admits("jetpack", jetpack, need, wanted, "aarch64") == fits


@cases("jetpack, capabilities",
    ("4.6.1", {"5.3", "6.2", "7.2"}), ("5.1.2", {"7.2", "8.7"}), ("6.1", {"8.7"}), ("7.1", {"11.0"}),
)  # fmt: skip
def test_modules_of_a_jetpack(jetpack: str, capabilities: set[str]) -> None:
    (row,) = rows_for("jetpack", jetpack, "aarch64")
    assert set(row.capabilities) == capabilities


# --- libraries ----------------------------------------------------------------------------------------------------
@every_tabled
def test_what_a_library_goes_with(name: str, release: str, need: str, wanted: str, *, fits: bool) -> None:
    assert admits(name, release, need, wanted) == fits


@every_tabled
def test_least_capability_of_a_library(name: str, release: str, least: str) -> None:
    assert {row.capability_min for row in rows_for(name, release) if "cuda" in row.needs} == {least}


LINKED_CODE = ("nvidia-nccl-cu11", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "bitsandbytes")
"""Their kernels are linked from several objects, whose PTX stays in the library: no driver compiles it."""


@every([row for name in LINKED_CODE for row in MATRIX.rows_of(name)])
def test_ptx_of_objects_serves_no_newer_gpu(row: ReleaseRow) -> None:
    assert not [target for target in (*row.targets, *itertools.chain(*row.code.values())) if "compute" in target]
