"""Standard streams that are closed, full, gone or cannot carry the text: the exit status stays the verdict's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.cli.main import main
from tests.cli.calling import Result
from tests.installed import INSTALLED

FINE = "check --assume gpu==H100,driver==550.54.14,os==linux,torch==2.5.1+cu124"
BAD = "check --assume gpu==A100,driver==470.82.01,os==linux,torch==2.5.1+cu124"


def shell(command: str, cwd: Path, **variables: str) -> Result:
    """What bash made of ``command``, in which ``envcheck`` is the command line of this checkout."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    defined = f'envcheck() {{ "{sys.executable}" -m envcheck "$@"; }}; {command}'
    done = subprocess.run(
        ["bash", "-c", defined], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120,
        env={**kept, "PYTHONPATH": str(INSTALLED), "PYTHONDONTWRITEBYTECODE": "1", **variables},
    )  # fmt: skip
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("call", [FINE, "--version", "--help", "schema"])
def test_a_full_stdout_is_said_once(call: str, tmp_path: Path) -> None:
    told = "envcheck: cannot write to stdout: No space left on device\n"
    assert shell(f"envcheck {call} > /dev/full", tmp_path) == (2, "", told)


@pytest.mark.parametrize(("call", "status"), [(BAD, 1), ("--version", 0)])
def test_without_a_stdout_the_status_is_the_same(call: str, status: int, tmp_path: Path) -> None:
    assert shell(f"envcheck {call} >&-", tmp_path) == (status, "", "")


def test_a_message_goes_nowhere_else_than_to_stderr(tmp_path: Path) -> None:
    for end in ("2>&-", "2>/dev/full", "<&- >&- 2>&-"):
        assert shell(f"envcheck check --from missing {end}", tmp_path) == (2, "", "")


def test_a_closed_stdin_is_empty(tmp_path: Path) -> None:
    for call, words in (("explain", "the text is empty"), ("check --from -", "the saved report is empty")):
        found = shell(f"envcheck {call} <&-", tmp_path)
        assert (found.status, words in found.err) == (2, True), found


def test_a_file_that_is_opened_takes_no_streams_place(tmp_path: Path) -> None:
    assert shell(f"envcheck {FINE} -o json:report.json <&- >&- 2>&-", tmp_path).status == 0
    assert (tmp_path / "report.json").read_text().startswith("{")


def test_a_reader_that_goes_away_changes_no_status(tmp_path: Path) -> None:
    for call, status in ((f"{BAD} -v", 1), ("check --help", 0)):
        found = shell(f"set -o pipefail; envcheck {call} | head -n 1", tmp_path)
        assert (found.status, found.err) == (status, "")


@pytest.mark.parametrize(
    ("call", "encoding"),
    [
        *(("rule", "latin-1"), (FINE, "ascii")),
        *((f"{FINE} --format markdown", "latin-1"), (f"{FINE} --format html", "ascii")),
    ],
)
def test_a_terminal_that_cannot_carry_the_text(call: str, encoding: str, tmp_path: Path) -> None:
    """Documents are UTF-8 wherever they go; everything else is spelled in what the terminal has."""
    found = shell(f"envcheck {call}", tmp_path, PYTHONIOENCODING=encoding)
    assert (found.status, found.err) == (0, "")
    assert found.out.isascii() == ("--format" not in call)


def test_what_is_quoted_of_the_command_line_steers_no_terminal(tmp_path: Path) -> None:
    found = shell(r"envcheck check --from $'\x1b[31m\nx'", tmp_path)
    assert (found.status, found.err) == (2, "envcheck: cannot read \\x1b[31m\\nx: No such file or directory\n")


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run_out(*_arguments: object) -> int:
        raise MemoryError

    monkeypatch.setattr("envcheck.cli.verbs.run_verb", run_out)
    assert main(["check"]) == 4
    assert capsys.readouterr() == (
        "",
        "envcheck: internal error: out of memory (see ulimit -v, or the memory limit of the container)\n",
    )


def test_a_requirement_that_is_gone_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacks(*_arguments: object) -> int:
        raise ModuleNotFoundError("No module named 'packaging.version'", name="packaging.version")

    monkeypatch.setattr("envcheck.cli.verbs.run_verb", lacks)
    assert main(["check"]) == 4
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(
        f"envcheck: 'packaging', which envcheck requires, cannot be found by its Python ({sys.executable})"
    )
