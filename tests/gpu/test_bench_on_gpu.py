"""``envcheck bench`` on a real GPU: figures, and faults that are really caused.

No time is asserted: figures are compared in benchmarks/. Faults in kernels come from sources that the tests patch and
compile; the product has no switch for them.
"""

import ctypes
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect import child
from envcheck.collect.catalog import all_probes, probes_in
from envcheck.collect.gather import gather
from envcheck.collect.plan import BenchRequest as Wish
from envcheck.collect.plan import choose, request_of
from envcheck.knowledge.load import load_matrix
from envcheck.model import events
from envcheck.model.merge import merge
from envcheck.pipeline.session import Request, gather_here
from probes.bench import gemm as bench_gemm
from probes.bench.memory import Buffers, Traffic
from probes.measuring.cublaslt import PRECISIONS, CublasLt
from probes.measuring.device import Device, call, ordinals
from probes.measuring.host_copies import SIZE as LINK_BYTES
from probes.measuring.host_copies import HostCopies, HostMemory
from probes.measuring.kernels import FOLDER, STANDARD, Compiler, Module, Nvrtc
from probes.measuring.measurement import Bench, run_task
from probes.measuring.peer_copies import SIZE as PEER_BYTES
from probes.measuring.peer_copies import PeerCopies
from probes.measuring.runtime import FigureKey
from probes.measuring.sampler import Sampler
from tests.every import cases

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
QUICK = {"gemm", "device-memory-copy", "device-memory-read", "host-to-device", "device-to-host"}
BUSY = """
import sys; sys.path.insert(0, {root!r})
from probes.measuring.device import Device
from probes.measuring.kernels import Compiler, Module, pointer
import ctypes, time
device = Device(0)
module = Module(device, Compiler({nvrtc!r}, device.capability).module("compute", ("-DKIND=1",)))
wrong = device.allocate(8)
device.fill(wrong, 8, 0)
print("busy", flush=True)
until = time.monotonic() + 120
while time.monotonic() < until:
    module.kernel("throughput").launch(device.sms * 8, 256, (1 << 16, ctypes.c_int), pointer(wrong))
    device.synchronize()
"""
FULL = """
import sys; sys.path.insert(0, {root!r})
from probes.measuring.device import Device
import time
device = Device(0)
device.allocate(device.free_memory() - ({left} << 20))
print("full", flush=True)
time.sleep(120)
"""


@cache
def facts() -> Any:
    return gather_here(Request(variables=dict(os.environ)))


@cache
def libraries() -> dict[str, list[str]]:
    wish = Wish(force=True)
    found: dict[str, list[str]] = request_of(wish, choose(facts(), wish), facts())["libraries"]
    return found


REQUEST = "envcheck.collect.trials.request_of"


def with_libraries(*given: Any) -> dict[str, Any]:
    """The request for bench probes where the probes that look for libraries are not run."""
    return {**request_of(*given), "libraries": libraries()}


