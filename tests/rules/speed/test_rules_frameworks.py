"""Frameworks beside the libraries that they use: slow ones and why, those that fail, and what settings cost."""

from typing import Any

import pytest

from envcheck.collect.plan import BenchRequest
from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.performance.quantities import QUANTITIES, framework_tested
from envcheck.knowledge.tables.hardware import SettingRow
from envcheck.model.snapshot import Distribution, Framework, Listing, Measurement, ProbeRun, Snapshot, Trial
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.rules.catalog import measured_rules
from envcheck.rules.facts.variables import BY_VARIABLE
from tests.every import cases, every
from tests.rules.machines import but, cause, check_of, checks_of, h200, machine, variables, venv, with_venv
from tests.rules.speed.measurements import UUID, figure, gemm, memory_copy, right, wrong

SIDE = (8192, 8192, 8192)
SETTINGS = load_matrix().settings


def product(value: float = 780e12, precision: str = "bf16", variant: str = "eager", **more: Any) -> Measurement:
    facts = {"method": "torch", "precision": precision, "variant": variant, "shape": SIDE, "verification": right()}
    name = more.pop("name", "torch-gemm")
    return figure(name, value, "FLOP/s", **{"detail": "PyTorch 2.11.0", "conditions": None, **facts, **more})


def step(value: float, **more: Any) -> Measurement:
    return product(value, name="torch-training-step", shape=(), **more)


def measured(*figures: Measurement, answers: dict[str, str] | None = None, **changes: Any) -> Snapshot:
    snapshot = machine(h200(sm_count=132), measurements=figures, **changes)
    trial = Trial(source="trial", imported=True, ran_on_gpu=True, proof="", answers=answers or {})
    torch = Framework(source="wheel metadata", name="torch", version="2.11.0", trial=trial)
    return with_venv(snapshot, but(venv(), frameworks=Listing(items=(torch,), complete=True)))


def slow_and_failed_framework() -> Snapshot:
    """Slow products, of which one kind fails, with a setting that costs."""
    failed = Measurement(source="bench", name="torch-convolution", gpu=UUID, missing="no engine", failed=True)
    figures = (gemm(value=800e12), product(80e12), product(51e12, "fp32"), product(410e12, "tf32"), failed)
    return measured(*figures, answers={"TF32 in products": "off"})


def compared(snapshot: Snapshot, **options: Any) -> Any:
    return check_of("framework-slower-than-library", snapshot, **options)


def test_a_framework_as_fast_as_its_library_passes() -> None:
    found = compared(measured(gemm(value=800e12), product(780e12)))
    assert found.status == "pass"
    assert (
        found.title == "GPU 0 (NVIDIA H200): BF16 PyTorch matrix product 8192^3, eager: 98% of what the library reaches"
    )
    assert (found.figure.ceiling, found.figure.share) == (800e12, pytest.approx(0.975))


def test_a_slow_framework_over_a_fast_library_warns() -> None:
    found = compared(measured(gemm(value=800e12), product(80e12)))
    assert (found.status, found.fixes) == ("warn", ())
    assert found.message == "The library is fast, the framework is slow. No setting explains it."


@cases(
    "other",
    gemm("fp16", 800e12),
    gemm(value=800e12, burst=False),
    gemm(value=800e12, shape=(4096, 4096, 4096)),
    gemm(value=800e12, verification=wrong()),
    gemm(value=800e12, gpu="GPU-other"),
    ids=["precision", "sustained", "shape", "wrong result", "other GPU"],
)
def test_only_the_same_work_is_compared(other: Measurement) -> None:
    assert checks_of("framework-slower-than-library", measured(other, product(80e12))) == ()


def test_convolutions_are_compared_in_their_layout() -> None:
    def own(layout: str, value: float) -> Measurement:
        facts = {"method": "cudnn", "precision": "bf16", "variant": f"forward, {layout}"}
        return figure("cudnn-convolution", value, "FLOP/s", **facts)

    theirs = product(400e12, name="torch-convolution", variant="forward, NHWC, eager", shape=())
    assert compared(measured(own("NCHW", 300e12), own("NHWC", 500e12), theirs)).figure.share == pytest.approx(0.8)


