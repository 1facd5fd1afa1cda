"""What fails on a GPU that another program uses (``--force``) is no fault of a library, and leaves no verdict."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.checks import Report
from envcheck.collect.bench_plan import Bench
from envcheck.pipeline import session
from envcheck.pipeline.session import Request
from envcheck.rules.speed.ceilings import MEASURED
from envcheck.snapshot import Collective, Gpu, Measurement, ProbeRun
from tests.rules.machines import but, check_of, h200, machine
from tests.rules.speed.measurements import gemm, memory_copy, right, to_gpu

NO_ROOM = "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY (2)"
GPUS = [h200(number, sm_count=132, cuda_ordinal=number) for number in range(2)]


def full(gpu: Gpu) -> Gpu:
    """Another program holds nearly all of its memory."""
    assert gpu.memory
    assert gpu.memory.total
    return but(gpu, memory=but(gpu.memory, used=gpu.memory.total - (64 << 20), free=64 << 20))


def busy(gpu: Gpu) -> Gpu:
    return but(gpu, utilisation=0.97)


def all_reduce_failed() -> Measurement:
    together = Collective(source="bench", ranks=2, processes=2, gpus=tuple(gpu.uuid or "" for gpu in GPUS))
    why = f"rank 0 (GPU 0): {NO_ROOM}, during: starting CUDA"
    name = "nccl-all-reduce"
    return Measurement(source="bench", name=name, gpu=GPUS[0].uuid, missing=why, failed=True, collective=together)


def refused(number: int) -> Measurement:
    why = "cudnnCreate: CUDNN_STATUS_ALLOC_FAILED (4001)"
    return Measurement(source="bench", name="cudnn-convolution", gpu=GPUS[number].uuid, missing=why, failed=True)


def figures(number: int) -> list[Measurement]:
    uuid = GPUS[number].uuid
    return [gemm(gpu=uuid), memory_copy(gpu=uuid, verification=right()), to_gpu(gpu=uuid)]


def run(number: int, status: Any = "ok", detail: str = "") -> ProbeRun:
    return ProbeRun(name="bench.gemm", title="Matrix products", status=status, detail=detail, gpu=GPUS[number].uuid)


def report(gpus: list[Gpu], *found: Measurement, runs: tuple[ProbeRun, ...]) -> Report:
    request = Request(only=MEASURED, bench=Bench(force=True))
    return session.judge(machine(*gpus, measurements=found, runs=runs), request)


@pytest.mark.parametrize("used", [full, busy])
def test_nccl_without_room_beside_another_program_is_not_blamed(used: Any) -> None:
    check = check_of("collective-fails", machine(used(GPUS[0]), GPUS[1], measurements=(all_reduce_failed(),)))
    assert (check.status, check.title) == ("unknown", "NCCL failed while another program used GPU 0 (NVIDIA H200)")
    assert NO_ROOM in check.message


def test_nccl_that_fails_on_idle_gpus_is_blamed() -> None:
    assert check_of("collective-fails", machine(*GPUS, measurements=(all_reduce_failed(),))).status == "fail"


def test_a_library_that_fails_beside_another_program_is_not_blamed() -> None:
    here = machine(full(GPUS[0]), GPUS[1], measurements=(refused(0),))
    check = check_of("library-fails", here)
    assert (check.status, check.title) == ("unknown", "cuDNN failed while another program used GPU 0 (NVIDIA H200)")


def test_a_library_that_fails_on_an_idle_gpu_too_is_blamed_for_that_one() -> None:
    here = machine(full(GPUS[0]), GPUS[1], measurements=(refused(0), refused(1)))
    check = check_of("library-fails", here)
    assert check.status == "fail"
    assert {item.what for item in check.evidence if "GPU" in item.what} == {"GPU 1 (NVIDIA H200): cuDNN convolution"}


def test_a_gpu_without_room_beside_an_idle_one_leaves_no_verdict() -> None:
    runs = (run(0, "failed", f"CudaError: {NO_ROOM}"), run(1))
    found = report([full(GPUS[0]), GPUS[1]], *figures(1), all_reduce_failed(), runs=runs)
    assert (found.verdict, found.exit_code) == ("unknown", 3)
    assert found.headline.startswith("no verdict: GPU 0 (NVIDIA H200): Matrix products: CudaError")
