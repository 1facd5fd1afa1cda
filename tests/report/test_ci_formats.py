"""Formats for build servers and monitors: what they say, what their readers can read, whatever the names."""

import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import msgspec
import pytest
import xmlschema
from hypothesis import given, settings

from envcheck.cli.main import main
from envcheck.model.checks import Ignored, Location, Missing, Report, Status
from envcheck.model.snapshot import Measurement
from envcheck.report import FORMATS, Options, exit_status, render
from envcheck.report.node_problem_detector import MOST_BYTES
from tests.every import cases, every
from tests.report.examples import EXAMPLES, check, gpu, machine, report, warned
from tests.report.foreign import ATTACKS, attacks, carrying

GOLDEN = Path(__file__).parent / "golden_ci"
FORMS = ("github", "gitlab", "nagios", "node-problem-detector", "prometheus", "sarif")
SHOWN = ("healthy", "driver-too-old", "unknown-nvml", "warned")


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.parametrize("form", FORMS)
def test_golden(form: str, name: str) -> None:
    """After an intended change: ENVCHECK_REWRITE_GOLDEN=1, and read the difference."""
    file = GOLDEN / f"{name}.{FORMATS[form].suffix}"
    text = render(EXAMPLES[name](), form)
    if os.environ.get("ENVCHECK_REWRITE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def placed(**more: Any) -> Report:
    """A failure at a line of a file that the user gave."""
    place = Location(file="deploy/requirements,gpu.txt", line=3)
    fails = check("gpu-code-missing", "fail", "torch has no code: 100%", location=place, **more)
    return report([fails, check("gpu-lost")], machine((), None), primary=fails)


ANNOTATION = re.compile(r"::(error|warning|notice) (?:file=([^:,\n]+),(?:line=(\d+),)?)?title=([^:,\n]+)::([^\r\n]+)\n")


def issued(found: Report) -> list[tuple[str, str, str, str, str]]:
    """Kind, file, line, title and message of each, as the runner reads them."""
    text = render(found, "github")
    assert ANNOTATION.sub("", text) == ""
    return [
        (kind, _decoded(file), line, _decoded(title), _decoded(message))
        for kind, file, line, title, message in ANNOTATION.findall(text)
    ]


def _decoded(text: str) -> str:
    for code, character in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_an_annotation_names_file_and_line() -> None:
    kind, file, line, title, message = issued(placed())[0]
    assert (kind, file, line) == ("error", "deploy/requirements,gpu.txt", "3")
    assert title == "envcheck: torch has no code: 100% [gpu-code-missing]"
    assert message == "torch has no code: 100% [gpu-code-missing]"


def test_a_warning_that_sets_the_exit_status_is_an_error() -> None:
    assert [kind for kind, *_ in issued(warned())] == ["warning"]
    assert [kind for kind, *_ in issued(msgspec.structs.replace(warned(), exit_code=1))] == ["error"]


def test_what_a_policy_ignores_is_told_and_not_red() -> None:
    found = report([check("gpu-lost", "fail", ignored=Ignored(reason="known"))], machine((), None), verdict="pass")
    assert [(kind, title) for kind, _, _, title, _ in issued(found)] == [
        ("notice", "envcheck: pass"),
        ("notice", "envcheck: 1 ignored by policy"),
    ]
    assert json.loads(render(found, "sarif"))["runs"][0]["results"][0]["suppressions"][0]["justification"] == "known"
    assert json.loads(render(found, "gitlab")) == []
    assert "envcheck_finding{" not in render(found, "prometheus")


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_format_of_findings_is_empty_where_the_exit_status_is_not_0(name: str) -> None:
    found = EXAMPLES[name]()
    run = json.loads(render(found, "sarif"))["runs"][0]
    red = [result for result in run["results"] if result["level"] == "error"] or [
        note for note in run["invocations"][0]["toolExecutionNotifications"] if note["level"] == "error"
    ]
    serious = {"blocker", "critical", "major"} & {entry["severity"] for entry in json.loads(render(found, "gitlab"))}
    errors = [kind for kind, *_ in issued(found) if kind == "error"]
    assert bool(red) == bool(serious) == bool(errors) == bool(found.exit_code)


def test_a_finding_without_a_file_has_a_place_all_the_same() -> None:
    result = json.loads(render(EXAMPLES["driver-too-old"](), "sarif"))["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "envcheck"}
    assert result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"].endswith(":torch")
    placed_result = json.loads(render(placed(), "sarif"))["runs"][0]["results"][0]
    assert placed_result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "deploy/requirements%2Cgpu.txt"},
        "region": {"startLine": 3},
    }
    assert json.loads(render(placed(), "gitlab"))[0]["location"] == {
        "path": "deploy/requirements,gpu.txt",
        "lines": {"begin": 3},
    }


