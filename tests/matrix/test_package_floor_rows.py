"""GPUs that packages document, and what is compiled where it is installed, asked of the matrix that is shipped."""

from __future__ import annotations

from tests.compat.asking import answer, assert_does_not_fit, assert_fits, assert_nobody_can_tell
from tests.every import cases, every


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
