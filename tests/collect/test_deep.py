"""Deep probes: under which interpreter, with which variables, on which GPU, beside what, and when none runs."""

import json
import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from envcheck.collect import trials
from envcheck.collect.catalog import ProbeSpec
from envcheck.collect.plan import Choice, choose_gpu
from envcheck.collect.runner import Loop
from envcheck.model import events
from envcheck.model.snapshot import Gpu, Listing, Memory, Mig, MigInstance, Platform, Process, Snapshot, Trial
from tests.collect.trying import DEEP, ENVIRONMENT, H200, LOOK, SENT, Machine, environment
from tests.every import cases


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
    assert (seen["flags"], seen["found"]) == ("001", "pythonpath")
    path = json.loads(seen["path"])
    assert "" not in path
    assert machine.cwd not in path
    assert "/by-sitecustomize" in path
    assert seen["name"] == "_envcheck_probes.deep_look"
    assert json.loads(seen["listed"]) == []
    assert not [path for path in tmp_path.rglob("*.pyc") if not path.is_relative_to(tmp_path / "probes")]


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
    assert (variables["MY_OWN"], variables["XLA_PYTHON_CLIENT_PREALLOCATE"]) == ("1", "false")
    assert (variables["TF_FORCE_GPU_ALLOW_GROWTH"], variables["HF_HUB_OFFLINE"]) == ("true", "1")
    assert "JAX_COMPILATION_CACHE_DIR" not in variables
    folder = Path(machine.seen()["cwd"]).parent
    for name in trials.CACHES:
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
    assert (asked["gpu"], asked["no_gpu"], asked["libraries"]) == ({"uuid": "GPU-1", "index": 0}, "", [])
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
    machine.add("deep_look", SENT + "def collect(tree, out):\n    tell(tree, out, imported=True)\n")
    other = environment("torch", key="/other")
    rows = machine.run(environment("torch"), other, environment("torch", key="/third", judged=False))
    assert len(rows) == 2  # rows of both have one name
    assert [run.environment for run in machine.probes.parts["deep_look"].runs] == [ENVIRONMENT, "/other"]
    assert machine.framework(key="/other").trial == Trial(source="trial", imported=True)
    assert machine.framework(key="/third").trial is None


def overlapping(machine: Machine, *names: str) -> int:
    """The most trials that ran at one moment."""
    spans = [(float(machine.seen(name)["start"]), float(machine.seen(name)["end"])) for name in names]
    return max(sum(start <= moment < end for start, end in spans) for moment, _ in spans)


@cases("mode, most", ("default", 3), ("exclusive_process", 1))
def test_few_at_a_time(machine: Machine, mode: str, most: int) -> None:
    machine.facts["gpus"] = {"items": [{**H200, "compute_mode": mode}], "complete": True}
    names = [f"framework-{number}" for number in range(5)]
    machine.add("deep_look", LOOK, "framework-*")
    machine.run(environment(*names), request={"sleep": 0.4})
    assert overlapping(machine, *names) == most


@cases("mode", "default", "exclusive_process")
def test_trials_do_not_wait_until_files_are_hashed(machine: Machine, tmp_path: Path, mode: str) -> None:
    """The hash waits for a trial of each framework; it is not ended with them, and both send their facts."""
    machine.facts["gpus"] = {"items": [{**H200, "compute_mode": mode}], "complete": True}
    wait = f"\n    while len(os.listdir({str(tmp_path / 'tried')!r})) < 2:\n        time.sleep(0.01)"
    slow = "\n    time.sleep(0.3)\n    out.fact({'variables': {'values': {'hashed': 'all'}}})\n"
    body = f"import os, time\ndef collect(tree, out):{wait}{slow}"
    machine.probes.add("z_hash", body, kind="verify", scopes=["env"], seconds=20.0)
    (tmp_path / "tried").mkdir()
    tried = f"open({str(tmp_path / 'tried')!r} + '/' + tree.request['framework']['name'], 'w').close()"
    look = f"def collect(tree, out):\n    tell(tree, out, imported=True)\n    {tried}\n"
    machine.add("deep_look", look, "torch", "jax")
    assert {run.status for run in machine.run(environment("torch", "jax"), verify=True).values()} == {"ok"}
    assert machine.probes.facts("z_hash") == {"hashed": "all"}
    ended = [event.run.name for event in machine.probes.events if isinstance(event, events.ProbeFinished)]
    assert ended == ["facts", "deep_look", "deep_look", "z_hash"]


