"""Environments of real wheels: of broken ones the cause is named and its fixes lead out, of healthy ones nothing."""

import platform
import shutil
from pathlib import Path

import pytest

from tests.lab.laboratory import bench
from tests.lab.laboratory.entry import Broken, Healthy
from tests.lab.laboratory.store import Store

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the wheels asked for are for x86_64"),
]


@pytest.mark.parametrize("entry", bench.BROKEN, ids=lambda entry: entry.name)
def test_the_cause_is_named_and_the_fixes_lead_out(entry: Broken, tmp_path: Path, store: Store) -> None:
    try:
        outcome = bench.put(entry, tmp_path, store)
    finally:
        shutil.rmtree(tmp_path, ignore_errors=True)
    assert outcome.before or not entry.works, "this environment is not broken"
    assert outcome.right, bench.line(outcome)
    assert outcome.led, bench.line(outcome)


@pytest.mark.parametrize("entry", bench.HEALTHY, ids=lambda entry: entry.name)
def test_a_healthy_environment_is_left_in_peace(entry: Healthy, tmp_path: Path, store: Store) -> None:
    try:
        health = bench.examine(entry, tmp_path, store)
    finally:
        shutil.rmtree(tmp_path, ignore_errors=True)
    assert (health.broken, health.alarms) == ("", [])
