"""Bad input gets one sentence on stderr, exit status 2 and no traceback, in time, and leaves nothing half-written."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.cli.main import main
from envcheck.cli.parser import refuse_unknown
from envcheck.knowledge.load import overlay_folders
from tests.cli.calling import ROOT, envcheck, refused
from tests.every import cases, tabled
from tests.importers.pasting import recorded
from tests.installed import INSTALLED


@tabled
def test_one_sentence(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    assert words in refused(*arguments, cwd=tmp_path)


@tabled
def test_no_verb_begins(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("envcheck.cli.verbs.run_verb", lambda name, _options: pytest.fail(f"{name} began"))
    assert main(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


@tabled
def test_a_saved_report_that_cannot_be_read(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_bytes(content)
    assert words in refused("check", "--from", "saved.json", cwd=tmp_path)


def test_an_unwritable_output_is_refused_before_any_work(tmp_path: Path) -> None:
    target = tmp_path / "folder"
    target.mkdir()
    assert "does not exist" in refused("check", "-o", f"json:{target}/sub/report.json", cwd=tmp_path)
    assert list(target.iterdir()) == []


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    assert "ENVCHECK_FAIL_ON=never" in refused("check", cwd=tmp_path, ENVCHECK_FAIL_ON="never")
    assert "ENVCHECK_TIMEOUT=x" in refused("check", cwd=tmp_path, ENVCHECK_TIMEOUT="x")
    assert "ENVCHECK_JSON=maybe" in refused("check", cwd=tmp_path, ENVCHECK_JSON="maybe")


@tabled
@cases("verb", (), ("check",), ("matrix", "show", "torch"), ("diff", "a", "b"))
def test_a_variable_that_sets_no_option_is_refused(
    tmp_path: Path, name: str, sentence: str, verb: tuple[str, ...]
) -> None:
    assert sentence in refused(*verb, cwd=tmp_path, **{name: "torch>=2"})


def test_variables_that_mean_something_are_not_refused(tmp_path: Path) -> None:
    """Those of another verb's options, of the program, of its scripts and tests; empty ones; those of a service."""
    names = ("FULL", "DEBUG", "DOCS_URL", "NVRTC", "SERVICE_HOST", "PORT_80_TCP_ADDR", "WEB_SERVICE_PORT_HTTP")
    given = dict.fromkeys((f"ENVCHECK_{name}" for name in names), "1")
    assert envcheck("schema", "report", cwd=tmp_path, ENVCHECK_REQUIRES="", **given).status == 0


def test_every_variable_that_the_project_names_is_known() -> None:
    """What code, scripts and pages set or read sets an option, or is listed beside those that do."""
    files = [path for folder in ("envcheck", "tests", "docs", ".ci", ".github", "probes") for path in files_in(folder)]
    names = {
        name for path in files for name in re.findall(r"\bENVCHECK_[A-Z_]*[A-Z]\b", path.read_text("utf-8", "replace"))
    }
    names -= {"ENVCHECK_SOME_OPTION", "ENVCHECK_REQUIRES", "ENVCHECK_FAILON", "ENVCHECK_ZZZZZZZZZZ"}
    assert len(names) > 20
    for name in names:
        refuse_unknown({name: "1"})


def files_in(folder: str) -> list[Path]:
    texts = (".py", ".md", ".yml", ".sh", "")
    return [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in texts]


def test_text_that_nobody_recognises(tmp_path: Path) -> None:
    for text in ("", "the quick brown fox\n", b"\x00\x01\x02" * 100):
        refused("explain", cwd=tmp_path, stdin=text)


def test_a_report_without_facts_cannot_be_judged_again(tmp_path: Path) -> None:
    report = json.loads(envcheck("check", "--assume", "gpu==H100,driver==550.54.14", "--json", cwd=tmp_path).out)
    report["snapshot"] = None
    (tmp_path / "saved.json").write_text(json.dumps(report))
    assert "contains no snapshot" in refused("check", "--from", "saved.json", cwd=tmp_path)


def test_what_is_given_replaces_what_a_variable_holds(tmp_path: Path) -> None:
    """It does not join it: --only of a variable would otherwise widen what was asked for."""
    chosen = ("check", "--assume", "gpu==H100,driver==550.54.14,os==linux", "--json", "--only", "no-nvidia-gpu")
    found = json.loads(envcheck(*chosen, cwd=tmp_path, ENVCHECK_ONLY="driver-too-old;gpu-init-failed").out)
    assert {check["rule"] for check in found["checks"]} == {"no-nvidia-gpu"}
    found = json.loads(envcheck(*chosen, "--only", "gpu-init-failed", cwd=tmp_path, ENVCHECK_ONLY="driver-too-old").out)
    assert {check["rule"] for check in found["checks"]} == {"no-nvidia-gpu", "gpu-init-failed"}


