"""JUnit: one case a check, counts that add up, and XML whatever the names."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest
import xmlschema
from hypothesis import given, settings

from envcheck.checks import Ignored, Missing, Report
from envcheck.report import Options, render
from tests.every import every
from tests.report.examples import EXAMPLES, check, machine, report
from tests.report.foreign import ATTACKS, attacks, carrying


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
    aside = check("gpu-lost", "fail", ignored=Ignored(reason="known"))
    found = case(report([aside], machine((), None)), "gpu-lost")
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


@every([*((name, "") for name in EXAMPLES), *(("warned", attack) for attack in ATTACKS)])
def test_it_fits_the_schema_of_jenkins(name: str, attack: str) -> None:
    schema().validate(render(carrying(EXAMPLES[name](), attack), "junit"))


def test_the_schema_refuses_what_is_no_junit() -> None:
    with pytest.raises(xmlschema.XMLSchemaValidationError):
        schema().validate('<testsuites><testsuite name="a"/></testsuites>')


@every([*((name, "".join(ATTACKS[:-1])) for name in EXAMPLES), *(("driver-too-old", attack) for attack in ATTACKS)])
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
