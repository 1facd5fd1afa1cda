"""What is measured, on which GPUs, and under which interpreter of the environment."""

import json
import os
import signal
import sys
from typing import Any

import pytest

from envcheck.collect.plan import BenchRequest, Chosen, choose, compared, request_of
from envcheck.model import events
from envcheck.model.gpus import GpuLink
from envcheck.model.merge import merge
from envcheck.model.snapshot import Gpu, Library, Listing, ProbeRun, Snapshot
from envcheck.model.software import Load
from tests.collect.test_bench import GPUS, when
from tests.every import cases
from tests.known import known
from tests.rules.machines import but, h200, links, machine, torch, venv, with_venv

SITE = "/home/ada/p/.venv/lib/python3.12/site-packages"
GIB = 1 << 30


def uuids(found: tuple[Gpu, ...]) -> list[int | None]:
    return [gpu.index for gpu in found]


# --- GPUs ---------------------------------------------------------------------------------------------------------
def test_all_that_cuda_shows_in_cudas_order() -> None:
    turned = machine(h200(0, cuda_ordinal=1), h200(1, cuda_ordinal=0), h200(2, cuda_ordinal=None))
    assert uuids(choose(turned, BenchRequest()).gpus) == [1, 0]


def test_only_those_that_were_asked_for() -> None:
    four = machine(*map(h200, range(4)))
    assert uuids(choose(four, BenchRequest(gpus=(3, 1))).gpus) == [1, 3]
    assert choose(four, BenchRequest(gpus=(7,))).gpus == ()


@cases("changes, words",
    ({"utilisation": 0.97}, "GPU 1 is busy (a kernel ran 97% of the time)"),
    ({"memory__used": 100 * GIB}, "GPU 1 is busy (100.0 of 140 GiB of its memory are in use)"),
)  # fmt: skip
def test_a_busy_gpu_is_left_out_unless_forced(changes: dict[str, Any], words: str) -> None:
    busy = but(h200(1), **changes)
    chosen = choose(machine(h200(0), busy), BenchRequest())
    assert uuids(chosen.gpus) == [0]
    assert dict(chosen.refused) == {busy.uuid: words}
    assert uuids(choose(machine(h200(0), busy), BenchRequest(force=True)).gpus) == [0, 1]


def test_nothing_is_chosen_where_nothing_is_known() -> None:
    assert choose(Snapshot(), BenchRequest()).gpus == ()
    assert choose(machine(h200(uuid=None)), BenchRequest()).gpus == ()


# --- the request --------------------------------------------------------------------------------------------------
def asked(snapshot: Snapshot, **wish: Any) -> dict[str, Any]:
    bench = BenchRequest(**wish)
    return request_of(bench, choose(snapshot, bench), snapshot)


def test_what_was_seen_before_goes_along() -> None:
    gpu = h200(0, utilisation=0.05, numa_node=1)
    (told,) = asked(machine(gpu), full=True, only=("gemm",))["gpus"]
    assert (told["uuid"], told["numa_node"]) == (gpu.uuid, 1)
    assert told["before"] == {"utilisation_before": 5.0, "memory_before": 0, "temperature_before": 30.0, "ecc": True}


def test_the_wish_goes_along() -> None:
    found = asked(machine(), full=True, only=("gemm", "fma"))
    assert (found["full"], found["only"]) == (True, ["gemm", "fma"])


def loaded(name: str, path: str) -> Load:
    return Load(source="elf", name=name, needed_by=SITE, path=path)


def library(path: str, **more: Any) -> Library:
    return Library(source="file", path=path, family="x", **more)


