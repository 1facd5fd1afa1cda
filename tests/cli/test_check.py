"""``envcheck check`` end to end on the machine that runs the tests, whatever it has."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import jsonschema

from tests.cli.calling import ROOT, envcheck
from tests.every import cases
from tests.installed import INSTALLED

HOPPER = "gpu==H100,driver==550.54.14,os==linux,machine==x86_64,python==3.12"


def report_of(*arguments: str, cwd: Path, **variables: str) -> tuple[int, dict[str, Any]]:
    result = envcheck("check", "--json", *arguments, cwd=cwd, **variables)
    assert result.err == ""
    report = json.loads(result.out)
    assert report["exit_code"] == result.status
    return result.status, report


def test_every_probe_leaves_a_row_and_every_check_an_id(tmp_path: Path) -> None:
    status, report = report_of(cwd=tmp_path)
    assert status in (0, 1, 3)
    names = {probe["name"] for probe in report["probes"]}
    files = [
        file.relative_to(ROOT / "probes")
        for ways in ("*.py", "bench/*.py", "deep/*.py")
        for file in (ROOT / "probes").glob(ways)
    ]
    assert names == {".".join(file.with_suffix("").parts) for file in files if not file.stem.startswith("_")}
    identities = [check["id"] for check in report["checks"]]
    assert len(set(identities)) == len(identities)
    assert sum(report["summary"].values()) == len(identities)


def test_a_real_report_validates_against_the_published_schema(tmp_path: Path) -> None:
    _, report = report_of(cwd=tmp_path)
    jsonschema.Draft202012Validator(json.loads(envcheck("schema", "report", cwd=tmp_path).out)).validate(report)


@cases(
    "assumed, status, primary", (f"{HOPPER},torch==2.5.1+cu124", 0, None),
    ("gpu==A100,driver==470.82.01,os==linux,torch==2.5.1+cu124", 1, "driver-too-old"),
    ("gpu==H100,driver==450.80.02,os==linux,torch==2.5.1+cu124", 1, "gpu-unsupported-by-driver"),
    ("gpu==sm_120,driver==570.86.10,os==linux,torch==2.5.1+cu124", 1, "gpu-code-missing"),
    (f"{HOPPER},torch==2.5.1+cpu", 1, "cpu-only-build"), ("gpus==0,os==linux", 1, "no-nvidia-gpu"),
    ("torch==2.5.1+cu124,python==3.12,gpu==Frobnicator 9000,driver==550.54.14,os==linux", 3, None),
)  # fmt: skip
def test_assumed_machines(assumed: str, status: int, primary: str | None, tmp_path: Path) -> None:
    found, report = report_of("--assume", assumed, cwd=tmp_path)
    assert (found, report["primary"]) == (status, primary)
    assert report["assumed"] == dict(part.split("==") for part in assumed.split(","))


def test_what_is_not_assumed_is_skipped_and_never_passed(tmp_path: Path) -> None:
    _, report = report_of("--assume", "gpu==H100", cwd=tmp_path)
    statuses = {check["rule"]: check["status"] for check in report["checks"]}
    assert (statuses["gpu-init-failed"], statuses["driver-not-installed"]) == ("skipped", "skipped")
    probes = {probe["name"]: probe["status"] for probe in report["probes"]}
    assert probes["nvml"] == probes["cuda"] == "skipped"


MET = ("gpus>=1", "gpu==H100", "gpu==sm_90", "torch>=2.4", "torch==2.5", "driver==550", "cuda>=12.4")
UNMET = ("gpus>=8", "gpu==A100", "torch>=2.4,<2.5", "driver>=580")


@cases("required, status", (MET, 0), (UNMET, 1))
def test_requirements(required: tuple[str, ...], status: int, tmp_path: Path) -> None:
    options = [word for each in required for word in ("--require", each)]
    found, report = report_of("--assume", f"{HOPPER},torch==2.5.1+cu124", *options, cwd=tmp_path)
    checks = [check for check in report["checks"] if check["rule"] == "requirement-not-met"]
    assert len(checks) == len(required)
    assert {check["status"] for check in checks} == {"pass" if status == 0 else "fail"}
    assert found == status


def test_a_requirement_that_nobody_can_judge_is_unknown(tmp_path: Path) -> None:
    status, report = report_of("--assume", "gpu==H100", "--require", "driver>=550", cwd=tmp_path)
    (check,) = [check for check in report["checks"] if check["rule"] == "requirement-not-met"]
    assert check["status"] == "unknown"
    assert status == 3


def test_fail_on_warn(tmp_path: Path) -> None:
    found, _ = report_of("--assume", f"{HOPPER},torch==2.5.1+cu124", "--fail-on", "warn", cwd=tmp_path)
    assert found == 0


def test_only_and_skip(tmp_path: Path) -> None:
    _, report = report_of("--assume", HOPPER, "--only", "no-nvidia-gpu", cwd=tmp_path)
    assert {check["rule"] for check in report["checks"]} == {"no-nvidia-gpu"}
    _, report = report_of("--assume", HOPPER, "--skip", "no-nvidia-gpu", cwd=tmp_path)
    assert "no-nvidia-gpu" not in {check["rule"] for check in report["checks"]}


def test_scope_leaves_out_rules_and_probes(tmp_path: Path) -> None:
    _, report = report_of("--scope", "node", cwd=tmp_path)
    assert {check["scope"] for check in report["checks"]} == {"node"}
    assert {probe["name"]: probe["status"] for probe in report["probes"]}["environments"] == "skipped"
    _, report = report_of("--scope", "env", cwd=tmp_path)
    assert {check["scope"] for check in report["checks"]} == {"env"}


def test_a_saved_report_is_judged_again(tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    status, first = report_of("-o", f"json:{saved}", cwd=tmp_path)
    again, second = report_of("--from", str(saved), cwd=tmp_path)
    assert (again, second["verdict"], second["primary"]) == (status, first["verdict"], first["primary"])
    assert {check["id"]: check["status"] for check in second["checks"]} == {
        check["id"]: check["status"] for check in first["checks"]
    }


def test_output_files_beside_the_printed_report(tmp_path: Path) -> None:
    result = envcheck("check", "--assume", HOPPER, "-o", "json:a.json", "-o", "summary:b.json", cwd=tmp_path)
    assert result.out.startswith("PASS")
    assert json.loads((tmp_path / "a.json").read_text())["verdict"] == "pass"
    assert len((tmp_path / "b.json").read_text().splitlines()) == 1
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.json", "b.json"]


def test_variables_stand_in_for_options(tmp_path: Path) -> None:
    required = {"gpus>=8", "torch>=9"}
    variables = {"ENVCHECK_ASSUME": HOPPER, "ENVCHECK_FORMAT": "json", "ENVCHECK_REQUIRE": ";".join(required)}
    report = json.loads(envcheck("check", cwd=tmp_path, **variables).out)
    assert {check["subject"]["key"] for check in report["checks"] if check["layer"] == "request"} == required


def test_a_timeout_still_writes_the_report(tmp_path: Path) -> None:
    status, report = report_of("--timeout", "0.000001", cwd=tmp_path)  # over before a child could be started
    assert status == 3
    assert "timed-out" in {probe["status"] for probe in report["probes"]}
    assert report["verdict"] == "unknown"


def test_colour_only_where_it_is_wanted(tmp_path: Path) -> None:
    assert "\x1b[" not in envcheck("check", "--assume", HOPPER, cwd=tmp_path).out
    assert "\x1b[" in envcheck("check", "--assume", HOPPER, "--color", "always", cwd=tmp_path).out
    assert "\x1b[" in envcheck("check", "--assume", HOPPER, cwd=tmp_path, FORCE_COLOR="1").out
    assert "\x1b[" in envcheck("check", "--assume", HOPPER, cwd=tmp_path, CLICOLOR_FORCE="1").out
    for variables in ({"FORCE_COLOR": "0"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, {"CLICOLOR": "1"}):
        assert "\x1b[" not in envcheck("check", "--assume", HOPPER, cwd=tmp_path, **variables).out
    assert "\x1b[" not in envcheck("check", "--assume", HOPPER, "--color", "never", cwd=tmp_path, FORCE_COLOR="1").out


def test_interrupted(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "envcheck", "check", "--from", "-"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
    ) as process:
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m envcheck check -v --assume '{HOPPER}' | head -n 1"
    result = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, capture_output=True, check=True, text=True,
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
    )  # fmt: skip
    assert result.stderr == ""


def test_the_json_report_needs_neither_textual_nor_rich(tmp_path: Path) -> None:
    script = (
        "import sys; from envcheck.cli.main import main; main(['check', '--format', 'json']);"
        "print(sorted({'textual', 'rich', 'asyncio', 'pynvml', 'cuda'} & set(sys.modules)), file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, env=environment)
    assert result.stderr.strip() == "[]"


SHADOWED = ("random", "json", "typing", "signal", "subprocess", "pathlib", "contextlib", "inspect", "msgspec")


def test_files_on_pythonpath_replace_no_module_of_envchecks_and_are_named(tmp_path: Path) -> None:
    for name in SHADOWED:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('mine')\n")
    words = ("check", "--scope", "env", "--python", sys.prefix, "--assume", HOPPER, "-o", f"json:{tmp_path}/x.json")
    command = [sys.executable, "-c", "from envcheck.cli import program; program()", *words]
    environment = {**os.environ, "PYTHONPATH": f"{INSTALLED}:{tmp_path}"}
    result = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, env=environment)
    assert result.returncode in (0, 1), result.stderr
    checks = json.loads((tmp_path / "x.json").read_text())["checks"]
    (shadowed,) = (check for check in checks if check["rule"] == "package-shadowed")
    assert shadowed["status"] == "warn"
    assert all(f"{tmp_path}/{name}.py" in shadowed["message"] for name in ("contextlib", "inspect", "json"))


CPU_BUILD = ("check", "--skip", "variable-changes-results", "--assume", f"{HOPPER},torch==2.5.1+cpu")
"""Without what is said of PYTHONOPTIMIZE itself."""


def test_a_python_that_drops_docstrings_tells_the_same(tmp_path: Path) -> None:
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    page = envcheck("rule", "cpu-only-build", cwd=tmp_path, PYTHONOPTIMIZE="2", **compiled)
    assert page == envcheck("rule", "cpu-only-build", cwd=tmp_path)
    ordinary, dropped = (
        report_of(*CPU_BUILD[1:], cwd=tmp_path, **variables)[1]["checks"]
        for variables in ({}, {"PYTHONOPTIMIZE": "2", **compiled})
    )
    assert dropped == ordinary
    assert all(check["title"] for check in dropped)
    assert any(check["sources"] for check in dropped)


def on_a_terminal(columns: int, cwd: Path, **variables: str) -> str:
    """What ``envcheck check`` shows on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "envcheck", "check", "--assume", HOPPER]
    known = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "TERM": "xterm", "PYTHONPATH": str(INSTALLED), **variables}
    with subprocess.Popen(command, cwd=cwd, env=known, stdin=theirs, stdout=theirs, stderr=subprocess.DEVNULL) as run:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # what Linux answers at the end
            while piece := os.read(ours, 4096):
                shown += piece
        run.wait(timeout=60)
    os.close(ours)
    return shown.decode()


@cases("columns", 60, 95)
def test_the_page_is_as_wide_as_the_terminal(tmp_path: Path, columns: int) -> None:
    shown = on_a_terminal(columns, tmp_path, CLICOLOR="0")
    assert "\x1b[3" not in shown
    plain = re.sub(r"\x1b\[[\d;?]*\w", "", shown)
    assert max(len(line.rstrip()) for line in plain.splitlines()) == columns  # names of rules end at the margin
    assert "\x1b[" in on_a_terminal(columns, tmp_path)
