"""DCGM's findings, of a stand-in for dcgmi that prints what DCGM 4.6.0's own code made of its messages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.model.system import Dcgm
from tests.cli.calling import envcheck
from tests.every import cases
from tests.probes.conftest import BuildRoot, RunProbe

DATA = Path(__file__).parent / "data/dcgmi"
DISCOVERED = (Path(__file__).with_name("data") / "discovered.txt").read_text(encoding="utf-8")
STAND_IN = """#!/bin/sh
echo "$@" >> {folder}/asked
case $1 in health) cat {folder}/health; exit {status};; discovery) cat {folder}/discovered;; esac
"""


def look(run_probe: RunProbe, folder: Path, health: str, status: int = 0) -> Dcgm:
    for name, text in (("dcgmi", STAND_IN.format(folder=folder, status=status)), ("health", health)):
        (folder / name).write_text(text)
    (folder / "discovered").write_text(DISCOVERED)
    (folder / "dcgmi").chmod(0o755)
    snapshot, done = run_probe("dcgm", {"variables": {"PATH": f"relative:{folder}/none:{folder}"}})
    assert (done["status"], snapshot.dcgm is not None) == ("ok", True)
    assert snapshot.dcgm
    return snapshot.dcgm


def test_incidents_with_their_xids_and_places(run_probe: RunProbe, tmp_path: Path) -> None:
    found = look(run_probe, tmp_path, (DATA / "failures.json").read_text())
    told = [(each.subject, each.status, each.watch, each.xid, each.pci_bus_id) for each in found.incidents or ()]
    assert told == [
        ("GPU 1", "warn", "Memory system", None, None),
        ("GPU 3", "fail", "", None, "0000:5d:00.0"),
        ("GPU 5", "fail", "", 119, "0000:9b:00.0"),
        ("GPU 5", "fail", "NVLINK system", None, "0000:9b:00.0"),
        ("Switch 0", "fail", "", None, None),
    ]
    assert (found.incidents or ())[1].text.startswith("GPU 3 has fallen off the bus Check DCGM and system logs for err")
    assert (tmp_path / "asked").read_text() == "health -c -j\ndiscovery -l\n"


def test_a_check_and_the_collector_may_start_it(tmp_path: Path) -> None:
    """Other programs they may not: tests/collect/test_isolation.py."""
    (tmp_path / "dcgmi").write_text(f"#!/bin/sh\n[ $1 != health ] || cat {DATA}/failures.json\n")
    (tmp_path / "dcgmi").chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    report = json.loads(envcheck("check", "--scope", "node", "--json", cwd=tmp_path, PATH=path).out)
    assert [each["status"] for each in report["checks"] if each["rule"] == "dcgm-unhealthy"] == ["fail"]
    script = envcheck("collect", "--script", cwd=tmp_path).out
    command, variables = [sys.executable, "-I", "-", "--scope", "node"], {**os.environ, "PATH": path}
    told = subprocess.run(command, input=script, env=variables, capture_output=True, text=True, check=True).stdout
    assert "GPU 3 has fallen off the bus" in told


def test_a_healthy_machine_is_asked_once(run_probe: RunProbe, tmp_path: Path) -> None:
    found = look(run_probe, tmp_path, (DATA / "healthy.json").read_text())
    assert (found.incidents, found.why_not) == ((), None)
    assert (tmp_path / "asked").read_text() == "health -c -j\n"


@cases("printed, why",
    ("Error: Health watches not enabled. Please enable watches. \n", "Error: Health watches not enabled"),
    ("Error: unable to establish a connection to the specified host: localhost\n", "Error: unable to establish"),
    ("", "health printed nothing"), ("{", "{"), ('{"body": []}', '{"body": []}'),
    ('{"body": {"GPU": {"children": {"0": 1}}}}', '{"body"'),
)  # fmt: skip
def test_what_does_not_answer_is_not_healthy(run_probe: RunProbe, tmp_path: Path, printed: str, why: str) -> None:
    found = look(run_probe, tmp_path, printed, 1)
    assert found.incidents is None
    assert why in (found.why_not or "")


def test_a_program_that_others_can_write_is_not_started(run_probe: RunProbe, tmp_path: Path) -> None:
    look(run_probe, tmp_path, (DATA / "healthy.json").read_text())
    (tmp_path / "dcgmi").chmod(0o777)
    snapshot, _ = run_probe("dcgm", {"variables": {"PATH": str(tmp_path)}})
    assert snapshot.dcgm
    assert (snapshot.dcgm.incidents, snapshot.dcgm.why_not) == (None, f"another user can write {tmp_path}/dcgmi")
    assert len((tmp_path / "asked").read_text().splitlines()) == 1


FAULT = "Found 12 faulty memory elements on GPU 1"
RELEASE_4 = {"entity_group": "GPU", "entity_id": 1, "warnings": [{"warning": FAULT, "error_id": 44}]}
RELEASE_3 = {"gpu_id": 1, "warnings": [{"warnings": FAULT, "error_id": 44}]}
RELEASE_2 = {"gpu_ids": "1", "warnings": FAULT}


@cases(
    "title, result",
    ("DCGM Diagnostic", RELEASE_4),
    ("DCGM GPU Diagnostic", RELEASE_3),
    ("DCGM GPU Diagnostic", RELEASE_2),
)
def test_the_diagnostic_that_was_kept(
    run_probe: RunProbe, build_root: BuildRoot, title: str, result: dict[str, object]
) -> None:
    passed = {"name": "software", "results": [{"entity_group": "GPU", "entity_id": 1, "status": "Pass"}]}
    tests = [passed, {"name": "memory", "results": [{**result, "status": "Fail"}]}]
    text = json.dumps({title: {"test_categories": [{"category": "Hardware", "tests": tests}]}})
    root = build_root(None, {"/run/envcheck/dcgm-diag.json": f"Successfully ran diagnostic for group.\n{text}"})
    snapshot, _ = run_probe("dcgm", {"root": root})
    assert snapshot.dcgm
    assert (snapshot.dcgm.tests, snapshot.dcgm.why_not) == (("software", "memory"), None)
    (found,) = snapshot.dcgm.incidents or ()
    assert (found.subject, found.status, found.watch) == ("GPU 1", "fail", "memory")
    assert found.text == FAULT


def test_what_no_device_has_is_the_machines(run_probe: RunProbe, tmp_path: Path) -> None:
    errors = {"children": {"NVLINK system": {"overflow": ["IMEX daemon status is -3 (not READY)"], "value": "Failure"}}}
    body = {"None": {"children": {"0": {"children": {"Errors": errors}, "value": "Failure"}}}}
    (found,) = look(run_probe, tmp_path, json.dumps({"body": body})).incidents or ()
    assert (found.subject, found.status, found.watch) == ("this machine", "fail", "NVLINK system")


def test_a_damaged_diagnostic_is_said(run_probe: RunProbe, build_root: BuildRoot) -> None:
    snapshot, _ = run_probe("dcgm", {"root": build_root(None, {"/run/envcheck/dcgm-diag.json": '{"DCGM'})})
    assert snapshot.dcgm
    assert snapshot.dcgm.incidents is None
    assert "is not what dcgmi diag -j prints" in (snapshot.dcgm.why_not or "")


def test_nothing_is_there(run_probe: RunProbe, build_root: BuildRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    snapshot, done = run_probe("dcgm", {"root": build_root(None, {"/x": ""})})
    assert (snapshot.dcgm, done["status"]) == (None, "absent")
