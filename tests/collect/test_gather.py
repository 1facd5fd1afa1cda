"""The order of work, the events, the deadlines of the whole, and every other way in which it may be cut short."""

import errno
import hashlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from envcheck.collect import child
from envcheck.collect import gather as gathering
from envcheck.collect.catalog import all_probes
from envcheck.model import events
from envcheck.model.snapshot import Gpu, Listing, Snapshot
from tests.every import cases

HANG = "import time\ndef collect(tree, out):\n    out.progress('sleeping')\n    time.sleep(600)\n"
TIMES = """
import os, time
def collect(tree, out):
    start = time.monotonic()
    time.sleep(0.3)
    values = {"pid": str(os.getpid()), "start": str(start), "end": str(time.monotonic())}
    out.fact({"variables": {"values": values}})
"""


def open_descriptors() -> list[str]:
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())


def test_early_probes_end_before_the_others_start_side_by_side(probes: Any) -> None:
    headers: dict[str, dict[str, Any]] = {
        "a_file": {}, "b_driver": {"kind": "driver"}, "c_file": {}, "d_driver": {"kind": "driver"},
        "y_early": {"early": True}, "z_early": {"early": True},
    }  # fmt: skip
    for name, header in headers.items():
        probes.add(name, TIMES, **header)
    probes.run()
    seen = {name: probes.facts(name) for name in probes.parts}
    early_end = max(float(seen[name]["end"]) for name in ("y_early", "z_early"))
    later = ["a_file", "b_driver", "c_file", "d_driver"]
    assert early_end < min(float(seen[name]["start"]) for name in later)
    assert len({seen[name]["pid"] for name in ("a_file", "c_file", "y_early", "z_early")}) == 1
    assert len({facts["pid"] for facts in seen.values()}) == 3
    first_end = min(float(seen[name]["end"]) for name in ("c_file", "b_driver", "d_driver"))
    assert max(float(seen[name]["start"]) for name in ("a_file", "b_driver", "d_driver")) < first_end


def test_events_tell_what_happens(probes: Any) -> None:
    probes.add_healthy("a", "b")
    probes.add("c", "raise ImportError")
    probes.run()
    told = [(type(event).__name__, getattr(event, "name", "")) for event in probes.events]
    assert probes.events[0] == events.ProbesPlanned(probes=tuple((name, f"Title of {name}") for name in "abc"))
    assert told[1:4] == [("ProbeStarted", "a"), ("Progress", "a"), ("ProbeFinished", "")]
    assert [name for name, _ in told].count("ProbeStarted") == 3
    finished = [event for event in probes.events if isinstance(event, events.ProbeFinished)]
    assert [event.run.name for event in finished] == ["a", "b", "c"]
    assert [event.facts for event in finished] == list(probes.parts.values())
    assert all(event.facts.runs == (event.run,) for event in finished)


def test_facts_of_one_probe_are_merged(probes: Any) -> None:
    body = """
    def collect(tree, out):
        out.fact({"gpus": {"items": [{"uuid": "GPU-1", "name": "H100"}]}})
        out.fact({"gpus": {"items": [{"uuid": "GPU-1", "index": 0}], "complete": True}})
    """
    probes.add("two", body)
    probes.run()
    assert probes.parts["two"].gpus == Listing(items=(Gpu(uuid="GPU-1", name="H100", index=0),), complete=True)


def test_time_is_measured_in_the_child(probes: Any) -> None:
    for name in ("a", "b"):
        probes.add(name, "import time\ndef collect(tree, out):\n    time.sleep(0.2)\n")
    assert all(0.2 <= run.seconds < 1 for run in probes.run().values())


def test_processor_time_is_that_of_the_probe_and_of_what_it_waited_for(probes: Any) -> None:
    burn = "\n    end = time.process_time() + 0.1\n    while time.process_time() < end: pass\n"
    probes.add("a_sleeps", "import time\ndef collect(tree, out):\n    time.sleep(0.3)\n")
    probes.add("b_works", f"import time\ndef collect(tree, out):{burn}")
    fork = (
        f"\n    child = os.fork()\n    if child:\n        os.waitpid(child, 0)\n        return{burn}    os._exit(0)\n"
    )
    probes.add("c_lets_work", f"import os, time\ndef collect(tree, out):{fork}")
    probes.add("d_dies", "import os\ndef collect(tree, out):\n    os.abort()\n")
    runs = probes.run()
    assert runs["a_sleeps"].processor > 0, "the start of their process, which is that of the first"
    assert runs["b_works"].processor >= 0.1
    assert runs["c_lets_work"].processor >= 0.1
    assert runs["d_dies"].processor is None


