"""Containers of NVIDIA as components: what they hold, and which drivers and GPUs they run on."""

from __future__ import annotations

from functools import cache

import pytest

from envcheck.compat.load import load_matrix
from envcheck.compat.question.containers import known_containers, read_container
from envcheck.compat.question.published import published
from envcheck.compat.question.question import Container
from envcheck.versions import ComputeCapability, DriverRelease
from tests.compat.asking import (
    assert_does_not_fit,
    assert_fits,
    assert_nobody_can_tell,
    judged,
    questions,
    shown,
    verdict,
)
from tests.every import every
from tests.thorough import sample

MATRIX = load_matrix()


def container(text: str) -> Container:
    found = read_container(MATRIX, text)
    assert isinstance(found, Container), found
    return found


@cache
def shipped() -> list[str]:
    """One container of each row."""
    return list({container(one).row.id: one for one in reversed(known_containers(MATRIX))}.values())


@every(shipped)
def test_a_release_fits_its_own_stack(release: str) -> None:
    held = container(release)
    cuda = MATRIX.cuda_rows[next(one for one in MATRIX.cuda_rows if held.holds["cuda"].startswith(str(one)))]
    asked = [DriverRelease.parse(text) for text in (held.row.driver, cuda.bundled_driver)]
    newest = max(row.branch for row in MATRIX.drivers if row.os == "linux")
    driver = f"driver=={max(filter(None, asked), default=newest)}"
    discrete = [one for one, row in MATRIX.capability_rows.items() if one.sm in cuda.targets and not row.tegra]
    gpu = f"gpu=={held.row.capability_min or min(ComputeCapability(7, 5), max(discrete))}"
    parts = " ".join(f"{name}=={version}" for name, version in held.holds.items() if name not in ("torch", "ubuntu"))
    for question in filter(None, (parts, driver, gpu, f"{driver} {gpu}")):
        assert_fits(f"nvcr=={release} {question}")


@every(lambda: sample(shipped()))
def test_another_version_of_what_a_release_holds_is_not_in_it(release: str) -> None:
    for name, version in container(release).holds.items():
        assert_does_not_fit(f"nvcr=={release} {name}=={abs(int(version.partition('.')[0]) - 1)}")


@every(lambda: sample(shipped()))
def test_a_newer_driver_never_fits_worse(release: str) -> None:
    order = ["incompatible", "unknown", "compatible"]
    for gpu in ("Tesla T4", "GeForce RTX 2080 Ti"):
        drivers = ["440.33.01", "450.51.06", "470.57.02", "525.60.13", "535.54.03", "560.35.03", "580.65.06"]
        on = gpu.replace(" ", ",")
        found = [order.index(verdict(f"nvcr=={release} driver=={one} gpu=={on}")) for one in drivers]
        # A data-center GPU does with the branches that cuda-compat knows, which are not all up to the next one.
        assert found[-1] == max(found) if gpu == "Tesla T4" else found == sorted(found), (gpu, found)


@pytest.mark.parametrize(
    "question",
    questions("""
nvcr==pytorch:24.10 driver==560.35.03 gpu==H100
nvcr==nvcr.io/nvidia/pytorch:24.10-py3 driver==470.82.01 gpu==A100
nvcr==pytorch:24.10 driver==535.183.01 gpu==L4
nvcr==tensorflow:22.10-tf2-py3 driver==515.65.01 gpu==T4
nvcr==tritonserver:21.02 driver==418.226.00 gpu==V100
nvcr==pytorch:24.10 torch==2.5.0 python==3.10 cuda==12.6.2 ubuntu==22.04
nvcr==tensorflow:24.05 cudnn==9.1 nccl==2.21.5
nvcr==pytorch:24.05 flash-attn==2.5.8
nvcr==cuda:12.4.1-devel-ubuntu22.04 nvcc==12.4 driver==550.54.15
nvcr==pytorch:24.10 os==wsl
nvcr==vllm:26.03 vllm==0.17.1 gpu==H100 driver==595.45.04
nvcr==sglang:25.10 gpu==H100
nvcr==mxnet:19.01 cuda==10.0
"""),
)
def test_fits(question: str) -> None:
    assert_fits(question)


