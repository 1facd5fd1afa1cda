"""Who owns a file, and whether the owner's version is the library's."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.owners.claims import Claim, decide, declared


@pytest.mark.parametrize(
    ("kind", "name", "version", "family", "result"),
    [
        ("wheel", "nvidia-cudnn-cu12", "9.1.0.70", "cudnn_ops", "9.1.0.70"),
        ("wheel", "nvidia-cuda-runtime-cu12", "12.4.127", "cudart", "12.4.127"),
        ("wheel", "nvidia-cuda-runtime", "13.0.96", "cudart", "13.0.96"),
        ("wheel", "nvidia-cuda-nvrtc-cu12", "12.4.127", "nvrtc-builtins", "12.4.127"),
        ("wheel", "nvidia-cuda-nvrtc", "13.0.88", "nvrtc.alt", "13.0.88"),
        ("wheel", "nvidia-cublas-cu12", "12.4.5.8", "cublasLt", "12.4.5.8"),
        ("wheel", "nvidia-cusparselt-cu12", "0.6.2", "cusparseLt", "0.6.2"),
        ("wheel", "nvidia-cusparse-cu12", "12.3.1.170", "cusparseLt", None),
        ("wheel", "nvidia-nvshmem-cu12", "3.2.5", "nvshmem_host", "3.2.5"),
        ("wheel", "tensorrt-cu12-libs", "10.7.0", "nvinfer_plugin", "10.7.0"),
        ("wheel", "tensorrt-cu12-libs", "10.7.0", "nvonnxparser", "10.7.0"),
        ("wheel", "cutensor-cu12", "2.0.2", "cutensorMg", "2.0.2"),
        ("wheel", "torch", "2.5.1", "cudnn", None),
        ("wheel", "ctranslate2", "4.0.0", "cudnn", None),
        ("conda", "cudatoolkit", "11.8.0", "cublas", None),
        ("conda", "cuda-cudart", "12.4.127", "cudart", "12.4.127"),
        ("conda", "libcublas", "12.4.5.8", "cublas", "12.4.5.8"),
        ("conda", "cudnn", "9.3.0.75", "cudnn", "9.3.0.75"),
        ("dpkg", "libcudnn9-cuda-12", "9.5.1.17-1", "cudnn", "9.5.1.17"),
        ("dpkg", "libnccl2", "2.21.5-1+cuda12.4", "nccl", "2.21.5"),
        ("dpkg", "libcublas11", "11.11.3.6~11.8.0-5~deb12u1", "cublas", "11.11.3.6"),
        ("dpkg", "libcufft10", "11.1.1+~10.9.0.58~11.8.0-5~deb12u1", "cufft", "10.9.0.58"),
        ("dpkg", "libnvinfer10", "10.7.0.23-1+cuda12.6", "nvinfer", "10.7.0.23"),
        ("dpkg", "cuda-cudart-12-4", "12.4.127-1", "cudart", "12.4.127"),
        ("dpkg", "libnvidia-compute-535", "535.183.01-0ubuntu1", "cuda", "535.183.01"),
        ("dpkg", "libcuda1", "535.261.03-1~deb12u1", "cuda", "535.261.03"),
        ("dpkg", "nvidia-cuda-toolkit", "11.8.89~11.8.0-5", "cublas", None),
        ("rpm", "libcublas-12-4", "1:12.4.5.8-1", "cublas", "12.4.5.8"),
        ("rpm", "cuda-compat-12-4", "550.54.15-1", "cuda", "550.54.15"),
        ("dpkg", "libcudnn9", "", "cudnn", None),
        ("toolkit", "CUDA toolkit", "12.4", "cudart", None),
    ],
)
def test_whose_version_is_the_library_s(kind: str, name: str, version: str, family: str, result: str | None) -> None:
    assert declared(Claim(kind, name, version), family) == result


def test_nobody_declares_nothing() -> None:
    assert declared(None, "cudnn") is None


A = Claim("wheel", "a", "1", 5, "sha256=x")
B = Claim("wheel", "b", "1", 6, "sha256=y")
SAME = Claim("wheel", "c", "1", 5, "sha256=x")
OTHER = Claim("wheel", "d", "1", 5, "sha256=z")
CONDA = Claim("conda", "e", "1", 5)
UNSIZED = Claim("dpkg", "f", "1")


@pytest.mark.parametrize(
    ("claims", "ownership"),
    [
        ([], (None, None)),
        ([A], (A, False)),
        ([B], (B, True)),
        ([A, B], (A, False)),
        ([B, A], (A, False)),
        ([A, SAME], (A, False)),
        ([A, CONDA], (A, False)),
        ([B, Claim("wheel", "g", "1", 7)], (None, True)),
        ([UNSIZED], (UNSIZED, None)),
        ([UNSIZED, A], (A, False)),
        ([UNSIZED, B], (None, None)),
        ([A, OTHER], (None, True)),
    ],
)
def test_who_owns_a_file_of_five_bytes(
    tmp_path: Path, claims: list[Claim], ownership: tuple[Claim | None, bool | None]
) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"12345")
    assert decide(claims, str(place), 5) == ownership


def test_a_file_that_is_gone_meanwhile(tmp_path: Path) -> None:
    assert decide([A, OTHER], str(tmp_path / "gone"), 5) == (None, None)


def test_as_the_owner_is_shown() -> None:
    assert A.text == "a==1"
    assert CONDA.text == "e 1"
    assert Claim("toolkit", "CUDA toolkit", "").text == "CUDA toolkit"