def test_probes_of_other_scopes_and_kinds_are_skipped(probes: Any) -> None:
    probes.add_healthy("a")
    probes.add("b", HANG, scopes=["env"])
    probes.add("c", HANG, kind="deep")
    probes.add("e", HANG, kind="verify")
    probes.add_healthy("d", scopes=["env", "container"])
    runs = probes.run(scopes=["node", "container"])
    assert (runs["b"].status, runs["b"].detail) == ("skipped", "scope node, container does not need it")
    assert (runs["c"].status, runs["c"].detail) == ("skipped", "deep probes run only when they are asked for")
    assert (runs["e"].status, runs["e"].detail) == ("skipped", "verify probes run only when they are asked for")
    assert (runs["b"].fills, runs["b"].title) == (("variables",), "Title of b")
    assert probes.events[0].probes == (("a", "Title of a"), ("d", "Title of d"))
    probes.assert_healthy("a", "d")


def test_hashes_come_last_in_the_child_that_knows_the_environments(probes: Any) -> None:
    probes.add_healthy("a_verify", kind="verify", scopes=["env"])
    for name in ("environments", "libraries"):
        probes.add_healthy(name, scopes=["env"])
    probes.run(verify=True, scopes=["env"])
    started = [event.name for event in probes.events if isinstance(event, events.ProbeStarted)]
    assert started == ["environments", "libraries", "a_verify"]
    probes.assert_healthy("environments", "libraries", "a_verify")


def test_what_is_of_the_software_alone_has_a_child_beside_the_machines(probes: Any) -> None:
    for name, scopes in {"environments": ["env"], "libraries": ["env"], "pci": ["node", "env"]}.items():
        probes.add(name, TIMES, scopes=scopes)
    probes.run(scopes=["env"])
    seen = {name: probes.facts(name) for name in probes.parts}
    assert seen["environments"]["pid"] == seen["libraries"]["pid"] != seen["pci"]["pid"]
    assert float(seen["environments"]["start"]) < float(seen["pci"]["end"])


_EMPTY_BUS = {"gpus": {"items": [], "complete": True}}
_NO_MODULE = {"kernel": {"nvidia": {"loaded": False}, "device_nodes": []}}


@cases(
    "facts, together", ({**_EMPTY_BUS, **_NO_MODULE}, True), (_EMPTY_BUS, False), (_NO_MODULE, False),
    ({"gpus": {"items": [], "complete": False}, **_NO_MODULE}, False),
    ({"gpus": {"items": [{"pci_bus_id": "0000:01:00.0"}], "complete": True}, **_NO_MODULE}, False),
    ({**_EMPTY_BUS, "kernel": {"nvidia": {"loaded": True}, "device_nodes": []}}, False),
    ({**_EMPTY_BUS, "kernel": {"nvidia": {}, "device_nodes": []}}, False),
    ({**_EMPTY_BUS, "kernel": {"nvidia": {"loaded": False}, "device_nodes": [{"path": "/dev/nvidia0"}]}}, False),
    ({**_EMPTY_BUS, "kernel": {"nvidia": {"loaded": False}}}, False),
)  # fmt: skip
def test_driver_probes_get_no_child_where_no_driver_is(probes: Any, facts: dict[str, Any], *, together: bool) -> None:
    probes.add("pci", f"def collect(tree, out):\n    out.fact({facts!r})\n", early=True)
    probes.add("platform", TIMES)
    probes.add("z_platform", TIMES)
    for name in ("cuda", "nvml"):
        probes.add(name, TIMES, kind="driver")
    probes.run()
    assert len({probes.facts(name)["pid"] for name in ("platform", "cuda", "nvml")}) == (1 if together else 3)
    if together:  # what is left last is not the driver, for which others would get ready
        ended = [event.run.name for event in probes.events if isinstance(event, events.ProbeFinished)]
        assert ended[-1] == "z_platform"