def test_a_finding_keeps_its_fingerprint() -> None:
    """Whatever its words, and apart from others."""
    first, second = (
        json.loads(render(found, "gitlab"))[0]["fingerprint"] for found in (placed(), placed(message="new words"))
    )
    assert first == second
    found = json.loads(render(EXAMPLES["mixed-16"](), "gitlab"))
    assert len({entry["fingerprint"] for entry in found}) == len(found)


TEXT = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
SARIF: dict[str, Any] = {
    "type": "object", "additionalProperties": False, "required": ["$schema", "version", "runs"],
    "properties": {
        "$schema": {"type": "string"}, "version": {"const": "2.1.0"},
        "runs": {
            "type": "array", "minItems": 1,
            "items": {
                "required": ["tool", "results", "invocations"],
                "properties": {
                    "tool": {"required": ["driver"], "properties": {"driver": {"required": ["name", "rules"]}}},
                    "results": {
                        "items": {
                            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
                            "properties": {
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["error", "warning", "note"]}, "message": TEXT,
                                "locations": {"minItems": 1},
                            },
                        },
                    },
                    "invocations": {
                        "items": {
                            "required": ["executionSuccessful"],
                            "properties": {"toolExecutionNotifications": {"items": {"required": ["message", "level"]}}},
                        },
                    },
                },
            },
        },
    },
}  # fmt: skip
"""What code scanning needs of SARIF. The schema that OASIS publishes is not part of this repository."""


@every(*((name, "") for name in EXAMPLES), *(("warned", attack) for attack in ATTACKS))
def test_sarif_has_what_code_scanning_needs(name: str, attack: str) -> None:
    log = json.loads(render(carrying(EXAMPLES[name](), attack), "sarif"))
    jsonschema.Draft202012Validator(SARIF).validate(log)
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert [rules[result["ruleIndex"]] for result in run["results"]] == [result["ruleId"] for result in run["results"]]


@pytest.mark.parametrize("name", EXAMPLES)
def test_sarif_fits_the_published_schema(name: str) -> None:
    """ENVCHECK_SARIF_SCHEMA names a copy of sarif-schema-2.1.0.json, from docs.oasis-open.org."""
    file = os.environ.get("ENVCHECK_SARIF_SCHEMA")
    if not file:
        pytest.skip("ENVCHECK_SARIF_SCHEMA names no copy of the schema that OASIS publishes")
    validator = jsonschema.Draft4Validator(json.loads(Path(file).read_text(encoding="utf-8")))
    for attack in ("", "".join(ATTACKS[:-1])):
        validator.validate(json.loads(render(carrying(EXAMPLES[name](), attack), "sarif")))


SERIES = re.compile(r'envcheck_[a-z_]+(?:\{(?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+\})? -?[0-9][0-9.]*(?:e[+-]?[0-9]+)?')


def check_prometheus(text: str) -> None:
    """Each metric has its head once and right above, and no series stands twice."""
    names, series = [], []
    for line in text.splitlines():
        if line.startswith("# HELP "):
            names.append(line.split(" ")[2])
        elif not line.startswith("# TYPE "):
            assert SERIES.fullmatch(line), line
            assert re.split(r"[{ ]", line)[0] == names[-1]
            series.append(line.rpartition(" ")[0])
    assert len(names) == len(set(names))
    assert len(series) == len(set(series))


