"""``--matrix DIR`` and the configuration folder: they decide, the report says so, and wrong rows are one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calling import envcheck

SOURCE = """\
[sources.page]
title = "Our own measurements"
address = "https://example.org/measured"
read = "2026-12-01"

"""
RELEASE = '[[release]]\nname = "our-thing"\nversions = "==1.0"\nneeds = { torch = "==2.5.1" }\nsource = "page"\n'
GPU = '[[gpu]]\nname = "H100"\ncompute_capability = "9.0"\nsource = "page"\n'
QUESTION = ("matrix", "check", "our-thing==1.0", "torch==2.4.0")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "rows.toml").write_text(SOURCE + RELEASE)
    return folder


def test_a_question_is_decided_by_the_overlay(own: Path, tmp_path: Path) -> None:
    assert envcheck(*QUESTION, cwd=tmp_path).status == 3
    told = envcheck(*QUESTION, "--matrix", str(own), "--json", cwd=tmp_path)
    assert (told.status, told.err) == (1, "")
    reason = json.loads(told.out)["reasons"][0]
    assert reason["message"] == "our-thing 1.0 needs torch 2.5.1; this is 2.4.0"
    assert reason["sources"][0]["title"] == f"Our own measurements (from {own})"
    assert envcheck(*QUESTION, cwd=tmp_path, ENVCHECK_MATRIX=str(own)).status == 1


def test_the_configuration_folder_counts_unasked(own: Path, tmp_path: Path) -> None:
    place = tmp_path / "config" / "envcheck"
    place.mkdir(parents=True)
    own.rename(place / "matrix")
    told = envcheck(*QUESTION, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config"))
    assert told.status == 1
    assert f"https://example.org/measured  (read 2026-12-01, from {place / 'matrix'})\n" in told.out
    assert told.out.endswith(f"Matrix overlay: {place / 'matrix'} (cited above)\n")
    told = envcheck(
        "matrix", "check", "torch==2.5.1", "gpu==H100", cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config")
    )
    assert told.out.endswith(f"Matrix overlay: {place / 'matrix'} (not cited here)\n")


def test_show_knows_it_too(own: Path, tmp_path: Path) -> None:
    told = envcheck("matrix", "show", "our-thing", "--matrix", str(own), cwd=tmp_path)
    assert told.status == 0
    assert "our-thing" in told.out
    told = envcheck("matrix", "show", "our-thing==1.0", "--matrix", str(own), cwd=tmp_path)
    assert told.out.endswith(f"Matrix overlay: {own} (cited above)\n")


def test_a_report_names_the_overlays(own: Path, tmp_path: Path) -> None:
    assumed = ("check", "--assume", "gpu==H100,driver==550.54.14", "--scope", "node", "--format", "json")
    assert json.loads(envcheck(*assumed, "--matrix", str(own), cwd=tmp_path).out)["overlays"] == [str(own)]
    assert json.loads(envcheck(*assumed, cwd=tmp_path).out)["overlays"] == []


def test_a_rule_is_decided_by_the_overlay(own: Path, tmp_path: Path) -> None:
    """A driver that the shipped rows find new enough is too old for an H100 by these rows."""
    (own / "rows.toml").write_text(
        SOURCE + '[[capability]]\ncapability = "9.0"\narchitecture = "hopper"\nfirst_branch = 560\nsource = "page"\n'
    )
    assumed = ("check", "--assume", "gpu==H100,driver==550.54.14", "--scope", "node", "--format", "json")
    told = json.loads(envcheck(*assumed, "--matrix", str(own), cwd=tmp_path).out)
    (check,) = (check for check in told["checks"] if check["rule"] == "gpu-unsupported-by-driver")
    assert check["status"] == "fail"
    assert any(source["title"].endswith(f"(from {own})") for source in check["sources"])
    page = envcheck(*assumed[:-1], "text", "--matrix", str(own), cwd=tmp_path, COLUMNS="100").out
    (line,) = (line for line in page.splitlines() if line.startswith("Matrix overlay: "))
    assert str(own)[:40] in line
    page = envcheck(*assumed[:-1], "text", "--matrix", "own", cwd=tmp_path, COLUMNS="100").out
    assert "\nMatrix overlay: own (decided: gpu-unsupported-by-driver)\n" in page
    (own / "rows.toml").write_text(SOURCE + RELEASE)
    page = envcheck(*assumed[:-1], "text", "--matrix", "own", cwd=tmp_path, COLUMNS="100").out
    assert "\nMatrix overlay: own (decided: nothing)\n" in page


@pytest.mark.parametrize(
    ("command", "stdin"),
    [
        (("matrix", "check", "torch==2.4.0", "gpu==H100"), ""),
        (("matrix", "show", "torch"), ""),
        (("check", "--scope", "node"), ""),
        (("explain",), "CUDA error: no kernel image is available for execution on the device\n"),
    ],
    ids=["matrix check", "matrix show", "check", "explain"],
)
@pytest.mark.parametrize("rows", ['[[release]]\nname = "a"\n', None], ids=["wrong row", "no folder"])
def test_wrong_rows_are_one_sentence(
    own: Path, tmp_path: Path, command: tuple[str, ...], stdin: str, rows: str | None
) -> None:
    place = own if rows else tmp_path / "absent"
    (own / "rows.toml").write_text(SOURCE + (rows or ""))
    told = envcheck(*command, "--matrix", str(place), cwd=tmp_path, stdin=stdin)
    assert (told.status, told.out) == (2, "")
    assert told.err.startswith(f"envcheck: {place}: ")
    assert told.err.count("\n") == 1
