"""Bench probes: a child for each GPU, links afterwards, and what becomes of one that hangs, dies or is interrupted.

The GPUs are facts that a probe written by the tests sends; the children are real.
"""

import json
import os
import signal
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from envcheck.collect.child import noted
from envcheck.collect.plan import BenchRequest
from envcheck.model import events
from envcheck.model.merge import merge
from envcheck.model.snapshot import Measurement, ProbeRun, Snapshot
from tests.every import cases

GPUS = [
    {"source": "cuda", "uuid": f"GPU-{number}", "index": number, "cuda_ordinal": number, "utilisation": 0.0}
    for number in range(2)
]
ON_GPU: dict[str, Any] = {"kind": "bench", "per": "gpu", "uses": "gpu", "fills": ["measurements"]}
ON_LINK: dict[str, Any] = {**ON_GPU, "per": "machine", "uses": "link"}
MEASURE = """
import os, time
def collect(tree, out):
    asked = tree.request["bench"]
    began = time.monotonic()
    out.progress("copying")
    time.sleep(0.2)
    detail = "%s %s %s %s" % (began, time.monotonic(), os.getpid(), os.environ.get("CUDA_CACHE_DISABLE"))
    record = {"source": "bench", "name": NAME, "gpu": asked.get("gpu"), "value": 1.0, "detail": detail}
    out.fact({"measurements": [record]})
"""
TWO = """
import os, sys, time
def collect(tree, out):
    gpu = tree.request["bench"].get("gpu")
    out.fact({"measurements": [{"source": "bench", "name": "first", "gpu": gpu, "value": 1.0}]})
    out.progress("the second")
    {end}
    out.fact({"measurements": [{"source": "bench", "name": "second", "gpu": gpu, "value": 2.0}]})
"""


class Machine:
    """Probes of the test beside one that shows GPUs."""

    def __init__(self, probes: Any) -> None:
        self.probes = probes
        self.gpus = [dict(gpu) for gpu in GPUS]

    def run(self, wish: BenchRequest | None = None, **options: Any) -> Snapshot:
        listing = {"gpus": {"items": self.gpus, "complete": True}}
        self.probes.add("gpus", f"def collect(tree, out):\n    out.fact({listing!r})\n", fills=["gpus"])
        self.probes.run_all(bench=wish or BenchRequest(), **options)
        return merge(self.probes.parts.values())

    def ends(self, kind: str) -> str:
        return TWO.replace("{end}", f"if gpu == 'GPU-0': {kind}")


@pytest.fixture
def machine(probes: Any) -> Machine:
    return Machine(probes)


def runs(found: Snapshot, name: str) -> dict[str | None, ProbeRun]:
    return {run.gpu: run for run in found.runs if run.name == name}


def named(found: Snapshot, name: str) -> dict[str | None, Measurement]:
    return {measured.gpu: measured for measured in found.measurements if measured.name == name}


def span(measured: Measurement) -> tuple[float, float]:
    began, ended = measured.detail.split()[:2]
    return float(began), float(ended)


# --- order --------------------------------------------------------------------------------------------------------
def test_gpus_side_by_side_and_links_afterwards(machine: Machine) -> None:
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    machine.probes.add("bench_b", MEASURE, **ON_GPU)
    machine.probes.add("bench_links", MEASURE, **ON_LINK)
    found = machine.run()
    first, second = (named(found, "bench_a")[f"GPU-{number}"] for number in range(2))
    assert span(first)[0] < span(second)[1]
    assert span(second)[0] < span(first)[1]
    for number in range(2):
        a, b = (named(found, name)[f"GPU-{number}"] for name in ("bench_a", "bench_b"))
        assert span(a)[1] <= span(b)[0]
        assert a.detail.split()[2] == b.detail.split()[2]  # one child for a GPU
    (links,) = named(found, "bench_links").values()
    assert span(links)[0] >= max(span(each)[1] for each in found.measurements if each is not links)
    assert {run.status for run in found.runs} == {"ok"}


def test_nothing_is_measured_while_files_are_hashed(machine: Machine) -> None:
    end = "out.fact({'variables': {'values': {'end': str(time.monotonic())}}})"
    body = f"import time\ndef collect(tree, out):\n    time.sleep(0.3)\n    {end}\n"
    machine.probes.add("hash", body, kind="verify")
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    began = min(span(measured)[0] for measured in machine.run(verify=True).measurements)
    assert began >= float(machine.probes.facts("hash")["end"])


