"""Where output goes: files appear whole, and streams that are closed, full or gone change no exit status."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.cli.main import main
from envcheck.errors import UsageError
from envcheck.report import FORMATS as PAGES
from envcheck.report.saved import REPORT
from envcheck.text.output import parse_targets, writable, write_whole
from tests.cli.calling import Result, envcheck, refused
from tests.every import cases
from tests.installed import INSTALLED

FORMATS = ("json", "text")
ASSUMED = ("--assume", "gpu==H100,driver==550.54.14,os==linux")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def test_two_reports_cannot_be_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for second in ("x", "./x", str(tmp_path / "x")):
        with pytest.raises(UsageError, match="another -o writes that file too"):
            parse_targets(["json:x", f"text:{second}"], FORMATS)
    assert (
        len(parse_targets(["json:/dev/null", "text:/dev/null", "text:/dev/stdout", "json:/dev/stdout"], FORMATS)) == 4
    )


@cases("name", "a" * 300, "loop", "folder", "folder/none/x", "to-folder")
def test_a_name_that_cannot_be_written_is_refused_at_once(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "to-folder").symlink_to("folder")
    with pytest.raises(UsageError, match=r"^-o json:\S+: "):
        parse_targets([f"json:{tmp_path / name}"], FORMATS)


def test_what_a_link_leads_to_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("old")
    for name in ("kept", "new"):
        link = tmp_path / f"to-{name}"
        link.symlink_to(name)
        write_whole(writable(str(link), "-o"), "text")
        assert link.is_symlink()
        assert (tmp_path / name).read_text() == "text"
    assert len(list(tmp_path.iterdir())) == 4


@cases("mode", 0o600, 0o640, 0o664)
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "kept"
    file.write_text("old")
    file.chmod(mode)
    write_whole(writable(str(file), "-o"), "text")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("text", mode)


@as_root
def test_a_file_keeps_its_group(tmp_path: Path) -> None:
    file = tmp_path / "kept"
    file.write_text("old")
    os.chown(file, -1, 65534)
    write_whole(file, "text")
    assert file.stat().st_gid == 65534


def test_a_folder_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Whoever shares the folder above could lead it elsewhere at any moment."""
    (tmp_path / "true").mkdir()
    (tmp_path / "true" / "kept").write_text("old")
    (tmp_path / "link").symlink_to("true")
    named = str(tmp_path / "link" / "kept")
    with pytest.raises(UsageError, match=r"link is a link; name the folder that it leads to$"):
        writable(named, "-o")
    with pytest.raises(UsageError, match=r"link is a link; name the folder that it leads to$"):
        write_whole(Path(named), "text")
    assert (tmp_path / "true" / "kept").read_text() == "old"


@as_root
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("kept")
    os.chown(link, 65534, 65534, follow_symlinks=False)
    with pytest.raises(UsageError, match=r"link is a link of another user \(uid 65534\)$"):
        writable(str(link), "-o")
    with pytest.raises(UsageError, match="link of another user"):
        write_whole(link, "text")
    assert (tmp_path / "kept").read_text() == "old"


