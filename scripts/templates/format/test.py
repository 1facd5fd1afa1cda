"""The format ``example-thing``."""

import pytest

from envcheck.report import FORMATS, Options, render
from tests.report.examples import EXAMPLES


def test_the_format_is_listed() -> None:
    assert "example-thing" in FORMATS


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_every_check_is_shown(name: str) -> None:
    report = EXAMPLES[name]()
    lines = render(report, "example-thing").splitlines()
    assert lines[0] == f"verdict: {report.verdict}"
    assert len(lines) == len(report.checks) + 1


def test_a_quiet_report_has_the_verdict_alone() -> None:
    report = next(iter(EXAMPLES.values()))()
    assert render(report, "example-thing", Options(quiet=True)) == f"verdict: {report.verdict}\n"