def test_libraries_are_those_that_the_environment_would_load() -> None:
    """First what a framework loads, then others of the environment, then any; stubs never."""
    own = [
        loaded("libcublasLt.so.13", f"{SITE}/nvidia/cu13/lib/libcublasLt.so.13"),
        loaded("libcudnn.so.9", f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"),
    ]
    environment = venv(torch(loads=tuple(own)))
    found = [
        library("/usr/local/cuda/lib64/libcublasLt.so.12"),
        library(f"{SITE}/nvidia/cu13/lib/libnvrtc.so.13", environment=environment.key),
        library("/usr/local/cuda/lib64/libnvrtc.so.12"),
        library("/usr/local/cuda/lib64/stubs/libnvrtc.so", stub=True),
        library(f"{SITE}/nvidia/cu13/lib/libnvrtc-builtins.so.13.0", environment=environment.key),
    ]
    snapshot = but(with_venv(machine(), environment), libraries=Listing(items=tuple(found), complete=True))
    libraries = asked(snapshot)["libraries"]
    assert libraries["cublasLt"] == [
        f"{SITE}/nvidia/cu13/lib/libcublasLt.so.13",
        "/usr/local/cuda/lib64/libcublasLt.so.12",
    ]
    assert libraries["nvrtc"] == [f"{SITE}/nvidia/cu13/lib/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.12"]


def test_without_libraries_there_are_none() -> None:
    assert asked(machine())["libraries"] == {}


def test_links_by_switch_and_by_topology() -> None:
    first, second, third = h200(0), h200(1), h200(2, nvlinks=())
    by_switch = asked(machine(first, second, third))["links"]
    assert set(by_switch) == {f"{first.uuid} {second.uuid}", f"{second.uuid} {first.uuid}"}
    assert asked(machine(*[h200(number, nvlinks=links(inactive=range(18))) for number in range(2)]))["links"] == {}
    joined = GpuLink(source="nvml", first=third.pci_bus_id or "", second=first.pci_bus_id or "", nvlinks=4)
    bridged = machine(but(first, nvlinks=()), third, fabric__links=(joined,))
    assert asked(bridged)["links"] == {f"{a.uuid} {b.uuid}": "NVLink" for a, b in ((first, third), (third, first))}


def test_a_gpu_that_was_left_out_has_no_links() -> None:
    assert asked(machine(h200(0), h200(1, utilisation=0.9)))["links"] == {}


# --- Bench probes of the environment --------------------------------------------------------------------------------
KEY = "/home/ada/.venv"
INSIDE: dict[str, Any] = {"kind": "bench", "per": "gpu", "uses": "gpu", "runs_in": "environment"}
TELL = """
import json, os, sys, time
def collect(tree, out):
    asked, framework = tree.request["bench"], tree.request.get("framework")
    began = time.monotonic()
    time.sleep(0.1)
    {end}
    seen = {
        "began": began,
        "ended": time.monotonic(),
        "executable": sys.executable,
        "isolated": sys.flags.isolated,
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "unset"),
        "mine": os.environ.get("MY_OWN", "unset"),
        "cwd": os.getcwd(),
        "environment": tree.request.get("environment"),
        "framework": framework and framework["name"],
        "only": asked["only"],
    }
    record = {"source": "bench", "name": NAME, "gpu": asked.get("gpu"), "detail": json.dumps(seen)}
    out.fact({"measurements": [record]})
"""


class Machine:
    """Bench probes of a test, beside one that shows GPUs and environments."""

    def __init__(self, probes: Any) -> None:
        self.probes = probes
        self.gpus = [dict(gpu) for gpu in GPUS]
        self.frameworks = ["tensorrt"]
        self.environment: dict[str, Any] = {
            "key": KEY, "judged": True, "executable": sys.executable, "python": "{}.{}.{}".format(*sys.version_info),
        }  # fmt: skip
        self.variables = {**os.environ, "MY_OWN": "1"}

    def add(self, name: str, end: str = "", **header: Any) -> None:
        header = {**INSIDE, "fills": ["measurements"], **header}
        self.probes.add(name, TELL.replace("{end}", end), **header)

    def run(self, wish: BenchRequest | None = None) -> Snapshot:
        items = [{"name": name, "version": "1.0"} for name in self.frameworks]
        judged = {**self.environment, "frameworks": {"items": items, "complete": True}}
        other = {**judged, "key": "/other"}
        facts = {
            "gpus": {"items": self.gpus, "complete": True},
            "environments": {"items": [judged, other], "complete": True},
        }
        self.probes.add("facts", f"def collect(tree, out):\n    out.fact({facts!r})\n", fills=["gpus"])
        request = {"root": "/", "cwd": "/", "variables": self.variables, "python": []}
        self.probes.run_all(request, bench=wish or BenchRequest(full=True))
        return merge(self.probes.parts.values())


@pytest.fixture
def machine_inside(probes: Any) -> Machine:
    return Machine(probes)


def runs(found: Snapshot, name: str) -> dict[str | None, ProbeRun]:
    return {run.gpu: run for run in found.runs if run.name == name}


def seen(found: Snapshot, name: str) -> dict[str | None, dict[str, Any]]:
    named = [measured for measured in found.measurements if measured.name == name]
    assert len({measured.gpu for measured in named}) == len(named)
    return {measured.gpu: json.loads(measured.detail) for measured in named}


def test_it_runs_as_the_users_program_in_the_environment_that_is_judged(machine_inside: Machine) -> None:
    machine_inside.add("bench_cpu", per="machine", uses="files")
    found = machine_inside.run(BenchRequest(full=True, only=("cpu-gemm",)))
    (told,) = seen(found, "bench_cpu").values()
    assert (told["environment"], told["framework"], told["only"]) == (KEY, None, ["cpu-gemm"])
    assert (told["executable"], told["isolated"], told["mine"]) == (sys.executable, 0, "1")
    assert "/envcheck-" in told["cwd"]
    assert not os.path.exists(told["cwd"])  # noqa: PTH110
    assert runs(found, "bench_cpu")[None].environment == KEY


def test_a_child_for_each_gpu_sees_it_alone(machine_inside: Machine) -> None:
    machine_inside.add("bench_trt", tries=["tensorrt", "tensorrt-cu*"])
    found = machine_inside.run()
    told = seen(found, "bench_trt")
    assert {gpu: each["visible"] for gpu, each in told.items()} == {"GPU-0": "GPU-0", "GPU-1": "GPU-1"}
    assert {each["framework"] for each in told.values()} == {"tensorrt"}
    assert told["GPU-0"]["began"] < told["GPU-1"]["ended"]
    assert told["GPU-1"]["began"] < told["GPU-0"]["ended"]
    for run in runs(found, "bench_trt").values():
        assert (run.status, run.environment, run.framework) == ("ok", KEY, None)


def test_a_single_gpu_is_shown_as_it_was(machine_inside: Machine) -> None:
    del machine_inside.gpus[1]
    machine_inside.variables["CUDA_VISIBLE_DEVICES"] = "3"
    machine_inside.add("bench_trt")
    assert seen(machine_inside.run(), "bench_trt")["GPU-0"]["visible"] == "3"


def test_the_processor_is_measured_when_nothing_else_is(machine_inside: Machine) -> None:
    machine_inside.add("bench_cpu", per="machine", uses="files")
    machine_inside.add("bench_more", per="machine", uses="files")
    machine_inside.add("bench_trt", "time.sleep(0.3)")
    machine_inside.add("bench_own", runs_in="envcheck")
    found = machine_inside.run()
    (cpu,), (more,) = seen(found, "bench_cpu").values(), seen(found, "bench_more").values()
    others = [each for name in ("bench_trt", "bench_own") for each in seen(found, name).values()]
    assert len(others) == 4
    assert cpu["began"] >= max(each["ended"] for each in others)
    assert more["began"] >= cpu["ended"] or cpu["began"] >= more["ended"]


def test_a_crash_is_its_own_row_and_no_trial_of_the_framework(machine_inside: Machine) -> None:
    machine_inside.add("bench_trt", "if asked['gpu'] == 'GPU-0': os.kill(os.getpid(), 11)", tries=["tensorrt"])
    machine_inside.add("bench_cpu", per="machine", uses="files")
    found = machine_inside.run()
    assert {gpu: run.status for gpu, run in runs(found, "bench_trt").items()} == {"GPU-0": "crashed", "GPU-1": "ok"}
    assert set(seen(found, "bench_trt")) == {"GPU-1"}
    assert seen(found, "bench_cpu")
    for environment in known(found.environments).items:
        assert [framework.trial for framework in known(environment.frameworks).items] == [None]


@cases("change, status, detail",
    ("no framework", "absent", "not there: tensorrt"),
    ("old Python", "skipped", "a trial needs Python 3.8 or newer; this is 3.7.16"),
    ("no interpreter", "skipped", f"{KEY} has no interpreter"),
    ("no environment", "skipped", "no Python environment was found to try anything in"),
)  # fmt: skip
def test_why_nothing_is_started(change: str, status: str, detail: str, machine_inside: Machine) -> None:
    machine_inside.add("bench_trt", tries=["tensorrt"])
    machine_inside.frameworks = [] if change == "no framework" else machine_inside.frameworks
    machine_inside.environment |= {"python": "3.7.16"} if change == "old Python" else {}
    machine_inside.environment |= {"executable": "/nowhere/python"} if change == "no interpreter" else {}
    machine_inside.environment |= {"judged": False} if change == "no environment" else {}
    found = machine_inside.run()
    assert not seen(found, "bench_trt")
    assert {gpu: (run.status, run.detail) for gpu, run in runs(found, "bench_trt").items()} == {
        "GPU-0": (status, detail),
        "GPU-1": (status, detail),
    }


def test_the_main_figures_start_nothing_of_the_environment(machine_inside: Machine) -> None:
    machine_inside.add("bench_cpu", per="machine", uses="files")
    machine_inside.add("bench_trt", tries=["tensorrt"])
    found = machine_inside.run(BenchRequest())
    assert not found.measurements
    for name in ("bench_cpu", "bench_trt"):
        (run,) = runs(found, name).values()
        assert (run.status, run.detail) == ("absent", "measured with --full")


def test_its_deadline_is_its_own_even_where_only_a_few_figures_were_asked_for(
    machine_inside: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envcheck.collect.trials._QUICK_SECONDS", 0.2)
    machine_inside.add("bench_trt", "time.sleep(1)")
    found = machine_inside.run(BenchRequest(only=("tensorrt-convolution",)))
    assert {run.status for run in runs(found, "bench_trt").values()} == {"ok"}


def test_an_interrupt_ends_what_runs_and_starts_nothing_more(machine_inside: Machine) -> None:
    machine_inside.add("bench_trt", "out.progress('building'); time.sleep(600)")
    machine_inside.add("bench_cpu", per="machine", uses="files")
    told = machine_inside.probes.events
    thread = when(lambda: any(isinstance(event, events.Progress) for event in told), signal.SIGINT)
    found = machine_inside.run()
    thread.join()
    assert isinstance(told[-1], events.Interrupted)
    assert {run.detail for run in runs(found, "bench_trt").values()} <= {"interrupted while building", "interrupted"}
    assert runs(found, "bench_cpu")[None].detail == "not started: interrupted"
    assert not found.measurements


FRAMEWORKS: dict[str, Any] = {**INSIDE, "asked": "frameworks"}
TRIAL = """
import os
def collect(tree, out):
    asked = tree.request["bench"]
    name = tree.request["framework"]["name"]
    framework = {{"name": name, "source": "trial", "trial": {{"source": "trial", "imported": True}}}}
    listing = {{"items": [framework], "complete": False}}
    environment = {{"key": tree.request["environment"], "source": "trial", "frameworks": listing}}
    out.fact({{"environments": {{"items": [environment], "complete": False}}}})
    {end}
    out.fact({{"measurements": [{{"source": "bench", "name": NAME, "gpu": asked["gpu"]}}]}})
"""


def test_frameworks_run_when_they_are_asked_for_one_after_the_other_on_one_gpu(machine_inside: Machine) -> None:
    machine_inside.frameworks = ["torch", "jax"]
    machine_inside.add("torch", tries=["torch"], asked="frameworks")
    machine_inside.add("jax", tries=["jax"], asked="frameworks")
    machine_inside.add("cpu", per="machine", uses="files")
    found = machine_inside.run(BenchRequest(frameworks=True))
    (torch,), (jax,) = seen(found, "torch").values(), seen(found, "jax").values()
    assert {torch["visible"], jax["visible"]} == {"GPU-0"}
    assert torch["began"] >= jax["ended"] or jax["began"] >= torch["ended"]
    assert not seen(found, "cpu")
    assert [(run.status, run.framework) for run in runs(found, "torch").values()] == [("ok", "torch")]


@cases("wish", BenchRequest(), BenchRequest(full=True), BenchRequest(full=True, only=("gemm",)))
def test_without_being_asked_no_framework_is_imported(machine_inside: Machine, wish: BenchRequest) -> None:
    machine_inside.frameworks = ["torch"]
    machine_inside.add("torch", tries=["torch"], asked="frameworks")
    (run,) = runs(machine_inside.run(wish), "torch").values()
    assert (run.status, run.detail) == ("absent", "measured with --frameworks")


@cases("wish", BenchRequest(only=("torch-gemm",)), BenchRequest(frameworks=True, only=("torch-gemm",)))
def test_of_named_quantities_only_their_framework_is_imported(machine_inside: Machine, wish: BenchRequest) -> None:
    machine_inside.frameworks = ["torch", "jax"]
    machine_inside.add("torch", tries=["torch"], asked="frameworks")
    machine_inside.add("torch_all_reduce", tries=["torch"], asked="frameworks", per="machine")
    machine_inside.add("jax", tries=["jax"], asked="frameworks")
    found = machine_inside.run(wish)
    assert seen(found, "torch")
    assert seen(found, "torch_all_reduce")
    assert not seen(found, "jax")


def test_a_framework_that_crashes_at_work_costs_its_own_rows_and_has_failed(machine_inside: Machine) -> None:
    machine_inside.frameworks = ["torch", "jax"]
    for name, end in (("torch", "os.kill(os.getpid(), 11)"), ("jax", "")):
        machine_inside.probes.add(
            name, TRIAL.format(end=end), **{**FRAMEWORKS, "fills": ["measurements"], "tries": [name]}
        )
    found = machine_inside.run(BenchRequest(frameworks=True))
    judged = next(each for each in known(found.environments).items if each.key == KEY)
    trials = {each.name: each.trial for each in judged.frameworks.items if each.trial} if judged.frameworks else {}
    assert (trials["torch"].ran_on_gpu, trials["torch"].error) == (False, "crashed: SIGSEGV")
    assert trials["jax"].error is None
    assert {measured.name for measured in found.measurements} == {"jax"}


def test_what_all_ranks_do_is_no_trial_of_the_framework(machine_inside: Machine) -> None:
    machine_inside.frameworks = ["torch"]
    machine_inside.add(
        "torch_all_reduce", "os.kill(os.getpid(), 11)", **{**FRAMEWORKS, "per": "machine", "tries": ["torch"]}
    )
    (run,) = runs(machine_inside.run(BenchRequest(frameworks=True)), "torch_all_reduce").values()
    assert (run.status, run.framework) == ("crashed", None)


def test_the_work_that_frameworks_are_compared_with_is_measured_too() -> None:
    everything = ["gemm", "cudnn-convolution", "cudnn-attention", "nccl-all-reduce"]
    assert compared(BenchRequest(frameworks=True)) == everything
    assert compared(BenchRequest(only=("jax-gemm", "jax-attention"))) == ["gemm", "cudnn-attention"]
    assert compared(BenchRequest(only=("cupy-gemm", "gemm"))) == []
    assert compared(BenchRequest()) == compared(BenchRequest(full=True, frameworks=True)) == []
    asked = request_of(BenchRequest(only=("cupy-gemm",)), Chosen((), {}), Snapshot())
    assert (asked["only"], asked["beside"]) == (["cupy-gemm", "gemm"], ["gemm"])


def test_a_framework_that_hangs_costs_its_own_figures_only(machine_inside: Machine) -> None:
    machine_inside.frameworks = ["torch", "jax"]
    machine_inside.add("torch", "time.sleep(600)", tries=["torch"], asked="frameworks", seconds=1.0)
    machine_inside.add("jax", tries=["jax"], asked="frameworks")
    found = machine_inside.run(BenchRequest(frameworks=True))
    (torch,) = runs(found, "torch").values()
    assert (torch.status, torch.framework) == ("timed-out", "torch")
    assert seen(found, "jax")
