"""The bill of materials, by the schema of CycloneDX."""

import json

import pytest

pytest.importorskip("cyclonedx", reason="the extra 'sbom' is not installed")

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from envcheck.report import render
from tests.report.examples import EXAMPLES

REPORTS = {name: found for name, make in EXAMPLES.items() if not (found := make()).targets}


@pytest.mark.parametrize("example", sorted(REPORTS))
def test_every_report_is_a_valid_bill_and_the_same_each_time(example: str) -> None:
    text = render(REPORTS[example], "cyclonedx")
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert render(REPORTS[example], "cyclonedx") == text


def test_what_was_found_is_a_property_of_what_it_is_about() -> None:
    failing = [found for name, found in REPORTS.items() if found.verdict == "fail" and name != "hostile"]
    assert failing
    for found in failing:
        document = json.loads(render(found, "cyclonedx"))
        properties = [*document["metadata"]["properties"]]
        properties += [prop for each in document.get("components", ()) for prop in each.get("properties", ())]
        told = {prop["name"] for prop in properties}
        assert "envcheck:verdict" in told
        assert {f"envcheck:check:fail:{check.rule}" for check in found.checks if check.status == "fail"} <= told
