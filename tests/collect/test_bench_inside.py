"""Bench probes of the environment: under whose interpreter, shown which GPU, when, and when not at all."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import pytest

from envcheck import events
from envcheck.collect.bench_plan import Bench, Chosen, compared, request_of
from envcheck.snapshot import ProbeRun, Snapshot
from envcheck.snapshot.merge import merge
from tests.collect.test_bench import when
from tests.every import cases

GPUS = [
    {"source": "cuda", "uuid": f"GPU-{number}", "index": number, "cuda_ordinal": number, "utilisation": 0.0}
    for number in range(2)
]
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
            "key": KEY,
            "judged": True,
            "executable": sys.executable,
            "python": "{}.{}.{}".format(*sys.version_info),
        }
        self.variables = {**os.environ, "MY_OWN": "1"}

    def add(self, name: str, end: str = "", **header: Any) -> None:
        header = {**INSIDE, "fills": ["measurements"], **header}
        self.probes.add(name, TELL.replace("{end}", end), **header)

    def run(self, wish: Bench | None = None) -> Snapshot:
        items = [{"name": name, "version": "1.0"} for name in self.frameworks]
        judged = {**self.environment, "frameworks": {"items": items, "complete": True}}
        other = {**judged, "key": "/other"}
        facts = {
            "gpus": {"items": self.gpus, "complete": True},
            "environments": {"items": [judged, other], "complete": True},
        }
        self.probes.add("facts", f"def collect(tree, out):\n    out.fact({facts!r})\n", fills=["gpus"])
        request = {"root": "/", "cwd": "/", "variables": self.variables, "python": []}
        self.probes.run_all(request, bench=wish or Bench(full=True))
        return merge(self.probes.parts.values())


@pytest.fixture
def machine(probes: Any) -> Machine:
    return Machine(probes)


def runs(found: Snapshot, name: str) -> dict[str | None, ProbeRun]:
    return {run.gpu: run for run in found.runs if run.name == name}


def seen(found: Snapshot, name: str) -> dict[str | None, dict[str, Any]]:
    named = [measured for measured in found.measurements if measured.name == name]
    assert len({measured.gpu for measured in named}) == len(named)
    return {measured.gpu: json.loads(measured.detail) for measured in named}


def test_it_runs_as_the_users_program_in_the_environment_that_is_judged(machine: Machine) -> None:
    machine.add("bench_cpu", per="machine", uses="files")
    found = machine.run(Bench(full=True, only=("cpu-gemm",)))
    (told,) = seen(found, "bench_cpu").values()
    assert (told["environment"], told["framework"], told["only"]) == (KEY, None, ["cpu-gemm"])
    assert (told["executable"], told["isolated"], told["mine"]) == (sys.executable, 0, "1")
    assert "/envcheck-" in told["cwd"]
    assert not os.path.exists(told["cwd"])  # noqa: PTH110
    assert runs(found, "bench_cpu")[None].environment == KEY


def test_a_child_for_each_gpu_sees_it_alone(machine: Machine) -> None:
    machine.add("bench_trt", tries=["tensorrt", "tensorrt-cu*"])
    found = machine.run()
    told = seen(found, "bench_trt")
    assert {gpu: each["visible"] for gpu, each in told.items()} == {"GPU-0": "GPU-0", "GPU-1": "GPU-1"}
    assert {each["framework"] for each in told.values()} == {"tensorrt"}
    assert told["GPU-0"]["began"] < told["GPU-1"]["ended"]
    assert told["GPU-1"]["began"] < told["GPU-0"]["ended"]
    for run in runs(found, "bench_trt").values():
        assert (run.status, run.environment, run.framework) == ("ok", KEY, None)


def test_a_single_gpu_is_shown_as_it_was(machine: Machine) -> None:
    del machine.gpus[1]
    machine.variables["CUDA_VISIBLE_DEVICES"] = "3"
    machine.add("bench_trt")
    assert seen(machine.run(), "bench_trt")["GPU-0"]["visible"] == "3"


def test_the_processor_is_measured_when_nothing_else_is(machine: Machine) -> None:
    machine.add("bench_cpu", per="machine", uses="files")
    machine.add("bench_more", per="machine", uses="files")
    machine.add("bench_trt", "time.sleep(0.3)")
    machine.add("bench_own", runs_in="envcheck")
    found = machine.run()
    (cpu,), (more,) = seen(found, "bench_cpu").values(), seen(found, "bench_more").values()
    others = [each for name in ("bench_trt", "bench_own") for each in seen(found, name).values()]
    assert len(others) == 4
    assert cpu["began"] >= max(each["ended"] for each in others)
    assert more["began"] >= cpu["ended"] or cpu["began"] >= more["ended"]


def test_a_crash_is_its_own_row_and_no_trial_of_the_framework(machine: Machine) -> None:
    machine.add("bench_trt", "if asked['gpu'] == 'GPU-0': os.kill(os.getpid(), 11)", tries=["tensorrt"])
    machine.add("bench_cpu", per="machine", uses="files")
    found = machine.run()
    assert {gpu: run.status for gpu, run in runs(found, "bench_trt").items()} == {"GPU-0": "crashed", "GPU-1": "ok"}
    assert set(seen(found, "bench_trt")) == {"GPU-1"}
    assert seen(found, "bench_cpu")
    assert found.environments
    for environment in found.environments.items:
        assert environment.frameworks
        assert [framework.trial for framework in environment.frameworks.items] == [None]


@cases(
    "change, status, detail",
    ("no framework", "absent", "not there: tensorrt"),
    ("old Python", "skipped", "a trial needs Python 3.8 or newer; this is 3.7.16"),
    ("no interpreter", "skipped", f"{KEY} has no interpreter"),
    ("no environment", "skipped", "no Python environment was found to try anything in"),
)
def test_why_nothing_is_started(change: str, status: str, detail: str, machine: Machine) -> None:
    machine.add("bench_trt", tries=["tensorrt"])
    machine.frameworks = [] if change == "no framework" else machine.frameworks
    machine.environment |= {"python": "3.7.16"} if change == "old Python" else {}
    machine.environment |= {"executable": "/nowhere/python"} if change == "no interpreter" else {}
    machine.environment |= {"judged": False} if change == "no environment" else {}
    found = machine.run()
    assert not seen(found, "bench_trt")
    assert {gpu: (run.status, run.detail) for gpu, run in runs(found, "bench_trt").items()} == {
        "GPU-0": (status, detail),
        "GPU-1": (status, detail),
    }


def test_the_main_figures_start_nothing_of_the_environment(machine: Machine) -> None:
    machine.add("bench_cpu", per="machine", uses="files")
    machine.add("bench_trt", tries=["tensorrt"])
    found = machine.run(Bench())
    assert not found.measurements
    for name in ("bench_cpu", "bench_trt"):
        (run,) = runs(found, name).values()
        assert (run.status, run.detail) == ("absent", "measured with --full")


def test_its_deadline_is_its_own_even_where_only_a_few_figures_were_asked_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envcheck.collect.bench._QUICK_SECONDS", 0.2)
    machine.add("bench_trt", "time.sleep(1)")
    found = machine.run(Bench(only=("tensorrt-convolution",)))
    assert {run.status for run in runs(found, "bench_trt").values()} == {"ok"}


def test_an_interrupt_ends_what_runs_and_starts_nothing_more(machine: Machine) -> None:
    machine.add("bench_trt", "out.progress('building'); time.sleep(600)")
    machine.add("bench_cpu", per="machine", uses="files")
    told = machine.probes.events
    thread = when(lambda: any(isinstance(event, events.Progress) for event in told), signal.SIGINT)
    found = machine.run()
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


def test_frameworks_run_when_they_are_asked_for_one_after_the_other_on_one_gpu(machine: Machine) -> None:
    machine.frameworks = ["torch", "jax"]
    machine.add("torch", tries=["torch"], asked="frameworks")
    machine.add("jax", tries=["jax"], asked="frameworks")
    machine.add("cpu", per="machine", uses="files")
    found = machine.run(Bench(frameworks=True))
    (torch,), (jax,) = seen(found, "torch").values(), seen(found, "jax").values()
    assert {torch["visible"], jax["visible"]} == {"GPU-0"}
    assert torch["began"] >= jax["ended"] or jax["began"] >= torch["ended"]
    assert not seen(found, "cpu")
    assert [(run.status, run.framework) for run in runs(found, "torch").values()] == [("ok", "torch")]


@cases("wish", Bench(), Bench(full=True), Bench(full=True, only=("gemm",)))
def test_without_being_asked_no_framework_is_imported(machine: Machine, wish: Bench) -> None:
    machine.frameworks = ["torch"]
    machine.add("torch", tries=["torch"], asked="frameworks")
    (run,) = runs(machine.run(wish), "torch").values()
    assert (run.status, run.detail) == ("absent", "measured with --frameworks")


@cases("wish", Bench(only=("torch-gemm",)), Bench(frameworks=True, only=("torch-gemm",)))
def test_of_named_quantities_only_their_framework_is_imported(machine: Machine, wish: Bench) -> None:
    machine.frameworks = ["torch", "jax"]
    machine.add("torch", tries=["torch"], asked="frameworks")
    machine.add("torch_all_reduce", tries=["torch"], asked="frameworks", per="machine")
    machine.add("jax", tries=["jax"], asked="frameworks")
    found = machine.run(wish)
    assert seen(found, "torch")
    assert seen(found, "torch_all_reduce")
    assert not seen(found, "jax")


def test_a_framework_that_crashes_at_work_costs_its_own_rows_and_has_failed(machine: Machine) -> None:
    machine.frameworks = ["torch", "jax"]
    for name, end in (("torch", "os.kill(os.getpid(), 11)"), ("jax", "")):
        machine.probes.add(name, TRIAL.format(end=end), **{**FRAMEWORKS, "fills": ["measurements"], "tries": [name]})
    found = machine.run(Bench(frameworks=True))
    assert found.environments
    judged = next(each for each in found.environments.items if each.key == KEY)
    trials = {each.name: each.trial for each in judged.frameworks.items if each.trial} if judged.frameworks else {}
    assert (trials["torch"].ran_on_gpu, trials["torch"].error) == (False, "crashed: SIGSEGV")
    assert trials["jax"].error is None
    assert {measured.name for measured in found.measurements} == {"jax"}


def test_what_all_ranks_do_is_no_trial_of_the_framework(machine: Machine) -> None:
    machine.frameworks = ["torch"]
    machine.add("torch_all_reduce", "os.kill(os.getpid(), 11)", **{**FRAMEWORKS, "per": "machine", "tries": ["torch"]})
    found = machine.run(Bench(frameworks=True))
    (run,) = runs(found, "torch_all_reduce").values()
    assert (run.status, run.framework) == ("crashed", None)


def test_the_work_that_frameworks_are_compared_with_is_measured_too() -> None:
    everything = ["gemm", "cudnn-convolution", "cudnn-attention", "nccl-all-reduce"]
    assert compared(Bench(frameworks=True)) == everything
    assert compared(Bench(only=("jax-gemm", "jax-attention"))) == ["gemm", "cudnn-attention"]
    assert compared(Bench(only=("cupy-gemm", "gemm"))) == []
    assert compared(Bench()) == compared(Bench(full=True, frameworks=True)) == []
    asked = request_of(Bench(only=("cupy-gemm",)), Chosen((), {}), Snapshot())
    assert (asked["only"], asked["beside"]) == (["cupy-gemm", "gemm"], ["gemm"])


def test_a_framework_that_hangs_costs_its_own_figures_only(machine: Machine) -> None:
    machine.frameworks = ["torch", "jax"]
    machine.add("torch", "time.sleep(600)", tries=["torch"], asked="frameworks", seconds=1.0)
    machine.add("jax", tries=["jax"], asked="frameworks")
    found = machine.run(Bench(frameworks=True))
    (torch,) = runs(found, "torch").values()
    assert (torch.status, torch.framework) == ("timed-out", "torch")
    assert seen(found, "jax")
