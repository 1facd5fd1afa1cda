"""What workers said, as measurements: the slowest decides, sizes stand together, and faults name rank, GPU and work."""

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from envcheck.model.snapshot import Measurement, Snapshot
from probes.bench import nccl as probe
from probes.measuring.nccl.jobs import LARGEST, SMALLEST, Figures, NcclJob, jobs
from probes.measuring.nccl.supervisor import Fault
from probes.measuring.nccl.values import OPERATIONS, SIZES
from probes.measuring.nccl.worker import NcclRank, NcclStep
from tests.every import cases
from tests.probes.bench.nccl.fake_nccl import FakeNccl, run_steps

RANKS = tuple(NcclRank(number, f"GPU-{number}", f"GPU {number + 4}", {}) for number in range(2))
SHARES = [(rank,) for rank in RANKS]
VERSION = {"version": "2.28.9", "path": "/srv/libnccl.so.2"}
LOG = """\
node:1:1 [0] NCCL INFO 24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels
node:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM
node:1:1 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..23}
"""
STEPS = (
    NcclStep("all-reduce", 8), NcclStep("all-reduce", 1 << 20), NcclStep("all-reduce", 1 << 20, in_place=True),
    NcclStep("all-reduce", 1 << 20, kind="bf16"),
)  # fmt: skip


CLOCK = {"source": "nvml", "low": 2e9, "median": 2e9, "high": 2e9}
RUNS = (
    {"source": "nvml", "sm_clock": CLOCK, "rose": {"nvlink-errors": 2}, "xids": [79]},
    {"rose": {"nvlink-errors": 3, "pcie-replays": 1}, "xids": [31]},
)


class Facts:
    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def fact(self, part: dict[str, Any]) -> None:
        self.sent.append(part)

    def progress(self, text: str) -> None: ...

    def absent(self, text: str) -> None:
        self.sent.append({"absent": text})

    def all(self, name: str) -> list[Any]:
        found = msgspec.convert(
            {"measurements": [], **{key: part[key] for part in self.sent for key in part}}, Snapshot
        )
        return list(getattr(found, name))


def result(step: int, *seconds: float, wrong: int = 0) -> dict[str, Any]:
    return {"step": step, "seconds": list(seconds), "checked": 100, "wrong": wrong, "worst": 1e-8}


def sent(
    folder: Path, *lines: tuple[int, dict[str, Any]], job: NcclJob | None = None, faults: tuple[Fault, ...] = ()
) -> Facts:
    facts: Any = Facts()
    (folder / "nccl.1.log").write_text(LOG)
    figures = Figures(job or NcclJob(True, STEPS, 10.0), RANKS, SHARES, facts)
    figures.heard(0, VERSION)
    for worker, line in lines:
        figures.heard(worker, {"result": line})
    figures.send(faults, str(folder))
    return facts  # type: ignore[no-any-return]


def complete() -> list[tuple[int, dict[str, Any]]]:
    times = {0: ((8e-6, 9e-6), (10e-6, 8e-6)), 1: ((1e-5, 2e-5), (1e-5, 1e-5)), 2: ((3e-5, 3e-5), (1e-5, 3e-5))}
    times[3] = ((1e-5, 1e-5), (1e-5, 1e-5))
    return [(worker, result(step, *each)) for step, both in times.items() for worker, each in enumerate(both)]


def test_the_slowest_process_decides_each_sample(tmp_path: Path) -> None:
    bandwidth, latency, other = sent(tmp_path, *complete()).all("measurements")
    assert (latency.samples, latency.unit, latency.variant, latency.size) == ((10e-6, 9e-6), "s", "8 B", 8)
    assert bandwidth.samples == pytest.approx(((1 << 20) / 1e-5, (1 << 20) / 2e-5))
    assert bandwidth.value == statistics.median(bandwidth.samples)
    assert (bandwidth.name, bandwidth.variant, bandwidth.unit) == ("nccl-all-reduce", "2 GPUs", "B/s")
    assert (other.precision, bandwidth.precision) == ("bf16", "fp32")
    assert (bandwidth.library, bandwidth.detail) == (VERSION["path"], "NCCL 2.28.9, 1 MiB, P2P/CUMEM")


