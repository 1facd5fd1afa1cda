"""``envcheck matrix check`` end to end: verdicts, exit statuses, both formats, wrong usage."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from envcheck.report.saved.schema import schema
from tests.cli.calling import envcheck


@pytest.mark.parametrize(
    ("components", "verdict", "status"),
    [
        (["torch==2.5.1", "gpu==H100", "driver==550.54.14"], "compatible", 0),
        (["torch==2.5.1", "gpu==RTX 5090"], "incompatible", 1),
        (["torch==2.5.1", 'gpu=="RTX 5090"'], "incompatible", 1),
        (["torch==2.5.1,gpu==RTX 4090"], "compatible", 0),
        (["torch==99.0", "driver==550"], "unknown", 3),
        (["frobnicator==1", "driver==550"], "unknown", 3),
    ],
)
def test_verdict_and_exit_status(tmp_path: Path, components: list[str], verdict: str, status: int) -> None:
    told = envcheck("matrix", "check", *components, cwd=tmp_path)
    assert (told.status, told.err) == (status, "")
    assert told.out.startswith(verdict.upper() + "\n")
    as_json = envcheck("matrix", "check", *components, "--json", cwd=tmp_path)
    assert (as_json.status, as_json.err) == (status, "")
    answer = json.loads(as_json.out)
    assert answer["verdict"] == verdict
    jsonschema.validate(answer, schema("fit"))
    assert set(answer) == {"verdict", "reasons", "suggestions", "assumed"}
    for reason in answer["reasons"]:
        assert set(reason) == {"verdict", "message", "sources"}
        assert reason["message"]


def test_a_page_for_people(tmp_path: Path) -> None:
    told = envcheck("matrix", "check", "driver==525.60.11", "cuda==12.4", cwd=tmp_path).out
    lines = told.splitlines()
    assert lines[0] == "INCOMPATIBLE"
    assert " ".join(lines[2].split()) == "NO CUDA 12.4 needs driver 525.60.13 or newer, this is 525.60.11"
    assert any(line.strip().startswith("https://docs.nvidia.com/") for line in lines)
    assert "  driver >= 525.60.13" in lines
    assert lines[-1] == "Assumed: os: linux, machine: x86_64"
    assert all(len(line) <= 80 or line.strip().startswith("https://") for line in lines)  # an address is never cut
    assert "\x1b" not in told
    assert (
        "\x1b[1;31mINCOMPATIBLE"
        in envcheck("matrix", "check", "driver==525.60.11", "cuda==12.4", "--color", "always", cwd=tmp_path).out
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["matrix"],
        ["matrix", "check"],
        ["matrix", "frobnicate"],
        ["matrix", "check", "torch"],
        ["matrix", "check", "torch=2.5.1"],
        ["matrix", "check", ""],
        ["matrix", "check", "torch!=2.5.1", "driver==550"],
        ["matrix", "check", "torch==2.5.1", "pytorch==2.6.0"],
        ["matrix", "check", "driver==550", "driver==560"],
        ["matrix", "check", "driver==550", "cuda==12.4", "--format", "summary"],
        ["matrix", "show", "torch>=2"],
        ["matrix", "show", "torch==2.5.1,cuda==12.4"],
    ],
)
def test_wrong_usage_is_one_sentence(tmp_path: Path, arguments: list[str]) -> None:
    told = envcheck(*arguments, cwd=tmp_path)
    assert (told.status, told.out) == (2, "")
    assert told.err.startswith("envcheck: ")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("value", ["\x1b[31mred", "\u202eevil", "\x9b2J", "a\nb", "é" * 300])
@pytest.mark.parametrize("form", ["text", "json"])
def test_no_value_steers_the_terminal(tmp_path: Path, value: str, form: str) -> None:
    for operator in ("==", "!="):
        told = envcheck("matrix", "check", f"gpu{operator}{value}", "driver==550", "--format", form, cwd=tmp_path)
        assert told.status in (2, 3)
        for text in (told.out, told.err):
            assert not any(sign in text for sign in ("\x1b", "\x9b", "\u202e"))


def test_several_gpus_may_be_named(tmp_path: Path) -> None:
    told = envcheck("matrix", "check", "gpu==H100", "gpu==K80", "driver==550", cwd=tmp_path)
    assert told.status == 1
    assert "Kepler" in told.out
