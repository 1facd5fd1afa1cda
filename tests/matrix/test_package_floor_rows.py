"""GPUs that packages document or are compiled for, and the NumPy that Numba accepts."""

from __future__ import annotations

from tests.every import cases, every
from tests.knowledge.asking import answer, assert_does_not_fit, assert_fits, assert_nobody_can_tell, judged, shown


@every(
    "triton==2.1.0 gpu==V100", "triton==3.1.0 gpu==T4", "torch==2.5.1+cu118 gpu==GTX,1080",
    "cupy-cuda12x==13.0.0 gpu==H100", "cupy-cuda12x==13.4.0 gpu==RTX,5090", "tensorrt==10.8.0 gpu==RTX,5090",
    "tensorrt==10.13.0 gpu==B300", "tensorrt==11.0.0 gpu==B200", "tensorrt==11.3.0 gpu==sm_107",
    "tensorrt-cu13==11.4.0 gpu==sm_107", "cudf-cu12==25.10 gpu==B200", "tensorflow==2.19.0 gpu==H100",
    "tensorflow==2.19.0 gpu==B200 driver==580.65.06", "nvcc==11.6 torch==2.5.1+cu118 deepspeed==0.15.0",
    "nvcc==12.4 torch==2.5.1 deepspeed==0.5.4", "torch==2.5.1 deepspeed==0.15.0",
)  # fmt: skip
def test_fits(question: str) -> None:
    assert_fits(question)


@every(
    "triton==3.1.0 gpu==GTX,1080", "triton==2.0.0 gpu==P100", "cupy-cuda12x==12.3.0 gpu==RTX,5090",
    "cupy-cuda11x==13.0.0 gpu==RTX,5090", "cupy-cuda12x==13.3.0 gpu==RTX,5090 cuda==12.4",
    "tensorrt==10.8.0 gpu==B300", "tensorrt==10.9.0 gpu==sm_107", "tensorrt==11.0.0 gpu==sm_107",
    "tensorrt==11.2.1 gpu==sm_107", "tensorrt-cu12==11.4.0 gpu==sm_107", "tensorrt-cu13==11.0.0 gpu==sm_107",
    "tensorflow==2.18.0 gpu==RTX,5090", "tensorflow==2.19 gpu==RTX,5080 driver==580.65.06",
    "tensorflow==2.20.0 gpu==sm_120", "tensorflow==2.21.0 gpu==RTX,5070",
    "nvcc==12.4 torch==2.5.1+cu118 deepspeed==0.15.0", "nvcc==11.8 torch==2.5.1 deepspeed==0.19.1",
    "nvcc==9.2 torch==1.4.0 deepspeed==0.6.0",
)  # fmt: skip
def test_does_not_fit(question: str) -> None:
    assert_does_not_fit(question)


@cases("question",
    "triton==3.3.0 gpu==V100", "triton==3.1.0 gpu==B200", "cupy-cuda12x==13.3.0 gpu==RTX,5090",
    "cupy==13.0.0 gpu==RTX,5090", "cudf-cu12==25.10 gpu==sm_107", "nvidia-cudnn-cu12==9.10 gpu==sm_107",
    "transformer-engine-cu12==2.5 gpu==sm_107", "nvcc==12.4 torch==2.5.1+cu118",
    "nvcc==12.4 torch==2.5.1+cu118 deepspeed==0.5.0",
)  # fmt: skip
def test_nobody_can_tell(question: str) -> None:
    assert_nobody_can_tell(question)


def test_the_refusal_of_pytorch_names_its_source() -> None:
    found = answer("nvcc==12.4 torch==2.5.1+cu118 deepspeed==0.15.0")
    titles = [source.title for source in found.reasons[0].sources]
    assert any("_check_cuda_version" in title for title in titles)
    assert any("assert_no_cuda_mismatch" in title for title in titles)
    assert found.suggestions == ("nvcc 11.8", "torch 2.5.1+cu124")


# --- The NumPy that Numba accepts when it is imported ---------------------------------------------------------------

# Release, the least NumPy and the greatest minor of NumPy; read in the wheels on PyPI on 2026-11-23.
AT_IMPORT = """
0.54.0 1.17 1.20
0.54.1 1.17 1.20
0.55.0 1.18 1.21
0.55.1 1.18 1.21
0.55.2 1.18 1.22
0.56.0 1.18 1.22
0.56.2 1.18 1.23
0.56.4 1.18 1.23
0.57.0 1.21 1.24
0.57.1 1.21 1.24
0.58.0 1.22 1.25
0.58.1 1.22 1.26
0.59.0 1.22 1.26
0.59.1 1.22 1.26
0.60.0 1.22 2.0
0.61.0 1.24 2.1
0.61.2 1.24 2.2
0.62.0 1.22 2.3
0.62.1 1.22 2.3
0.63.0 1.22 2.3
0.63.1 1.22 2.3
0.64.0 1.22 2.4
0.65.0 1.22 2.4
0.65.1 1.22 2.4
0.66.0 1.22 2.4
0.67.0 1.22 2.5
0.68.0 1.22 2.5
0.68.1 1.22 2.5
"""
ROWS = [line.split() for line in AT_IMPORT.strip().splitlines()]


def minor_after(text: str, step: int) -> str:
    """The first release of the minor so many after a minor."""
    major, minor = map(int, text.split("."))
    return f"{major}.{minor + step}.0"


@every([tuple(row) for row in ROWS])
def test_what_the_import_refuses_does_not_fit(release: str, least: str, greatest: str) -> None:
    for numpy, wanted in (
        (minor_after(least, -1), "incompatible"),
        (minor_after(least, 0), "compatible"),
        (minor_after(greatest, 0), "compatible"),
        (minor_after(greatest, 1), "incompatible"),
    ):
        found = judged(f"numba=={release} numpy=={numpy}")
        assert found.verdict == wanted, shown(found)
