"""Several reports of one name: the newest of each machine counts, and no machine is lost."""

from __future__ import annotations

from typing import Any

import pytest

from envcheck.fleet.examine import Examined, GpuFacts, newest


def report(path: str, created: str = "", gpus: str = "", name: str = "localhost", **more: Any) -> Examined:
    """A report; each letter of ``gpus`` is a GPU."""
    facts = tuple(GpuFacts(f"GPU {place}", "H200", uuid, None) for place, uuid in enumerate(gpus))
    return Examined(node=name, path=path, created=created, gpus=facts, **more)


def kept(*reports: Examined) -> list[str]:
    found, left_out = newest(reports)
    assert left_out == len(reports) - len(found)
    return [node.path for node in found]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"),
        ("2026-01-01T03:00:00+02:00", "2026-01-01T02:00:00Z"),
        ("2026-01-01T00:00:00-11:00", "2026-01-01T12:00:00Z"),
        ("2026-01-01T00:00:00", "2026-01-01T00:00:00.5Z"),
        ("2999-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59-12:00", "1970-01-01T00:00:00Z"),
        ("", "1970-01-01T00:00:00Z"),
        ("tomorrow", "1970-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"),
    ],
)
def test_the_newest_counts_whatever_its_time_zone(older: str, newer: str) -> None:
    assert kept(report("a", older, "xy"), report("b", newer, "xy")) == ["b"]
    if older != newer:  # of the same time, the last
        assert kept(report("b", newer, "xy"), report("a", older, "xy")) == ["b"]


def test_machines_of_one_name_are_rows_with_their_files() -> None:
    found, left_out = newest([report("a", gpus="x"), report("b", gpus="y"), report("c", gpus="x", name="other")])
    assert [node.node for node in found] == ["localhost (a)", "localhost (b)", "other"]
    assert left_out == 0


def test_a_machine_that_lost_or_got_a_gpu_is_the_same() -> None:
    first, second, third = (
        report(path, f"2026-01-01T00:00:0{number}Z", gpus)
        for number, (path, gpus) in enumerate([("a", "wx"), ("b", "xy"), ("c", "yz")])
    )
    assert kept(first, second, third) == ["c"]


def test_a_report_that_names_no_gpu_is_of_no_other_machine() -> None:
    assert kept(report("a", "2026-01-02T00:00:00Z"), report("b", "2026-01-01T00:00:00Z", "x")) == ["a"]
    assert kept(report("a"), report("b", problem="it printed no report")) == ["a"]


def test_as_many_machines_of_one_name_as_there_may_be_take_no_longer_than_others() -> None:
    machines = [report(f"{number}", gpus=chr(0x4E00 + number)) for number in range(20_000)]
    assert len(newest(machines)[0]) == 20_000
