"""Deep probes: under which interpreter, with which variables, when not at all, and what becomes of one that dies.

Environments and GPUs here are facts that probes written by the tests send; the children are real.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from envcheck import events
from envcheck.collect import deep_variables
from envcheck.collect.deep import Deep
from envcheck.merge import merge
from envcheck.snapshot import Framework, ProbeRun, Snapshot, Trial

Key = tuple[str, str | None]
"""Of a row: the names of its probe and of the framework."""
ENVIRONMENT = "/home/ada/.venv"
LOOK = """
import json, os, sys, time
ASKED = ("environment", "framework", "gpu", "no_gpu", "libraries")
def collect(request, out):
    framework = request["framework"]
    started = time.monotonic()
    time.sleep(request.get("sleep", 0.05))
    try:
        import planted_package
        found = planted_package.WHERE
    except ImportError:
        found = "none"
    values = {
        "executable": sys.executable,
        "flags": f"{sys.flags.isolated}{sys.flags.no_site}{sys.flags.dont_write_bytecode}",
        "path": json.dumps(sys.path),
        "cwd": os.getcwd(),
        "listed": json.dumps(os.listdir()),
        "found": found,
        "visible": os.environ.get("CUDA_VISIBLE_DEVICES", "unset"),
        "variables": json.dumps(dict(os.environ)),
        "request": json.dumps({key: request[key] for key in ASKED}),
        "name": __name__,
        "start": str(started),
        "end": str(time.monotonic()),
    }
    name = framework["name"] if framework else "libraries"
    out.fact({"variables": {"values": {name + ":" + key: value for key, value in values.items()}}})
"""
SENT = """
def tell(request, out, **trial):
    framework = {"name": request["framework"]["name"], "trial": {"source": "trial", **trial}}
    environment = {"key": request["environment"], "frameworks": {"items": [framework], "complete": False}}
    out.fact({"environments": {"items": [environment], "complete": False}})
