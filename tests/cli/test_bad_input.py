"""Bad input gets one sentence on stderr, exit status 2, no traceback, and leaves nothing half-written."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from envcheck.cli.option_values import refuse_unknown
from envcheck.cli.options import grammar
from tests.cli.calling import ROOT, envcheck


def refused(*arguments: str, cwd: Path, stdin: str | bytes = b"", **variables: str) -> str:
    result = envcheck(*arguments, cwd=cwd, stdin=stdin, **variables)
    assert result.status == 2, result
    assert result.out == ""
    assert result.err.startswith("envcheck: ")
    assert result.err.count("\n") == 1
    assert list(cwd.glob("*.json*")) == [cwd / name for name in ("saved.json",) if (cwd / name).exists()]
    return result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "--frobnicate"), "--frobnicate"),
        (("check", "--jso"), "--jso"),
        (("chekc",), "chekc"),
        (("check", "--scope", "cluster"), "'cluster' is not a scope; choose from node, container, env"),
        (("check", "--timeout", "soon"), "'soon' is not a number of seconds"),
        (("check", "--timeout", "-1"), "not a number of seconds above 0"),
        (("check", "--assume", "gpu"), "write NAME==VERSION"),
        (("check", "--assume", "gpu==H100 driver==580"), "separate components by commas, as before 'driver==580'"),
        (("check", "--require", "torch>=2 driver>=550"), "separate components by commas, as before 'driver>=550'"),
        (("check", "--assume", "driver>=550"), "give an exact version, driver==VERSION"),
        (("check", "--require", "torch>=new"), "'new' is not a version"),
        (("check", "--only", "no-such-rule"), "there is no rule 'no-such-rule'"),
        (
            ("check", "--only", "driver-not-loaded", "--skip", "driver-not-loaded"),
            "--skip or --scope removes every rule that --only selects",
        ),
        (
            ("check", "--only", "driver-not-loaded", "--scope", "env"),
            "--skip or --scope removes every rule that --only selects",
        ),
        (("rule", "no-such-rule"), "there is no rule 'no-such-rule'"),
        (("schema", "no-such-schema"), "no-such-schema"),
        (("check", "--format", "yaml"), "yaml"),
        (("check", "-o", "report.json"), "write FORMAT:FILE"),
        (("check", "-o", "yaml:report.yaml"), "write FORMAT:FILE"),
        (("check", "-o", "json:missing/report.json"), "the folder missing does not exist"),
        (("check", "-o", "json:."), "is a folder"),
        (("check", "--from", "missing.json"), "cannot read missing.json: No such file"),
        (("explain", "missing.txt"), "cannot read missing.txt: No such file"),
        (("check", "--from", ""), "--from: an empty path"),
        (("check", "--python", ""), "--python: an empty path"),
        (("check", "--baseline", ""), "--baseline: an empty path"),
        (("check", "--matrix", ""), "--matrix: an empty path"),
        (("check", "--from", "saved.json", "--python", "/usr"), "--python and --all-envs examine this machine"),
        (("check", "--from", "saved.json", "--all-envs"), "--from reads a saved report"),
        (("check", "-v", "-q"), "-q/--quiet: not allowed with argument -v/--verbose"),
        (("bench", "--gpu=-1"), "'-1' is not a list of GPU indices"),
        (("bench", "--gpu", "99999999999999999999"), "is not a list of GPU indices"),
    ],
)
def test_one_sentence(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    assert words in refused(*arguments, cwd=tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"not json at all", "JSON"),
        (b'{"schema_version": "1.0", "checks"', "JSON"),
        (b"\xff\xfe\x00", "JSON"),
        (b"[1, 2]", "report"),
        (b'{"schema_version": "2.0"}', "2.0"),
        (b'{"schema_version": "1.0"}', "report"),
    ],
)
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


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("ENVCHECK_REQUIRES", "ENVCHECK_REQUIRES: there is no option --requires: did you mean '--require'?"),
        ("ENVCHECK_FAILON", "ENVCHECK_FAILON: there is no option --failon: did you mean '--fail-on'?"),
        ("ENVCHECK_ZZZZZZZZZZ", "ENVCHECK_ZZZZZZZZZZ: there is no option --zzzzzzzzzz"),
        ("ENVCHECK_require", "ENVCHECK_require: write ENVCHECK_REQUIRE"),
    ],
)
@pytest.mark.parametrize("verb", [(), ("check",), ("matrix", "show", "torch"), ("diff", "a", "b")])
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
        refuse_unknown(grammar(), {name: "1"})


def files_in(folder: str) -> list[Path]:
    texts = (".py", ".md", ".yml", ".sh", "")
    return [path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix in texts]


def test_text_that_nobody_recognises(tmp_path: Path) -> None:
    for text in ("", "the quick brown fox\n", b"\x00\x01\x02" * 100):
        refused("explain", cwd=tmp_path, stdin=text)


def test_a_report_without_facts_cannot_be_judged_again(tmp_path: Path) -> None:
    saved = envcheck("check", "--assume", "gpu==H100,driver==550.54.14", "--json", cwd=tmp_path)
    report = json.loads(saved.out)
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
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stderr
        assert child.stderr.readline() == f"envcheck: waiting for input from the pipe {pipe}\n"
        pipe.write_text("CUDA error: out of memory\n")
        out, _ = child.communicate(timeout=60)
    assert "memory" in out
