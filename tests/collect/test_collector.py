"""The collector: one file that finds what a check finds, on machines where nothing is installed."""

import ast
import base64
import json
import os
import re
import subprocess
import sys
import time
import zlib
from functools import cache
from pathlib import Path

import pytest

from envcheck.collect.script import collector
from tests.cli.calling import envcheck, refused
from tests.collect.same_snapshot import differences, steady
from tests.every import cases
from tests.installed import INSTALLED


@cache
def script() -> str:
    return collector()


@cache
def packed() -> dict[str, str]:
    """The files that it unpacks, by path."""
    parts = ast.literal_eval(script().partition("PARTS = ")[2].partition("\n)\n")[0] + ")")
    return dict(json.loads(zlib.decompress(base64.b64decode(parts)))["files"])


def collect(
    folder: Path, *arguments: str, python: str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the collector as ssh would: on stdin of a Python that knows nothing of envcheck."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [python, "-I", "-", *arguments], input=script(), capture_output=True, text=True, timeout=120, cwd=folder,
        env={**kept, **variables}, check=False,
    )  # fmt: skip


@cases("how", "stdin", "file", "PYTHONPATH")
def test_it_imports_nothing_from_the_folder_where_it_starts(how: str, tmp_path: Path) -> None:
    """Without -I, which the documents name: somebody will forget it."""
    runner = "\n".join(text for name, text in packed().items() if name.startswith("envcheck/"))
    imported = set(re.findall(r"^import (\w+)$", script() + runner, re.MULTILINE))
    assert len(imported) > 10
    for name in (*imported, "struct", "random"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    (tmp_path / "collect.py").write_text(script())
    at_start = {"os", "sys"}  # imported before any line of a program
    if how == "PYTHONPATH":
        for name in (*at_start, "stat", "io", "re", "types", "functools", "collections", "struct", "random"):
            (tmp_path / f"{name}.py").unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, *(["collect.py"] if how == "file" else ["-"]), "--timeout", "0.001"],
        input="" if how == "file" else script(), capture_output=True, text=True, timeout=120, cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **({"PYTHONPATH": "."} if how == "PYTHONPATH" else {})}, check=False,
    )  # fmt: skip
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["collected"]


def test_it_finds_what_a_check_finds(tmp_path: Path) -> None:
    """The environment is named, since a check would otherwise look into envcheck's own too."""
    python = sys.prefix
    same = {"PYTHONPATH": str(INSTALLED), "PYTHONDONTWRITEBYTECODE": "1"}  # as `envcheck` below has them
    collected = collect(tmp_path, "--python", python, **same)
    assert collected.returncode == 0, collected.stderr
    theirs = json.loads(envcheck("check", "--from", "-", "--json", cwd=tmp_path, stdin=collected.stdout).out)
    ours = json.loads(envcheck("check", "--python", python, "--json", cwd=tmp_path).out)
    assert list(differences(steady(ours["snapshot"]), steady(theirs["snapshot"]))) == []
    assert ours["snapshot"]["environments"]["items"][0]["distributions"]
    assert {run["name"]: run["status"] for run in theirs["probes"]} == {
        run["name"]: run["status"] for run in ours["probes"] if run["status"] != "skipped"
    }
    assert [check["id"] for check in theirs["checks"]] == [check["id"] for check in ours["checks"]]


def test_it_leaves_nothing_behind(tmp_path: Path) -> None:
    """Collectors of tests that run beside this one have folders too, which go soon."""
    before = set(Path("/dev/shm").glob("envcheck-*"))
    assert collect(tmp_path, "--scope", "env", TMPDIR=str(tmp_path)).returncode == 0
    assert list(tmp_path.iterdir()) == []
    left = set(Path("/dev/shm").glob("envcheck-*")) - before
    until = time.monotonic() + 30
    while (left := {folder for folder in left if folder.exists()}) and time.monotonic() < until:
        time.sleep(0.2)
    assert left == set()


def test_it_brings_no_probes_that_measure_or_try() -> None:
    folders = {name.split("/")[1] for name in packed() if name.count("/") > 1}
    assert not folders & {"bench", "deep", "framework_bench", "measuring", "trials"}


