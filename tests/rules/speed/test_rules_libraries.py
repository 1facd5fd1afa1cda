"""Libraries that do their work on the GPU, those that fail, and what is named as the cause."""

from typing import Any

from envcheck.collect.plan import BenchRequest
from envcheck.model.checks import Check, Fix
from envcheck.model.snapshot import (
    DamagedFile,
    Distribution,
    Library,
    Listing,
    Measurement,
    ProbeRun,
    Shipped,
    Snapshot,
)
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.rules.catalog import measured_rules
from tests.every import cases
from tests.rules.machines import but, check_of, checks_of, h200, machine, variables, venv, with_venv
from tests.rules.speed.measurements import UUID, figure, gemm, right, wrong

SITE = "/srv/venv/lib/python3.12/site-packages"
CUDNN = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
REFUSED = "cudnnCreate: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED (1012)"
WHEEL = "nvidia-cudnn-cu12"


def convolution(**more: Any) -> Measurement:
    facts = {"method": "cudnn", "precision": "fp16", "variant": "forward, NHWC", "library": CUDNN}
    return figure("cudnn-convolution", more.pop("value", 500e12), "FLOP/s", **{**facts, **more})


def untimed(**more: Any) -> Measurement:
    """As a deep check has it."""
    return but(convolution(verification=right(), **more), value=None, samples=(), conditions=None)


def refused(**more: Any) -> Measurement:
    return Measurement(
        source="bench", name="cudnn-convolution", gpu=UUID, missing=REFUSED, failed=True, library=CUDNN, **more
    )


def measured(*figures: Measurement, **changes: Any) -> Snapshot:
    return machine(h200(sm_count=132), measurements=figures, **changes)


def with_cudnn(snapshot: Snapshot, **environment: Any) -> Snapshot:
    """An environment whose wheel brought the library."""
    library = Library(source="elf", path=CUDNN, family="cudnn", owner=f"{WHEEL}==9.1.0.70", environment=venv().key)
    path = f"{SITE}/nvidia_cudnn_cu12-9.1.0.70.dist-info"
    wheel = Distribution(source="wheel metadata", name=WHEEL, version="9.1.0.70", path=path, channel="pip", record=True)
    judged = but(venv(), distributions=(wheel,), distributions_complete=True, damaged=(), **environment)
    return with_venv(but(snapshot, libraries=Listing(items=(library,), complete=True)), judged)


def test_libraries_that_work_pass_also_where_nothing_was_timed() -> None:
    found = check_of("library-fails", measured(untimed()))
    assert (found.status, found.title) == ("pass", "cuDNN works on the GPU")
    both = measured(convolution(verification=right()), figure("cusparse-spmv", 3e12, verification=right()))
    assert check_of("library-fails", both).title == "cuDNN, cuSPARSE work on the GPU"


def test_untimed_work_is_no_figure() -> None:
    assert not checks_of("slow-library", measured(untimed()))
    assert check_of("wrong-result", measured(untimed())).status == "pass"
    assert check_of("wrong-result", measured(but(untimed(), verification=wrong()))).status == "fail"


def test_the_question_does_not_arise_where_no_library_was_asked() -> None:
    assert not checks_of("library-fails", measured(gemm(verification=right())))
    assert not checks_of("library-fails", measured(but(refused(), failed=False, missing="no cuDNN was found")))


def test_a_library_that_refuses_fails_in_its_own_words() -> None:
    found = check_of("library-fails", measured(refused(precision="fp16"), refused(precision="bf16")))
    assert (found.status, found.title) == ("fail", f"cuDNN fails on the GPU: {REFUSED}")
    assert [each.value for each in found.evidence] == [REFUSED, REFUSED]
    assert found.fixes[0].command == ("envcheck", "check", "--verify")


@cases(
    "code, title, words",
    (("sm_80", "sm_86"), "cuDNN has no code for GPU 0 (NVIDIA H200)", "none of which runs on sm_90"),
    (("sm_80", "compute_80"), f"cuDNN fails on the GPU: {REFUSED}", "compute_80"),
    (("sm_80", "sm_90"), f"cuDNN fails on the GPU: {REFUSED}", REFUSED),
)
def test_a_library_that_fails_for_want_of_code_for_the_gpu_says_so(
    code: tuple[str, ...], title: str, words: str
) -> None:
    """Libraries themselves answer that they are not initialized, or that a launch failed."""
    snapshot = with_cudnn(measured(refused()))
    assert snapshot.libraries is not None
    old = but(snapshot.libraries.items[0], gpu_code=code)
    found = check_of("library-fails", but(snapshot, libraries=Listing(items=(old,), complete=True)))
    assert found.title == title
    assert words in found.message


@cases("probe", "bench.cudnn", "bench.cudnn_gpus")
def test_a_process_that_died_in_a_library_is_its_failure_and_not_the_gpus(probe: str) -> None:
    run = ProbeRun(name=probe, title="cuDNN", status="crashed", detail="crashed: SIGSEGV", gpu=UUID)
    snapshot = measured(gemm(verification=right()), runs=(run,))
    assert check_of("library-fails", snapshot).title == "cuDNN fails on the GPU: crashed: SIGSEGV"
    assert check_of("library-fails", with_cudnn(snapshot)).evidence[0].what == f"{WHEEL}==9.1.0.70"
    other = check_of("measurement-unfinished", snapshot)
    assert (other.explained_by or "").startswith("library-fails")


