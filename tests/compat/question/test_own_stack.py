"""What a row says belongs together fits when it is asked for: every row of the kinds that are one set of versions."""

from __future__ import annotations

import pytest

from envcheck.compat.gpu_names import find_by_name
from envcheck.compat.load import load_matrix
from envcheck.compat.names import scheme
from envcheck.compat.question.question import Question
from envcheck.compat.question.wheels import not_published
from envcheck.compat.relations.torch import tag_of
from envcheck.compat.specifier import Version, parse_specifier, parse_version
from envcheck.compat.tables import MigRow, ReleaseRow, TorchRow
from tests.compat.asking import assert_does_not_fit, assert_fits, assert_nobody_can_tell, verdict
from tests.every import every
from tests.thorough import sample

MATRIX = load_matrix()
SETS = ("jetpack", "l4t", "deepstream", "drive-os", "pyds")


def named(spec: str) -> str:
    """One version that a specifier of a row names."""
    first = spec.partition("|")[0].partition(",")[0]
    return first.lstrip("=<>").removesuffix(".*")


@every([row for name in SETS for row in MATRIX.rows_of(name)])
def test_a_set_fits_its_own_stack(row: ReleaseRow) -> None:
    stack = {name.removesuffix("-linux"): named(spec) for name, spec in (row.needs | row.bundles).items()}
    if row.needs.get("numpy", "").startswith("<"):
        del stack["numpy"]
    machine = f"machine=={row.machine[0]}" if row.machine else ""
    parts = " ".join(f"{name}=={version}" for name, version in stack.items())
    assert_fits(f"{row.name}=={named(row.versions)} {machine} {parts}")


def version(text: str) -> Version:
    found = parse_version(text)
    assert found is not None
    return found


@every([row for row in MATRIX.rows_of("deepstream") if "jetpack" in row.needs])
def test_the_l4t_of_a_jetpack_stands_for_it(row: ReleaseRow) -> None:
    wanted = parse_specifier(row.needs["jetpack"])
    for jetpack in MATRIX.rows_of("jetpack"):
        l4t, release = named(jetpack.needs["l4t"]), parse_version(named(jetpack.versions), scheme("jetpack"))
        others = {one.versions for one in MATRIX.rows_of("jetpack") if one.needs["l4t"] == jetpack.needs["l4t"]}
        if len(others) == 1 and release and wanted.cover(release) != "all":
            assert verdict(f"deepstream=={named(row.versions)} l4t=={l4t}") != "compatible", l4t
        elif len(others) == 1:
            assert_fits(f"deepstream=={named(row.versions)} l4t=={l4t}")


@every([row for row in MATRIX.rows_of("deepstream") if "jetpack" in row.needs])
def test_it_runs_on_the_modules_of_a_jetpack_that_it_needs(row: ReleaseRow) -> None:
    release = f"deepstream=={named(row.versions)}"
    systems = [f"jetpack=={named(one.versions)}" for one in MATRIX.rows_of("jetpack")]
    fitting = [one for one in systems if verdict(f"{release} {one}") == "compatible"]
    for module in [one for one in MATRIX.gpus if one.kind == "tegra" and one.name.startswith("Jetson")]:
        asked = f"gpu=={module.name.replace(' ', ',')}"
        served = any(verdict(f"{one} {asked}") == "compatible" for one in fitting)
        assert (verdict(f"{release} {asked}") == "compatible") == served, module.name


@pytest.mark.parametrize("gpu", ["A40", "L4", "L40S", "Tesla T4", "GeForce RTX 5090"])
def test_a_gpu_of_a_generation_without_mig_has_no_instances(gpu: str) -> None:
    assert_does_not_fit(f"mig==1g.10gb gpu=={gpu.replace(' ', ',')}")


@every([row for row in MATRIX.migs if row.name.endswith("GB") and find_by_name(MATRIX.gpus_by_name, row.name)])
def test_a_gpu_with_its_memory_has_the_instances_of_that_memory_alone(row: MigRow) -> None:
    others = [other for other in MATRIX.migs if other is not row and set(other.gpus) & set(row.gpus)]
    gpu = f"gpu=={row.name.replace(' ', ',')}"
    for profile in row.profiles:
        assert_fits(f"mig=={profile} {gpu}")
    for profile in {each for other in others for each in other.profiles} - set(row.profiles):
        assert_does_not_fit(f"mig=={profile} {gpu}")


def test_a_library_wheel_for_another_cuda_is_not_taken_for_the_one_that_a_build_brings() -> None:
    assert_nobody_can_tell("torch==2.6.0+cu118 nvidia-nccl-cu12==2.21.5")


@every([row for row in MATRIX.torch if row.all_builds])
def test_a_build_of_torch_runs_where_it_holds_code(row: TorchRow) -> None:
    """Whatever the libraries support that it comes with: it needs them for a part of its work."""
    for build in row.builds:
        if build.confidence == "high" and row.confidence == "high":
            torch = f"torch=={row.version}+{tag_of(build.cuda)} os=={build.os} machine=={build.machine}"
            for target in build.targets:
                if target.startswith("sm_") and target != "sm_110":  # a Jetson's, with a system of its own
                    assert_fits(f"{torch} gpu=={target}")


@every(sample([row for row in MATRIX.torch if row.nccl]))
def test_a_build_of_torch_comes_with_its_libraries(row: TorchRow) -> None:
    for build in row.builds:
        for name, held in (("nccl", build.nccl), ("cudnn", build.cudnn), ("cusparselt", build.cusparselt)):
            if held is None or build.os != "linux":
                continue
            torch = f"torch=={row.version}+{tag_of(build.cuda)} machine=={build.machine}"
            assert_fits(f"{torch} {name}=={held}")
            wheel = f"nvidia-{name}-cu{build.cuda.partition('.')[0]}"
            if not not_published(Question(MATRIX, {}), wheel, version(held)):
                assert_fits(f"{torch} {wheel}=={held}")
            if build.pinned:
                assert_does_not_fit(f"{torch} {wheel}=={held.rpartition('.')[0]}.99999")