def test_the_debug_variable_that_is_set_is_named() -> None:
    slow = measured(gemm(value=800e12), step(2e12))
    slow = but(slow, variables=variables(CUDA_LAUNCH_BLOCKING="1", NCCL_P2P_DISABLE="1"))
    found = compared(slow)
    assert found.status == "warn"
    assert "CUDA_LAUNCH_BLOCKING is set: every kernel launch waits for its end" in found.message
    assert "NCCL" not in found.message
    assert [fix.text for fix in found.fixes] == ["Unset CUDA_LAUNCH_BLOCKING for this program"]


def test_a_variable_that_lowers_the_figure_is_named_whatever_the_share() -> None:
    step_of_gpu = measured(gemm(value=800e12), step(160e12), product(780e12))
    assert {check.status for check in checks_of("framework-slower-than-library", step_of_gpu)} == {"pass"}
    found = checks_of("framework-slower-than-library", but(step_of_gpu, variables=variables(CUDA_LAUNCH_BLOCKING="1")))
    lowered = [check for check in found if check.status == "warn"]
    assert [check.title for check in lowered] == [
        "GPU 0 (NVIDIA H200): BF16 PyTorch training step, eager: 20% of what the library reaches"
    ]
    assert lowered[0].message.startswith("The figure would be higher. CUDA_LAUNCH_BLOCKING is set: every kernel")


def test_the_variable_is_the_cause_of_all_figures_that_name_it_and_of_no_other() -> None:
    convolution = figure(
        "cudnn-convolution", 350e12, "FLOP/s", method="cudnn", precision="bf16", variant="forward, NCHW"
    )
    slow = measured(gemm(value=800e12), step(160e12), convolution)
    assert cause(slow) == "slow-library"
    blocking = but(slow, variables=variables(CUDA_LAUNCH_BLOCKING="1"))
    assert cause(blocking) == "variable-costs-speed"
    assert cause(but(blocking, measurements=(*blocking.measurements, memory_copy(1e12)))) == "slow-gpu-memory"
    assert cause(but(slow, variables=variables(CUDA_CACHE_DISABLE="1"))) == "slow-library"


def test_bench_asks_after_variables_only_where_one_explains_a_figure() -> None:
    def told(snapshot: Snapshot) -> set[str]:
        report = session.judge(snapshot, Request(only=measured_rules(), bench=BenchRequest()))
        return {check.rule for check in report.checks} & set(BY_VARIABLE)

    low = but(measured(gemm(value=800e12), step(16e12)), variables=variables(CUDA_LAUNCH_BLOCKING="1"))
    assert told(low) == {"variable-costs-speed"}
    assert told(but(low, variables=variables(CUDA_CACHE_DISABLE="1", OMP_NUM_THREADS="1"))) == set()
    assert told(but(low, measurements=())) == set()


def test_the_setting_that_the_framework_told_is_named_for_the_work_that_it_slows() -> None:
    answers = {"anomaly detection": "on", "cudnn benchmark": "off", "TF32 in products": "off"}
    found = compared(measured(gemm(value=800e12), step(2e12), answers=answers))
    assert "anomaly detection checks every gradient; it is meant for debugging." in found.message
    assert "cuDNN" not in found.message
    assert "TF32" not in found.message
    told = [(each.what, each.value, each.source) for each in found.evidence][-1]
    assert told == ("anomaly detection", "on", "reported by torch")


def test_what_tf32_would_bring_is_a_note_where_it_is_off_and_was_measured() -> None:
    figures = (product(51e12, "fp32"), product(410e12, "tf32"))
    found = check_of("framework-leaves-speed", measured(*figures, answers={"TF32 in products": "off"}))
    assert (found.status, found.title) == (
        "note",
        "PyTorch: float32 products use no TF32 tensor cores, 8.0 times slower than without that",
    )
    assert 'torch.set_float32_matmul_precision("high")' in found.fixes[0].text
    for quiet in (
        measured(*figures, answers={"TF32 in products": "on"}),
        measured(*figures),
        measured(figures[0], answers={"TF32 in products": "off"}),
        measured(figures[0], product(52e12, "tf32"), answers={"TF32 in products": "off"}),
        measured(figures[0], product(410e12, "tf32", verification=wrong()), answers={"TF32 in products": "off"}),
    ):
        assert checks_of("framework-leaves-speed", quiet) == ()