def check_all(found: Report) -> None:
    """Each format is as its readers need it."""
    shown = {form: render(found, form) for form in FORMS}
    assert issued(found)
    check_prometheus(shown["prometheus"])
    status = shown["nagios"]
    assert re.fullmatch(r"ENVCHECK (OK|WARNING|CRITICAL|UNKNOWN) - [^|\n]* \| [a-z0-9=;:. ]+\n", status)
    assert len(status.encode()) < 4000
    message = shown["node-problem-detector"]
    assert message.count("\n") == 1
    assert 1 < len(message.encode()) <= MOST_BYTES + 1
    entries = json.loads(shown["gitlab"])
    assert all(set(entry) == {"description", "check_name", "fingerprint", "severity", "location"} for entry in entries)
    for form in FORMS:
        assert all(line.isprintable() for line in shown[form].split("\n")), form


@every(*((name, "") for name in EXAMPLES), *(("warned", attack) for attack in ATTACKS))
def test_whatever_the_names(name: str, attack: str) -> None:
    check_all(carrying(EXAMPLES[name](), attack))


@settings(max_examples=15, deadline=None)
@given(attacks)
def test_whatever_the_text(attack: str) -> None:
    check_all(carrying(placed(), attack))


def test_figures_are_metrics_in_base_units() -> None:
    found = gpu(0)
    measured = Measurement(name="gemm", gpu=found.uuid, precision="bf16", value=8.2e14, unit="FLOP/s")
    latency = Measurement(name="launch-latency", gpu=found.uuid, value=2.5e-6, unit="s")
    lost = Measurement(name="fma", gpu=found.uuid, unit="FLOP/s")
    text = render(report([], machine((found,), None), measurements=(measured, latency, lost)), "prometheus")
    check_prometheus(text)
    about = f'gpu="0",uuid="{found.uuid}"'
    assert f'envcheck_measured_flop_per_second{{figure="gemm-bf16",{about}}} 820000000000000.0' in text
    assert f'envcheck_measured_seconds{{figure="launch-latency",{about}}} 2.5e-06' in text
    assert "fma" not in text


