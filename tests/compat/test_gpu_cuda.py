from __future__ import annotations

from envcheck.compat.load import load_matrix
from envcheck.compat.relations.gpu_code import cuda_serves, cuda_targets, targets_of
from envcheck.versions import ComputeCapability, CudaVersion
from tests.compat.asking import judged
from tests.every import every

MATRIX = load_matrix()


@every(
    [
        ("8.6", "11.0", "incompatible", "CUDA >= 11.1"),
        ("8.6", "11.1", "compatible", ""),
        ("8.9", "11.7", "incompatible", "CUDA >= 11.8"),
        ("9.0", "11.8", "compatible", ""),
        ("12.0", "12.6", "incompatible", "CUDA >= 12.8"),
        ("12.1", "12.8", "incompatible", "CUDA >= 12.9"),
        ("10.3", "12.9", "compatible", ""),
        ("7.0", "12.9", "compatible", ""),
        ("7.0", "13.0", "incompatible", "CUDA <= 12.9"),
        ("3.7", "12.0", "incompatible", "CUDA <= 11.8"),
        ("3.0", "11.0", "incompatible", "CUDA <= 10.2"),
        ("7.5", "9.2", "incompatible", "CUDA >= 10.0"),
        ("7.5", "13.5", "compatible", ""),
        # 10.1 was renamed 11.0
        ("11.0", "12.9", "unknown", ""),
        ("11.0", "13.0", "compatible", ""),
        # beyond the data, and the version that only drivers report
        ("9.0", "14.0", "unknown", ""),
        ("9.0", "12.7", "unknown", ""),
        ("13.0", "13.5", "unknown", ""),
    ]
)
def test_what_a_toolkit_compiles_for(capability: str, toolkit: str, verdict: str, change: str) -> None:
    gpu, cuda = ComputeCapability.parse(capability), CudaVersion.parse(toolkit)
    assert gpu is not None
    assert cuda is not None
    fit = cuda_targets(MATRIX, gpu, cuda)
    assert (fit.verdict, fit.nearest_change) == (verdict, change), fit.reason


def test_the_targets_of_a_toolkit() -> None:
    assert [str(target) for target in targets_of(MATRIX, CudaVersion(11, 7))][-3:] == ["sm_80", "sm_86", "sm_87"]
    assert targets_of(MATRIX, CudaVersion(12, 7)) == ()


@every(
    [
        ("8.9", "11.7", "compatible"),
        ("8.6", "11.0", "compatible"),
        ("10.3", "12.8", "compatible"),
        ("8.0", "10.2", "incompatible"),
        ("9.0", "11.7", "incompatible"),
        ("8.7", "11.3", "incompatible"),
        ("7.0", "13.0", "incompatible"),
        ("9.0", "14.0", "unknown"),
    ]
)
def test_software_built_for_an_older_gpu_of_the_major_serves(capability: str, toolkit: str, verdict: str) -> None:
    gpu, cuda = ComputeCapability.parse(capability), CudaVersion.parse(toolkit)
    assert gpu is not None
    assert cuda is not None
    assert cuda_serves(MATRIX, gpu, cuda).verdict == verdict


def test_a_toolkit_older_than_the_major_leaves_ptx_alone() -> None:
    reason = cuda_serves(MATRIX, ComputeCapability(8, 0), CudaVersion(10, 2)).reason
    assert "only PTX could run there" in reason


def test_of_a_target_on_which_sources_disagree_nobody_can_tell() -> None:
    disputed = [(row, target) for row in MATRIX.cuda for target in row.disputed_targets]
    assert disputed
    for row, target in disputed:
        assert judged(f"nvcc=={row.version} gpu=={target}").verdict == "unknown", (row.version, target)
