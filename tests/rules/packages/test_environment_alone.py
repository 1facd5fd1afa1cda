"""Judging an environment alone (``--scope env``), where no GPU or driver is at hand to compare it with."""

from __future__ import annotations

import pytest

from envcheck.checks import Report
from envcheck.events import ignore
from envcheck.pipeline.judging import judge
from envcheck.pipeline.request import Request
from envcheck.snapshot import Driver, Environment, Framework, Listing, Snapshot
from tests.rules.machines import NO_DRIVER, but, library, machine, torch, venv, with_venv, without_gpu

CPU_BUILD = torch("2.13.0+cpu", None, cpu_only=True, gpu_code=None)
CU130 = torch("2.13.0+cu130", "13.0")
ON_DISK = Driver(
    source="file", installed=True, libraries=Listing(items=(library("libcuda.so.1", "535.261.03"),), complete=True)
)


def alone(snapshot: Snapshot) -> Report:
    return judge(snapshot, Request(scopes=frozenset({"env"})), ignore, started=0.0)


def bare(*frameworks: Framework, **changes: object) -> Snapshot:
    return with_venv(without_gpu(**changes), venv(*frameworks))


def row(report: Report, rule: str) -> str:
    return next(check.status for check in report.checks if check.rule == rule)


def test_a_cuda_build_passes_and_the_headline_says_what_it_was_not_compared_with() -> None:
    report = alone(bare(torch()))
    assert (report.verdict, int(report.exit_code)) == ("pass", 0)
    assert report.headline == "Environment is consistent; not compared with a GPU or driver"
    assert row(report, "driver-too-old") == "skipped"


@pytest.mark.parametrize(
    ("frameworks", "said"),
    [
        ((CPU_BUILD,), "Environment is consistent; torch is a CPU build"),
        ((CPU_BUILD, torch()), "Environment is consistent; not compared with a GPU or driver"),
        ((), "Environment is consistent; not compared with a GPU or driver"),
    ],
)
def test_the_headline_claims_nothing_of_a_gpu(frameworks: tuple[Framework, ...], said: str) -> None:
    report = alone(bare(*frameworks))
    assert (report.verdict, report.headline) == ("pass", said)


def test_a_cpu_build_is_a_note() -> None:
    assert row(alone(bare(CPU_BUILD)), "cpu-only-build") == "note"


@pytest.mark.parametrize(("framework", "verdict"), [(CU130, "fail"), (torch(), "pass")])
def test_the_driver_library_on_disk_judges_the_build(framework: Framework, verdict: str) -> None:
    report = alone(bare(framework, driver=ON_DISK))
    assert report.verdict == verdict
    assert row(report, "driver-too-old") == verdict
    if verdict == "fail":
        assert (report.primary, int(report.exit_code)) == ("driver-too-old", 1)
        told = next(check for check in report.checks if check.rule == "driver-too-old")
        assert "its library on disk" in told.message
        assert any("libcuda.so.535.261.03" in each.what for each in told.evidence)
    else:
        assert report.headline == "Environment is consistent; not compared with a GPU"


def test_a_stub_on_disk_is_no_driver() -> None:
    stub = but(library("libcuda.so.1", "535.261.03"), kind="stub", version=None)
    driver = but(NO_DRIVER, libraries=Listing(items=(stub,), complete=True))
    assert row(alone(bare(CU130, driver=driver)), "driver-too-old") == "skipped"


def test_where_the_driver_could_not_be_read_its_row_stays_open() -> None:
    report = alone(bare(CU130, driver=None, kernel=None))
    assert row(report, "driver-too-old") == "skipped"
    assert "driver.release" in report.ask


def test_a_gpu_and_a_driver_that_are_there_are_compared() -> None:
    report = alone(machine())
    assert (report.verdict, report.headline) == ("pass", "GPU, driver and frameworks look compatible")


def test_an_unknown_environment_is_no_pass() -> None:
    report = alone(Snapshot(environments=Listing[Environment](items=(), complete=False)))
    assert (report.verdict, int(report.exit_code)) == ("unknown", 3)


def test_a_base_interpreter_that_is_gone_accounts_for_all_that_is_found_in_its_environment() -> None:
    broken = but(venv(CPU_BUILD, CU130), problem="the Python that it was made from is gone: /opt/python3.12")
    found = judge(with_venv(machine(), broken), Request(), ignore, started=0.0)
    bad = [each for each in found.checks if each.status in ("fail", "warn", "unknown") and each.subject.environment]
    assert found.primary == "environment-broken"
    assert {"cpu-only-build", "driver-too-old"} <= {each.rule for each in bad}
    assert [each.rule for each in bad if each.explained_by is None] == ["environment-broken"]
