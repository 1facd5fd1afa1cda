"""What was not measured or held back is said, and no fault of a GPU that another program uses."""

from typing import Any

from envcheck.collect.plan import BenchRequest
from envcheck.model.checks import Report
from envcheck.model.snapshot import Collective, Conditions, Gpu, Measurement, ProbeRun
from envcheck.pipeline import session
from envcheck.pipeline.session import Request
from envcheck.report import Options, render
from envcheck.rules.catalog import measured_rules
from envcheck.rules.facts.measurements import coverage, numbers
from tests.every import cases
from tests.rules.machines import but, check_of, h200, machine, statuses
from tests.rules.speed.measurements import conditions, figure, gemm, memory_copy, right, samples_around, to_gpu

WHY = "GPU 0 is busy (a kernel ran 97% of the time); --force measures it anyway"


def run(gpu: int, status: Any = "ok", detail: str = "", name: str = "bench.gemm") -> ProbeRun:
    return ProbeRun(name=name, title="Matrix products", status=status, detail=detail, gpu=h200(gpu).uuid)


def here(count: int, **changes: Any) -> list[Gpu]:
    return [h200(number, sm_count=132, cuda_ordinal=number, **changes) for number in range(count)]


def reported(gpus: list[Gpu], *figures: Measurement, runs: tuple[ProbeRun, ...], whole: bool = False) -> Report:
    request = Request(bench=BenchRequest()) if whole else Request(only=measured_rules(), bench=BenchRequest())
    return session.judge(machine(*gpus, measurements=figures, runs=runs), request)


def on(number: int, *, copies: bool = True) -> list[Measurement]:
    uuid = h200(number).uuid
    return [gemm(gpu=uuid), *([memory_copy(gpu=uuid, verification=right()), to_gpu(gpu=uuid)] if copies else [])]


def test_a_gpu_in_use_leaves_no_verdict() -> None:
    report = reported(here(2), *on(1), runs=(run(0, "skipped", WHY), run(1)))
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert report.headline == "no verdict: 1 of 2 GPUs measured, GPU 0 in use"
    (check,) = [check for check in report.checks if check.rule == "gpu-not-measured"]
    assert (check.status, check.title) == ("unknown", "GPU 0 not measured")
    assert [item.value for item in check.evidence] == [WHY]


def test_it_leaves_none_of_the_whole_check_either() -> None:
    report = reported(here(2), *on(1), runs=(run(0, "skipped", WHY), run(1)), whole=True)
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert "GPU 0 in use" in report.headline


def test_a_fault_is_not_hidden_by_it() -> None:
    report = reported(here(2), gemm(value=300e12, gpu=h200(1).uuid), runs=(run(0, "skipped", WHY), run(1)))
    assert (report.verdict, report.exit_code) == ("fail", 1)


MISSING = but(gemm("fp8"), value=None, samples=(), verification=None, missing="no cuBLASLt was found")
NO_ROOM_FOR_ONE = but(MISSING, precision="bf16", missing="1,500 MiB are free, 4,608 are needed")
OF_NCCL = but(figure("all-reduce", 0.0), value=None, samples=(), missing="no NCCL was found")
HIDDEN = [*here(1), h200(1, cuda_ordinal=None)]