def test_a_framework_that_fails_at_full_size_is_a_failure() -> None:
    missing = "torch.compile: InductorError: RuntimeError: Failed to find C compiler"
    failed = Measurement(
        source="bench", name="torch-gemm", gpu=UUID, variant="torch.compile", missing=missing, failed=True
    )
    found = check_of("framework-fails-at-work", measured(product(), failed))
    assert (found.status, found.title) == ("fail", f"PyTorch matrix product, torch.compile fails: {missing}")
    works = check_of("framework-fails-at-work", measured(product()))
    assert (works.status, works.title) == ("pass", "PyTorch computes at full size")


def test_a_framework_whose_process_died_is_a_failure_too() -> None:
    run = ProbeRun(source="bench", name="bench.jax", title="JAX at work", status="crashed", detail="crashed: SIGSEGV")
    found = check_of("framework-fails-at-work", but(measured(product()), runs=(run,)))
    assert (found.status, found.title) == ("fail", "JAX at work fails: crashed: SIGSEGV")


def test_a_fallback_to_the_cpu_fails_bench_too() -> None:
    reason = "libcudnn.so.9: cannot open shared object file: No such file or directory"
    trial = Trial(source="trial", imported=True, ran_on_gpu=False, error=f"the CPU computes: {reason}")
    snapshot = measured(gemm(value=800e12))
    assert snapshot.environments
    (environment,) = snapshot.environments.items
    runtime = Framework(source="wheel metadata", name="onnxruntime-gpu", version="1.23.0", cuda="12.8", trial=trial)
    snapshot = with_venv(snapshot, but(environment, frameworks=Listing(items=(runtime,), complete=True)))
    found = [check for check in checks_of("framework-cannot-use-gpu", snapshot) if check.status == "fail"]
    assert found
    assert "libcudnn.so.9" in found[0].message + found[0].title + "".join(each.value for each in found[0].evidence)
    assert "framework-cannot-use-gpu" in measured_rules()


def on_cpu(*figures: Measurement, others: tuple[str, ...] = (), name: str = "onnxruntime") -> Snapshot:
    """A CPU build that was to be measured, with distributions beside it."""
    error = "this build has no CUDAExecutionProvider: it has CPUExecutionProvider (in a matrix product)"
    trial = Trial(source="trial", imported=True, ran_on_gpu=False, error=error)
    build = Framework(source="wheel metadata", name=name, version="1.32.0", cpu_only=True, trial=trial)
    word = name.partition("-")[0]
    run = ProbeRun(source="bench", name=f"bench.{word}", title="", status="absent", framework=name, gpu=UUID)
    packages = tuple(Distribution(source="wheel metadata", name=each, version="1.31.1") for each in (name, *others))
    environment = but(venv(), frameworks=Listing(items=(build,), complete=True), distributions=packages)
    return with_venv(machine(h200(sm_count=132), measurements=figures, runs=(run,)), environment)


def test_a_cpu_build_over_the_one_for_cuda_fails() -> None:
    found = check_of("framework-measured-on-cpu", on_cpu(gemm(), product(), others=("onnxruntime-gpu",)))
    assert (found.status, found.title) == (
        "fail",
        "ONNX Runtime computes on the CPU: onnxruntime 1.32.0 is a CPU build",
    )
    assert "although onnxruntime-gpu 1.31.1 is installed" in found.message
    assert "has no CUDAExecutionProvider" in found.message
    assert any("onnxruntime-gpu" in fix.text for fix in found.fixes)


def test_a_cpu_build_fails_where_nothing_that_was_asked_for_ran_on_the_gpu_and_pytorchs_always() -> None:
    assert check_of("framework-measured-on-cpu", on_cpu(gemm())).status == "fail"
    assert check_of("framework-measured-on-cpu", on_cpu(gemm(), product())).status == "note"
    assert (
        check_of("framework-measured-on-cpu", on_cpu(gemm(), product(name="jax-gemm"), name="torch")).status == "fail"
    )


def test_a_cpu_build_that_nobody_wanted_to_measure_is_no_matter_of_bench() -> None:
    assert checks_of("framework-measured-on-cpu", but(on_cpu(gemm()), runs=())) == ()


@every(SETTINGS)
def test_a_setting_is_about_what_is_measured_and_asked(row: SettingRow) -> None:
    names = {quantity.name for quantity in QUANTITIES if framework_tested(quantity.name)}
    assert set(row.quantities) <= names
    assert all(name.startswith(f"{row.framework}-") for name in row.quantities)
    assert bool(row.slow) == bool(row.fast)