def test_sizes_and_what_the_log_tells_go_with_the_figure(tmp_path: Path) -> None:
    bandwidth: Measurement = sent(tmp_path, *complete()).all("measurements")[0]
    together = bandwidth.collective
    assert together is not None
    assert (together.algorithm, together.protocol, together.channels) == ("ring", "simple", 24)
    assert (together.ranks, together.processes, together.gpus) == (2, 2, ("GPU-0", "GPU-1"))
    assert [point.size for point in together.points] == [8, 1 << 20]
    assert together.points[1].seconds_in_place == pytest.approx(3e-5)
    assert together.points[1].bandwidth == pytest.approx((1 << 20) / 1.5e-5)


def test_a_wrong_result_of_any_size_is_one_of_the_figure(tmp_path: Path) -> None:
    lines = [(worker, {**line, "wrong": 3 if line["step"] == 2 else 0}) for worker, line in complete()]
    bandwidth = sent(tmp_path, *lines).all("measurements")[0]
    assert (bandwidth.verification.right, bandwidth.verification.wrong) == (False, 6)
    assert bandwidth.verification.checked == 600


def test_what_there_was_no_time_for_is_said(tmp_path: Path) -> None:
    (only,) = sent(tmp_path, job=NcclJob(True, (NcclStep("broadcast", 8),), 1.0)).all("measurements")
    assert (only.name, only.value, only.missing) == ("nccl-broadcast", None, "not measured: the time for it was over")


def test_a_size_that_one_rank_lacks_memory_for_is_left_out(tmp_path: Path) -> None:
    lines = [*complete()[:4], (0, {"step": 2, "missing": "no room"}), (1, {"step": 2, "missing": "no room"})]
    bandwidth = sent(tmp_path, *lines).all("measurements")[0]
    assert [point.seconds_in_place for point in bandwidth.collective.points] == [None, None]


@cases("fault, failed",
    (Fault(1, "killed", "killed by SIGKILL", "all-reduce of 1 MiB", {}), False),
    (Fault(1, "killed", "killed by SIGSEGV", "all-reduce of 1 MiB", {}), True),
    (Fault(1, "silent", "no sign of life for 4 s", "all-reduce of 1 MiB", {}), False),
    (Fault(1, "stuck", "no progress for 8 s", "all-reduce of 1 MiB", {}), True),
    (Fault(1, "failed", "NCCL: bad (3)", "all-reduce of 1 MiB", {"kind": "LibraryError", "library": "/x"}), True),
    (Fault(1, "failed", "no GPU", "all-reduce of 1 MiB", {"kind": "Unavailable"}), False),
)  # fmt: skip
def test_a_fault_names_rank_gpu_and_work_what_was_measured_stays(tmp_path: Path, fault: Fault, *, failed: bool) -> None:
    facts = sent(tmp_path, *complete()[:2], faults=(fault,))
    (*_, last) = facts.all("measurements")
    assert last.missing == f"rank 1 (GPU 5): {fault.text}, during: all-reduce of 1 MiB"
    assert (last.failed, last.gpu, last.library) == (failed, "GPU-1", fault.line.get("library") or VERSION["path"])
    assert [error.text for error in facts.all("observed_errors")] == LOG.splitlines()
    assert last.collective.log == tuple(LOG.splitlines())
    assert len(facts.all("measurements")) == 3  # of 8 B there are figures


# The plan and the probe.


def test_quick_is_one_all_reduce() -> None:
    (job,) = jobs(2, full=False, only=())
    assert {step.operation for step in job.steps} == {"all-reduce"}
    assert job.apart


def test_full_goes_from_the_smallest_to_the_largest_in_both_ways() -> None:
    apart, together = jobs(2, full=True, only=())
    sizes = {step.size for step in apart.steps if step.operation == "all-reduce"}
    assert (min(sizes), max(sizes)) == (SMALLEST, LARGEST)
    assert (apart.apart, together.apart) == (True, False)
    assert not apart.rounds
    assert jobs(4, full=True, only=())[0].rounds


