"""GPUs that work together through NCCL: slow ones, ranks that die, and what is named as the cause."""

from typing import Any

import pytest

from envcheck.collect.plan import BenchRequest
from envcheck.model.snapshot import Collective, Fabric, Measurement, NvLink, ObservedError, Platform, ProbeRun, Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.rules.catalog import measured_rules
from tests.rules.machines import but, check_of, checks_of, h200, machine, variables
from tests.rules.speed.measurements import right, samples_around, wrong

NCCL = "/srv/venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2"
GPUS = tuple(
    h200(
        number,
        nvlinks=tuple(
            NvLink(source="nvml", link=link, active=True, remote_kind="switch", bandwidth=26.562e9)
            for link in range(18)
        ),
    )
    for number in range(8)
)
FULL_SHM = (
    "node:1:2 [0] NCCL WARN Error: failed to extend /dev/shm/nccl-a to 4194660 bytes: No space left on device (28)"
)


def together(**facts: Any) -> Collective:
    return Collective(
        source="bench",
        ranks=8,
        gpus=tuple(gpu.uuid or "" for gpu in GPUS),
        **{"processes": 8, "transports": ("P2P/CUMEM",), "nvls_channels": 0, **facts},
    )


def all_reduce(value: float | None = 350e9, **more: Any) -> Measurement:
    return Measurement(
        source="bench",
        name="nccl-all-reduce",
        gpu=GPUS[0].uuid,
        value=value,
        samples=samples_around(value) if value else (),
        **{
            "unit": "B/s",
            "size": 512 << 20,
            "variant": "8 GPUs",
            "precision": "fp32",
            "collective": together(),
            "library": NCCL,
            **more,
        },
    )


def failed(text: str, log: tuple[str, ...] = (), **more: Any) -> Measurement:
    return all_reduce(None, missing=text, collective=together(log=log), **{"failed": True, **more})


def measured(*figures: Measurement, **changes: Any) -> Snapshot:
    return machine(*GPUS, measurements=figures, **changes)


DIED = "rank 1 (GPU 1): killed by SIGSEGV, during: all-reduce of 512 MiB"
CASES = [
    ("slow-collective", "slow", measured(all_reduce(40e9)), "fail"),
    ("slow-collective", "as expected", measured(all_reduce()), "pass"),
    ("slow-collective", "without a log", measured(all_reduce(collective=together(transports=()))), "skipped"),
    ("collective-fails", "died", measured(failed(DIED)), "fail"),
    ("collective-fails", "ended", measured(all_reduce()), "pass"),
]


@pytest.mark.parametrize(
    ("rule", "case", "snapshot", "status"), CASES, ids=[f"{rule}: {case}" for rule, case, *_ in CASES]
)
def test_each_case_has_its_status(rule: str, case: str, snapshot: Snapshot, status: str) -> None:
    assert case
    assert check_of(rule, snapshot).status == status


# slow-collective


def test_a_fast_one_passes_with_its_share() -> None:
    found = check_of("slow-collective", measured(all_reduce()))
    assert (found.status, found.title) == (
        "pass",
        "GPU 0 (NVIDIA H200): FP32 NCCL all-reduce, 8 GPUs: 350 GB/s, 73% of the ceiling",
    )


def test_a_slow_one_fails_and_names_the_variable_of_nccl() -> None:
    found = check_of("slow-collective", measured(all_reduce(40e9)))
    assert (found.status, found.title) == ("fail", "GPU 0 (NVIDIA H200): FP32 NCCL all-reduce, 8 GPUs: only 40.0 GB/s")
    assert "no cause" in found.message


def test_an_unknown_way_is_not_judged() -> None:
    found = check_of("slow-collective", measured(all_reduce(collective=together(transports=("NEW/way",)))))
    assert found.status == "skipped"
    assert "what joins the GPUs is not known" in found.message


def test_host_memory_instead_of_nvlink_is_named_with_the_variable() -> None:
    figure = all_reduce(30e9, collective=together(transports=("SHM/direct",)))
    found = check_of("slow-collective", measured(figure, variables=variables(NCCL_P2P_DISABLE="1")))
    assert found.status == "fail"
    assert "NCCL_P2P_DISABLE=1: GPUs exchange data through host memory" in found.message
    assert "over SHM/direct, not by direct access" in found.message


def test_a_figure_that_could_not_be_had_is_skipped() -> None:
    found = check_of("slow-collective", measured(all_reduce(None, missing="the time for it was over")))
    assert (found.status, found.title) == ("skipped", "GPU 0 (NVIDIA H200): FP32 NCCL all-reduce, 8 GPUs: not measured")