def test_it_is_a_program_of_the_standard_library_alone() -> None:
    runner = "\n".join(text for name, text in packed().items() if name.startswith("envcheck/"))
    known = sys.stdlib_module_names | {"envcheck"}
    for text, version, there in ((script(), (3, 6), known - {"__future__"}), (runner, (3, 8), known)):
        lines = [*ast.walk(ast.parse(text, feature_version=version))]
        imported = {alias.name for line in lines if isinstance(line, ast.Import) for alias in line.names}
        imported |= {line.module or "" for line in lines if isinstance(line, ast.ImportFrom)}
        assert {name.partition(".")[0] for name in imported} <= there, "Python 3.6 has no annotations in __future__"


def other_python(version: str) -> str:
    places = [*Path.home().glob(f".pyenv/versions/{version}.*/bin/python3"), Path(f"/usr/bin/python{version}")]
    found = next((str(place) for place in places if place.exists()), None)
    if found is None:
        pytest.skip(f"Python {version} is not installed")
    return found


@cases("version", "3.6", "3.7")
def test_a_python_that_is_too_old_says_so(tmp_path: Path, version: str) -> None:
    collected = collect(tmp_path, python=other_python(version))
    assert collected.stderr.startswith(f"envcheck's collector needs Python 3.8 or newer; this is {version}.")
    assert (collected.returncode, collected.stdout, collected.stderr.count("\n")) == (1, "", 1)


@cases("version", "3.8", "3.9", "3.13")
def test_it_runs_in_other_pythons(tmp_path: Path, version: str) -> None:
    collected = collect(tmp_path, "--python", sys.prefix, python=other_python(version))
    assert collected.returncode == 0, collected.stderr
    runs = json.loads(collected.stdout)["runs"]
    assert {run["probe"]: run["end"] for run in runs} == {run["probe"]: None for run in runs}
    assert {run["messages"][-1]["done"]["status"] for run in runs} <= {"ok", "absent"}


def test_a_probe_that_hangs_costs_its_own_facts(tmp_path: Path) -> None:
    """Every probe is cut off here; each says so, and the report is a report all the same."""
    collected = collect(tmp_path, "--timeout", "0.01")
    assert any((run["end"] or {}).get("status") == "timed-out" for run in json.loads(collected.stdout)["runs"])
    report = json.loads(envcheck("check", "--from", "-", "--json", cwd=tmp_path, stdin=collected.stdout).out)
    assert "timed-out" in {run["status"] for run in report["probes"]}
    assert report["verdict"] != "pass"


@cases(
    "content, told", ('{"collected": "1"}', "wrong shape"), ('{"collected": "1", "runs": [', "cut off or damaged"),
    ('{"collected":1,"created":"","duration_s":0,"host":"","runs":[]}', "wrong shape"),
)  # fmt: skip
def test_what_is_no_collection_is_refused(tmp_path: Path, content: str, told: str) -> None:
    assert told in refused("check", "--from", "-", cwd=tmp_path, stdin=content)


def test_facts_are_validated_as_those_of_a_probe(tmp_path: Path) -> None:
    fact = {"probe": "kernel", "fact": {"kernel": {"nonsense": 1}}}
    secret = {"probe": "variables", "fact": {"variables": {"values": {"HF_TOKEN": "hf_" + "a" * 34}, "complete": True}}}
    done = [{"probe": "kernel", "done": {"status": "ok"}}, {"probe": "variables", "done": {"status": "ok"}}]
    runs = [{"probe": each["probe"], "messages": [each, end]} for each, end in zip((fact, secret), done, strict=True)]
    content = json.dumps({"collected": "1", "created": "", "duration_s": 0, "host": "n", "runs": runs})
    told = envcheck("check", "--from", "-", "--json", cwd=tmp_path, stdin=content)
    failed = next(run for run in json.loads(told.out)["probes"] if run["name"] == "kernel")
    assert (failed["status"], "nonsense" in failed["detail"]) == ("failed", True)
    assert "hf_" + "a" * 34 not in told.out


@cases("arguments", ("--nonsense",), ("--python",), ("--timeout", "soon"))
def test_wrong_arguments_are_told(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    result = collect(tmp_path, *arguments)
    assert (result.returncode, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 1