def test_sliced_operations_have_an_element_for_each_rank() -> None:
    for job in jobs(8, full=True, only=()):
        assert all(step.size >= 32 for step in job.steps if step.operation in ("all-gather", "all-to-all"))


@pytest.mark.parametrize("ranks", range(2, 17))
def test_figures_count_what_is_moved_and_not_what_does_not_divide(ranks: int) -> None:
    for job in jobs(ranks, full=True, only=()):
        for step in job.steps:
            parts = ranks if step.operation in ("all-gather", "reduce-scatter", "all-to-all") else 1
            assert step.size % (parts * SIZES[step.kind]) == 0, step
    sizes = {step.size for step in jobs(3, full=True, only=("nccl-all-gather",))[0].steps}
    assert {12, 24, 120} <= sizes
    assert 32 not in sizes


MOVED = {  # by NCCL's own count, https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
    "ncclAllReduce": lambda count, ranks: 2 * count * (ranks - 1) / ranks,
    "ncclAllGather": lambda count, ranks: count * (ranks - 1),
    "ncclReduceScatter": lambda count, ranks: count * (ranks - 1),
}  # fmt: skip
"""Elements that each rank sends; of the others, as many as the call is given."""


@cases("ranks", 3, 5, 6, 7)
@pytest.mark.parametrize("name", OPERATIONS)
def test_points_of_a_sweep_count_the_bytes_that_move(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, ranks: int
) -> None:
    whole, *_ = jobs(ranks, full=True, only=(f"nccl-{name}",))
    some = [step for step in whole.steps if step.size <= 4096 and step.kind == "fp32" and not step.in_place]
    steps = tuple(replace(step, samples=1, least=1, most=1) for step in some)  # one call moves what a thousand do
    nccl, facts = FakeNccl(ranks), Facts()
    heard = run_steps(monkeypatch, nccl, *steps).lines
    members = [NcclRank(number, f"GPU-{number}", f"GPU {number}", {}) for number in range(ranks)]
    figures = Figures(NcclJob(False, steps, 60.0), members, [members], facts)  # type: ignore[arg-type]
    for line in heard:
        figures.heard(0, line)
    figures.send((), str(tmp_path))
    points = facts.all("measurements")[0].collective.points
    given = list(dict.fromkeys(nccl.counts))
    moved = [4 * MOVED.get(OPERATIONS[name].function, lambda count, _: count)(count, ranks) for count in given]
    assert [point.bandwidth * point.seconds for point in points] == pytest.approx(moved)
    assert len(points) == len(steps) > 3


def test_errors_of_every_rank_are_told(tmp_path: Path) -> None:
    lines = [(worker, {**line, "conditions": RUNS[worker]}) for worker, line in complete()]
    found = sent(tmp_path, *lines).all("measurements")[0].conditions
    assert (found.rose, found.xids) == ({"nvlink-errors": 5, "pcie-replays": 1}, (31, 79))
    assert found.sm_clock.median == 2e9, "of the first GPU"


def test_what_was_not_asked_for_is_not_run() -> None:
    assert jobs(2, full=True, only=("gemm",)) == ()
    (job,) = jobs(2, full=False, only=("nccl-reduce",))
    assert {step.operation for step in job.steps} == {"reduce"}


@cases("gpus, only, why", (1, (), "it takes two GPUs"), (0, (), "it takes two GPUs"), (2, ("gemm",), "not asked for"))
def test_the_probe_says_why_it_does_nothing(gpus: int, only: tuple[str, ...], why: str) -> None:
    class Tree:
        request = {"bench": {"gpus": [{"uuid": f"GPU-{i}", "index": i} for i in range(gpus)], "only": list(only)}}

    facts: Any = Facts()
    tree: Any = Tree()
    probe.collect(tree, facts)
    assert facts.sent == [{"absent": why}]