def test_other_libraries_are_not_asked_about_it() -> None:
    snapshot = measured(all_reduce(verification=right()), failed("rank 1 (GPU 1): NCCL: invalid usage (5)"))
    assert checks_of("slow-library", snapshot) == ()
    assert checks_of("library-fails", snapshot) == ()


def test_a_wrong_sum_fails() -> None:
    assert check_of("wrong-result", measured(all_reduce(verification=wrong()))).status == "fail"


def test_a_latency_passes_warns_or_is_not_judged() -> None:
    def of(value: float, **facts: Any) -> Any:
        two = but(together(**facts), ranks=2, gpus=tuple(gpu.uuid or "" for gpu in GPUS[:2]))
        figure = all_reduce(value, unit="s", variant="8 B", size=8, collective=two)
        found = check_of("slow-collective", measured(figure))
        return found.status, found.title.removeprefix("GPU 0 (NVIDIA H200): FP32 NCCL all-reduce, 8 B: ")

    assert of(8e-6, processes=2) == ("pass", "8 us, within 25 us")
    assert of(40e-6, processes=2) == ("warn", "40 us, more than 25 us")
    assert of(40e-6, processes=1) == ("warn", "40 us, more than 25 us")


# collective-fails


def test_what_ends_passes() -> None:
    found = check_of("collective-fails", measured(all_reduce()))
    assert (found.status, found.title) == ("pass", "NCCL connects 8 GPUs")


def test_the_question_does_not_arise_without_a_collective() -> None:
    assert checks_of("collective-fails", machine(*GPUS)) == ()


def test_a_failure_is_told_in_its_own_words_with_the_log() -> None:
    text = "rank 1 (GPU 1): NCCL: unhandled system error (2), during: connecting the ranks"
    found = check_of("collective-fails", measured(failed(text, (FULL_SHM,))))
    assert (found.status, found.title) == ("fail", f"NCCL fails: {text}")
    assert FULL_SHM in [evidence.value for evidence in found.evidence]


def test_a_rank_that_was_killed_from_outside_is_a_warning() -> None:
    text = "rank 1 (GPU 1): killed by SIGKILL, during: all-reduce of 512 MiB"
    found = check_of("collective-fails", measured(failed(text, ("node:1:2 [0] NCCL INFO x",), failed=False)))
    assert (found.status, found.title) == ("warn", f"NCCL did not end: {text}")


def test_a_probe_that_died_is_a_failure_and_one_that_was_late_leaves_it_open() -> None:
    for status, expected in (("crashed", "fail"), ("timed-out", "unknown")):
        run = ProbeRun(source="bench", name="bench.nccl", status=status, detail=f"it {status}")  # type: ignore[arg-type]
        assert check_of("collective-fails", machine(*GPUS, runs=(run,))).status == expected


def test_bench_judges_what_can_be_the_cause() -> None:
    """A full /dev/shm, which NCCL's log tells, comes before the symptom."""
    text = "rank 0 (GPU 0): NCCL: unhandled system error (2), during: connecting the ranks"
    snapshot = measured(
        failed(text, (FULL_SHM,)),
        observed_errors=(ObservedError(source="NCCL's log", text=FULL_SHM),),
        platform=but(machine().platform or Platform(source="procfs"), shared_memory=1 << 20, shared_memory_free=0),
        fabric=Fabric(source="nvml"),
    )
    report = session.judge(snapshot, Request(only=measured_rules(), bench=BenchRequest()))
    by_rule = {check.rule: check for check in report.checks}
    assert by_rule["shared-memory-too-small"].status == "fail"
    assert by_rule["collective-fails"].explained_by == by_rule["shared-memory-too-small"].id == report.primary_check
    assert "/dev/shm" in report.headline


def test_a_small_dev_shm_is_no_cause_where_the_log_does_not_name_it() -> None:
    """Containers have 64 MiB there; a rank that was killed did not die of that."""
    snapshot = measured(
        failed("rank 1 (GPU 1): killed by SIGSEGV, during: all-reduce of 512 MiB", ("node:1:2 [0] NCCL INFO x",)),
        observed_errors=(ObservedError(source="NCCL's log", text="node:1:2 [0] NCCL INFO x"),),
        platform=but(machine().platform or Platform(source="procfs"), shared_memory=64 << 20, shared_memory_free=0),
    )
    report = session.judge(snapshot, Request(only=measured_rules(), bench=BenchRequest()))
    by_rule = {check.rule: check for check in report.checks}
    assert by_rule["shared-memory-too-small"].status == "warn"
    assert by_rule["collective-fails"].explained_by is None
    assert by_rule["collective-fails"].id == report.primary_check
