"""Configuration and ``--matrix DIR`` as a user has them: they decide, reports say so, and wrong ones are refused."""

import json
from pathlib import Path

import jsonschema
import pytest

from envcheck.report.schema import published
from tests.cli.calling import envcheck, refused
from tests.every import cases
from tests.knowledge.test_overlay import SOURCE

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"

HOPPER = ("--assume", "gpu==H100,driver==550.54.14,os==linux,machine==x86_64,python==3.12,torch==2.5.1+cu124")


def write(folder: Path, text: str, name: str = "envcheck.toml") -> None:
    (folder / name).write_text(text)


def test_options_come_from_the_command_line_then_variables_then_the_file(tmp_path: Path) -> None:
    write(tmp_path, "format = 'json'\nrequire = ['torch>=3']\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    result = envcheck("check", *HOPPER, cwd=inner)
    report = json.loads(result.out)
    assert (result.status, report["primary"]) == (1, "requirement-not-met")
    assert report["configuration"] == str(tmp_path / "envcheck.toml")
    (check,) = [check for check in report["checks"] if check["rule"] == "requirement-not-met"]
    assert check["location"] == {"file": str(tmp_path / "envcheck.toml"), "line": 2}
    assert envcheck("check", *HOPPER, cwd=inner, ENVCHECK_REQUIRE="torch>=2").status == 0
    assert envcheck("check", *HOPPER, "--require", "torch>=4", cwd=inner, ENVCHECK_REQUIRE="torch>=2").status == 1
    assert envcheck("check", *HOPPER, "--no-config", cwd=inner).status == 0
    assert envcheck("check", *HOPPER, "--no-config", "--json", cwd=inner).out.count('"configuration": null') == 1


def test_a_report_with_a_configuration_validates(tmp_path: Path) -> None:
    write(tmp_path, "[severity]\nno-framework = 'fail'\n[[ignore]]\nproblem = 'no-nvidia-gpu'\nreason = 'x'\n")
    assert envcheck("check", cwd=tmp_path).status == 2
    with (tmp_path / "envcheck.toml").open("a") as file:
        file.write("until = 2001-01-01\n")
    result = envcheck("check", "--json", cwd=tmp_path)
    schema = json.loads(envcheck("schema", "report", cwd=tmp_path).out)
    report = json.loads(result.out)
    jsonschema.Draft202012Validator(schema).validate(report)
    assert {check["status"] for check in report["checks"] if check["rule"] == "ignore-expired"} == {"fail"}


@cases("verb", "check", "bench", "config")
def test_a_wrong_configuration_stops_with_one_sentence(verb: str, tmp_path: Path) -> None:
    write(tmp_path, "fail-on = 'warn'\n\nformt = 'json'\n")
    result = refused(verb, cwd=tmp_path)
    message = f"{tmp_path}/envcheck.toml:3: there is no key 'formt': did you mean 'format'?"
    assert result == f"envcheck: {message}\n"


@cases(
    "arguments, words", (("--config", "missing.toml"), "cannot read the configuration missing.toml"),
    (("--config", ""), "an empty path"), (("--config", "empty.toml"), "the configuration is empty"),
    (("--config", "x.toml", "--no-config"), "not allowed with"),
)  # fmt: skip
def test_a_missing_or_empty_configuration_never_passes(arguments: tuple[str, ...], words: str, tmp_path: Path) -> None:
    write(tmp_path, "", "empty.toml")
    assert words in refused("check", *HOPPER, *arguments, cwd=tmp_path)


def test_a_report_is_written_below_the_configuration_whatever_the_working_folder(tmp_path: Path) -> None:
    write(tmp_path, "output = ['json:report.json']\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert envcheck("check", *HOPPER, cwd=inner).status == 0
    assert json.loads((tmp_path / "report.json").read_text())["verdict"] == "pass"


def test_config_tells_every_value_and_where_it_comes_from(tmp_path: Path) -> None:
    write(
        tmp_path, "[tool.envcheck]\nrequire = ['torch>=2']\n[tool.envcheck.target.a]\ngpu = 'H100'\n", "pyproject.toml"
    )
    path = str(tmp_path / "pyproject.toml")
    result = envcheck("config", "--json", cwd=tmp_path, ENVCHECK_FAIL_ON="warn")
    assert (result.status, result.err) == (0, "")
    assert json.loads(result.out) == {
        "file": path,
        "values": {
            "require": {"value": ["torch>=2"], "from": f"{path}:2"},
            "scope": {"value": ["node", "container", "env"], "from": "default"},
            "fail-on": {"value": "warn", "from": "ENVCHECK_FAIL_ON"},
            "format": {"value": "text", "from": "default"},
            "target": {"value": {"a": {"gpu": "H100"}}, "from": f"{path}:3"},
        },
    }
    page = envcheck("config", cwd=tmp_path).out
    assert f'require = ["torch>=2"]  # {path}:2\n' in page
    assert '[target.a]\ngpu = "H100"\n' in page
    write(tmp_path, page)
    assert json.loads(envcheck("config", "--json", cwd=tmp_path).out)["values"]["target"]["value"] == {
        "a": {"gpu": "H100"}
    }


def test_config_without_a_configuration_is_an_error(tmp_path: Path) -> None:
    assert "envcheck init writes one" in refused("config", cwd=tmp_path)


def test_init_writes_once_what_config_reads(tmp_path: Path) -> None:
    assert envcheck("init", cwd=tmp_path).status == 0
    text = (tmp_path / "envcheck.toml").read_text()
    assert "exists and was not changed" in refused("init", cwd=tmp_path)
    assert (tmp_path / "envcheck.toml").read_text() == text
    assert envcheck("config", cwd=tmp_path).status == 0


def test_init_hides_no_configuration(tmp_path: Path) -> None:
    write(tmp_path, "[tool.envcheck]\nfail-on = 'warn'\n", "pyproject.toml")
    assert "has a configuration already" in refused("init", cwd=tmp_path)
    assert not (tmp_path / "envcheck.toml").exists()


def test_bench_asks_for_forbidden_problems_of_its_own_rules_only(tmp_path: Path) -> None:
    write(tmp_path, "forbid = ['cpu-only-build', 'wrong-result']\n")
    report = json.loads(envcheck("bench", "--json", cwd=tmp_path).out)
    asked = [check["subject"]["key"] for check in report["checks"] if check["rule"] == "forbidden-problem"]
    assert asked == ["wrong-result"]


def test_the_schema_of_a_configuration(tmp_path: Path) -> None:
    schema = json.loads(envcheck("schema", "config", cwd=tmp_path).out)
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate({"require": ["torch>=2"], "target": {"a": {"gpu": "H100", "gpus": 8}}})
    assert not validator.is_valid({"requires": ["torch>=2"]})
    assert not validator.is_valid({})
    assert json.loads((SCHEMAS / published("config")).read_text(encoding="utf-8")) == schema


# --- ``--matrix DIR`` and the configuration folder ------------------------------------------------------------------
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
    shown = line.split()[2].removesuffix("…")  # the folder of the tests may be longer than the line
    assert shown.startswith(f"{own.anchor}{own.parts[1]}/")
    assert str(own).startswith(shown)
    page = envcheck(*assumed[:-1], "text", "--matrix", "own", cwd=tmp_path, COLUMNS="100").out
    assert "\nMatrix overlay: own (decided: gpu-unsupported-by-driver)\n" in page
    (own / "rows.toml").write_text(SOURCE + RELEASE)
    page = envcheck(*assumed[:-1], "text", "--matrix", "own", cwd=tmp_path, COLUMNS="100").out
    assert "\nMatrix overlay: own (decided: nothing)\n" in page


@cases(
    "command, stdin", (("matrix", "check", "torch==2.4.0", "gpu==H100"), ""), (("matrix", "show", "torch"), ""),
    (("check", "--scope", "node"), ""),
    (("explain",), "CUDA error: no kernel image is available for execution on the device\n"),
    ids=["matrix check", "matrix show", "check", "explain"],
)  # fmt: skip
@cases("rows", '[[release]]\nname = "a"\n', None, ids=["wrong row", "no folder"])
def test_a_wrong_row(own: Path, tmp_path: Path, command: tuple[str, ...], stdin: str, rows: str | None) -> None:
    place = own if rows else tmp_path / "absent"
    (own / "rows.toml").write_text(SOURCE + (rows or ""))
    assert refused(*command, "--matrix", str(place), cwd=tmp_path, stdin=stdin).startswith(f"envcheck: {place}: ")
