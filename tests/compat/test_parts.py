"""Parts that are tied by their versions, swept over all rows: CUDA's libraries, NVIDIA's wheels, MIG, code by CUDA."""

import re

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.names import scheme
from envcheck.knowledge.relations.gpu_code import read_targets, runs_natively
from envcheck.knowledge.specifier import parse_specifier, parse_version
from envcheck.knowledge.tables.hardware import MigRow
from envcheck.knowledge.tables.software import ReleaseRow, TorchBuild, TorchRow
from envcheck.model.versions import ComputeCapability, DriverRelease
from tests.every import every
from tests.knowledge.asking import assert_does_not_fit, assert_fits, assert_nobody_can_tell, judged, shown, verdict
from tests.thorough import sample

MATRIX = load_matrix()
TOOLKITS = [row for row in MATRIX.rows_of("cuda") if row.bundles]
BY_CUDA = [row for row in MATRIX.releases if row.code]
GPUS = {row.name: row for row in MATRIX.gpus}
WITH_LIBRARIES = [
    (row, build)
    for row in MATRIX.torch
    for build in row.builds
    if build.cudnn and (build.os, build.machine) == ("linux", "x86_64") and row.version >= "2.4"
]


def toolkit(row: ReleaseRow) -> str:
    return ".".join(map(str, parse_specifier(row.versions).bounds[0].numbers[:2]))


@every(TOOLKITS)
def test_a_library_belongs_to_the_toolkit_that_brings_it(row: ReleaseRow) -> None:
    own = toolkit(row)
    for name, version in row.bundles.items():
        found = judged(f"{name}=={version} cuda=={own}")
        assert found.verdict == "compatible", shown(found)
        other = "11.8" if own.startswith("12") else "12.4"
        another = next(each for each in TOOLKITS if toolkit(each) == other)
        if another.bundles.get(name, version) != version:
            found = judged(f"{name}=={version} cuda=={other}")
            assert found.verdict == "incompatible", shown(found)


@every(sample([row for row in TOOLKITS if int(toolkit(row).partition(".")[0]) >= 11]))
def test_a_wheel_of_nvidia_stands_for_its_library(row: ReleaseRow) -> None:
    own = toolkit(row)
    for name in {"cublas", "cufft", "cusparse", "cusolver", "curand", "nvjpeg"} & row.bundles.keys():
        version, major = row.bundles[name], own.partition(".")[0]
        assert verdict(f"nvidia-{name}-cu{major}=={version} cuda=={own}") == "compatible"
        other = "cu11" if major != "11" else "cu12"
        assert verdict(f"nvidia-{name}-{other}=={version} cuda=={own}") == "incompatible"


@every(sample(TOOLKITS))
def test_a_library_serves_the_gpus_of_its_toolkit(row: ReleaseRow) -> None:
    own = toolkit(row)
    for name in {"cublas", "cufft", "cusolver", "npp"} & row.bundles.keys():
        for gpu in ("3.7", "7.0", "7.5", "9.0", "10.0", "12.1"):
            assert verdict(f"{name}=={row.bundles[name]} gpu=={gpu}") == verdict(f"cuda=={own} gpu=={gpu}"), (name, gpu)


@every(sample(BY_CUDA))
def test_each_library_is_held_against_the_gpu_by_itself(row: ReleaseRow) -> None:
    release = ".".join(map(str, parse_specifier(row.versions).bounds[0].numbers))
    for cuda, targets in row.code.items():
        for gpu in ("7.0", "7.5", "8.9", "9.0", "12.0"):
            capability = ComputeCapability.parse(gpu)
            assert capability is not None
            where = f"os=={row.os[0]} machine=={row.machine[0]}"
            found = judged(f"{row.name}=={release} cuda=={cuda} gpu=={capability.sm} {where}")
            held = any(runs_natively(MATRIX, target, capability) for target in read_targets(targets))
            if not held:
                assert found.verdict == "incompatible", shown(found)
            elif verdict(f"cuda=={cuda} gpu=={capability.sm}") == "compatible":
                assert found.verdict == "compatible", shown(found)