@pytest.mark.parametrize(
    "question",
    questions("""
nvcr==pytorch:24.10 driver==470.82.01 gpu==RTX,3090
nvcr==pytorch:24.10 driver==450.80.02 gpu==A100
nvcr==pytorch:24.10 gpu==B200
nvcr==pytorch:20.03 gpu==A100
nvcr==tritonserver:25.03 gpu==V100
nvcr==pytorch:24.10 python==3.12
nvcr==pytorch:24.10 torch==2.4.1
nvcr==pytorch:25.12 driver==570.86.15 gpu==RTX,4090
nvcr==pytorch:24.10 os==windows
nvcr==vllm:26.03 vllm==0.11.0
nvcr==sglang:25.10 gpu==RTX,4090 driver==570.86.15
"""),
)
def test_does_not_fit(question: str) -> None:
    assert_does_not_fit(question)


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("nvcr==pytorch:24.10 driver==535.104.05 gpu==RTX,4090", "documents disagree"),
        ("nvcr==tritonserver:25.10 driver==575.57.08 gpu==RTX,4090", "documents disagree"),
        ("nvcr==pytorch:24.10 driver==470.82.01", "data center GPUs"),
        ("nvcr==pytorch:24.10 gpu==Jetson,AGX,Orin,64GB", "Jetsons have separate images"),
        ("nvcr==pytorch:99.01 driver==570.86.15", "does not know the container"),
        ("nvcr==nothing:24.10 driver==570.86.15", "has no notes of the container nothing"),
        ("nvcr==24.10 driver==570.86.15", "write nvcr==NAME:TAG"),
    ],
)
def test_nobody_can_tell(question: str, why: str) -> None:
    assert_nobody_can_tell(question)
    found = judged(question)
    assert any(why in reason.message for reason in found.reasons), shown(found)


@cache
def named_after_frameworks() -> list[tuple[str, str]]:
    """One container of each row and repository, and the package after which the repository is named."""
    packages = {"pytorch": "torch"}
    found = [
        (
            f"{name.rpartition('/')[2]}:{one.partition(':')[2]}",
            packages.get(name.rpartition("/")[2], name.rpartition("/")[2]),
        )
        for one in shipped()
        for name in container(one).row.names
    ]
    return [(one, package) for one, package in found if package in MATRIX.wheels_by_name]


@every(named_after_frameworks)
def test_a_container_holds_its_publishers_build(release: str, package: str) -> None:
    """PyPI's release of the same number decides nothing: neither its CUDA nor its cuDNN is the container's."""
    held = container(release).holds.get(package)
    assert verdict(f"nvcr=={release} {package}==99.0") == ("incompatible" if held else "unknown")
    if held:
        assert_fits(f"nvcr=={release} {package}=={held.partition('a')[0].partition('+')[0]}")


@pytest.mark.parametrize(
    "tag", ["11.8.0-base-ubuntu{}", "12.1.0-cudnn8-devel-ubuntu{}", "12.4.1-cudnn-runtime-ubuntu{}"]
)
def test_the_tag_of_a_cuda_image_names_its_system(tag: str) -> None:
    asked = f"nvcr==nvidia/cuda:{tag.format('22.04')}"
    assert_fits(f"{asked} ubuntu==22.04")
    assert_does_not_fit(f"{asked} ubuntu==20.04")
    assert_fits(f"nvcr==nvidia/cuda:{tag.format('').removesuffix('-ubuntu')}-rockylinux8 cuda=={tag[:4]}")


@every(shipped)
def test_gpus_that_a_month_nearby_refuses_are_not_said_to_fit(release: str) -> None:
    """Of a release without notes CUDA alone tells of GPUs, and CUDA takes more of them than the image was built for."""
    held = container(release)
    if held.row.capability_min:
        return
    months = [
        (one.row.tags, one.row.capability_min)
        for name in shipped()
        if (one := container(name)).row.names == held.row.names
    ]
    known = sorted((tags[:6], least) for tags, least in months if least)
    after = next((least for tags, least in known if tags > held.row.tags[:6]), None)
    for gpu in ("6.0", "7.0") if after == "7.5" else ():
        assert verdict(f"nvcr=={release} gpu=={gpu}") != "compatible", gpu


def test_a_month_without_notes_says_what_those_around_it_need() -> None:
    assert_nobody_can_tell("nvcr==pytorch:25.01-py3 gpu==V100")
    assert_fits("nvcr==pytorch:25.01-py3 gpu==T4")
    assert_fits("nvcr==pytorch:24.08-py3 gpu==P100")
    assert_does_not_fit("nvcr==pytorch:25.11-py3 gpu==V100")


def brings_libraries(name: str) -> bool:
    """Whether pip installs CUDA's libraries beside a package, which it takes before those of an image, or may."""
    rows = (
        *(row.needs for row in MATRIX.releases if row.name == name),
        *(row.needs for row in MATRIX.requirements if row.name == name),
    )
    required = {key for needs in rows for key in needs}
    return any(key == "torch" or key.startswith("nvidia-") for key in required) or name in {
        row.name for row in MATRIX.extras
    }


@cache
def users_of_an_images_libraries() -> list[str]:
    """The newest release of each package that loads CUDA's libraries from where it finds them."""
    names = {row.name for row in MATRIX.releases if "cuda" in row.needs}.intersection(MATRIX.wheels_by_name)
    return [
        f"{name}=={known[-1]}"
        for name in sorted(names)
        if (known := published(MATRIX, name)) and not brings_libraries(name)
    ]


@every(users_of_an_images_libraries)
def test_a_package_in_a_cuda_image_is_judged_by_the_images_cuda(package: str) -> None:
    for release in ("11.8.0", "12.6.3", "13.0.2"):
        plain = verdict(f"{package} cuda=={release}")
        inside = verdict(f"{package} nvcr==cuda:{release}-runtime-ubuntu22.04")
        assert {plain, inside} != {"compatible", "incompatible"}, release
