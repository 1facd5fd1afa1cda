"""``--plan`` and ``--target``: exit status, the page, what is refused, and how long reading may take."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import pytest

from envcheck import plans
from envcheck.cli.main import main
from tests.cli.calling import envcheck, refused
from tests.every import cases, tabled


def test_the_report_names_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy\ntorch==2.0.1\n")
    result = envcheck("check", "--plan", "requirements.txt", "--assume", "gpu==B200", cwd=tmp_path)
    assert result.status == 1
    assert "torch 2.0.1 has no code for B200" in result.out
    assert "requirements.txt:2" in result.out
    assert "Assumed: gpu B200, os linux, machine x86_64" in result.out


def test_a_saved_report_is_judged_again_with_its_places(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.0.1\n")
    asked = ("--assume", "gpu==B200,os==linux,machine==x86_64")
    assert envcheck("check", "--plan", "requirements.txt", *asked, "-o", "json:r.json", cwd=tmp_path).status == 1
    again = envcheck("check", "--from", "r.json", *asked, "--json", cwd=tmp_path)
    checks = {check["rule"]: check for check in json.loads(again.out)["checks"]}
    assert checks["gpu-code-missing"]["location"] == {"file": "requirements.txt", "line": 1}


@tabled
def test_wrong_use_is_one_sentence(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    (tmp_path / "uv.lock").write_text("torch\n")
    (tmp_path / "notes.md").write_text("torch==2.0.1\n")
    (tmp_path / "ok.txt").write_text("torch==2.0.1\n")
    result = envcheck("check", *arguments, cwd=tmp_path)
    assert result.status == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.err.count("\n") == 1


def test_a_line_that_is_not_understood_leaves_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("tqdm\ntorch=2\n")
    result = envcheck("check", "--plan", "requirements.txt", "--assume", "gpu==B200", cwd=tmp_path)
    assert result.status == 3
    assert "line 2 may install anything" in result.out
    assert "requirements.txt:2" in result.out


def test_without_assume_the_machine_at_hand_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.0.1\n")
    report = json.loads(envcheck("check", "--plan", "requirements.txt", "--json", cwd=tmp_path).out)
    assert [item["key"] for item in report["snapshot"]["environments"]["items"]] == ["requirements.txt"]
    assert "platform" in {run["name"] for run in report["probes"]}


@cases("name", "requirements.in", "requirements.txt")
def test_a_shared_report_keeps_the_name_of_the_file(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("torch==2.0.1\n")
    result = envcheck("check", "--plan", name, "--assume", "gpu==B200", "--json", "--redact", cwd=tmp_path)
    checks = {check["rule"]: check for check in json.loads(result.out)["checks"]}
    assert checks["gpu-code-missing"]["location"] == {"file": name, "line": 1}
    assert checks["gpu-code-missing"]["id"] == f"gpu-code-missing@{name}:torch"


def test_one_rule_alone_is_never_green_by_what_it_could_not_judge(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("requests==2.32.0\n")
    (tmp_path / "b.txt").write_text("torch==2.0.1\n")
    asked = ("--assume", "gpu==A100,driver==515.105.01", "--only", "gpu-code-missing")
    assert envcheck("check", "--plan", "a.txt", *asked, cwd=tmp_path).status == 3
    assert envcheck("check", "--plan", "b.txt", *asked, cwd=tmp_path).status == 0


# --- ``--timeout`` bounds the reading of plans ----------------------------------------------------------------------
def test_a_plan_that_takes_longer_to_read_leaves_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = plans.format_of

    def endless(path: str) -> None:
        while reader(path):
            pass

    monkeypatch.setattr(plans, "format_of", endless)
    (tmp_path / "requirements.txt").write_text("torch==2.5.1\n")
    asked = ["check", "--plan", str(tmp_path / "requirements.txt"), "--assume", "gpu==H100,driver==550.54.14"]
    assert main([*asked, "--timeout", "0.2"]) == 3
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert "--timeout 0.2 s" in told.err


# --- ``envcheck check --target``: one environment, judged for several machines --------------------------------------
TARGETS = (Path(__file__).with_name("data") / "targets.toml").read_text(encoding="utf-8")
TORCH = ("--assume", "torch==2.5.1+cu118,python==3.12")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "envcheck.toml").write_text(TARGETS)
    return tmp_path


def test_each_target_is_judged_as_it_would_be_alone_and_the_worst_decides(folder: Path) -> None:
    result = envcheck("check", *TORCH, "--target", "all", "--json", cwd=folder)
    report = json.loads(result.out)
    assert (result.status, result.err) == (1, "")
    found = {target["name"]: target for target in report["targets"]}
    assert list(found) == ["a100", "old", "desktop"]
    assert {name: target["verdict"] for name, target in found.items()} == {
        "a100": "pass", "old": "fail", "desktop": "fail",
    }  # fmt: skip
    assert "driver-too-old" in {check["rule"] for check in found["old"]["checks"] if check["status"] == "fail"}
    assert found["desktop"]["primary"] == "gpu-code-missing"
    assert found["desktop"]["assumed"] == {
        "torch": "2.5.1+cu118", "python": "3.12", "gpu": "RTX 5090", "gpus": "2", "driver": "570.86.10", "os": "linux",
    }  # fmt: skip
    assert {key: report[key] for key in found["old"] if key != "name"} == {
        key: value for key, value in found["old"].items() if key != "name"
    }
    jsonschema.Draft202012Validator(json.loads(envcheck("schema", "report", cwd=folder).out)).validate(report)
    alone = envcheck("check", *TORCH, "--assume", "gpu==A100,driver==515.43.04,os==linux", "--json", cwd=folder)
    assert alone.status == 0
    assert json.loads(alone.out)["checks"] == found["a100"]["checks"]


def test_one_target_that_fits_passes(folder: Path) -> None:
    result = envcheck("check", *TORCH, "--target", "a100", cwd=folder)
    assert (result.status, result.err) == (0, "")
    assert "Judged for 1 target" in result.out
    assert "gpu A100, driver 515.43.04" in result.out


def test_no_verdict_for_a_target_is_worse_than_a_pass(folder: Path) -> None:
    with (folder / "envcheck.toml").open("a") as file:
        file.write("[target.new]\ngpu = 'Frobnicator 9000'\ndriver = '550.54.14'\nos = 'linux'\n")
    assert envcheck("check", *TORCH, "--target", "a100", "--target", "new", cwd=folder).status == 3


def test_the_pages_have_a_table_of_findings_by_target(folder: Path) -> None:
    lines = envcheck("check", *TORCH, "--target", "all", cwd=folder).out.splitlines()
    (row,) = [line for line in lines if line.startswith("gpu-code-missing") and "[" not in line]
    assert row.split() == ["gpu-code-missing", "ok", "ok", "FAIL"]
    assert "The worst: old" in lines
    assert max(map(len, lines)) <= 80
    text = envcheck("check", *TORCH, "--target", "all", "--format", "markdown", cwd=folder).out
    (row,) = [line for line in text.splitlines() if line.startswith("| `gpu-code-missing` |")]
    assert [cell.split()[-1] for cell in row.strip("|").split("|")[1:]] == ["ok", "ok", "FAIL"]
    junit = envcheck("check", *TORCH, "--target", "all", "--format", "junit", cwd=folder)
    assert (junit.status, "<failure" in junit.out) == (1, True)


def test_a_target_can_be_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "prod.toml").write_text('gpu = "A100"\ndriver = "515.43.04"\nos = "linux"\n')
    report = json.loads(envcheck("check", *TORCH, "--target", "prod.toml", "--json", cwd=tmp_path).out)
    assert [(target["name"], target["verdict"]) for target in report["targets"]] == [("prod", "pass")]
    (tmp_path / "all.toml").write_text(TARGETS)
    report = json.loads(envcheck("check", *TORCH, "--target", "all.toml", "--json", cwd=tmp_path).out)
    assert [target["name"] for target in report["targets"]] == ["a100", "old", "desktop"]


def test_the_report_for_targets_can_be_judged_again(folder: Path) -> None:
    saved = folder / "report.json"
    saved.write_text(envcheck("check", *TORCH, "--target", "all", "--json", cwd=folder).out)
    assert envcheck("check", "--from", str(saved), *TORCH, "--target", "a100", cwd=folder).status == 0


@tabled
def test_a_target_that_is_none_stops_with_one_sentence(arguments: tuple[str, ...], words: str, folder: Path) -> None:
    (folder / "empty.toml").write_text("")
    (folder / "wrong.toml").write_text("gpu = 'H100'\ngpus = 'many'\n")
    (folder / "twice.toml").write_text("[target.a100]\ngpu = 'A100'\n")
    result = refused("check", *arguments, *(("--target", "all") if "twice.toml" in arguments else ()), cwd=folder)
    assert words in result


def test_the_configuration_chooses_targets(folder: Path) -> None:
    place = folder / "envcheck.toml"
    place.write_text(f'targets = ["a100", "old"]\n{TARGETS}')
    assert [target["name"] for target in targets_of(folder)] == ["a100", "old"]
    assert [target["name"] for target in targets_of(folder, "--target", "desktop")] == ["desktop"]
    assert [target["name"] for target in targets_of(folder, ENVCHECK_TARGET="old")] == ["old"]
    for other in (("--target", "none"), ("--assume", "gpu==A100,driver==515.43.04"), ("--no-config",)):
        assert targets_of(folder, *other) == []
    shown = json.loads(envcheck("config", "--json", cwd=folder).out)
    assert shown["values"]["targets"] == {"value": ["a100", "old"], "from": f"{place}:1"}


@tabled
def test_a_wrong_choice_is_named_with_its_line(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "envcheck.toml").write_text(text)
    assert sentence in refused("config", cwd=tmp_path)


def targets_of(folder: Path, *options: str, **variables: str) -> list[dict[str, str]]:
    result = envcheck("check", *TORCH, *options, "--json", cwd=folder, **variables)
    found: list[dict[str, str]] = json.loads(result.out)["targets"]
    return found


def test_a_plan_says_nothing_of_the_machine_that_judges_it(folder: Path) -> None:
    (folder / "Containerfile").write_text("FROM python:3.12\nRUN pip install torch==2.5.1\n")
    result = envcheck("check", "--plan", "Containerfile", "--target", "a100", "--target", "old", "--json", cwd=folder)
    report = json.loads(result.out)
    assert (result.status, result.err) == (1, "")
    checks = [check for target in report["targets"] for check in target["checks"]]
    rules = {check["rule"] for check in checks if check["status"] != "skipped"}
    assert "driver-too-old" in rules
    assert not {name for name in rules if "container" in name}
    assert {run["status"] for run in report["probes"]} <= {"skipped"}
    assert {target["assumed"]["machine"] for target in report["targets"]} == {"x86_64"}


def test_a_plan_is_read_for_each_target(folder: Path) -> None:
    """Markers choose other packages on an Arm processor."""
    (folder / "requirements.txt").write_text("torch==2.5.1; platform_machine == 'x86_64'\n")
    with (folder / "envcheck.toml").open("a") as file:
        file.write("[target.grace]\ngpu = 'GH200'\nmachine = 'aarch64'\n")
    asked = ("--target", "grace", "--target", "a100", "--json")
    report = json.loads(envcheck("check", "--plan", "requirements.txt", *asked, cwd=folder).out)
    grace, a100 = ({check["rule"] for check in target["checks"]} for target in report["targets"])
    assert "gpu-code-missing" in a100 - grace


# --- the plans of a configuration -------------------------------------------------------------------------------------
PLANS = """
[[plan]]
name = "serving"
files = ["serving/requirements.txt"]
targets = ["a100", "old"]
[[plan]]
name = "training"
files = ["training/requirements.txt[gpu]", "training/Dockerfile"]
targets = ["a100"]
"""


@pytest.fixture
def many(folder: Path) -> Path:
    with (folder / "envcheck.toml").open("a") as file:
        file.write(PLANS)
    for name, text in {
        "serving/requirements.txt": "torch==1.13.1\n",
        "training/requirements.txt": "torch==2.6.0\nxformers==0.0.23\n",
        "training/Dockerfile": "FROM python:3.12\n",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_each_plan_is_judged_on_its_own_for_its_targets(many: Path) -> None:
    (many / "training" / "requirements.txt").rename(many / "training" / "needs.txt")
    (many / "envcheck.toml").write_text(
        (many / "envcheck.toml").read_text().replace("requirements.txt[gpu]", "needs.txt")
    )
    report = json.loads(envcheck("check", "--plan", "@all", "--json", cwd=many).out)
    found = {target["name"]: target["verdict"] for target in report["targets"]}
    assert found == {"serving on a100": "pass", "serving on old": "fail", "training on a100": "fail"}
    assert report["exit_code"] == 1
    named = envcheck("check", "--config", "envcheck.toml", "--plan", "@all", "--json", cwd=many)
    assert json.loads(named.out)["targets"] == report["targets"]

    chosen = envcheck("check", "--plan", "@serving", "--target", "a100", "--json", cwd=many)
    assert [target["name"] for target in json.loads(chosen.out)["targets"]] == ["serving on a100"]
    assert chosen.status == 0

    below = envcheck("check", "--plan", "@serving", "--json", cwd=many / "training")
    places = {check["location"]["file"] for check in json.loads(below.out)["checks"] if check.get("location")}
    assert places == {"../serving/requirements.txt"}


def test_junit_has_one_test_for_each_plan_and_target(many: Path) -> None:
    suites = ET.fromstring(envcheck("check", "--plan", "@serving", "--format", "junit", cwd=many).out)
    cases = {case.get("classname"): [child.tag for child in case] for case in suites.iter("testcase")}
    assert cases == {"envcheck.serving on a100": [], "envcheck.serving on old": ["failure"]}
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("2", "1", "0")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("@servng",), "envcheck.toml has no such plan: did you mean 'serving'?"),
        (("@all", "requirements.txt"), "--plan: the files of @NAME are judged on their own"),
        (("@serving", "--fix-plan"), "--fix-plan changes the files of one plan"),
        (("@all", "--no-config"), "there is no configuration here; write one with name and files"),
    ],
)
def test_what_plans_cannot_be_asked(many: Path, asked: tuple[str, ...], told: str) -> None:
    words = [word for name in asked for word in ((name,) if name.startswith("--") else ("--plan", name))]
    result = envcheck("check", *words, cwd=many)
    assert result.status == 2
    assert told in result.err


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("name = 'all'\nfiles = ['a.txt']", "--plan @all names every plan"),
        ("name = 'serving'\nfiles = ['a.txt']", "there is one above"),
        ("name = 'x'\nfiles = ['a.txt']\ntargets = ['a10']", "there is no [target.a10]: did you mean 'a100'?"),
        ("name = 'x'", "the key 'files' is missing"),
        ("name = 'x'\nfile = ['a.txt']", "there is no key 'file': did you mean 'files'?"),
    ],
)
def test_a_wrong_plan_is_named_with_its_line(many: Path, written: str, told: str) -> None:
    with (many / "envcheck.toml").open("a") as file:
        file.write(f"[[plan]]\n{written}\n")
    result = envcheck("check", "--plan", "@serving", cwd=many)
    assert result.status == 2
    assert told in result.err
    assert re.match(r"envcheck: \S*envcheck\.toml:\d+: ", result.err)


def test_what_an_accepted_report_has_is_set_aside_and_what_is_new_decides(many: Path) -> None:
    asked = ("check", "--plan", "@serving", "--accept", "old.json")
    envcheck("check", "--plan", "@serving", "-o", "json:old.json", cwd=many)
    accepted = json.loads(envcheck(*asked, "--json", cwd=many).out)
    assert accepted["exit_code"] == 0
    assert accepted["targets"][1]["headline"].endswith("(2 failures ignored: gpu-unsupported-by-driver, +1)")

    (many / "serving" / "requirements.txt").write_text("torch==2.7.0\n")
    assert envcheck(*asked, cwd=many).status == 1


def test_no_verdict_may_be_allowed_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch\n")
    asked = ("check", "--plan", "requirements.txt", "--assume", "gpu==H100,driver==570.86.10")
    assert envcheck(*asked, cwd=tmp_path).status == 3
    allowed = envcheck(*asked, "--allow-unknown", "--json", cwd=tmp_path)
    report = json.loads(allowed.out)
    assert (allowed.status, report["exit_code"], report["verdict"]) == (0, 0, "unknown")
    assert report["headline"].endswith("(unknown allowed)")
    assert report["unknown_allowed"]

    (tmp_path / "requirements.txt").write_text("torch==1.8.0\n")
    assert envcheck(*asked, "--allow-unknown", cwd=tmp_path).status == 1


def test_sarif_offers_the_change_that_fix_plan_prints(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# ours\ntorch==2.5.1\n", encoding="utf-8")
    asked = ("check", "--plan", "requirements.txt", "--assume", "gpu==RTX 5090,driver==570.86.10,os==linux")
    (result,) = json.loads(envcheck(*asked, "--format", "sarif", cwd=tmp_path).out)["runs"][0]["results"]
    (replaced,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
    added = [line[1:] for line in envcheck(*asked, "--fix-plan", cwd=tmp_path).out.splitlines() if line[:1] == "+"][1:]
    assert replaced["insertedContent"]["text"].splitlines() == added
    assert (replaced["deletedRegion"]["startLine"], replaced["deletedRegion"]["endLine"]) == (2, 3)