@cases("about, gpus, figures, runs, verdict, headline, page",
    ("GPUs that were not asked for are said and pass", here(4), on(2), [run(2)], "pass",
     "1 of 4 GPUs measured, GPUs 0-1, 3 not asked for, 3 figures as expected",
     "Not measured: GPUs 0-1, 3, not asked for"),
    ("a GPU that CUDA does not show is hidden", HIDDEN, on(0), [run(0)], "pass",
     "1 of 2 GPUs measured, GPU 1 hidden from CUDA, 3 figures as expected",
     "Not measured: GPU 1, hidden from CUDA"),
    ("a figure that could not be taken is counted", here(1), [*on(0), MISSING], [run(0)], "pass",
     "1 GPU measured, 3 figures as expected, 1 not measured", ""),
    ("also one of a quantity that no rule judges", here(2), [*on(0), *on(1), OF_NCCL], [run(0), run(1)], "pass",
     "2 GPUs measured, 6 figures as expected, 1 not measured", ""),
    ("only what is whole is called all", here(2), [*on(0), *on(1)], [run(0), run(1)], "pass",
     "2 GPUs measured, all figures as expected", ""),
    ("a GPU whose probes found nothing to ask is not measured", here(2), on(0),
     [run(0), run(1, "absent", "CUDA does not show GPU-1 to this process")], "unknown",
     "no verdict: 1 of 2 GPUs measured, GPU 1 without a figure", ""),
    ("a GPU on which nothing could be measured says why", here(1), [NO_ROOM_FOR_ONE], [run(0)], "unknown",
     "no verdict: 1,500 MiB are free, 4,608 are needed", ""),
    ("the headline has room for a machine of eight", here(8), on(7),
     [*(run(number, "skipped", WHY) for number in range(7)), run(7)], "unknown",
     "no verdict: 1 of 8 GPUs measured, GPUs 0-6 in use", ""),
)  # fmt: skip
def test_what_is_said_of_a_run(
    about: str,
    gpus: list[Gpu],
    figures: list[Measurement],
    runs: list[ProbeRun],
    verdict: str,
    headline: str,
    page: str,
) -> None:
    report = reported(gpus, *figures, runs=(*runs,))
    assert (report.verdict, report.exit_code, report.headline) == (verdict, 0 if verdict == "pass" else 3, headline)
    assert page in render(report, "speed", Options())


def test_work_that_was_verified_and_not_timed_is_no_missing_figure() -> None:
    shown = but(figure("cudnn-pooling", 0.0), value=None, samples=(), verification=right())
    assert coverage(here(1), [shown], ()).missing == ()


@cases("status", "timed-out", "crashed", "failed")
def test_an_idle_gpu_whose_measurement_died_is_no_pass(status: Any) -> None:
    """It was not found healthy, though the others were; its own rule tells it, and no second one."""
    report = reported(here(2), *on(0), runs=(run(0), run(1, status, "died while gemm fp8")))
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert "died while gemm fp8" in report.headline
    assert [check.rule for check in report.checks if check.rule == "gpu-not-measured"] == []


@cases("status", "timed-out", "crashed", "failed")
def test_a_measurement_that_died_is_a_warning_and_leaves_no_verdict(status: Any) -> None:
    report = reported(here(2), *on(0), *on(1), runs=(run(0), run(1, status, "died while gemm fp8")))
    assert (report.verdict, report.exit_code) == ("unknown", 3)
    assert "died while gemm fp8" in report.headline
    assert [check.rule for check in report.checks if check.status == "warn"] == ["measurement-unfinished"]


def test_a_deep_check_measures_nothing_and_leaves_out_nothing() -> None:
    detail = "GPU 0 is busy (a kernel ran 97% of the time); --force measures it anyway"
    runs = (run(0, "skipped", detail, name="bench.cudnn"), run(1, "skipped", detail, name="bench.cudnn"))
    report = session.judge(machine(*here(2), runs=runs), Request(deep=True))
    assert not [check for check in report.checks if check.rule == "gpu-not-measured"]


@cases(
    "indices, words", ((0,), "GPU 0"), ((0, 1), "GPUs 0-1"), ((5, 0, 1, 2), "GPUs 0-2, 5"), ((1, 3, 5), "GPUs 1, 3, 5")
)
def test_numbers_in_words(indices: tuple[int, ...], words: str) -> None:
    assert numbers([h200(index) for index in indices]) == words


def test_a_gpu_without_a_number_is_named_by_its_place() -> None:
    assert numbers([h200(0), but(h200(1), index=None)]) == f"GPUs 0, {h200(1).key}"


# --- Heat and power that lowered a GPU's clocks while it was measured explain its low figures -----------------------
GPU = h200(0, sm_count=132)
CAP = {"power_limit": 500.0, "throttle": {"sw_power_cap": 0.9}}


def measured(value: float = 500e12, **changes: Any) -> Any:
    run: Conditions = conditions(**changes)
    product = figure(
        "gemm", value, "FLOP/s", method="cublasLt", precision="bf16", shape=(8192, 8192, 8192), conditions=run,
        samples=samples_around(value),
    )  # fmt: skip
    return machine(GPU, measurements=(product,))


