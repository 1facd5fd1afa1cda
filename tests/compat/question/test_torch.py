"""PyTorch: its wheel on PyPI, its other builds, and what each runs on. A comma stands for a blank in a GPU's name."""

from __future__ import annotations

from envcheck.compat.load import load_matrix
from envcheck.compat.specifier import covered, parse_version
from envcheck.compat.tables import ReleaseRow
from tests.compat.asking import answer, assert_does_not_fit, assert_fits, assert_nobody_can_tell, questions, verdict
from tests.every import every

COMPATIBLE = """
torch==2.5.1 cuda==11.8 driver==535.54.03
torch==2.5.1 driver==535.54.03 gpu==H100 python==3.12
torch==2.5.1+cu118 driver==470.57.02
torch==2.5.1+cu118 driver==450.80.02
torch==2.5.1 cuda==11.8
torch==2.5.1 cuda==12.1
torch==2.5.1 cuda==12
torch==2.5.1 python==3.13
torch==2.5.1 python==3.9.18
torch==2.9.0 python==3.14
torch==1.4.0 python==2.7
torch==1.12.1 python==3.10
torch==2.15.0 python==3.15
torch==2.8.0 gpu==V100
torch==2.8.0 gpu==RTX,5090 driver==570
torch==2.7.0+cu128 gpu==RTX,5090 driver==570.86.10
torch==2.10.0+cu126 gpu==GTX,1080,Ti
torch==1.12.1 gpu==K80
torch==2.5.1+cu118 gpu==K80
torch==1.13.1 gpu==A100
torch==1.13.1 gpu==RTX,4090
torch==1.8.1+cu111 gpu==RTX,3090
torch==1.7.1+cu110 gpu==RTX,3090
torch==2.0.1 gpu==RTX,4090 driver==525.60.13
torch==2.1.0 gpu==H100
torch==2.8.0 gpu==B300
torch==2.11.0 gpu==DGX,Spark
torch==2.11.0 machine==aarch64 gpu==GH200
torch==2.5.1+cu124 machine==aarch64 gpu==GH200
torch==2.5.1+cu124 os==windows gpu==RTX,4090 driver==551.61
torch==2.5.1 os==wsl gpu==RTX,4090
torch==2.5.1 os==windows python==3.12
torch==2.5 gpu==RTX,4090
torch==2.5 python==3.12
pytorch==2.5.1 driver==550
torch==2.5.1 triton==3.1.0
torch==2.5.1 cudnn==9.1.0
torch==2.5.1 cudnn==9.1.0.70
torch==2.5.1+cu124 machine==x86_64
torch==2.5.1+cu121 os==windows
torch==2.13.0+cu132 machine==aarch64
torch==2.5.1+cu124 os==wsl
torch==2.5.1 os==linux
torch==2.5.1 os==windows
torch==2.5.1 machine==aarch64
torch==2.5.1 nccl==2.21.5
torch>=2.1 gpu==RTX,4090
torch==2.11.0 driver==580.65.06
torch==2.15.0 driver==580.65.06
"""

INCOMPATIBLE = """
torch==2.5.1 os==macos gpu==H100
torch==2.5.1 driver==470.256.02
torch==2.5.1 driver==525.60.11
torch==2.5.1+cu118 driver==440.33.01
torch==2.5.1 cuda==11.7
torch==2.5.1 cuda==13.0
torch==2.0.0 cuda==12.1
torch==2.5.1 python==3.8
torch==2.5.1 python==3.14
torch==1.5.0 python==2.7
torch==2.1.2 python==3.12
torch==2.15.0 python==3.10
torch==2.5.1 os==windows python==3.13
torch==2.5.1 machine==aarch64 python==3.13
torch==2.5.1 gpu==RTX,5090
torch==2.7.0 gpu==RTX,5090
torch==2.11.0 gpu==V100
torch==2.8.0 gpu==GTX,1080
torch==2.8.0+cu128 gpu==P100
torch==1.12.1 gpu==A100
torch==1.12.1 gpu==RTX,3090
torch==2.1.0 gpu==K80
torch==2.5.1 gpu==GTX,770
torch==2.5.1+cu124 gpu==Jetson,AGX,Orin machine==aarch64
torch==2.11.0+cu130 gpu==Jetson,AGX,Orin
torch==2.11.0 machine==aarch64 gpu==T4
torch==2.5.1 machine==aarch64 gpu==GH200
torch==2.10.0 machine==aarch64 driver==580
torch==2.5.1 os==windows gpu==RTX,4090
torch==2.5.1+cpu gpu==H100
torch==2.5.1+cpu driver==550
torch==2.11.0 driver==575.57.08
torch==2.5.1 triton==3.0.0
torch==2.5.1+cu121 gpu==B200
torch==2.5.1 driver==550 gpu==K80
torch==2.5.1+rocm6.2 gpu==H100
torch==2.5.1+xpu driver==550
torch==2.12.0.dev20260301+cu130 driver==550
torch==99.0+cu130 driver==550
"""

UNKNOWN = """
torch==2.5.1 os==windows cuda==12.4 gpu==RTX,4090
torch==2.7.0 cuda==12.8 gpu==RTX,5090
torch==2.5.1 cuda==11.8 driver==470.57.02
torch==2.5.1
torch==99.0 driver==550
torch==2.5.1+cu126 driver==550
torch==2.5.1+cu126 gpu==H100
torch==2.5.1+cu126 driver==470.57.02
torch==2.5.1+cu999 driver==550.54.14
torchvision==0.20.1+cu999 driver==550.54.14
torch==2.5.1+cu124 machine==aarch64 os==windows
torch==1.0.0 os==windows
torch==2.7.0.dev20250131+cu128 gpu==RTX,5090
torch==2.5.0a0+872d972e41.nv24.8 gpu==H100
torch==2.5.1+rocm6.2 python==3.12
torch==2.12.0.dev20260301+cu130 driver==580
torch==99.0+cu130 driver==580
torch==2.7 gpu==RTX,5090 cuda==12
torch>=2.6 gpu==RTX,5090
torch==2.5.1 driver==550 gpu==Voodoo,3
torch==1.1.0+cu100 gpu==V100
torch==2.5.1 driver==550 frobnicator==1.0
"""


@every(questions(COMPATIBLE))
def test_fits(question: str) -> None:
    assert_fits(question)


@every(questions(INCOMPATIBLE))
def test_does_not_fit(question: str) -> None:
    assert_does_not_fit(question)


@every(questions(UNKNOWN))
def test_nobody_can_tell(question: str) -> None:
    assert_nobody_can_tell(question)


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
    assert found.verdict == "unknown"
    assert found.suggestions == ("torch 2.5.1+cu118", "driver >= 525.60.13")
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


@every(RELEASED_WITH_IT)
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