def test_driver_probes_in_the_child_of_others_do_not_die_together(probes: Any) -> None:
    facts = {**_EMPTY_BUS, **_NO_MODULE}
    probes.add("pci", f"def collect(tree, out):\n    out.fact({facts!r})\n", early=True)
    probes.add_healthy("platform")
    probes.add("a_dies", "import os\ndef collect(tree, out):\n    os.abort()\n", kind="driver")
    probes.add_healthy("b", kind="driver")
    assert probes.run()["a_dies"].status == "crashed"
    probes.assert_healthy("b", "platform")


def test_driver_probes_get_a_child_where_all_others_have_ended(probes: Any) -> None:
    facts = {**_EMPTY_BUS, **_NO_MODULE}
    probes.add("pci", f"def collect(tree, out):\n    out.fact({facts!r})\n", early=True)
    probes.add_healthy("cuda", "nvml", kind="driver")
    probes.run()
    probes.assert_healthy("cuda", "nvml")


def test_nothing_to_run_is_no_error(probes: Any) -> None:
    assert probes.run() == {}
    assert probes.events == [events.ProbesPlanned(probes=())]


@cases("count", 0, 2)
def test_driver_probes_get_time_for_each_gpu(probes: Any, count: int) -> None:
    fact = {"gpus": {"items": [{"pci_bus_id": f"0000:0{index}:00.0"} for index in range(count)], "complete": True}}
    probes.add("pci", f"def collect(tree, out):\n    out.fact({fact!r})\n", early=True)
    probes.add("nvml", HANG, kind="driver", seconds=0.2, seconds_per_gpu=0.15)
    assert probes.run()["nvml"].detail == f"timed out after {0.2 + 0.15 * count:g} s while sleeping"