@cases(
    "changes, title, command",
    ({"throttle": {"sw_thermal_slowdown": 1.0}}, "thermal throttling", ()),
    ({"throttle": {"hw_thermal_slowdown": 0.2}}, "thermal throttling", ()),
    ({"throttle": {"hw_power_brake_slowdown": 0.5}}, "power brake", ()),
    (CAP, "power limit of 500 W (default 700 W)", ("sudo", "nvidia-smi", "-i", GPU.pci_bus_id, "-pl", "700")),
)
def test_what_held_it_back_is_the_cause(changes: Any, title: str, command: tuple[str, ...]) -> None:
    found = check_of("gpu-held-back", measured(**changes))
    assert found.status in ("warn", "fail")
    assert f": {title} while it was measured" in found.title
    assert [fix.command for fix in found.fixes] == [command]
    assert check_of("slow-gemm", measured(**changes)).explained_by == found.id


@cases("changes",
    {}, {"throttle": {"sw_power_cap": 1.0}}, {"power_limit": 500.0}, {"throttle": {"sw_thermal_slowdown": 0.05}},
)  # fmt: skip
def test_a_run_at_its_own_limits_was_not_held_back(changes: Any) -> None:
    """The power cap at the default limit is normal, and a moment of heat does not count."""
    found = check_of("gpu-held-back", measured(800e12, **changes))
    assert (found.status, found.title) == ("pass", "Neither heat nor power held a run back")


def test_the_hottest_run_is_told() -> None:
    heat = conditions().temperature
    assert heat
    found = check_of("gpu-held-back", measured(throttle={"sw_thermal_slowdown": 1.0}))
    (evidence,) = found.evidence
    assert evidence.value == f"in up to 100% of the samples of 1 figure, at up to {heat.high:.0f} °C"


def test_without_a_measurement_nothing_is_asked() -> None:
    assert statuses("gpu-held-back", machine(GPU)) == ()


# --- What fails on a GPU that another program uses (``--force``) is no fault of a library ---------------------------
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


def run_beside(number: int, status: Any = "ok", detail: str = "") -> ProbeRun:
    return ProbeRun(name="bench.gemm", title="Matrix products", status=status, detail=detail, gpu=GPUS[number].uuid)


def report(gpus: list[Gpu], *found: Measurement, runs: tuple[ProbeRun, ...]) -> Report:
    request = Request(only=measured_rules(), bench=BenchRequest(force=True))
    return session.judge(machine(*gpus, measurements=found, runs=runs), request)


@cases("used", full, busy)
def test_nccl_without_room_beside_another_program_is_not_blamed(used: Any) -> None:
    check = check_of("collective-fails", machine(used(GPUS[0]), GPUS[1], measurements=(all_reduce_failed(),)))
    assert (check.status, check.title) == ("unknown", "NCCL failed while another program used GPU 0 (NVIDIA H200)")
    assert NO_ROOM in check.message


def test_nccl_that_fails_on_idle_gpus_is_blamed() -> None:
    assert check_of("collective-fails", machine(*GPUS, measurements=(all_reduce_failed(),))).status == "fail"


def test_a_library_that_fails_beside_another_program_is_not_blamed() -> None:
    check = check_of("library-fails", machine(full(GPUS[0]), GPUS[1], measurements=(refused(0),)))
    assert (check.status, check.title) == ("unknown", "cuDNN failed while another program used GPU 0 (NVIDIA H200)")


def test_a_library_that_fails_on_an_idle_gpu_too_is_blamed_for_that_one() -> None:
    check = check_of("library-fails", machine(full(GPUS[0]), GPUS[1], measurements=(refused(0), refused(1))))
    assert check.status == "fail"
    assert {item.what for item in check.evidence if "GPU" in item.what} == {"GPU 1 (NVIDIA H200): cuDNN convolution"}


def test_a_gpu_without_room_beside_an_idle_one_leaves_no_verdict() -> None:
    runs = (run_beside(0, "failed", f"CudaError: {NO_ROOM}"), run_beside(1))
    found = report([full(GPUS[0]), GPUS[1]], *figures(1), all_reduce_failed(), runs=runs)
    assert (found.verdict, found.exit_code) == ("unknown", 3)
    assert found.headline.startswith("no verdict: GPU 0 (NVIDIA H200): Matrix products: CudaError")
