"""What plans are judged to be, with file and line; and what must never be green."""

import datetime as dt
import re
from pathlib import Path
from typing import Any

import pytest

from envcheck.knowledge.load import load_matrix
from envcheck.knowledge.specifier import parse_specifier
from envcheck.knowledge.tables.packages import CondaBuildRow
from envcheck.model.checks import FORBIDDEN, PLAN, Report
from envcheck.model.components import parse_components
from envcheck.pipeline import session
from envcheck.pipeline.request import Ignoring, Policy, Request
from envcheck.report import render
from tests.every import cases
from tests.plans.reading import judge, named, plan

A100 = "gpu==A100,driver==515.105.01"


@cases("gpu", "RTX 5090", "B200")
def test_torch_without_code_for_the_gpu_fails_with_its_line(tmp_path: Path, gpu: str) -> None:
    report = judge(plan(tmp_path, requirements__txt="numpy\ntorch==2.0.1\n"), f"gpu=='{gpu}'")
    check = named(report, "gpu-code-missing", "torch")
    assert (report.exit_code, report.primary, check.status) == (1, "gpu-code-missing", "fail")
    assert check.location is not None
    assert (check.location.file, check.location.line) == (f"{tmp_path}/requirements.txt", 2)
    assert f"{tmp_path}/requirements.txt:2" in [part.source for part in check.evidence]


@cases("older, newer, gpu, status",
    ("2.5.1", "2.8.0", "RTX 5090", "unknown"),  # though PyPI's 2.7.1 and 2.8.0, which lie between, do
    ("2.8.0", "2.9.0", "RTX 5090", "pass"),
    ("2.4.1", "2.5.1", "RTX 5090", "fail"),
)  # fmt: skip
def test_a_pin_by_python_fits_where_each_one_does(
    tmp_path: Path, older: str, newer: str, gpu: str, status: str
) -> None:
    text = f"torch=={older}; python_version < '3.11'\ntorch=={newer}; python_version >= '3.11'\n"
    report = judge(plan(tmp_path, requirements__txt=text), f"gpu=='{gpu}',driver==570.86.10")
    assert report.verdict == status


def test_fixes_of_a_plan_run_no_command_in_an_environment(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt="torch==2.2.1\nnumpy==2.0.0\n"), "gpu==H100", tried=False)
    fixes = next(each for each in report.checks if each.rule == "numpy-abi-mismatch").fixes
    assert any(fix.changes for fix in fixes)
    assert not any(fix.command for fix in fixes if fix.changes)


@pytest.mark.parametrize("row", load_matrix().conda_builds, ids=lambda row: row.id)
def test_every_row_of_a_channels_builds_is_reached(tmp_path: Path, row: CondaBuildRow) -> None:
    pytest.importorskip("yaml")
    version = ".".join(map(str, (*parse_specifier(row.versions).bounds[0].numbers, 1)[:3]))
    tag = row.cuda.replace(".", "")
    known = (f"py3.9_cuda{row.cuda}_cudnn8.5.0_0", f"cuda{tag}_py39h954aa82_300", f"cuda{tag}_mkl_py39_h954aa82_300")
    numbered = (f"cuda{tag}py39h954aa82_{number}" for number in range(200, 204))
    build = next(text for text in (*known, *numbered) if re.fullmatch(row.builds, text))
    environment = plan(tmp_path, environment__yml=f"dependencies: [{row.name}={version}={build}]\n")
    assert environment.frameworks is not None
    (found,) = environment.frameworks.items
    assert (found.cuda, found.gpu_code) == (row.cuda, row.targets)


def test_ids_are_unique_where_one_line_leaves_two_things_open(tmp_path: Path) -> None:
    text = "FROM debian\nRUN pip install $ONE $TWO && uv sync && pip install ./a ./b\n"
    report = judge(plan(tmp_path, Dockerfile=text), A100)
    ids = [check.id for check in report.checks]
    assert len(ids) == len(set(ids))
    assert report.exit_code == 3


def test_the_scope_of_the_environment_alone_is_enough(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt="torch==2.0.1\ntorchvision==0.14.0\n")
    report = session.check(Request(planned=environment, scopes=frozenset({"env"}), assume=parse_components("gpus==0")))
    assert report.exit_code == 1


def _by(tmp_path: Path, **asked: Any) -> Report:
    environment = plan(tmp_path, requirements__txt="torch==2.4.0\nvllm==0.6.0\n")
    return session.check(
        Request(assume=parse_components("gpu==B200,os==linux,machine==x86_64"), planned=environment, **asked)
    )


def test_findings_of_a_plan_are_selected_and_configured_by_their_name(tmp_path: Path) -> None:
    every_finding = [check for check in _by(tmp_path).checks if check.rule == PLAN]
    assert {check.status for check in every_finding} >= {"fail"}
    alone = _by(tmp_path, only=(PLAN,))
    assert {check.rule for check in alone.checks if check.status == "fail"} == {PLAN}
    assert PLAN not in {check.rule for check in _by(tmp_path, skip=(PLAN,)).checks}
    ignoring = Ignoring(problem=PLAN, reason="known", until=dt.date(2030, 1, 1))
    set_aside = _by(tmp_path, policy=Policy(ignore=(ignoring,), today=dt.date(2029, 1, 1)))
    assert all(check.ignored for check in set_aside.checks if check.rule == PLAN and check.status == "fail")


def test_forbidden_without_a_plan_is_not_said_to_be_absent() -> None:
    found = session.check(
        Request(assume=parse_components("gpu==B200"), scopes=frozenset({"env"}), policy=Policy(forbid=(PLAN,)))
    )
    (check,) = (check for check in found.checks if check.rule == FORBIDDEN)
    assert (check.status, check.title) == ("unknown", f"Forbidden, not checked: {PLAN}")


@cases("text, exit_code", ("torch==2.5.1\ntorch-scatter==2.1.2\n", 0), ("torch-scatter==2.1.2\n", 3))
def test_what_a_plan_leaves_open_may_be_ignored_beside_what_was_judged(
    tmp_path: Path, text: str, exit_code: int
) -> None:
    environment = plan(tmp_path, requirements__txt=text)
    assume = parse_components("gpu==A100,driver==550.54.14,os==linux,machine==x86_64")
    opened = session.check(Request(assume=assume, planned=environment))
    assert opened.exit_code == 3
    (check,) = (each for each in opened.checks if each.rule == PLAN and each.status == "unknown")
    ignoring = Ignoring(problem=check.id, reason="built in our image", until=dt.date(2030, 1, 1))
    policy = Policy(ignore=(ignoring,), today=dt.date(2029, 1, 1))
    report = session.check(Request(assume=assume, planned=environment, policy=policy))
    assert report.exit_code == exit_code
    assert ('failures="0" errors="0"' in render(report, "junit").splitlines()[1]) is (exit_code == 0)
