"""Recorded and constructed machines, judged: the verdict, the root cause and the page that a person reads.

``tests/machines/*.json`` were recorded by ``envcheck check --json``; each says on what. Those in ``constructed`` were
made from the facts of a public dump, which each names. One thing was changed afterwards, but in the one that was
recorded with trials: NumPy 2.5.2 is written 2.4.6, since no release of numba-cuda until then works with 2.5.
"""

from pathlib import Path

import msgspec
import pytest

from envcheck.model.checks import Report
from envcheck.model.snapshot import ApiResult, Gpu, Listing, Snapshot
from envcheck.pipeline.session import Request, judge
from envcheck.report import Options, render
from tests.known import known

FOLDER = Path(__file__).parent / "machines"

RECORDED = {
    "h200": "H200 (sm_90, 140 GiB), idle, no errors",
    "h200x4": "4 x H200 (sm_90, 140 GiB), idle, no errors",
    "h200x4-two-by-variable": "2 of 4 x H200",
    "h200x4-two-by-nodes": "2 of 4 x H200",
}
"""What the GPU row of the page says."""

TRIED = "h100-tried-and-measured"
"""The one that was recorded with ``--deep --bench``: its NumPy is newer than numba-cuda, its ONNX Runtime for CPUs."""

MEASURED = "h200-tensorrt"
"""The one on which TensorRT built and ran engines, with ``bench --full --only tensorrt``."""

WORKING = "h200-tensorflow"
"""The one on which TensorFlow computed, with ``bench --full --frameworks``, beside the libraries of CUDA 12.9."""

OLDER = "h200-older-cudnn"  # The one of README's picture: LD_LIBRARY_PATH names a folder with an older cuDNN

CONSTRUCTED = {
    "container-lost-gpu": "container-lost-gpu", "driver-too-old": "driver-too-old",
    "fabric-manager": "fabric-manager-not-running", "forward-compat": "forward-compat-unsupported",
    "gpu-lost": "gpu-lost", "h100-torch-without-code": "gpu-code-missing",
    "library-mismatch": "driver-library-mismatch", "module-missing": "kernel-module-missing",
    "nouveau": "nouveau-loaded", "secure-boot": "secure-boot-blocks-module", "windows-cpu-only": "cpu-only-build",
}  # fmt: skip
"""The root cause."""


class Recording(msgspec.Struct):
    snapshot: Snapshot
    recorded: str = ""
    built_from: str = ""


def load(name: str) -> Recording:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Recording)


def report_on(name: str) -> Report:
    return judge(load(name).snapshot, Request())


def test_every_file_is_tried_and_says_where_it_comes_from() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == {*RECORDED, TRIED, MEASURED, WORKING, OLDER}
    assert {file.stem for file in (FOLDER / "constructed").glob("*.json")} == set(CONSTRUCTED)
    for name in (*RECORDED, TRIED, MEASURED, WORKING, OLDER):
        assert "2026" in load(name).recorded or "h200x4.json" in load(name).recorded
    for name in CONSTRUCTED:
        assert "#" in load(f"constructed/{name}").built_from


@pytest.mark.parametrize("name", RECORDED)
def test_a_healthy_machine_passes_without_a_remark(name: str) -> None:
    report = report_on(name)
    assert (report.verdict, report.exit_code) == ("pass", 0)
    assert [check.id for check in report.checks if check.status not in ("pass", "skipped")] == []
    assert known(report.snapshot).disagreements == ()
    page = render(report, "text", Options())
    assert RECORDED[name] in page
    assert "static checks only" in page.splitlines()[0]


def test_a_machine_that_was_tried_and_measured() -> None:
    """Each figure of the H100 is as expected, and nothing is remarked but what its environment really has."""
    report = report_on(TRIED)
    assert (report.verdict, report.primary) == ("warn", "numpy-abi-mismatch")
    assert known(report.snapshot).disagreements == ()
    environment = "/opt/torch/.venv"
    assert {check.id: check.status for check in report.checks if check.status not in ("pass", "skipped")} == {
        f"numpy-abi-mismatch@{environment}": "warn",
        f"framework-cannot-use-gpu@{environment}:numba-cuda": "warn",
        f"cpu-only-build@{environment}:onnxruntime": "note",
    }
    assert [check.status for check in report.checks if check.rule.startswith("slow-")] == ["pass"] * 7
    assert "torch 2.11.0+cu130, ran on GPU 0" in " ".join(render(report, "text", Options()).split())