def bench(*options: str, **variables: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "envcheck", "bench", "--json", *options]
    done = subprocess.run(command, cwd="/", env={**VARIABLES, **variables}, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def by_name(report: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for measured in report["measurements"]:
        found.setdefault(measured["name"], []).append(measured)
    return found


def statuses(report: dict[str, Any], prefix: str = "slow-") -> set[str]:
    return {check["status"] for check in report["checks"] if check["rule"].startswith(prefix)}


def bench_runs(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {run["name"]: run for run in report["probes"] if run["name"].startswith("bench.")}


def said(report: dict[str, Any], name: str = "bench.memory") -> str:
    """What a probe said of its end."""
    return str(bench_runs(report)[name]["detail"])


def several() -> bool:
    """Whether CUDA shows two GPUs or more."""
    return len(ordinals()) > 1


def first_gpu() -> str:
    """The number, as nvidia-smi shows it, of the GPU that is CUDA's first: the one that ``beside`` works on."""
    (index,) = [gpu.index for gpu in facts().gpus.items if gpu.cuda_ordinal == 0]
    return str(index)


@contextmanager
def beside(source: str, **values: Any) -> Iterator[None]:
    """Another process on the GPU."""
    code = source.format(root=str(ROOT), nvrtc=libraries()["nvrtc"], **values)
    with subprocess.Popen([sys.executable, "-c", code], env=VARIABLES, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            assert process.stdout.readline()
            time.sleep(3)
            yield
        finally:
            process.kill()
    time.sleep(2)


# --- sound --------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def quick() -> tuple[int, dict[str, Any]]:
    return bench()


def test_quick_measures_judges_and_verifies(quick: tuple[int, dict[str, Any]]) -> None:
    status, report = quick
    found = by_name(report)
    assert status == 0, report["headline"]
    assert set(found) >= QUICK
    if not libraries().get("nccl"):
        found.pop("nccl-all-reduce", None)
    assert all(measured["value"] for each in found.values() for measured in each)
    assert all(measured["verification"]["right"] for each in found.values() for measured in each)
    judged = [check for check in report["checks"] if check["rule"].startswith("slow-")]
    between = [check for check in judged if check["rule"] in ("slow-collective", "slow-peer-link")]
    assert bool(between) is several()
    assert {check["status"] for check in judged if check not in between} == {"pass"}
    for check in between:  # not every link and number of GPUs has a known share
        assert check["status"] == "pass" or check["message"].startswith("Measured, not judged: "), check["title"]
    assert statuses(report, "wrong-result") == {"pass"}


def test_conditions_go_with_each_figure(quick: tuple[int, dict[str, Any]]) -> None:
    for measured in quick[1]["measurements"]:
        conditions = measured["conditions"]
        assert conditions["samples"] > 0
        assert {"sm_clock", "power", "temperature", "power_limit", "pcie_width", "memory_before"} <= set(conditions)


SEVERAL = ("launch-and-sync", "kernel-launch", "latency-l1", "copy-latency", "both-directions", "fma", "peer-to-peer")


def test_conditions_go_with_figures_of_full_too() -> None:
    _, report = bench("--full", *(word for name in SEVERAL for word in ("--only", name)))
    found = by_name(report)
    assert set(found) >= set(SEVERAL) - {"peer-to-peer"}
    figures = [each for name in SEVERAL for each in found.get(name, [])]
    for measured in figures:
        assert measured["conditions"]["samples"] > 0, measured["name"]
        assert {"sm_clock", "power_limit", "temperature_after"} <= set(measured["conditions"])
    verified = [each for each in figures if each["name"] not in ("launch-and-sync", "kernel-launch")]
    assert all(each["verification"]["right"] for each in verified)


def test_products_come_from_the_file_that_the_environment_would_load(quick: tuple[int, dict[str, Any]]) -> None:
    for measured in by_name(quick[1])["gemm"]:
        assert measured["library"] == libraries()["cublasLt"][0]


def test_products_say_which_algorithm_did_them(quick: tuple[int, dict[str, Any]]) -> None:
    """The layout, and nine numbers of cuBLASLt's; GPUs are compared by it."""
    for measured in by_name(quick[1])["gemm"]:
        assert re.fullmatch(r"(TN|NN) [0-9]+(-([0-9]+|[?])){8}", measured["algorithm"]), measured["algorithm"]


def test_a_product_is_held_to_the_peak_of_its_own_data_sheet(quick: tuple[int, dict[str, Any]]) -> None:
    report = quick[1]
    row = load_matrix().model_of(facts().gpus.items[0])
    assert row is not None
    peaks = row.peaks
    assert peaks is not None
    for check in report["checks"]:
        if check["rule"] == "slow-gemm":
            assert check["status"] == "pass", check["title"]
            assert {source["title"] for source in check["sources"]} & {
                source.title for source in load_matrix().cite(row)
            }
    bf16 = [each["value"] for each in by_name(report)["gemm"] if each["precision"] == "bf16"]
    assert all(0.6 * (peaks.bf16 or 0) < value < 1.03 * (peaks.bf16 or 0) for value in bf16)


def test_ctrl_c_gives_what_was_measured() -> None:
    command = [sys.executable, "-m", "envcheck", "bench", "--json"]
    with subprocess.Popen(command, cwd="/", env=VARIABLES, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(6)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
    report = json.loads(out)
    assert process.returncode == 130
    assert report["exit_code"] == 130
    assert report["measurements"]
    assert any("interrupted" in said(report, name) for name in bench_runs(report))


# --- nothing to measure with --------------------------------------------------------------------------------------
@cases("hidden", "", "-1")
def test_a_hidden_gpu_is_not_measured(hidden: str) -> None:
    status, report = bench(CUDA_VISIBLE_DEVICES=hidden)
    assert status == 3
    assert report["measurements"] == []
    assert {run["status"] for run in bench_runs(report).values()} == {"skipped"}


def measure(*names: str, only: tuple[str, ...] = (), without: tuple[str, ...] = (), **changes: Any) -> Any:
    """Run bench probes with libraries taken away, in children as ever."""
    specs = [spec for spec in all_probes() if spec.name in (*names, "cuda", "nvml")]
    wish = Wish(force=True, only=only, full=bool(changes.get("full")))
    with pytest.MonkeyPatch.context() as patch:

        def less(*arguments: Any) -> dict[str, Any]:
            request = request_of(*arguments)
            request["libraries"] = {family: [] if family in without else paths for family, paths in libraries().items()}
            return request

        patch.setattr(REQUEST, less)
        request = {"root": "/", "variables": {}, "cwd": "/", "python": []}
        return merge(gather(specs, request, scopes=["node", "container", "env"], bench=wish))


def test_without_nvrtc_each_measurement_says_so() -> None:
    found = measure("bench.memory", "bench.gemm", "bench.links", without=("nvrtc",))
    assert {measured.name for measured in found.measurements} == QUICK | ({"peer-to-peer"} if several() else set())
    for measured in found.measurements:
        assert measured.value is None
        assert "NVRTC" in (measured.missing or "")


def test_without_cublas_only_products_are_missing() -> None:
    found = measure("bench.memory", "bench.gemm", without=("cublasLt",))
    products = [measured for measured in found.measurements if measured.name == "gemm"]
    copies = [measured for measured in found.measurements if measured.name == "device-memory-copy"]
    assert len({measured.gpu for measured in products}) == len({measured.gpu for measured in copies}) == len(ordinals())
    assert all(measured.value for measured in copies)
    for measured in products:
        assert measured.value is None
        assert "no cuBLASLt was found" in (measured.missing or "")


# --- others on the GPU --------------------------------------------------------------------------------------------
def test_a_busy_gpu_is_skipped_and_with_force_not_judged() -> None:
    with beside(BUSY):
        status, report = bench("--gpu", first_gpu())
        assert status == 3
        assert report["measurements"] == []
        assert "is busy" in said(report)
        status, report = bench("--gpu", first_gpu(), "--force", "--only", "device-memory-copy")
        assert status == 3
        assert by_name(report)["device-memory-copy"][0]["value"]
        assert statuses(report) == {"skipped"}
        assert "another program used the GPU" in report["headline"]


def test_a_gpu_in_use_beside_an_idle_one_leaves_no_verdict() -> None:
    if not several():
        pytest.skip("needs two GPUs")
    with beside(BUSY):
        status, report = bench("--only", "device-memory-copy")
        assert status == 3
        assert re.search(r"no verdict: \d of \d GPUs measured, GPU \d in use", report["headline"])
        assert statuses(report, "gpu-not-measured") == {"unknown"}


def test_a_hidden_gpu_is_said() -> None:
    if not several():
        pytest.skip("needs two GPUs")
    status, report = bench("--only", "device-memory-copy", CUDA_VISIBLE_DEVICES="0")
    assert status == 0
    assert re.search(r"1 of \d GPUs measured, GPUs? [\d, -]+ hidden from CUDA", report["headline"])


def test_gpus_of_a_machine_are_compared(quick: tuple[int, dict[str, Any]]) -> None:
    gpus = {measured["gpu"] for measured in quick[1]["measurements"] if measured["value"]}
    if len(gpus) < 2:
        assert quick[1]["across_gpus"] == []
        return
    names = {found["name"].partition("-8192")[0] for found in quick[1]["across_gpus"]}
    assert names >= {"device-memory-copy", "gemm-bf16"}
    assert statuses(quick[1], "gpu-straggler") == {"pass"}


def test_memory_that_others_hold_is_skipped_and_with_force_said() -> None:
    with beside(FULL, left=1500):
        status, report = bench("--gpu", first_gpu())
        assert status == 3
        assert "of its memory are in use" in said(report)
        status, report = bench("--gpu", first_gpu(), "--force")
        found = by_name(report)
        assert status == 3
        assert "MiB are free" in found["device-memory-copy"][0]["missing"]
        assert statuses(report) == {"skipped"}
        assert statuses(report, "measurement-unfinished") == set()


def test_a_gpu_without_room_for_a_context_is_no_pass() -> None:
    with beside(FULL, left=64):
        status, report = bench("--gpu", first_gpu(), "--force")
        assert status == 3
        assert "OUT_OF_MEMORY" in said(report)
        assert report["verdict"] == "unknown"


def test_a_gpu_without_room_beside_an_idle_one_is_no_pass_and_blames_no_library() -> None:
    if not several():
        pytest.skip("needs two GPUs")
    known = ordinals()
    with beside(FULL, left=64):
        status, report = bench("--force")
    full = next(uuid for uuid, ordinal in known.items() if ordinal == 0)
    timed = {(measured["name"], measured["gpu"]) for measured in report["measurements"] if measured["value"]}
    assert {name for name, gpu in timed if gpu not in (None, full)} >= QUICK
    assert not [name for name, gpu in timed if gpu == full]
    assert statuses(report, "measurement-unfinished") == {"unknown"}
    assert statuses(report, "collective-fails") <= {"unknown"}
    assert (status, report["verdict"]) == (3, "unknown"), report["headline"]


# --- kernels at fault ---------------------------------------------------------------------------------------------
@pytest.fixture
def workshop() -> Iterator[Any]:
    uuid, ordinal = next(iter(ordinals().items()))
    with Device(ordinal) as device:
        compiler = Compiler(libraries()["nvrtc"], device.capability)
        yield Bench(uuid, device, Sampler(uuid, {}), compiler, True, frozenset(), libraries())


def patched(bench: Any, name: str, options: tuple[str, ...], old: str, new: str) -> Any:
    """The kernels of a source in which ``old`` was changed."""
    source = Path(FOLDER, f"{name}.cu").read_text(encoding="utf-8")
    assert source.count(old) == 1
    major, minor = bench.device.capability
    nvrtc = Nvrtc(libraries()["nvrtc"][0])
    code = nvrtc.cubin(source.replace(old, new), f"{name}.cu", f"sm_{major}{minor}", (STANDARD, *options))
    return Module(bench.device, code)


@cases("kind", "copy", "triad", "read", "write")
def test_a_kernel_that_miscomputes_one_word_is_caught(kind: str, workshop: Any) -> None:
    changes = {
        "copy": (
            "if (i < pairs) store(to + i, held[k]);",
            "if (i < pairs) { if (i == 12345) held[k].low ^= 1; store(to + i, held[k]); }",
        ),
        "write": (
            "store(to + i, Pair{seed ^ (Word)i, seed});",
            "store(to + i, Pair{seed ^ (Word)(i == 12345 ? 0 : i), seed});",
        ),
        "triad": ("a[k].x + 3.0 * b[k].x", "a[k].x + (i == 12345 ? 3.5 : 3.0) * b[k].x"),
        "read": ("sum += held[k].low + held[k].high;", "sum += held[k].low + held[k].high + (first + k == 12345);"),
    }
    traffic = Traffic(workshop, Buffers(workshop.device, 3))
    figure = FigureKey(f"device-memory-{kind}")
    assert run_task(workshop, figure, partial(traffic.made, kind))["verification"]["right"]
    traffic.streaming = patched(workshop, "memory", ("-DUNROLL=1",), *changes[kind])
    traffic.unrolled = patched(workshop, "memory", ("-DUNROLL=4",), *changes[kind])
    found = run_task(workshop, figure, partial(traffic.made, kind))["verification"]
    assert (found["right"], found["wrong"]) == (False, 1)


@cases("precision", "fp64", "tf32", "bf16", "fp8", "int8")
def test_one_wrong_element_in_ten_thousand_tiles_is_caught(precision: str, workshop: Any) -> None:
    """128 x 128 tiles of 64 x 64 elements are 16,384; one element of the product is spoiled after each run."""
    if workshop.device.capability < PRECISIONS[precision].least:
        pytest.skip("this GPU has no such precision")
    runner = bench_gemm.CublasRunner(workshop, CublasLt(libraries()["cublasLt"][0]))
    figure = FigureKey("gemm", precision, (8192, 8192, 512))
    sound = run_task(workshop, figure, partial(runner.product, figure))["verification"]
    assert (sound["right"], sound["checked"]) == (True, 8192 * 8192)
    real = runner._run

    def spoiled(product: Any, algorithm: Any, operands: Any) -> None:
        real(product, algorithm, operands)
        size = PRECISIONS[precision].result_size
        workshop.device.fill((operands.addresses[2] + random.Random(3).randrange(8192 * 8192) * size), size, 0x3F)

    runner._run = spoiled  # type: ignore[method-assign]
    found = run_task(workshop, figure, partial(runner.product, figure))["verification"]
    assert (found["right"], found["wrong"], found["checked"]) == (False, 1, 8192 * 8192)


@cases("way, place", ("_to_gpu", 0), ("_to_host", 0), ("_to_gpu", 1), ("_to_host", 1))
def test_one_wrong_word_of_copies_both_ways_at_once_is_caught(way: str, place: int, workshop: Any) -> None:
    """``place``: whether the copy is spoiled at its beginning or at its end."""
    copies = HostCopies(workshop, HostMemory(workshop.device))
    sound = copies.both_ways()["verification"]
    assert (sound["right"], sound["checked"]) == (True, 2 * LINK_BYTES // 8)
    real = getattr(copies, way)
    offset = place * (LINK_BYTES - 8)

    def spoiled(target: int, source: int, *stream: Any) -> None:
        real(target, source, *stream)
        if way == "_to_gpu":
            workshop.device.fill(target + offset, 8, 0x11)
        elif not stream:
            return
        else:
            call("cuStreamSynchronize", stream[0])
            ctypes.memset(target + offset, 0x11, 8)

    setattr(copies, way, spoiled)
    found = copies.both_ways()["verification"]
    assert not found["right"]
    assert found["wrong"] <= 2


@cases("both", False, True)
def test_one_wrong_word_of_copies_between_gpus_is_caught(both: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    known = ordinals()
    if len(known) < 2:
        pytest.skip("there is one GPU")
    devices = [Device(ordinal) for ordinal in list(known.values())[:2]]
    first, second = [
        Bench(uuid, device, Sampler(uuid, {}), Compiler(libraries()["nvrtc"], device.capability), True, frozenset(), {})
        for uuid, device in zip(known, devices, strict=False)
    ]
    copies = PeerCopies(first, second, "NVLink", both=both)
    measure = copies.both_ways if both else copies.one_way
    sound = measure()["verification"]
    assert (sound["right"], sound["checked"]) == (True, (1 + both) * PEER_BYTES // 8)

    def spoiled(name: str, *arguments: Any) -> Any:
        done = call(name, *arguments)
        if name == "cuMemcpyDtoDAsync":
            target, source, _, stream = arguments
            call(name, target + PEER_BYTES - 8, source, 8, stream)
        return done

    monkeypatch.setattr("probes.measuring.peer_copies.call", spoiled)
    found = measure()["verification"]
    assert (found["right"], found["wrong"]) == (False, 1 + both)
    copies.close()


def test_a_kernel_that_never_ends_costs_only_its_own_figures(tmp_path: Path) -> None:
    """The shipped probes, with one kernel changed in a copy."""
    folder = tmp_path / "probes"
    shutil.copytree(ROOT / "probes", folder)
    source = folder / "kernels" / "memory.cu"
    text = source.read_text()
    assert text.count("    Word sum = 0;\n") == 1
    source.write_text(
        text.replace("    Word sum = 0;\n", "    Word sum = 0;\n    while (*(volatile Word *)total != 1) {}\n")
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("envcheck.collect.trials._QUICK_SECONDS", 12.0)
        patch.setattr(REQUEST, with_libraries)
        specs = [spec for spec in probes_in(folder) if spec.name in ("cuda", "nvml", "bench.memory", "bench.links")]
        request = {"root": "/", "variables": {}, "cwd": "/", "python": []}
        scopes: Any = ["node", "container", "env"]
        found = merge(gather(specs, request, scopes=scopes, bench=Wish(force=True), folder=folder))
    runs = [run for run in found.runs if run.name == "bench.memory"]
    assert len(runs) == len(ordinals())
    for run in runs:
        assert run.status == "timed-out"
        assert "while device-memory-read" in run.detail
    figures: dict[str, set[str | None]] = {}
    for measured in found.measurements:
        if measured.value:
            figures.setdefault(measured.name, set()).add(measured.gpu)
    assert figures["device-memory-copy"] == figures["host-to-device"] == set(ordinals())
    assert "device-memory-read" not in figures


def test_a_child_that_is_killed_leaves_what_it_had_measured() -> None:
    """The child of one GPU is killed as soon as it has sent a figure."""
    started: list[int] = []
    figures: list[str] = []
    real = child.Child.__init__

    def noted(self: Any, *given: Any) -> None:
        real(self, *given)
        started.append(self.pid)

    def kill(event: events.Event) -> None:
        if isinstance(event, events.Progress) and event.name == "bench.gemm":
            figures.append(event.text)
            if len(figures) == 2:
                os.kill(started[-1], signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child.Child, "__init__", noted)
        patch.setattr(REQUEST, with_libraries)
        specs = [spec for spec in all_probes() if spec.name in ("cuda", "nvml", "bench.memory", "bench.gemm")]
        scopes: Any = ["node", "container", "env"]
        request = {"root": "/", "variables": {}, "cwd": "/", "python": []}
        wish = Wish(force=True, gpus=(int(first_gpu()),))
        found = merge(gather(specs, request, scopes=scopes, bench=wish, on_event=kill))
    runs = {run.name: run for run in found.runs}
    assert runs["bench.gemm"].status == "crashed"
    assert "SIGKILL" in runs["bench.gemm"].detail
    assert len([measured for measured in found.measurements if measured.name == "gemm"]) == 1
    assert runs["bench.memory"].status == "ok"