@cases("end", "pass", "os.kill(os.getpid(), 9)", "time.sleep(60)")
def test_a_child_that_is_killed_leaves_no_folder_behind(
    machine: Machine, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    made = f"import tempfile; out.progress(tempfile.mkdtemp(prefix='of-the-child-')); {end}"
    machine.probes.add("bench_a", TWO.replace("{end}", made), **{**ON_GPU, "seconds": 1.0})
    machine.probes.add("bench_links", TWO.replace("{end}", made), **{**ON_LINK, "seconds": 1.0})
    assert len([run for run in machine.run().runs if run.name.startswith("bench")]) == 3
    assert list(place.iterdir()) == []


def test_a_child_leaves_no_compiled_code_behind(machine: Machine) -> None:
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    assert named(machine.run(), "bench_a")["GPU-0"].detail.endswith(" 1")


VISIBLE = """
import os
def collect(tree, out):
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "unset")
    gpu = tree.request["bench"].get("gpu")
    out.fact({"measurements": [{"source": "bench", "name": NAME, "gpu": gpu, "detail": seen}]})
"""


def visible(machine: Machine) -> list[str]:
    """What each child is shown: one for each GPU, then the one for links."""
    machine.probes.add("bench_a", VISIBLE, **ON_GPU)
    machine.probes.add("bench_links", VISIBLE, **ON_LINK)
    return sorted(measured.detail for measured in machine.run().measurements)


def test_a_child_for_one_gpu_is_shown_that_gpu_alone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    assert visible(machine) == ["0,1,2", "GPU-0", "GPU-1"]


@cases("change", "one", "mig")
def test_a_single_gpu_and_one_in_mig_mode_stay(machine: Machine, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-7")
    if change == "one":
        del machine.gpus[1]
    for gpu in machine.gpus:
        gpu["mig"] = {"source": "nvml", "enabled": change == "mig"}
    assert set(visible(machine)) == {"MIG-7"}


def test_each_child_is_told_its_gpu_and_all_others(machine: Machine) -> None:
    machine.probes.add(
        "bench_a",
        """
import json
def collect(tree, out):
    asked = tree.request["bench"]
    out.fact({"measurements": [{"source": "bench", "name": "asked", "gpu": asked["gpu"], "detail": json.dumps(asked)}]})
""",
        **ON_GPU,
    )
    asked = json.loads(named(machine.run(BenchRequest(full=True, only=("gemm",))), "asked")["GPU-1"].detail)
    assert (asked["gpu"], asked["full"], asked["only"]) == ("GPU-1", True, ["gemm"])
    assert [gpu["uuid"] for gpu in asked["gpus"]] == ["GPU-0", "GPU-1"]
    assert isinstance(asked["libraries"], dict)


def test_events_tell_of_each_gpu(machine: Machine) -> None:
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    machine.run()
    told = machine.probes.events
    planned = [event.probes for event in told if isinstance(event, events.ProbesPlanned)]
    assert [name for name, _ in planned[-1]] == ["bench_a", "bench_a"]
    assert {event.gpu for event in told if isinstance(event, events.Progress)} == {"GPU-0", "GPU-1"}
    finished = [event.run.gpu for event in told if isinstance(event, events.ProbeFinished)]
    assert finished.count("GPU-0") == finished.count("GPU-1") == 1


# --- not measured -------------------------------------------------------------------------------------------------
def test_unless_asked_nothing_is_measured(machine: Machine) -> None:
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    machine.probes.add_healthy("other")
    machine.probes.run_all()
    (run,) = machine.probes.parts["bench_a"].runs
    assert (run.status, run.detail) == ("skipped", "bench probes run only when they are asked for")


def test_a_busy_gpu_is_skipped_with_the_reason(machine: Machine) -> None:
    machine.gpus[1]["utilisation"] = 0.9
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    machine.probes.add("bench_links", MEASURE, **ON_LINK)
    found = machine.run()
    assert set(named(found, "bench_a")) == {"GPU-0"}
    refused = runs(found, "bench_a")["GPU-1"]
    assert refused.status == "skipped"
    assert refused.detail == "GPU 1 is busy (a kernel ran 90% of the time); --force measures it anyway"
    assert runs(found, "bench_links")[None].status == "ok"
    assert set(named(machine.run(BenchRequest(force=True)), "bench_a")) == {"GPU-0", "GPU-1"}


def test_with_every_gpu_busy_links_are_skipped_too(machine: Machine) -> None:
    for gpu in machine.gpus:
        gpu["utilisation"] = 0.9
    machine.probes.add("bench_links", MEASURE, **ON_LINK)
    (run,) = runs(machine.run(), "bench_links").values()
    assert (run.status, run.detail) == ("skipped", "every GPU is in use")


@cases("wish", BenchRequest(gpus=(5,)), None)
def test_without_a_gpu_every_probe_says_so(wish: BenchRequest | None, machine: Machine) -> None:
    if wish is None:
        machine.gpus = []
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    (run,) = runs(machine.run(wish), "bench_a").values()
    assert (run.status, run.detail) == ("skipped", "no matching CUDA GPU found")


# --- ends ---------------------------------------------------------------------------------------------------------
def test_one_that_hangs_costs_only_its_own_rows(machine: Machine) -> None:
    machine.probes.add("bench_a", machine.ends("time.sleep(600)"), **ON_GPU, seconds=1.0)
    machine.probes.add("bench_b", MEASURE, **ON_GPU)
    machine.probes.add("bench_links", MEASURE, **ON_LINK)
    found = machine.run()
    hung, well = (runs(found, "bench_a")[f"GPU-{number}"] for number in range(2))
    assert (hung.status, hung.detail) == ("timed-out", "timed out after 1 s while the second")
    assert well.status == "ok"
    assert set(named(found, "first")) == {"GPU-0", "GPU-1"}
    assert set(named(found, "second")) == {"GPU-1"}
    assert set(named(found, "bench_b")) == {"GPU-0", "GPU-1"}
    assert named(found, "bench_links")


@cases("end", "os.kill(os.getpid(), 11)", "time.sleep(600)")
def test_after_one_that_died_the_others_measure_in_turn_still(end: str, machine: Machine) -> None:
    """Two that measure one GPU at once would each find it slow."""
    machine.probes.add("bench_a", machine.ends(end), **ON_GPU, seconds=1.0)
    machine.probes.add("bench_b", MEASURE, **ON_GPU)
    machine.probes.add("bench_c", machine.ends(end), **ON_GPU, seconds=1.0)
    for name in ("bench_d", "bench_e"):
        machine.probes.add(name, MEASURE, **ON_GPU)
    found = machine.run()
    for number in range(2):
        spans = [span(named(found, f"bench_{name}")[f"GPU-{number}"]) for name in "bde"]
        assert all(before[1] <= after[0] for before, after in pairwise(spans)), number
    assert {run.status for run in found.runs if run.gpu == "GPU-1"} == {"ok"}


@cases("end, status, words",
    ("os.kill(os.getpid(), 11)", "crashed", "SIGSEGV"), ("os.kill(os.getpid(), 9)", "crashed", "SIGKILL"),
    ("os._exit(7)", "failed", "7"), ("raise ValueError('wrong address')", "failed", "wrong address"),
)  # fmt: skip
def test_what_was_measured_before_it_died_stays(end: str, status: str, words: str, machine: Machine) -> None:
    machine.probes.add("bench_a", machine.ends(end), **ON_GPU)
    found = machine.run()
    died = runs(found, "bench_a")["GPU-0"]
    assert died.status == status
    assert words in died.detail
    assert set(named(found, "first")) == {"GPU-0", "GPU-1"}
    assert set(named(found, "second")) == {"GPU-1"}


def test_the_main_figures_have_a_shorter_deadline(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("envcheck.collect.trials._QUICK_SECONDS", 0.5)
    machine.probes.add("bench_a", machine.ends("time.sleep(2)"), **ON_GPU, seconds=60.0)
    assert runs(machine.run(), "bench_a")["GPU-0"].status == "timed-out"
    assert runs(machine.run(BenchRequest(full=True)), "bench_a")["GPU-0"].status == "ok"


def test_the_timeout_of_the_run_ends_everything(machine: Machine) -> None:
    machine.probes.add("bench_a", machine.ends("time.sleep(600)"), **ON_GPU)
    machine.probes.add("bench_links", MEASURE, **ON_LINK)
    found = machine.run(deadline_s=2.0)
    assert runs(found, "bench_a")["GPU-0"].detail == "--timeout 2 s was reached while the second"
    assert runs(found, "bench_links")[None].detail == "not started: --timeout 2 s was reached"
    assert runs(found, "bench_a")["GPU-0"].cut_short
    assert runs(found, "bench_links")[None].cut_short
    assert set(named(found, "first")) == {"GPU-0", "GPU-1"}


# --- Ctrl-C -------------------------------------------------------------------------------------------------------
def when(condition: Any, number: int) -> threading.Thread:
    """Send this process a signal as soon as ``condition`` holds."""

    def wait() -> None:
        until = time.monotonic() + 30
        while not condition() and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@cases("number", signal.SIGINT, signal.SIGTERM)
def test_an_interrupt_keeps_what_was_measured(number: int, machine: Machine) -> None:
    machine.probes.add("bench_a", machine.ends("time.sleep(600)"), **ON_GPU)
    machine.probes.add("bench_b", MEASURE, **ON_GPU)
    machine.probes.add("bench_links", MEASURE, **ON_LINK)
    told = machine.probes.events
    thread = when(lambda: any(isinstance(event, events.Progress) and event.gpu == "GPU-0" for event in told), number)
    found = machine.run()
    thread.join()
    assert isinstance(told[-1], events.Interrupted)
    assert "GPU-0" in named(found, "first")
    assert {run.gpu: run.detail for run in runs(found, "bench_a").values()}["GPU-0"] == "interrupted while the second"
    assert runs(found, "bench_a")["GPU-0"].cut_short
    assert runs(found, "bench_links")[None].detail == "not started: interrupted"
    assert runs(found, "bench_b")["GPU-0"].detail == "not started: interrupted"


def test_signals_are_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGINT)
    with noted() as interrupted:
        assert not interrupted()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with noted() as interrupted:
            os.kill(os.getpid(), signal.SIGTERM)
            assert not interrupted()
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_change_nothing() -> None:
    seen: list[bool] = []

    def look() -> None:
        with noted() as interrupted:
            seen.append(interrupted())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [False]


# --- getting ready ------------------------------------------------------------------------------------------------
READY = """
import os, time
SEEN = []
def prepare(tree):
    SEEN.append(time.monotonic())
    {prepare}
def collect(tree, out):
    detail = "%s %s" % (SEEN[0] if SEEN else 0, time.monotonic())
    out.fact({"measurements": [{"source": "bench", "name": NAME, "detail": detail}]})
"""


def with_links(machine: Machine, prepare: str = "pass", **options: Any) -> Snapshot:
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    machine.probes.add("bench_links", READY.replace("{prepare}", prepare), **ON_LINK)
    return machine.run(**options)


def test_the_child_for_links_gets_ready_while_gpus_are_measured(machine: Machine) -> None:
    found = with_links(machine)
    (links,) = named(found, "bench_links").values()
    spans = [span(each) for each in named(found, "bench_a").values()]
    ready, began = span(links)
    assert 0 < ready < max(end for _, end in spans) <= began


def test_the_child_for_links_is_the_one_that_gets_ready(machine: Machine) -> None:
    """Also where the name of another probe of the machine comes first."""
    machine.probes.add("bench_both", MEASURE, **{**ON_LINK, "uses": "gpu"})
    found = with_links(machine)
    (links,) = named(found, "bench_links").values()
    (both,) = named(found, "bench_both").values()
    ready, began = span(links)
    assert 0 < ready < max(span(each)[1] for each in named(found, "bench_a").values())
    assert began < span(both)[0]


def test_what_fails_while_getting_ready_is_no_failure(machine: Machine) -> None:
    found = with_links(machine, "raise OSError('no')")
    assert named(found, "bench_links")
    assert {run.status for run in found.runs} == {"ok"}


def test_a_child_that_dies_while_getting_ready_is_said_to_have_died(machine: Machine) -> None:
    found = with_links(machine, "os.kill(os.getpid(), 11)")
    (links,) = runs(found, "bench_links").values()
    assert (links.status, "SIGSEGV" in links.detail) == ("crashed", True)
    assert len(named(found, "bench_a")) == 2


def test_a_child_that_hangs_while_getting_ready_has_its_own_deadline(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("envcheck.collect.runner.START_GRACE", 4.0)
    machine.probes.add("bench_a", MEASURE, **ON_GPU)
    machine.probes.add("bench_links", READY.replace("{prepare}", "time.sleep(60)"), **{**ON_LINK, "seconds": 1.0})
    found = machine.run()
    (links,) = runs(found, "bench_links").values()
    assert (links.status, links.detail) == ("timed-out", "timed out after 5 s")
    assert len(named(found, "bench_a")) == 2


def test_a_child_that_got_ready_is_not_started_after_the_time_is_up(machine: Machine) -> None:
    machine.probes.add("bench_a", "import time\ndef collect(tree, out):\n    time.sleep(60)\n", **ON_GPU)
    machine.probes.add("bench_links", READY.replace("{prepare}", "pass"), **ON_LINK)
    found = machine.run(deadline_s=2.0)
    (links,) = runs(found, "bench_links").values()
    assert links.detail.startswith("not started: ")
    assert not named(found, "bench_links")