def test_a_variable_counts_for_the_verb_that_knows_its_value(tmp_path: Path) -> None:
    """The summary is a format of reports; that ``diff`` has none is nothing to a check."""
    chosen = ("check", "--assume", "gpu==H100,driver==550.54.14,os==linux")
    assert json.loads(envcheck(*chosen, cwd=tmp_path, ENVCHECK_FORMAT="summary").out)["cut"]
    assert "ENVCHECK_FORMAT=summary: choose from text, json" in refused(
        "diff", "a", "b", cwd=tmp_path, ENVCHECK_FORMAT="summary"
    )


def test_a_pipe_without_a_writer_is_waited_for_aloud(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "envcheck", "explain", str(pipe)]
    with subprocess.Popen(
        command, cwd=INSTALLED, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:  # fmt: skip
        assert child.stderr
        assert child.stderr.readline() == f"envcheck: waiting for input from the pipe {pipe}\n"
        pipe.write_text("CUDA error: out of memory\n")
        out, _ = child.communicate(timeout=60)
    assert "memory" in out


# --- A text that is too long to be read whole is never found to be in order -----------------------------------------
HEALTHY = recorded("h200_collect_env.txt")
STEPS = "".join(f"step {n}\n" for n in range(60_000))
ERROR = "RuntimeError: CUDA error: no kernel image is available for execution on the device\n"
FORMS = ("json", "summary", "markdown", "html", "junit")


def explained(text: str, *options: str, tmp_path: Path) -> tuple[int, str]:
    (tmp_path / "log.txt").write_text(text)
    result = envcheck("explain", "log.txt", *options, cwd=tmp_path)
    return result.status, result.out


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the reports about a text with an error in its middle, which was read once."""
    folder = tmp_path_factory.mktemp("read")
    (folder / "log.txt").write_text(HEALTHY + STEPS + ERROR + STEPS)
    result = envcheck("explain", "log.txt", *(word for form in FORMS for word in ("-o", f"{form}:{form}")), cwd=folder)
    assert result.status == 3
    assert "[text-not-read-whole]" in result.out.splitlines()[0]
    assert "only the first and the last 50000 lines" in " ".join(result.out.split())
    return folder


def test_a_short_text_with_nothing_wrong_passes(tmp_path: Path) -> None:
    status, page = explained(HEALTHY, tmp_path=tmp_path)
    assert (status, page.partition(" ")[0]) == (0, "PASS")


@cases("options", ("--scope", "node"), ("--scope", "container"), ("--scope", "env"), ("--only", "driver-too-old"))
def test_an_error_in_the_middle_does_not_pass(options: tuple[str, str], read: Path) -> None:
    result = envcheck("check", "--from", "json", *options, cwd=read)
    assert result.status == 3
    assert "[text-not-read-whole]" in result.out.splitlines()[0]


def test_an_error_far_within_a_line_does_not_pass(tmp_path: Path) -> None:
    line = "step " * 2000 + ERROR.strip()
    status, page = explained(f"{HEALTHY}{line}\n{line}\n", tmp_path=tmp_path)
    assert status == 3
    number = HEALTHY.count("\n") + 1
    assert f"only the first 4000 characters of line {number} and of 1 more were read" in " ".join(page.split())


def test_an_error_far_within_a_log_as_one_string_counts(tmp_path: Path) -> None:
    status, page = explained(HEALTHY + json.dumps({"log": "step\n" * 2000 + ERROR}), tmp_path=tmp_path)
    assert (status, page.partition(" ")[0]) == (1, "FAIL")


@pytest.mark.parametrize("form", FORMS)
def test_every_format_says_so(form: str, read: Path) -> None:
    assert "text-not-read-whole" in (read / form).read_text()


def test_what_is_found_at_the_ends_still_counts(tmp_path: Path) -> None:
    status, page = explained(HEALTHY + STEPS + STEPS + ERROR, tmp_path=tmp_path)
    assert (status, page.partition(" ")[0]) == (1, "FAIL")
    assert "text-not-read-whole" in page


def test_more_than_can_be_taken_in_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with (tmp_path / "log.txt").open("wb") as file:
        file.truncate((64 << 20) + 1)
    for name in ("log.txt", "-"):
        result = refused("explain", name, cwd=tmp_path, stdin=b"\n" * ((64 << 20) + 1) if name == "-" else b"")
        named = "stdin" if name == "-" else name
        assert result.startswith(f"envcheck: {named} has more than 64 MiB: keep the lines")


# --- Folders of rows and homes that cannot be read, or hold what no row is: one sentence, in time -------------------
QUESTION = ("matrix", "check", "torch==2.5.1", "cuda==12.4")
LONG = "/" + "x" * 5000
NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def deep(path: Path) -> None:
    path.write_text("a = " + "[" * 3000 + "]" * 3000)


def dotted(path: Path) -> None:
    path.write_text(f"{'.'.join('a' * 100_000)} = 1\n")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "it is not a regular file"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "it is not a regular file"),
    "folder": (Path.mkdir, "cannot be read: Is a directory"),
    "loop": (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    "dangling": (lambda path: path.symlink_to("nowhere"), "No such file or directory"),
    "deep": (deep, "nested too deeply"), "dotted": (dotted, "more than 50 dots"), "huge": (huge, "at most 8 MiB"),
    "binary": (lambda path: path.write_bytes(b"\xff\x00"), "cannot be read as TOML"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FILES)
def test_a_file_that_holds_no_rows(kind: str, tmp_path: Path) -> None:
    make, words = FILES[kind]
    folder = tmp_path / "envcheck" / "matrix"
    folder.mkdir(parents=True)
    make(folder / "rows.toml")
    told = refused(*QUESTION, "--matrix", str(folder), cwd=tmp_path)
    assert words in told
    assert len(told) < 1200
    assert words in envcheck(*QUESTION, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path)).err
    refreshed = envcheck(
        "matrix", "refresh", "--matrix", str(folder), "--index-url", "http://127.0.0.1:9/", cwd=tmp_path
    )
    assert (refreshed.status, refreshed.out, refreshed.err.count("\n")) == (2, "", 1)
    assert words in refreshed.err or "no permission to write" in refreshed.err


def test_a_folder_of_more_files_than_rows_have(tmp_path: Path) -> None:
    for number in range(201):
        (tmp_path / f"{number}.toml").touch()
    assert "at most 200 TOML files" in envcheck(*QUESTION, "--matrix", str(tmp_path), cwd=tmp_path).err


@cases("named", LONG, "/etc/passwd", "/etc/passwd/rows", "/nowhere")
def test_a_folder_that_is_none(named: str, tmp_path: Path) -> None:
    told = refused(*QUESTION, "--matrix", named, cwd=tmp_path)
    assert "folder" in told
    assert len(told) < 400


@cases("home", LONG, "/dev/null", "/etc/passwd", "relative", "/nowhere", "/")
@cases("name", "HOME", "XDG_CONFIG_HOME")
def test_a_home_that_is_none_is_no_obstacle(name: str, home: str, tmp_path: Path) -> None:
    told = envcheck(*QUESTION, cwd=tmp_path, **{name: home})
    assert (told.status, told.err) == (0, "")


def test_a_check_with_an_overlong_home(tmp_path: Path) -> None:
    told = envcheck("check", "--json", cwd=tmp_path, HOME=LONG, XDG_CONFIG_HOME=LONG, VIRTUAL_ENV=LONG)
    assert told.status in (0, 1, 3), told.err


@as_root
@cases("closed", ".", ".config", ".config/envcheck", ".config/envcheck/matrix")
def test_a_configuration_folder_of_somebody_else_is_said(closed: str, tmp_path: Path) -> None:
    """Another user's HOME: in a container with ``--user`` it is often root's."""
    home = tmp_path / "home"
    place = home / ".config" / "envcheck" / "matrix"
    place.mkdir(parents=True)
    (place / "rows.toml").touch()
    (home / closed).chmod(0o700)
    unread: list[str] = []
    os.seteuid(NOBODY)
    try:
        assert overlay_folders(None, {"HOME": str(home)}, unread.append) == ()
    finally:
        os.seteuid(0)
    assert unread == [f"{place} cannot be read (Permission denied): rows in it are left out"]


def test_a_configuration_folder_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "envcheck").mkdir()
    (tmp_path / "envcheck" / "matrix").touch()
    told = envcheck(*QUESTION, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))
    assert told.status == 0
    reason = f"{tmp_path}/envcheck/matrix cannot be read (Not a directory): rows in it are left out"
    assert reason in told.err
    (tmp_path / "text").write_text("CUDA error: out of memory\n")
    explained = envcheck("explain", "text", "--format", "json", cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path))
    assert json.loads(explained.out)["overlays_unread"] == [reason]


def test_an_echo_is_at_most_a_line(tmp_path: Path) -> None:
    for arguments in ((LONG,), ("check", f"--{LONG}"), ("check", "--format", LONG), ("matrix", "check", LONG)):
        told = envcheck(*arguments, cwd=tmp_path)
        assert (told.status, told.err.count("\n")) == (2, 1)
        assert len(told.err) < 500