def test_a_folder_that_is_swapped_meanwhile_leads_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every call of the system that takes a name, the folder's name already means another folder."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "report").write_text("old")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "report").write_text("precious")
    true = os.open

    def swapped(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        descriptor = true(path, flags, mode, dir_fd=dir_fd)
        if (tmp_path / "mine").is_dir() and not (tmp_path / "mine").is_symlink():
            (tmp_path / "mine").rename(tmp_path / "away")
            (tmp_path / "mine").symlink_to("precious")
        return descriptor

    monkeypatch.setattr(os, "open", swapped)
    write_whole(tmp_path / "mine" / "report", "text")
    assert (tmp_path / "away" / "report").read_text() == "text"
    assert (tmp_path / "precious" / "report").read_text() == "precious"


def test_a_found_configuration_replaces_reports_alone(tmp_path: Path) -> None:
    (tmp_path / "envcheck.toml").write_text('output = ["text:report"]\n')
    report = tmp_path / "report"
    assert [envcheck("check", *ASSUMED, cwd=tmp_path).status for _ in range(2)] == [0, 0]
    first = report.read_text()
    assert first.startswith("PASS  ")
    report.write_text("export PATH=precious\n")
    refused = envcheck("check", *ASSUMED, cwd=tmp_path)
    assert (refused.status, refused.out.splitlines()[0]) == (2, first.splitlines()[0])
    assert refused.err == (
        f"envcheck: cannot write {report}: it exists and is no report of envcheck; name it with -o to replace it\n"
    )
    assert report.read_text() == "export PATH=precious\n"
    report.unlink()
    os.mkfifo(report)
    assert envcheck("check", *ASSUMED, cwd=tmp_path).status == 2
    report.unlink()
    for words in (("-o", "text:report"), ("--config", "envcheck.toml")):
        report.write_text("export PATH=precious\n")
        assert envcheck("check", *ASSUMED, *words, cwd=tmp_path).status == 0
        assert report.read_text().startswith("PASS  ")


def test_how_every_report_begins(tmp_path: Path) -> None:
    """What a found configuration may replace is what it wrote before, whatever it said."""
    (tmp_path / "requirements.txt").write_text("torch==2.0.1\n")
    (tmp_path / "envcheck.toml").write_text('[target.old]\ngpu = "A100"\n[target.new]\ngpu = "B200"\n')
    asked = (
        ASSUMED,
        ("--assume", "gpu==B200,driver==515.43.04,os==linux"),
        ("--assume", "gpu==B200,driver==570.86.10", "--plan", "requirements.txt"),
        ("--scope", "node", "--assume", "gpu==H100", "--skip", "no-nvidia-gpu"),
        ("--plan", "requirements.txt", "--target", "all"),
    )
    told = set(PAGES) - {"node-problem-detector"}
    for number, words in enumerate(asked):
        several = "--target" in words
        forms = [form for form in told if not several or PAGES[form].targets]
        outputs = [part for form in forms for part in ("-o", f"{form}:{form}.{number}")]
        assert envcheck("check", *words, *outputs, cwd=tmp_path).status in (0, 1, 3)
        for form in forms:
            begins = (tmp_path / f"{form}.{number}").read_bytes()[:4096]
            assert REPORT.match(begins), (form, begins[:200])
    for other in (
        b"",
        b"\n",
        b"PASS\n",
        b"[1]",
        b"{}",
        b"<!DOCTYPE html><html><head><title>mine",
        b"# HELP other ",
        b"x",
    ):
        assert not REPORT.match(other)


def test_an_open_file_goes_on_where_it_is(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        file.write("before ")
        file.flush()
        write_whole(writable(f"/dev/fd/{file.fileno()}", "-o"), "after")
    assert (tmp_path / "log").read_text() == "before after"
    assert [entry.name for entry in tmp_path.iterdir()] == ["log"]


def test_the_page_is_printed_where_a_file_cannot_be_written(tmp_path: Path) -> None:
    assumed = ("--assume", "gpu==H100,driver==550.54.14,os==linux")
    found = envcheck("check", *assumed, "--json", "-o", "json:/dev/full", "-o", "json:kept.json", cwd=tmp_path)
    assert (found.status, found.err) == (2, "envcheck: cannot write /dev/full: No space left on device\n")
    assert json.loads(found.out)["verdict"] == json.loads((tmp_path / "kept.json").read_text())["verdict"] == "pass"


def test_a_baseline_that_cannot_be_kept_is_refused_before_anything_is_measured(tmp_path: Path) -> None:
    found = refused("bench", "--save-baseline", "missing/base.json", cwd=tmp_path)
    assert found == "envcheck: --save-baseline: the folder missing does not exist\n"


# --- Standard streams that are closed, full, gone or cannot carry the text ------------------------------------------
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


@cases("call", FINE, "--version", "--help", "schema")
def test_a_full_stdout_is_said_once(call: str, tmp_path: Path) -> None:
    told = "envcheck: cannot write to stdout: No space left on device\n"
    assert shell(f"envcheck {call} > /dev/full", tmp_path) == (2, "", told)


@cases("call, status", (BAD, 1), ("--version", 0))
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


@cases("call, encoding",
    *(("rule", "latin-1"), (FINE, "ascii")),
    *((f"{FINE} --format markdown", "latin-1"), (f"{FINE} --format html", "ascii")),
)  # fmt: skip
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


def test_a_lost_requirement_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def lacks(*_arguments: object) -> int:
        raise ModuleNotFoundError("No module named 'packaging.version'", name="packaging.version")

    monkeypatch.setattr("envcheck.cli.verbs.run_verb", lacks)
    assert main(["check"]) == 4
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(
        f"envcheck: 'packaging', which envcheck requires, cannot be found by its Python ({sys.executable})"
    )
