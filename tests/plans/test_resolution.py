"""What pip makes of pins that exclude each other, of what is there already, and of a system without wheels."""

from pathlib import Path

from envcheck.model.checks import PLAN
from envcheck.model.snapshot import Driver, Listing, Snapshot
from envcheck.pipeline import session
from envcheck.pipeline.request import Request
from envcheck.report import Options, render
from tests.plans.reading import judge, named, plan

H100 = "gpu==H100,driver==580.65.06"


def test_what_pytorch_brings_is_that_of_its_release(tmp_path: Path) -> None:
    environment = plan(tmp_path, requirements__txt="torch==2.2.1\ntriton==1.1.1\n")  # for some Pythons pip refuses both
    assert named(judge(environment, "gpu==RTX 4090,driver==535.183.01"), PLAN, "triton").status == "warn"
    environment = plan(tmp_path, requirements__txt="torch==2.2.1\ntriton==2.2.0\n")
    assert not [check for check in judge(environment, H100).checks if check.subject.key.endswith(":triton")]


def test_two_lines_that_exclude_each_other_follow_from_a_rule_about_both(tmp_path: Path) -> None:
    report = judge(plan(tmp_path, requirements__txt="torch==2.7.0\ntorchvision==0.20.0\n"), H100)
    (found,) = (check for check in report.checks if "cannot be installed together" in check.title)
    assert (found.explained_by or "").startswith("torch-family-mismatch@")


def test_what_no_row_names_is_said_on_the_page(tmp_path: Path) -> None:
    report = judge(
        plan(tmp_path, requirements__txt="torch==2.7.0\nvlm==0.9\neinops\ninhouse\nflash-atn\nother\n"), H100
    )
    assert report.verdict == "pass"
    assert "Not known to the matrix: vlm, inhouse, flash-atn and 1 more." in render(report, "text", Options())


def test_without_a_gpu_a_plan_asks_for_the_machine(tmp_path: Path) -> None:
    chosen = plan(tmp_path, requirements__txt="torch==2.7.0\n")
    machine = Snapshot(gpus=Listing(items=(), complete=True), driver=Driver(installed=False, source="files"))
    report = session.judge(machine, Request(planned=chosen))
    found = next(check for check in report.checks if check.rule == "no-nvidia-gpu")
    assert found.status == "fail"
    assert [fix.text for fix in found.fixes] == [
        "Name the machine that the plan is for, by its GPU and driver, with --assume or --target"
    ]