@every(WITH_LIBRARIES)
def test_each_build_of_pytorch_has_its_own_libraries(row: TorchRow, build: TorchBuild) -> None:
    tag, major = build.cuda.replace(".", ""), build.cuda.partition(".")[0]
    for name, version in (("cudnn", build.cudnn), ("nccl", build.nccl)):
        if version:
            assert verdict(f"torch=={row.version}+cu{tag} nvidia-{name}-cu{major}=={version}") == "compatible"
            assert verdict(f"torch=={row.version}+cu{tag} nvidia-{name}-cu{major}==1.0.0") == "incompatible"


@every(MATRIX.migs)
def test_a_gpu_has_the_instances_of_its_row_and_no_others(row: MigRow) -> None:
    assert set(row.gpus) <= GPUS.keys()
    assert row.driver is None or DriverRelease.parse(row.driver)
    every_profile = {profile for each in MATRIX.migs for profile in each.profiles}
    for gpu in row.gpus:
        own = {profile for each in MATRIX.migs if gpu in each.gpus for profile in each.profiles}
        for profile in every_profile:
            found = judged(f"mig=={profile} gpu=={gpu.replace(' ', ',')}")
            assert found.verdict == ("compatible" if profile in own else "incompatible"), shown(found)


OF_A_SIZE = [row for row in MATRIX.migs if re.search("[0-9]GB", row.name)]


@every(sorted({gpu for row in OF_A_SIZE for gpu in row.gpus if not re.search("[0-9]GB?", gpu)}))
def test_of_a_memory_that_no_row_has_nobody_can_tell(gpu: str) -> None:
    for row in MATRIX.migs:
        if gpu in row.gpus:
            assert_nobody_can_tell(f"mig=={row.profiles[0]} gpu=={gpu.replace(' ', ',')},71GB")


@every([(row, profile) for row in MATRIX.migs for profile in row.drivers])
def test_a_profile_that_came_later_needs_its_own_driver(row: MigRow, profile: str) -> None:
    least = int(row.drivers[profile])
    assert profile in row.profiles
    asked = f"mig=={profile} gpu=={row.gpus[0].replace(' ', ',')}"
    assert_fits(f"{asked} driver=={least}")
    assert_does_not_fit(f"{asked} driver=={row.driver}")


@every([row for row in MATRIX.releases if row.capability_max_with])
def test_a_gpu_that_is_not_listed_for_a_cuda_is_not_compatible(row: ReleaseRow) -> None:
    release = ".".join(map(str, parse_specifier(row.versions).bounds[0].numbers))
    for text, greatest in row.capability_max_with.items():
        most = ComputeCapability.parse(greatest)
        spec = parse_specifier(text)
        for toolkit_row in MATRIX.cuda:
            version = parse_version(toolkit_row.version, scheme("cuda"))
            if version is None or spec.cover(version) != "all":
                continue
            for capability in MATRIX.capability_rows:
                if most is not None and capability > most:
                    found = judged(f"{row.name}=={release} cuda=={toolkit_row.version} gpu=={capability.sm}")
                    assert found.verdict == "incompatible", shown(found)


@every([row for row in MATRIX.releases if row.optional])
def test_what_a_package_does_without_decides_only_where_it_is_named(row: ReleaseRow) -> None:
    assert set(row.optional) <= row.needs.keys()
    release = ".".join(map(str, parse_specifier(row.versions).bounds[0].numbers))
    capability = row.capability_min or "7.5"
    found = judged(f"{row.name}=={release} gpu==sm_{capability.replace('.', '')}")
    refusals = [reason.message for reason in found.reasons if reason.verdict == "incompatible"]
    assert not any(f" needs {name} " in message for message in refusals for name in row.optional), shown(found)
    if "cudnn" in row.optional:
        assert judged(f"{row.name}=={release} cudnn==9.1.0").verdict == "incompatible"


@every(sorted({row.wheel for row in MATRIX.families if row.wheel}))
def test_every_wheel_of_nvidia_is_answered_for_both_majors(wheel: str) -> None:
    """Whatever the family is called, and whether its version is known: its CUDA major is."""
    found = judged(f"nvidia-{wheel}-cu12==12.4.127 cuda==11.8")
    other_major = any("is built for CUDA 12, not for CUDA 11.8" in reason.message for reason in found.reasons)
    assert found.verdict == ("incompatible" if other_major else "unknown"), shown(found)
    beside = judged(f"nvidia-{wheel}-cu12==12.4.127 cuda==12.4")
    assert other_major == any("is built for CUDA 12, as CUDA 12.4 is" in reason.message for reason in beside.reasons)