# --- when nothing is started --------------------------------------------------------------------------------------
def test_unasked_nothing_is_tried(machine: Machine) -> None:
    machine.add("deep_look", LOOK)
    rows = machine.run(deep=None)
    assert rows["deep_look", None].status == "skipped"
    assert rows["deep_look", None].detail == "deep probes run only when they are asked for"
    assert machine.seen() == {}


@cases("changes, status, detail",
    ({"frameworks": {"items": [], "complete": True}}, "absent", "not there: torch, jax, cupy …"),
    ({"judged": False}, "skipped", "no Python environment was found to try anything in"),
    ({"problem": "it has lost its interpreter"}, "skipped", "the environment cannot run: it has lost its interpreter"),
    ({"executable": "/nowhere/python"}, "skipped", f"{ENVIRONMENT} has no interpreter"),
    ({"executable": None}, "skipped", f"{ENVIRONMENT} has no interpreter"),
    ({"python": "3.7.16"}, "skipped", "a trial needs Python 3.8 or newer; this is 3.7.16"),
)  # fmt: skip
def test_what_cannot_be_tried(machine: Machine, changes: dict[str, Any], status: str, detail: str) -> None:
    machine.add("deep_look", LOOK, "torch", "jax", "cupy", "numba")
    (row,) = [run for key, run in machine.run(environment("torch", **changes)).items() if key[0] == "deep_look"]
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
    assert machine.run(scopes=["node"])["deep_look", None].detail == "scope node does not need it"


BUSY = {**H200, "utilisation": 0.97}


def test_a_busy_gpu_is_left_alone_unless_forced(machine: Machine) -> None:
    machine.facts["gpus"] = {"items": [BUSY], "complete": True}
    machine.add("deep_look", LOOK)
    machine.probes.add("deep_libraries", LOOK, **{**DEEP, "uses": "files"})
    machine.facts["libraries"] = {"items": [{"path": "/a/libnccl.so.2", "family": "nccl"}], "complete": True}
    rows = machine.run()
    row = rows["deep_look", "torch"]
    assert row.status == "skipped"
    assert row.detail == "GPU 0 is busy (a kernel ran 97% of the time); --force tries it anyway"
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
    monkeypatch.setattr(trials, "_place", lambda _usual: str(tmp_path / "nowhere"))
    machine.add("deep_look", LOOK)
    row = machine.run()["deep_look", "torch"]
    assert row.status == "failed"
    assert row.detail.startswith("no temporary folder could be made: [Errno 2]")


# --- Which GPU is tried, and when it is left alone ------------------------------------------------------------------
GIB = 1 << 30


def gpu(number: int = 0, *, used: int = 0, total: int = 80 * GIB, **changes: Any) -> Gpu:
    given = {
        "pci_bus_id": f"0000:0{number}:00.0", "uuid": f"GPU-{number}", "index": number, "cuda_ordinal": number,
        "utilisation": 0.0, "memory": Memory(total=total, used=used),
    }  # fmt: skip
    return Gpu(**{**given, **changes})


def choose(*items: Gpu, force: bool = False, complete: bool = True, **variables: str) -> Choice:
    return choose_gpu(Snapshot(gpus=Listing(items=items, complete=complete)), variables, force=force)


def test_the_only_gpu_needs_no_name() -> None:
    choice = choose(gpu())
    assert (choice.gpu, choice.visible, choice.refused, choice.absent) == (gpu(), None, "", "")
    assert not choice.one_at_a_time


def test_of_several_the_first_that_cuda_shows_and_nobody_uses() -> None:
    busy, third = gpu(1, cuda_ordinal=0, utilisation=0.9), gpu(2, cuda_ordinal=1)
    assert choose(gpu(0, cuda_ordinal=None), third, busy).visible == "GPU-2"
    assert choose(gpu(0, cuda_ordinal=None), third, busy, force=True).visible == "GPU-1"


@cases("changes, reason",
    ({"utilisation": 0.21}, "a kernel ran 21% of the time"),
    ({"used": 3 * GIB}, "3.0 of 80 GiB of its memory are in use"),
    ({"used": 2 * GIB, "total": 16 * GIB}, "2.0 of 16 GiB of its memory are in use"),
)  # fmt: skip
def test_a_gpu_at_work(changes: dict[str, Any], reason: str) -> None:
    assert choose(gpu(**changes)).refused == f"GPU 0 is busy ({reason}); --force tries it anyway"
    assert choose(gpu(**changes), force=True).gpu == gpu(**changes)


