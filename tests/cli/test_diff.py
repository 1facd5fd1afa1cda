"""``envcheck diff`` and the formats that are meant to be shown, as a user calls them."""

import json
from pathlib import Path

import msgspec

from envcheck.model.checks import Report
from envcheck.redact import HOST, redact
from envcheck.report import render
from tests.cli.calling import envcheck, refused
from tests.every import cases
from tests.report.examples import EXAMPLES, healthy


def saved(folder: Path, name: str, report: Report) -> str:
    path = folder / f"{name}.json"
    path.write_text(render(report, "json"), encoding="utf-8")
    return str(path)


def test_same_is_0_and_different_is_1(tmp_path: Path) -> None:
    one = saved(tmp_path, "one", healthy())
    two = saved(tmp_path, "two", EXAMPLES["driver-too-old"]())
    same = envcheck("diff", one, one, cwd=tmp_path)
    assert (same.status, same.err) == (0, "")
    assert same.out.startswith("SAME")
    different = envcheck("diff", one, two, one, cwd=tmp_path)
    assert (different.status, different.err) == (1, "")
    assert "580.159.04 -> 470.256.02" in different.out.replace("→", "->")
    assert different.out.count("SAME") == 1


def test_json_and_variables(tmp_path: Path) -> None:
    one, two = saved(tmp_path, "one", healthy()), saved(tmp_path, "two", EXAMPLES["driver-too-old"]())
    found = envcheck("diff", one, two, "--json", cwd=tmp_path)
    content = json.loads(found.out)
    assert (found.status, content["result"]) == (1, "different")
    assert json.loads(envcheck("diff", one, two, cwd=tmp_path, ENVCHECK_FORMAT="json").out) == content
    hidden = envcheck("diff", one, two, "--json", "--redact", cwd=tmp_path)
    assert "/home/ada" in found.out
    assert "/home/ada" not in hidden.out


def test_a_folder_of_earlier_runs(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in ("one", "two"):
        saved(runs, name, healthy())
    (runs / "notes.txt").write_text("no report")
    today = saved(tmp_path, "today", healthy())
    found = envcheck("diff", "--base", "runs", today, "--json", cwd=tmp_path)
    assert (found.status, found.err) == (0, "")
    (comparison,) = json.loads(found.out)["comparisons"]
    assert (comparison["first"], comparison["second"], comparison["base"]) == (1, 2, [0, 1])
    assert "figures: compared with 2 runs" in envcheck("diff", "--base", "runs", today, cwd=tmp_path).out


def test_bad_folders_are_refused(tmp_path: Path) -> None:
    today = saved(tmp_path, "today", healthy())
    (tmp_path / "empty").mkdir()
    found = envcheck("diff", "--base", "empty", today, cwd=tmp_path)
    assert (found.status, found.err) == (2, "envcheck: the folder empty holds no JSON file\n")
    (tmp_path / "empty" / "bad.json").write_text("{}")
    assert envcheck("diff", "--base", "empty", today, cwd=tmp_path).err.startswith("envcheck: empty/bad.json")
    assert envcheck("diff", "--base", "-", "-", cwd=tmp_path).status == 2


def test_a_report_from_stdin(tmp_path: Path) -> None:
    one = saved(tmp_path, "one", healthy())
    assert envcheck("diff", "-", one, cwd=tmp_path, stdin=render(healthy(), "json")).status == 0
    assert envcheck("diff", "-", "-", cwd=tmp_path, stdin=render(healthy(), "json")).status == 2


def test_all_are_redacted_where_the_last_one_is(tmp_path: Path) -> None:
    """Reports are read one after the other: what was read before is read again, stdin included."""
    one = saved(tmp_path, "one", healthy())
    last = saved(tmp_path, "last", redact(healthy()))
    found = envcheck("diff", one, "-", last, "--json", cwd=tmp_path, stdin=render(healthy(), "json"))
    content = json.loads(found.out)
    assert (found.status, found.err, content["result"]) == (0, "", "same")
    assert {each["host"] for each in content["reports"]} == {HOST}


@cases("arguments", (), ("one.json",), ("one.json", "nowhere.json"), ("one.json", "bad.json"))
def test_wrong_use_is_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    saved(tmp_path, "one", healthy())
    (tmp_path / "bad.json").write_text("[]", encoding="utf-8")
    refused("diff", *arguments, cwd=tmp_path)


def test_the_schema_is_published(tmp_path: Path) -> None:
    assert json.loads(envcheck("schema", "diff", cwd=tmp_path).out)["title"] == "envcheck diff 1.0"


def test_a_saved_report_becomes_a_page(tmp_path: Path) -> None:
    report = saved(tmp_path, "saved", msgspec.structs.replace(EXAMPLES["driver-too-old"](), host="node17"))
    outputs = ("-o", "html:report.html", "-o", "markdown:report.md", "-o", "junit:report.xml")
    found = envcheck("check", "--from", report, "--format", "html", *outputs, cwd=tmp_path)
    assert found.out.startswith("<!DOCTYPE html>")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == found.out
    assert "/home/ada" not in found.out
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("### ")
    assert "<testsuites" in (tmp_path / "report.xml").read_text(encoding="utf-8")


def test_redaction_can_be_asked_for_and_refused(tmp_path: Path) -> None:
    report = saved(tmp_path, "saved", EXAMPLES["driver-too-old"]())
    calls = {
        ("--format", "markdown"): False, ("--format", "markdown", "--no-redact"): True, ("--json",): True,
        ("--json", "--redact"): False,
    }  # fmt: skip
    for arguments, shown in calls.items():
        assert ("/home/ada" in envcheck("check", "--from", report, *arguments, cwd=tmp_path).out) == shown, arguments
    assert "/home/ada" not in envcheck("check", "--from", report, "--json", cwd=tmp_path, ENVCHECK_REDACT="1").out
    assert "/home/ada" in envcheck("check", "--from", report, "--format", "html", cwd=tmp_path, ENVCHECK_REDACT="0").out


def test_a_home_elsewhere_is_the_owners(tmp_path: Path) -> None:
    (tmp_path / "saved.json").write_text(render(healthy(), "json").replace("/home/ada", "/data/ada"), encoding="utf-8")
    found = envcheck("check", "--from", "saved.json", "--format", "html", cwd=tmp_path, HOME="/data/ada")
    assert "/data/ada" not in found.out
    assert "/home/user/p/.venv" in found.out