@cases("name, exit_code, nagios, detector",
    ("healthy", 0, 0, 0), ("driver-too-old", 1, 2, 1), ("unknown-nvml", 3, 3, 2), ("warned", 0, 1, 0),
    ("warned", 1, 1, 1), ("healthy", 130, 3, 2),
)  # fmt: skip
def test_exit_statuses_are_those_of_the_reader(name: str, exit_code: int, nagios: int, detector: int) -> None:
    found = msgspec.structs.replace(EXAMPLES[name](), exit_code=exit_code)
    assert exit_status(found, "nagios") == nagios
    assert exit_status(found, "node-problem-detector") == detector
    assert {exit_status(found, form) for form in set(FORMATS) - {"nagios", "node-problem-detector"}} == {exit_code}


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A report whose facts judge as a failure."""
    file = tmp_path / "report.json"
    file.write_text(render(EXAMPLES["no-gpu"](), "json"))
    return str(file)


def test_the_command_line_exits_as_the_reader_expects(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--from", saved]) == 1
    assert main(["check", "--from", saved, "--format", "nagios"]) == 2
    assert capsys.readouterr().out.splitlines()[-1].startswith("ENVCHECK CRITICAL - ")
    assert main(["check", "--from", saved, "-o", "nagios:/dev/null"]) == 1


def test_the_summary_of_the_job_is_appended(
    saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert main(["check", "--from", saved]) == 1
    assert summary.read_text() == "before\n"
    assert main(["check", "--from", saved, "--format", "github"]) == 1
    assert summary.read_text().startswith("before\n### ")
    assert "node1" not in summary.read_text()
    once = len(summary.read_text())
    assert main(["check", "--from", saved, "-o", f"github:{tmp_path / 'out'}"]) == 1
    assert len(summary.read_text()) > once
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    capsys.readouterr()
    assert main(["check", "--from", saved, "--format", "github"]) == 1
    told = capsys.readouterr()
    assert "cannot write the job's summary" in told.err
    assert told.out.startswith("::error ")


def test_a_textfile_appears_whole(saved: str, tmp_path: Path) -> None:
    folder = tmp_path / "textfiles"
    folder.mkdir()
    file = folder / "envcheck.prom"
    file.write_text("old\n")
    before = file.stat().st_ino
    assert main(["check", "--from", saved, "-o", f"prometheus:{file}"]) == 1
    assert [path.name for path in folder.iterdir()] == ["envcheck.prom"]
    assert file.stat().st_ino != before
    check_prometheus(file.read_text())


# --- JUnit: one case a check, counts that add up, and XML whatever the names ----------------------------------------
def suites(found: Report) -> ET.Element:
    return ET.fromstring(render(found, "junit").encode())


def case(found: Report, rule: str) -> ET.Element:
    return next(element for element in suites(found).iter("testcase") if element.attrib["name"].startswith(rule))


def outcomes(element: ET.Element) -> list[str]:
    return [child.tag for child in element]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_case_for_each_check_and_counts_that_add_up(name: str) -> None:
    found = EXAMPLES[name]()
    root = suites(found)
    assert len(list(root.iter("testcase"))) == len(found.checks)
    for total in (root, *root.iter("testsuite")):
        inside = list(total.iter("testcase"))
        assert int(total.attrib["tests"]) == len(inside)
        counts = {"failures": "failure", "errors": "error"} | ({} if total is root else {"skipped": "skipped"})
        for count, tag in counts.items():
            assert int(total.attrib[count]) == sum(tag in outcomes(element) for element in inside)


def test_a_failure_tells_evidence_and_fix() -> None:
    found = case(EXAMPLES["driver-too-old"](), "driver-too-old@")
    assert outcomes(found) == ["failure"]
    assert found[0].attrib == {"message": "The driver is too old for the CUDA 12.6 of torch", "type": "fail"}
    assert "seen: driver release: 470.256.02" in (found[0].text or "")
    assert "fix (root): Install driver 525.60.13 or newer: apt-get install" in (found[0].text or "")


def test_red_agrees_with_the_exit_status() -> None:
    for name, build in EXAMPLES.items():
        root = suites(build())
        assert bool(int(root.attrib["failures"]) + int(root.attrib["errors"])) == bool(build().exit_code), name


def test_a_warning_is_a_failure_only_where_it_made_the_status() -> None:
    warned = EXAMPLES["warned"]()
    assert outcomes(case(warned, "row-remap-pending")) == ["system-out"]
    assert outcomes(case(msgspec.structs.replace(warned, exit_code=1), "row-remap-pending")) == ["failure"]


def test_what_was_not_judged_never_passes() -> None:
    lacking = check("driver-too-old", "unknown", missing=(Missing(fact="driver.release", probe="nvml"),))
    open_question = report([lacking], machine((), None), verdict="unknown")
    assert outcomes(case(open_question, "driver-too-old")) == ["error"]
    assert "the driver version" in case(open_question, "driver-too-old")[0].attrib["message"]
    assert outcomes(case(report([lacking, check("gpu-lost")], machine((), None)), "driver-too-old")) == ["skipped"]
    assert outcomes(case(report([check("gpu-lost", "skipped")], machine((), None)), "gpu-lost")) == ["skipped"]


def test_what_a_policy_ignores_is_skipped_with_its_reason() -> None:
    found = case(report([check("gpu-lost", "fail", ignored=Ignored(reason="known"))], machine((), None)), "gpu-lost")
    assert (outcomes(found), found[0].attrib["message"]) == (["skipped"], "ignored by policy: known")


def test_no_check_is_an_error() -> None:
    root = suites(report([], machine((), None), verdict="unknown"))
    assert (root.attrib["tests"], root.attrib["errors"]) == ("1", "1")


def test_no_verdict_is_an_error_even_where_nothing_is_unknown() -> None:
    root = suites(report([check("gpu-lost", "skipped"), check("mig-odd")], machine((), None), verdict="unknown"))
    assert (root.attrib["tests"], root.attrib["errors"]) == ("3", "1")
    assert sum(int(suite.attrib["skipped"]) for suite in root) == 1


@cache
def schema() -> xmlschema.XMLSchema:
    """Of Jenkins' xunit-plugin, under the MIT licence: JUnit itself has published none."""
    return xmlschema.XMLSchema(str(Path(__file__).parent / "schemas" / "junit-10.xsd"))