@cases("changes",
    {"utilisation": 0.2}, {"used": 2 * GIB}, {"used": GIB, "total": 8 * GIB}, {"utilisation": None, "memory": None},
    {"processes": (Process(pid=7),)},
)  # fmt: skip
def test_an_idle_gpu_or_one_that_does_not_tell(changes: dict[str, Any]) -> None:
    assert choose(gpu(**changes)).refused == ""


@cases("mode", "exclusive_process", "prohibited")
def test_one_that_takes_no_second_process(mode: str) -> None:
    assert choose(gpu(compute_mode=mode)).refused == ""
    assert choose(gpu(compute_mode=mode)).one_at_a_time
    for changes in ({"processes": (Process(pid=7),)}, {"utilisation": 0.5}):
        refused = choose(gpu(compute_mode=mode, **changes)).refused
        assert refused.startswith(f"GPU 0 takes no further process (compute mode {mode}) and is in use")


def test_all_reasons_are_told() -> None:
    assert choose(*(gpu(number, utilisation=0.5) for number in range(5))).refused.count("is busy") == 3


def test_an_instance_of_a_partitioned_gpu() -> None:
    mig = Mig(enabled=True, instances=(MigInstance(uuid="MIG-a"), MigInstance(uuid="MIG-b")))
    partitioned = gpu(mig=mig, used=60 * GIB, utilisation=None)
    assert choose(partitioned).visible == "MIG-a"
    assert choose(partitioned, CUDA_VISIBLE_DEVICES="MIG-b,MIG-a").visible == "MIG-b"
    assert choose(partitioned).refused == "", "what is used belongs to other instances"


@cases("value", "", "-1", "NoDevFiles")
def test_a_variable_that_hides_all(value: str) -> None:
    choice = choose(gpu(cuda_ordinal=None), CUDA_VISIBLE_DEVICES=value)
    assert choice.absent == f"CUDA_VISIBLE_DEVICES={value} hides every GPU"


def test_no_gpu_is_absent_only_where_somebody_looked_everywhere() -> None:
    assert choose().absent == "there is no NVIDIA GPU here"
    assert choose(complete=False) == Choice()
    assert choose_gpu(Snapshot(), {}) == Choice()
    jetson = Snapshot(gpus=Listing(items=(), complete=True), platform=Platform(tegra_release="36.4.0"))
    assert choose_gpu(jetson, {}) == Choice()


def test_a_gpu_that_cuda_does_not_show_is_tried_as_the_user_would() -> None:
    assert choose(gpu(cuda_ordinal=None)) == Choice()


def test_relative_search_paths_keep_their_meaning(tmp_path: Any) -> None:
    given = {"PYTHONPATH": "src:/abs:", "LD_LIBRARY_PATH": "$ORIGIN/lib:lib", "PATH": "bin", "LD_PRELOAD": ""}
    found = trials.child_variables(given, "/home/ada", str(tmp_path))
    assert found["PYTHONPATH"] == "/home/ada/src:/abs:/home/ada"
    assert (found["LD_LIBRARY_PATH"], found["PATH"]) == ("$ORIGIN/lib:/home/ada/lib", "bin")
    assert "CUDA_VISIBLE_DEVICES" not in found
    assert trials.child_variables({"PYTHONPATH": ""}, "/", str(tmp_path), "GPU-1")["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert trials.child_variables({"PYTHONPATH": ""}, "/", str(tmp_path))["PYTHONPATH"] == ""


@pytest.mark.parametrize(
    ("memory", "limit", "cpus", "most"),
    [(125 << 30, None, 16, 6), (125 << 30, 16 << 30, 16, 4), (125 << 30, None, 8, 4), (8 << 30, None, 2, 3)],
)
def test_as_many_side_by_side_as_the_machine_has_room_for_the_longest_first(
    monkeypatch: pytest.MonkeyPatch, memory: int, limit: int | None, cpus: int, most: int
) -> None:
    asked: list[tuple[list[str], int]] = []
    monkeypatch.setattr(trials, "plan_trials", lambda specs, *_: [spec.name for spec in specs])
    monkeypatch.setattr(trials, "_run_trials", lambda steps, _loop, number: asked.append((steps, number)))
    platform = Platform(source="os", memory=memory, memory_limit=limit, cpus=cpus)
    common = {"kind": "deep", "uses": "gpu", "scopes": ["env"], "fills": ["environments"]}
    named = [{"name": "torch", "seconds": 150.0}, {"name": "extensions", "seconds": 180.0}]
    specs = [msgspec.convert({**common, "title": "x", **each}, ProbeSpec) for each in named]
    trials.run_deep(specs, cast("Loop", None), {"variables": {}}, Snapshot(platform=platform), force=False)
    assert asked == [(["extensions", "torch"], most)]