def test_unknown_number_of_gpus_gives_time_for_a_large_server(probes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gathering.count_gpus(Snapshot()) == 8
    probes.add("nvml", HANG, kind="driver", seconds=0.1, seconds_per_gpu=0.02)
    assert probes.run()["nvml"].detail == "timed out after 0.26 s while sleeping"
    monkeypatch.setattr(gathering, "count_gpus", lambda _early: 5)
    assert probes.run()["nvml"].detail == "timed out after 0.2 s while sleeping"


def test_timeout_of_the_whole_ends_everything(probes: Any) -> None:
    probes.add_healthy("a_early", early=True)
    probes.add_healthy("b")
    probes.add("c", HANG)
    probes.add_healthy("d")
    probes.add("e", HANG, kind="driver")
    started = time.monotonic()
    runs = probes.run(deadline_s=2.0)
    assert 2.0 <= time.monotonic() - started < 9
    probes.assert_healthy("a_early", "b")
    reached = "--timeout 2 s was reached"
    assert (runs["c"].status, runs["c"].detail) == ("timed-out", f"{reached} while sleeping")
    assert (runs["e"].status, runs["e"].detail) == ("timed-out", f"{reached} while sleeping")
    assert (runs["d"].status, runs["d"].detail) == ("timed-out", f"not started: {reached}")
    finished = [event.run.name for event in probes.events if isinstance(event, events.ProbeFinished)]
    assert sorted(finished) == ["a_early", "b", "c", "d", "e"]


def test_timeout_in_the_early_phase_starts_nothing_later(probes: Any) -> None:
    probes.add("a", HANG, early=True)
    probes.add_healthy("b", kind="driver")
    runs = probes.run(deadline_s=0.4)
    assert (runs["b"].status, runs["b"].detail) == ("timed-out", "not started: --timeout 0.4 s was reached")
    assert [event.name for event in probes.events if isinstance(event, events.ProbeStarted)] == ["a"]


def test_stop_on_request(probes: Any) -> None:
    probes.add("a", HANG)
    probes.add_healthy("b")
    runs = probes.run(should_stop=lambda: any(isinstance(event, events.Progress) for event in probes.events))
    assert (runs["a"].status, runs["a"].detail) == ("failed", "it was stopped on request while sleeping")
    assert (runs["b"].status, runs["b"].detail) == ("failed", "not started: it was stopped on request")


def test_probes_after_a_death_run_in_children_of_their_own(probes: Any) -> None:
    probes.add("a", TIMES)
    probes.add("b", "import os\ndef collect(tree, out):\n    os.abort()\n")
    probes.add("c", TIMES)
    probes.add("d", "def collect(tree, out):\n    raise MemoryError\n")
    probes.add("e", TIMES)
    assert [run.status for run in probes.run().values()] == ["ok", "crashed", "ok", "failed", "ok"]
    assert len({probes.facts(name)["pid"] for name in "ace"}) == 3
    started = [event.name for event in probes.events if isinstance(event, events.ProbeStarted)]
    assert sorted(started) == ["a", "b", "c", "d", "e"]


def test_keyboard_interrupt_ends_the_children_and_goes_on(probes: Any) -> None:
    probes.add("a", HANG)
    probes.add("b", HANG, kind="driver")

    def interrupt(event: object) -> None:
        if isinstance(event, events.Progress) and event.name == "b":
            threading.Timer(0.05, signal.raise_signal, [signal.SIGINT]).start()

    with pytest.raises(KeyboardInterrupt):
        probes.run(on_event=interrupt)


@cases("kind", events.ProbesPlanned, events.ProbeStarted, events.Progress, events.ProbeFinished)
def test_error_of_the_listener_ends_the_children_and_is_raised(probes: Any, kind: type) -> None:
    probes.add_healthy("a")
    probes.add("b", HANG, kind="driver")
    probes.add("c", HANG)

    def fail(event: object) -> None:
        if isinstance(event, kind):
            raise LookupError("listener")  # noqa: TRY004

    with pytest.raises(LookupError, match="listener"):
        probes.run(on_event=fail)


@cases(
    "interpreter, reason", ("/nonexistent/python3", "No such file or directory: /nonexistent/python3"),
    (os.devnull, "Permission denied: /dev/null"), ("", "it is not known which Python interpreter runs envcheck"),
)  # fmt: skip
def test_missing_interpreter_is_a_row_for_each(probes: Any, interpreter: str, reason: str) -> None:
    probes.add_healthy("a", "b")
    probes.add_healthy("c", kind="driver")
    before = open_descriptors()
    for run in probes.run(interpreter=interpreter).values():
        assert (run.status, run.detail) == ("failed", f"could not be started: {reason}")
    assert open_descriptors() == before


def test_slow_start_of_the_interpreter_is_not_the_probes_time(probes: Any, tmp_path: Path) -> None:
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\nsleep 0.4\nexec {sys.executable} "$@"\n')
    slow.chmod(0o755)
    probes.add_healthy("a", "b", seconds=0.2)
    runs = probes.run(interpreter=str(slow))
    probes.assert_healthy("a", "b")
    assert all(run.seconds < 0.2 for run in runs.values())


def test_interpreter_that_is_none_is_a_row_for_each(probes: Any) -> None:
    probes.add_healthy("a", "b")
    for run in probes.run(interpreter="/bin/false").values():
        assert (run.status, run.detail) == ("failed", "exited with status 1")


def test_no_process_or_descriptor_to_be_had_is_a_row(probes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = {
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"): (
            ("tasks", "Resource temporarily unavailable (see pids.max of the control group)")
            if os.geteuid() == 0 and Path("/proc/self/uid_map").read_text().split()[1:] == ["0", "4294967295"]
            else ("processes", "Resource temporarily unavailable (see ulimit -u)")
        ),
        OSError(errno.EMFILE, "Too many open files"): ("open-files", "Too many open files (see ulimit -n)"),
    }
    probes.add_healthy("a")
    before = open_descriptors()
    for place, (error, (limit, reason)) in itertools.product(("subprocess.Popen", "os.pipe"), reasons.items()):
        with monkeypatch.context() as patch:
            patch.setattr(f"envcheck.collect.starting.{place}", Mock(side_effect=error))
            run = probes.run()["a"]
        assert (run.status, run.limit, run.detail) == ("failed", limit, f"could not be started: {reason}")
    assert open_descriptors() == before


def test_large_request_with_bytes_that_are_no_utf_8_arrives_whole(probes: Any) -> None:
    body = """
    import hashlib, json
    def collect(tree, out):
        text = json.dumps(tree.request, sort_keys=True)
        out.fact({"variables": {"values": {"sum": hashlib.sha256(text.encode()).hexdigest()}}})
    """
    probes.add("reads", body)
    for odd in ("", "\udc80\udcff"):
        request = {"root": "/", "variables": {f"V{i}": f"{odd}é{i}" * 50 for i in range(5000)}}
        probes.run(request)
        assert probes.facts("reads")["sum"] == hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()


def test_large_request_does_not_hold_up_when_the_child_does_not_read_it(probes: Any) -> None:
    probes.add_healthy("a")
    run = probes.run({"root": "/", "variables": {"V": "x" * (1 << 20)}}, interpreter="/bin/true")["a"]
    assert (run.status, run.detail) == ("failed", "exited with status 0")


def test_no_descriptor_and_no_zombie_is_left(probes: Any) -> None:
    probes.add_healthy("a", "b")
    probes.add("c", "import os\ndef collect(tree, out):\n    os.abort()\n", kind="driver")
    before = open_descriptors()
    probes.run()
    assert open_descriptors() == before
    until = time.monotonic() + 10
    while not child.reap_abandoned() and time.monotonic() < until:  # a run does not wait for exits, the next reaps
        time.sleep(0.01)
    with suppress(ChildProcessError):  # raised where the process has no children at all
        assert os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def test_kernel_without_pidfd(probes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    probes.add_healthy("a", "c")
    probes.add("b", "import os\ndef collect(tree, out):\n    os.abort()\n")
    assert probes.run()["b"].detail == "crashed: SIGABRT"
    probes.assert_healthy("a", "c")


def test_parent_that_does_not_wait_for_children(probes: Any) -> None:
    """Under SIG_IGN for SIGCHLD the kernel reaps, and no exit status is to be had; facts still are."""
    probes.add_healthy("a")
    probes.add("b", "import os\ndef collect(tree, out):\n    os._exit(7)\n", kind="driver")
    old = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        run = probes.run()["b"]
    finally:
        signal.signal(signal.SIGCHLD, old)
    assert run.status == "failed"
    probes.assert_healthy("a")


def test_child_whose_parent_was_killed_ends_by_itself(probes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm is what remains when envcheck itself is killed; its time is shortened here."""
    monkeypatch.setattr("envcheck.collect.runner.ALARM_GRACE", -59.0)
    probes.add("a", HANG, kind="driver", seconds=60.0)
    assert probes.run()["a"].detail == "killed by SIGALRM while sleeping"


OTHER_PYTHONS = [f"python3.{minor}" for minor in range(8, 15)]


def find_interpreter(name: str) -> str | None:
    places = [shutil.which(name), *Path.home().glob(f".pyenv/versions/*/bin/{name}")]
    works = (place for place in places if place and subprocess.run([place, "-c", ""], check=False).returncode == 0)
    return next(map(str, works), None)


@pytest.mark.parametrize("name", OTHER_PYTHONS)
def test_bootstrap_runs_under_other_interpreters(probes: Any, name: str) -> None:
    found = find_interpreter(name)
    if not found:
        pytest.skip(f"there is no {name} here, on PATH or of pyenv")
    probes.add_healthy("a", "c")
    probes.add("b", "def collect(tree, out):\n    raise ValueError(tree.root)\n")
    probes.add("d", "import sys\ndef collect(tree, out):\n    out.absent('%d.%d' % sys.version_info[:2])\n")
    runs = probes.run(interpreter=found)
    probes.assert_healthy("a", "c")
    assert runs["b"].detail == "ValueError: /"
    assert (runs["d"].status, runs["d"].detail) == ("absent", name.removeprefix("python"))


def test_shipped_probes_have_readable_headers() -> None:
    for spec in all_probes():
        assert spec.title
        assert spec.seconds > 0


def test_parent_loads_nothing_heavy() -> None:
    code = "import sys, envcheck.collect.gather; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "multiprocessing", "socket", "json", "logging", "pynvml", "cuda", "textual", "tempfile"}
    assert not heavy & set(result.stdout.split())