@every(*((name, "") for name in EXAMPLES), *(("warned", attack) for attack in ATTACKS))
def test_it_fits_the_schema_of_jenkins(name: str, attack: str) -> None:
    schema().validate(render(carrying(EXAMPLES[name](), attack), "junit"))


def test_the_schema_refuses_what_is_no_junit() -> None:
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        schema().validate('<testsuites><testsuite name="a"/></testsuites>')


@every(*((name, "".join(ATTACKS[:-1])) for name in EXAMPLES), *(("driver-too-old", attack) for attack in ATTACKS))
def test_xml_whatever_the_names(name: str, attack: str) -> None:
    root = suites(carrying(EXAMPLES[name](), attack))
    assert {element.tag for element in root.iter()} <= {
        *("testsuites", "testsuite", "testcase", "properties", "property", "failure", "error", "skipped"),
        "system-out",
    }


@settings(max_examples=40)
@given(attacks)
def test_xml_whatever_the_text(attack: str) -> None:
    assert len(list(suites(carrying(EXAMPLES["driver-too-old"](), attack)).iter("testcase"))) == 11


def test_it_names_the_machine_unless_told_not_to() -> None:
    """A format for machines: whoever collects it must know where it is from."""
    assert 'hostname="node1"' in render(EXAMPLES["warned"](), "junit")
    assert "node1" not in render(EXAMPLES["warned"](), "junit", Options(redact=True))


DIFF = (Path(__file__).with_name("data") / "fix.diff").read_text(encoding="utf-8")


def planned_failure(file: str, status: Status = "fail") -> Report:
    found = check("gpu-code-missing", status, "No code", location=Location(file=file, line=3))
    return report([found], machine((), None), primary=found if status == "fail" else None)


@cases("file, uri", ("requirements.txt", "requirements.txt"), ("/requirements.txt", "file:///requirements.txt"))
def test_sarif_offers_the_edits_that_make_the_plan_fit(file: str, uri: str) -> None:
    (result,) = json.loads(render(planned_failure(file), "sarif", Options(edits=DIFF)))["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["artifactLocation"]["uri"] == uri
    lines = [f"line {number}\n" for number in range(1, 12)]
    lines[1:4], lines[8:10] = ["numpy==2.2.6\n", "torch==2.5.1\n", "six\n"], ["torchvision==0.20.1\n", "tqdm\n"]
    for each in reversed(change["replacements"]):
        region = each["deletedRegion"]
        assert region["startColumn"] == region["endColumn"] == 1
        lines[region["startLine"] - 1 : region["endLine"] - 1] = [each["insertedContent"]["text"]]
    text = "".join(lines)
    assert "numpy==2.2.6\n--extra-index-url https://download.pytorch.org/whl/cu128\ntorch==2.7.0\nsix\n" in text
    assert text.endswith("torchvision==0.22.0\ntqdm\nline 11\n")


@cases(
    "file, diff, status", ("other.txt", DIFF, "fail"), ("requirements.txt", "", "fail"),
    ("requirements.txt", DIFF.replace("six", "--index-url https://me:hunter2@example.org/simple"), "fail"),
    ("requirements.txt", DIFF, "warn"),
)  # fmt: skip
def test_sarif_offers_no_edit_of_what_it_cannot_name_or_show(file: str, diff: str, status: Status) -> None:
    (result,) = json.loads(render(planned_failure(file, status), "sarif", Options(edits=diff)))["runs"][0]["results"]
    assert "fixes" not in result
    assert "hunter2" not in json.dumps(result)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_rule_of_sarif_is_described_in_a_sentence(name: str) -> None:
    for rule in json.loads(render(EXAMPLES[name](), "sarif"))["runs"][0]["tool"]["driver"]["rules"]:
        assert rule["fullDescription"]["text"].endswith(".")
        assert len(rule["fullDescription"]["text"]) > 1