def test_a_container_without_nvml_is_judged_by_what_is_left() -> None:
    found = load("h200").snapshot
    assert found.driver
    assert found.gpus
    driver = msgspec.structs.replace(
        found.driver,
        release=found.kernel.nvidia.version if found.kernel and found.kernel.nvidia else None,
        nvml=ApiResult(source="nvml", call="nvmlInit", code=-1, name="LIBRARY_NOT_FOUND"),
        nvml_version=None,
    )
    runs = tuple(
        msgspec.structs.replace(run, status="absent", detail="libnvidia-ml.so.1 is not installed")
        if run.name == "nvml"
        else run
        for run in found.runs
    )
    gpus = Listing(items=tuple(without(gpu, "nvml") for gpu in found.gpus.items), complete=True)
    report = judge(msgspec.structs.replace(found, driver=driver, gpus=gpus, runs=runs), Request())
    assert report.verdict == "pass"
    statuses = {check.rule: check.status for check in report.checks}
    assert (statuses["driver-too-old"], statuses["uncorrected-ecc"]) == ("pass", "skipped")
    assert "no errors" not in render(report, "text", Options())


def without(gpu: Gpu, source: str) -> Gpu:
    """The GPU less all that was read at ``source``."""
    gone = [name for name, place in gpu.read.items() if place == source]
    return msgspec.structs.replace(gpu, **{name: () if name == "not_supported" else None for name in gone})


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_a_broken_machine_has_its_root_cause_named(name: str) -> None:
    report = report_on(f"constructed/{name}")
    assert (report.verdict, report.exit_code, report.primary) == ("fail", 1, CONSTRUCTED[name])
    check = report.check(report.primary_check)
    assert check is not None
    assert check.evidence
    assert check.fixes
    page = render(report, "text", Options())
    assert page.startswith("FAIL")
    assert len(page.splitlines()) <= 24


def test_an_older_library_on_the_path_is_named_with_the_command_without_it() -> None:
    report = report_on(OLDER)
    assert (report.verdict, report.primary) == ("fail", "library-shadowed")
    check = report.check(report.primary_check)
    assert check is not None
    assert "LD_LIBRARY_PATH" in check.title
    assert "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib" in check.fixes[0].command
    assert "cudnn-mixed-copies" in {each.rule for each in report.checks if each.status == "fail"}


def test_the_engines_that_tensorrt_built_are_right_and_judged() -> None:
    report = report_on(MEASURED)
    figures = {(each.precision, each.variant): each for each in report.measurements if each.value}
    assert set(figures) == {(precision, way) for precision in ("fp32", "fp16", "int8") for way in ("fused", "unfused")}
    for (precision, way), figure in figures.items():
        assert known(figure.verification).right, (precision, way)
        assert ("are one layer" in figure.detail) == (way == "fused")
        assert (figure.value or 0) <= (figures[precision, "fused"].value or 0)
    assert (
        (figures["int8", "fused"].value or 0)
        > (figures["fp16", "fused"].value or 0)
        > (figures["fp32", "fused"].value or 0)
    )
    judged = {
        check.rule: check.status
        for check in report.checks
        if check.rule == "slow-library" and check.status != "skipped"
    }
    assert judged == {"slow-library": "pass"}


def test_a_low_figure_without_a_known_clock_is_not_judged() -> None:
    snapshot = load(MEASURED).snapshot
    slow = tuple(msgspec.structs.replace(each, value=each.value and each.value / 2) for each in snapshot.measurements)
    report = judge(msgspec.structs.replace(snapshot, measurements=slow), Request())
    checks = [check for check in report.checks if check.rule == "slow-library"]
    assert {check.status for check in checks} == {"skipped"}
    assert any("the clock during the run is not known" in check.message for check in checks)


def test_tensorflow_and_the_libraries_below_it_are_right_and_as_fast_as_expected() -> None:
    report = report_on(WORKING)
    own = [figure for figure in report.measurements if figure.name.startswith("tensorflow-")]
    assert {figure.name for figure in own} == {
        f"tensorflow-{work}" for work in ("gemm", "convolution", "attention", "training-step")
    }
    assert all(figure.verification and figure.verification.right for figure in own)
    judged = [check for check in report.checks if check.figure and check.status != "skipped"]
    assert {check.status for check in judged} == {"pass"}
    assert {"framework-slower-than-library", "slow-library", "slow-gemm"} <= {check.rule for check in judged}
    assert [check.rule for check in report.checks if check.status in ("warn", "fail")] == ["damaged-distribution"]


def test_a_framework_slower_than_it_was_on_a_sound_gpu_is_a_finding() -> None:
    snapshot = load(WORKING).snapshot
    slow = tuple(
        msgspec.structs.replace(each, value=each.value and each.value * 0.8) if each.name == "tensorflow-gemm" else each
        for each in snapshot.measurements
    )
    report = judge(msgspec.structs.replace(snapshot, measurements=slow), Request())
    found = [check for check in report.checks if check.rule == "framework-slower-than-library"]
    assert {check.status for check in found if "matrix product" in check.title} == {"warn"}
    assert {check.status for check in found if "matrix product" not in check.title} == {"pass"}