"""
DEEP: dict[str, Any] = {"kind": "deep", "uses": "gpu", "scopes": ["env"], "fills": ["environments.frameworks.trial"]}
H200 = {"uuid": "GPU-1", "index": 0, "cuda_ordinal": 0, "memory": {"total": 150 << 30, "used": 4 << 20}}


def environment(*frameworks: str, **changes: Any) -> dict[str, Any]:
    items = [{"name": name, "version": "1.0"} for name in frameworks]
    python = "{}.{}.{}".format(*sys.version_info)
    base = {"key": ENVIRONMENT, "judged": True, "executable": sys.executable, "python": python}
    return {**base, "frameworks": {"items": items, "complete": True}, **changes}


class Machine:
    """A folder of probes that tell of environments and GPUs, beside the deep ones of a test."""

    def __init__(self, probes: Any) -> None:
        self.probes = probes
        self.facts: dict[str, Any] = {"gpus": {"items": [H200], "complete": True}}
        self.variables: dict[str, str] = dict(os.environ)
        self.cwd = str(probes.folder)

    def add(self, name: str, body: str, *tries: str, **header: Any) -> None:
        self.probes.add(name, SENT + body, **{**DEEP, "tries": list(tries) or ["torch"], **header})

    def run(self, *environments: dict[str, Any], force: bool = False, **options: Any) -> dict[Key, ProbeRun]:
        """Try everything; rows by (probe, framework)."""
        listing = {"items": list(environments or [environment("torch")]), "complete": True}
        facts = {**self.facts, "environments": listing}
        self.probes.add("facts", f"def collect(request, out):\n    out.fact({facts!r})\n", scopes=["env"])
        request = {
            "root": "/",
            "cwd": self.cwd,
            "variables": self.variables,
            "python": [],
            **options.pop("request", {}),
        }
        options = {"scopes": ["env"], "deep": Deep(force=force), **options}
        self.probes.run_all(request, **options)
        self.snapshot: Snapshot = merge(self.probes.parts.values())
        return {(run.name, run.framework): run for part in self.probes.parts.values() for run in part.runs}

    def seen(self, name: str = "torch") -> dict[str, str]:
        """What a probe LOOK saw when it tried ``name``."""
        values = self.snapshot.variables.values if self.snapshot.variables else {}
        return {key.partition(":")[2]: value for key, value in values.items() if key.partition(":")[0] == name}

    def framework(self, name: str = "torch", key: str = ENVIRONMENT) -> Framework:
        assert self.snapshot.environments
        (found,) = [item for item in self.snapshot.environments.items if item.key == key]
        assert found.frameworks
        (framework,) = [item for item in found.frameworks.items if item.name == name]
        return framework

    def trial(self, name: str = "torch") -> Trial:
        trial = self.framework(name).trial
        assert trial
        return trial


@pytest.fixture
def machine(probes: Any) -> Machine:
    return Machine(probes)


# --- how a child is started ---------------------------------------------------------------------------------------


def test_it_is_started_as_the_users_program_would_be(machine: Machine, tmp_path: Path) -> None:
    for where in ("pythonpath", "work"):
        (tmp_path / where).mkdir()
        (tmp_path / where / "planted_package.py").write_text(f"WHERE = {where!r}\n")
    (tmp_path / "pythonpath" / "sitecustomize.py").write_text("import sys; sys.path.append('/by-sitecustomize')\n")
    machine.cwd = str(tmp_path / "work")
    machine.variables |= {"PYTHONPATH": "../pythonpath", "HOME": str(tmp_path)}
    machine.add("deep_look", LOOK)
    rows = machine.run()
    seen = machine.seen()
    assert rows["deep_look", "torch"].status == "ok"
    assert Path(seen["executable"]).samefile(sys.executable)
    assert seen["flags"] == "001"
    assert seen["found"] == "pythonpath"
    path = json.loads(seen["path"])
    assert "" not in path
    assert machine.cwd not in path
    assert "/by-sitecustomize" in path
    assert seen["name"] == "_envcheck_probes.deep_look"
    assert json.loads(seen["listed"]) == []
    assert not list(tmp_path.rglob("*.pyc"))


def test_the_users_variables_stay_and_caches_do_not(machine: Machine) -> None:
    machine.variables |= {
        "MY_OWN": "1",
        "XLA_PYTHON_CLIENT_PREALLOCATE": "true",
        "TRITON_CACHE_DIR": "/home/ada/.triton",
        "JAX_COMPILATION_CACHE_DIR": "/home/ada/jax",
    }
    machine.add("deep_look", LOOK)
    machine.run()
    variables = json.loads(machine.seen()["variables"])
    assert variables["MY_OWN"] == "1"
    assert variables["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
    assert variables["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"
    assert variables["HF_HUB_OFFLINE"] == "1"
    assert "JAX_COMPILATION_CACHE_DIR" not in variables
    folder = Path(machine.seen()["cwd"]).parent
    for name in deep_variables.CACHES:
        assert Path(variables[name]).parent == folder, name
    assert folder.parent.name.startswith("envcheck-")
    assert not folder.parent.exists()


def test_what_it_is_asked(machine: Machine) -> None:
    machine.facts["libraries"] = {
        "items": [
            {"path": "/a/libnccl.so.2", "family": "nccl"},
            {"path": "/b/libnccl.so.2", "family": "nccl", "environment": ENVIRONMENT},
            {"path": "/c/libnccl.so.2", "family": "nccl", "environment": "/another"},
            {"path": "/d/stubs/libcuda.so", "family": "cuda", "stub": True},
        ],
        "complete": True,
    }
    machine.add("deep_look", LOOK)
    machine.probes.add("deep_libraries", LOOK, **{**DEEP, "uses": "files"})
    rows = machine.run()
    asked = json.loads(machine.seen()["request"])
    assert asked["environment"] == ENVIRONMENT
    assert asked["framework"] == {"name": "torch", "version": "1.0", "path": None}
    assert asked["gpu"] == {"uuid": "GPU-1", "index": 0}
    assert (asked["no_gpu"], asked["libraries"]) == ("", [])
    libraries = json.loads(machine.seen("libraries")["request"])
    assert [library["path"] for library in libraries["libraries"]] == ["/a/libnccl.so.2", "/b/libnccl.so.2"]
    assert rows["deep_libraries", None].environment == ENVIRONMENT


def test_each_framework_that_is_there_gets_a_child(machine: Machine) -> None:
    machine.add("deep_many", LOOK, "torch", "cupy-*", "jax")
    rows = machine.run(environment("torch", "cupy-cuda12x", "numpy"))
    assert {key for key in rows if key[0] == "deep_many"} == {("deep_many", "torch"), ("deep_many", "cupy-cuda12x")}
    assert machine.seen("torch")["cwd"] != machine.seen("cupy-cuda12x")["cwd"]
    started = [event for event in machine.probes.events if isinstance(event, events.ProbeStarted)]
    assert [event.framework for event in started] == [None, "torch", "cupy-cuda12x"]
    planned = [event for event in machine.probes.events if isinstance(event, events.ProbesPlanned)]
    assert [len(event.probes) for event in planned] == [1, 2]


def test_each_judged_environment_is_tried(machine: Machine) -> None:
    machine.add("deep_look", SENT + "def collect(request, out):\n    tell(request, out, imported=True)\n")
    other = environment("torch", key="/other")
    rows = machine.run(environment("torch"), other, environment("torch", key="/third", judged=False))
    assert len(rows) == 2  # rows of both have one name
    runs = [run.environment for run in machine.probes.parts["deep_look"].runs]
    assert runs == [ENVIRONMENT, "/other"]
    assert machine.framework(key="/other").trial == Trial(source="trial", imported=True)
    assert machine.framework(key="/third").trial is None


def overlapping(machine: Machine, *names: str) -> int:
    """The most trials that ran at one moment."""
    spans = [(float(machine.seen(name)["start"]), float(machine.seen(name)["end"])) for name in names]
    return max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)


@pytest.mark.parametrize(("mode", "most"), [("default", 3), ("exclusive_process", 1)])
def test_few_at_a_time(machine: Machine, mode: str, most: int) -> None:
    machine.facts["gpus"] = {"items": [{**H200, "compute_mode": mode}], "complete": True}
    names = [f"framework-{number}" for number in range(5)]
    machine.add("deep_look", LOOK, "framework-*")
    machine.run(environment(*names), request={"sleep": 0.4})
    assert overlapping(machine, *names) == most


# --- when nothing is started --------------------------------------------------------------------------------------


def test_unasked_nothing_is_tried(machine: Machine) -> None:
    machine.add("deep_look", LOOK)
    rows = machine.run(deep=None)
    assert rows["deep_look", None].status == "skipped"
    assert rows["deep_look", None].detail == "deep probes run only when they are asked for"
    assert machine.seen() == {}


@pytest.mark.parametrize(
    ("changes", "status", "detail"),
    [
        ({"frameworks": {"items": [], "complete": True}}, "absent", "not there: torch, jax, cupy …"),
        ({"judged": False}, "skipped", "no Python environment was found to try anything in"),
        (
            {"problem": "it has lost its interpreter"},
            "skipped",
            "the environment cannot run: it has lost its interpreter",
        ),
        ({"executable": "/nowhere/python"}, "skipped", f"{ENVIRONMENT} has no interpreter"),
        ({"executable": None}, "skipped", f"{ENVIRONMENT} has no interpreter"),
        ({"python": "3.7.16"}, "skipped", "a trial needs Python 3.8 or newer; this is 3.7.16"),
    ],
)
def test_what_cannot_be_tried(machine: Machine, changes: dict[str, Any], status: str, detail: str) -> None:
    machine.add("deep_look", LOOK, "torch", "jax", "cupy", "numba")
    rows = machine.run(environment("torch", **changes))
    (row,) = [run for key, run in rows.items() if key[0] == "deep_look"]
    assert (row.status, row.detail) == (status, detail)
    assert machine.seen() == {}


def test_the_interpreter_of_a_prefix_stands_in(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "prefix" / "bin").mkdir(parents=True)
    (tmp_path / "prefix" / "bin" / "python").symlink_to(sys.executable)
    machine.add("deep_look", LOOK)
    machine.run(environment("torch", executable=None, prefix=str(tmp_path / "prefix")))
    assert machine.seen()["executable"] == str(tmp_path / "prefix" / "bin" / "python")


def test_a_scope_without_environments_needs_none(machine: Machine) -> None:
    machine.add("deep_look", LOOK)
    rows = machine.run(scopes=["node"])
    assert rows["deep_look", None].detail == "scope node does not need it"


BUSY = {**H200, "utilisation": 0.97}


def test_a_busy_gpu_is_left_alone_unless_forced(machine: Machine) -> None:
    machine.facts["gpus"] = {"items": [BUSY], "complete": True}
    machine.add("deep_look", LOOK)
    machine.probes.add("deep_libraries", LOOK, **{**DEEP, "uses": "files"})
    machine.facts["libraries"] = {"items": [{"path": "/a/libnccl.so.2", "family": "nccl"}], "complete": True}
    rows = machine.run()
    row = rows["deep_look", "torch"]
    assert row.status == "skipped"
    assert row.detail == "GPU 0 is busy (a kernel ran 97% of the time); --force tries all the same"
    assert machine.framework().trial is None
    assert rows["deep_libraries", None].status == "ok", "it uses no GPU"
    assert machine.run(force=True)["deep_look", "torch"].status == "ok"


def test_without_a_gpu_the_import_is_tried_all_the_same(machine: Machine) -> None:
    machine.facts["gpus"] = {"items": [], "complete": True}
    machine.add("deep_look", LOOK)
    machine.run()
    asked = json.loads(machine.seen()["request"])
    assert (asked["no_gpu"], asked["gpu"]) == ("there is no NVIDIA GPU here", None)


def test_one_gpu_of_several_is_shown(machine: Machine) -> None:
    second = {**H200, "uuid": "GPU-2", "index": 1, "cuda_ordinal": 1}
    machine.facts["gpus"] = {"items": [{**BUSY}, second], "complete": True}
    machine.add("deep_look", LOOK)
    machine.run()
    assert machine.seen()["visible"] == "GPU-2"


def test_no_temporary_folder_is_a_row(machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(deep_variables, "_place", lambda _usual: str(tmp_path / "nowhere"))
    machine.add("deep_look", LOOK)
    row = machine.run()["deep_look", "torch"]
    assert row.status == "failed"
    assert row.detail.startswith("no temporary folder could be made: [Errno 2]")


# --- how it may end -----------------------------------------------------------------------------------------------


def importing(code: str) -> str:
    """A probe that sends as the shipped ones do, and in which ``code`` stands for the import."""
    return (
        "import os, signal, sys, time, warnings\ndef collect(request, out):\n"
        f"    out.progress('importing torch')\n    {code}\n"
        "    tell(request, out, imported=True)\n    out.progress('computing a convolution')\n    {AFTER}\n"
    ).replace("{AFTER}", "pass")


def computing(code: str) -> str:
    return importing("pass").replace("computing a convolution')\n    pass", f"computing a convolution')\n    {code}")


SEGFAULT = "import ctypes; ctypes.string_at(0)"


@pytest.mark.parametrize(
    ("code", "status", "detail", "imported"),
    [
        (SEGFAULT, "crashed", "crashed: SIGSEGV while importing torch", False),
        ("os.abort()", "crashed", "crashed: SIGABRT while importing torch", False),
        ("os._exit(3)", "failed", "exited with status 3 while importing torch", False),
        ("os.kill(os.getpid(), signal.SIGKILL)", "crashed", "killed by SIGKILL while importing torch", None),
        ("time.sleep(600)", "timed-out", "timed out after 0.5 s while importing torch", None),
    ],
)
def test_a_death_on_import(machine: Machine, code: str, status: str, detail: str, imported: object) -> None:
    machine.add("deep_look", importing(code), seconds=0.5 if "sleep" in code else 30.0)
    row = machine.run()["deep_look", "torch"]
    assert (row.status, row.detail) == (status, detail)
    trial = machine.trial()
    assert (trial.imported, trial.ran_on_gpu, trial.error) == (imported, None, detail)


@pytest.mark.parametrize(
    ("code", "detail", "ran"),
    [
        (SEGFAULT, "crashed: SIGSEGV while computing a convolution", False),
        ("time.sleep(600)", "timed out after 0.5 s while computing a convolution", None),
    ],
)
def test_a_death_at_work_keeps_what_was_sent(machine: Machine, code: str, detail: str, ran: object) -> None:
    machine.add("deep_look", computing(code), seconds=0.5 if "sleep" in code else 30.0)
    machine.run()
    trial = machine.trial()
    assert (trial.imported, trial.ran_on_gpu, trial.error) == (True, ran, detail)


def test_a_probe_of_ours_that_fails_says_nothing_of_the_framework(machine: Machine) -> None:
    machine.add("deep_look", "def collect(request, out):\n    raise KeyError('ours')\n")
    row = machine.run()["deep_look", "torch"]
    assert (row.status, row.detail) == ("failed", "KeyError: 'ours'")
    assert machine.framework().trial is None


def test_rubbish_is_noise_and_what_names_a_problem_is_kept(machine: Machine) -> None:
    code = (
        "print('hello\\x1b[2J', {'probe': 'x'}); os.write(2, b'Could not load dynamic library libcudnn.so.8\\n' * 3); "
        "warnings.warn('GPU too old'); os.write(1, b'\\xff\\x00' * 20000); print('\\nerror: at the end')"
    )
    machine.add("deep_look", importing(code))
    row = machine.run()["deep_look", "torch"]
    assert row.status == "ok"
    assert "\x1b" not in row.noise
    assert machine.trial().warnings[0] == "Could not load dynamic library libcudnn.so.8"
    assert machine.trial().warnings.count("Could not load dynamic library libcudnn.so.8") == 1
    assert any(line.endswith("UserWarning: GPU too old") for line in machine.trial().warnings)
    assert machine.trial().warnings[-1] == "error: at the end"


def test_what_it_left_running_is_ended(machine: Machine) -> None:
    machine.add("deep_look", importing("__import__('subprocess').Popen(['sleep', '600']); time.sleep(0.1)"))
    row = machine.run()["deep_look", "torch"]
    assert row.detail == "it left a process behind: sleep"


def test_an_interpreter_that_is_none_is_a_row(machine: Machine, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    machine.add("deep_look", LOOK)
    row = machine.run(environment("torch", executable=str(program)))["deep_look", "torch"]
    assert (row.status, row.detail) == ("failed", "exited with status 7")


def test_the_whole_runs_deadline_ends_trials_too(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    machine.add("deep_look", importing("time.sleep(600)"), seconds=60.0)
    row = machine.run(deadline_s=1.5)["deep_look", "torch"]
    assert row.status == "timed-out"
    assert "--timeout 1.5 s was reached" in row.detail
    assert list((tmp_path / "tmp").iterdir()) == []