@cases("status", "timed-out", "failed", "skipped")
def test_a_process_that_ended_otherwise_leaves_the_question_open(status: Any) -> None:
    run = ProbeRun(name="bench.cudnn", title="cuDNN", status=status, detail="x", gpu=UUID)
    assert not checks_of("library-fails", measured(gemm(), runs=(run,)))


def test_damage_is_the_cause_also_where_only_figures_were_asked_for() -> None:
    """``envcheck bench`` judges figures alone; where a library fails, it looks for the cause."""
    file = DamagedFile(
        source=f"file {SITE}/nvidia_cudnn_cu12-9.1.0.70.dist-info/RECORD",
        path=f"{SITE}/nvidia/cudnn/lib/libcudnn_cnn.so.9", package=WHEEL, version="9.1.0.70", kind="missing",
    )  # fmt: skip
    shipped = Shipped(source="wheel metadata", damaged=(file,), complete=True)
    request = Request(only=measured_rules(), bench=BenchRequest())

    def report(**environment: Any) -> dict[str, Check]:
        judged = session.judge(with_cudnn(measured(refused(), gemm()), **environment), request)
        found = {check.rule: check for check in judged.checks if check.status == "fail"}
        assert judged.primary_check in {check.id for check in found.values()}
        return {**found, "primary": next(check for check in judged.checks if check.id == judged.primary_check)}

    damaged = report(shipped=shipped)
    assert damaged["primary"].rule == "damaged-distribution"
    assert "libcudnn_cnn.so.9 is missing" in damaged["primary"].title
    assert damaged["library-fails"].explained_by == damaged["primary"].id
    assert f"{WHEEL}==9.1.0.70" in damaged["primary"].fixes[0].command
    assert report()["primary"].rule == "library-fails"


def on_processor(**more: Any) -> Measurement:
    return figure("cpu-gemm", 1.2e12, "FLOP/s", gpu=None, precision="fp32", detail="OpenBLAS", **more)


def test_the_processor_is_held_to_its_results_too() -> None:
    assert check_of("wrong-cpu-result", measured(on_processor(verification=right()))).status == "pass"
    found = check_of("wrong-cpu-result", measured(on_processor(verification=wrong())))
    assert (found.status, found.title) == ("fail", "FP32 CPU matrix product: wrong result")
    assert not checks_of("wrong-cpu-result", measured(gemm(), on_processor()))


def test_files_that_are_as_shipped_are_not_compared_once_more() -> None:
    verified = Shipped(source="wheel metadata", packages=(WHEEL,), files=9, bytes=1 << 30, complete=True)
    fixes = check_of("library-fails", with_cudnn(measured(refused()), verified=verified)).fixes
    assert [f"{WHEEL}==9.1.0.70" in fix.command for fix in fixes] == [True]


VERIFIED = Shipped(source="wheel metadata", packages=("numpy",), files=9, bytes=1 << 30, complete=True)


def fixes_of(failed: Measurement, library: Library | None, **changes: Any) -> list[Fix]:
    """The fixes where all files of the environment are as shipped."""
    snapshot = measured(failed, libraries=Listing(items=((library,) if library else ()), complete=True), **changes)
    judged = but(venv(), distributions=(), distributions_complete=True, damaged=(), verified=VERIFIED)
    return list(check_of("library-fails", with_venv(snapshot, judged)).fixes)


def cudnn(path: str, **facts: Any) -> Library:
    return Library(source="elf", path=path, family="cudnn", **facts)


@cases(
    "facts, words",
    ({"owner": "libcudnn9-cuda-12 9.5.1.17-1", "origin": "system"}, "Install libcudnn9-cuda-12 again, with the sys"),
    ({"origin": "toolkit"}, "Install the CUDA Toolkit that holds /opt/lib/libcudnn.so.9 again"),
    ({}, "Replace /opt/lib/libcudnn.so.9, which no package owns: install cuDNN again the way that put it there"),
)
def test_a_library_of_no_wheel_has_a_next_step(facts: dict[str, Any], words: str) -> None:
    path = "/opt/lib/libcudnn.so.9"
    (fix,) = fixes_of(but(refused(), library=path), cudnn(path, **facts))
    assert fix.text.startswith(words)


def test_a_library_that_a_variable_puts_first_is_taken_out_of_it() -> None:
    path = "/opt/lib/libcudnn.so.9"
    searched = variables(LD_LIBRARY_PATH="/opt/lib:/srv/lib")
    (fix,) = fixes_of(but(refused(), library=path), cudnn(path), variables=searched)
    assert fix.command == ("env", "LD_LIBRARY_PATH=/srv/lib", "python")


def test_where_no_file_is_known_the_loader_is_asked() -> None:
    first, second = fixes_of(but(refused(), library=None), None)
    assert first.command[:2] == ("env", "LD_DEBUG=libs")
    assert second.command == ("printenv", "LD_LIBRARY_PATH")


def test_a_library_of_conda_is_installed_again_by_conda() -> None:
    path = f"{SITE}/../../libcudnn.so.9"
    package = Distribution(source="conda", name="cudnn", version="9.3.0", path="/srv/venv/conda-meta", channel="conda")
    snapshot = measured(
        but(refused(), library=path), libraries=Listing(items=(cudnn(path, owner="cudnn 9.3.0"),), complete=True)
    )
    judged = but(venv(), distributions=(package,), distributions_complete=True, damaged=(), verified=VERIFIED)
    (fix,) = check_of("library-fails", with_venv(snapshot, judged)).fixes
    assert "cudnn=9.3.0" in fix.command
